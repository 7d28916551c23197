"""Lines about networks: those of NIC drivers by what failed, and faults that a later line of the log ends."""

from __future__ import annotations

import pytest

from probes.kernel.log_events import events
from probes.kernel.log_facts import LogEvent
from probes.kernel.log_lines import keep_read_lines, lines
from probes.kernel.network_families import FAMILIES, read_family
from probes.kernel.passing_faults import PASSING_FAULTS

NIC = "0000:5e:00.0"
MLX5 = f"mlx5_core {NIC}: mlx5_xyz:812:(pid 2211): "
LINES = {
    f"hns3 {NIC}: PPP_MPF_ABNORMAL_INT_ST2 xyz found [error status=0x40]": "nic-hardware",
    f"cxgb4 {NIC}: LE FIFO parity error": "nic-hardware",
    f"ixgbe {NIC}: The EEPROM Checksum Is Not Valid, error": "nic-hardware",
    f"{MLX5}PCI channel offline, fatal": "nic-gone",
    f"mlx4_core {NIC}: slave driver version is not supported by the master": "firmware-mismatch",
    f"ixgbe {NIC} ens3: failed to load because an unsupported SFP+ or QSFP module type was detected.": "module-refused",
    f"{MLX5}Failed to request irq. err = -28": "nic-interrupts",
    f"ice {NIC}: unable to reserve MSI-X vectors": "nic-interrupts",
    f"ena {NIC}: failed to alloc irq rmap": "nic-interrupts",
    f"{MLX5}mlx5_device_enable_sriov failed : -12": "vf-refused",
    f"ixgbe {NIC}: Failed to enable PCI sriov: -22": "vf-refused",
    f"{MLX5}Failed to activate RoCE LAG": "roce-lag",
    f"{MLX5}Can't enable single FDB mode": "roce-lag",
    f"mlx5_core {NIC} ens3f0np0: mlx5e_dcbnl_xyz, Failed to set PFC: -22": "qos-refused",
    f"ice {NIC}: Set DCB Config failed": "qos-refused",
    "infiniband mlx5_4: add_roce_xyz GID add failed port=1 index=255": "gid-refused",
    f"{MLX5}Failed to add RoCE address: -28": "gid-refused",
    f"{MLX5}Failed to enable RoCE: -5": "rdma-start",
    f"bnxt_en {NIC} ens3f0np0: Failed to add auxiliary device for ROCE": "rdma-start",
    f"idpf {NIC} ens3: Detected Tx timeout: Count 4, Queue 9": "queue-stalled",
    f"{MLX5}CQ error on CQN 0x4b1, syndrome 0x1": "queue-error",
    f"mlx5_core {NIC} ens3f0np0: Failed to move sq 0x81 to ready": "queue-error",
    f"{MLX5}mlx5_pci_link_toggle failed": "reset-incomplete",
    f"ice {NIC}: Rebuild of main VSI failed again": "reset-incomplete",
    f"gve {NIC}: AQ commands timed out, need to reset AQ": "firmware-silent",
    f"mana {NIC}: HWC: Request timed out!": "firmware-silent",
    f"idpf {NIC}: The driver was unable to contact the device's firmware. Check that the FW is running.":
        "firmware-silent",
    f"ionic {NIC}: Cannot map dbpage, aborting": "nic-start",
    f"{MLX5}handle_hca_cap_roce failed": "nic-start",
    f"hinic {NIC}: Failed to initialize the mailbox": "nic-start",
    f"bnxt_en {NIC} (unnamed net_device) (uninitialized): hwrm_func_init failed": "nic-start",
    f"{MLX5}mlx5_frag_buf_alloc_node() failed, -12": "nic-memory",
    f"ice {NIC}: Unable to allocate memory for the Rx descriptor ring, size=65536": "nic-memory",
    "infiniband hns_2: failed to create QP, ret = -12": "rdma-refused",
    f"bnxt_en {NIC} ens3f0np0: failed to update phy setting (rc: -5)": "port-setup",
    f"{MLX5}QUERY_XYZ(0x771) op_mod(0x0) failed, status bad parameter(0x3), syndrome (0x5e9), err(-22)":
        "command-refused",
}  # fmt: skip


def read(*texts: str) -> list[LogEvent]:
    log = "\n".join(f"[{100 + number:12.6f}] {text}" for number, text in enumerate(texts))
    return [event for event in events(lines(log, None))[0] if event.code != "unexplained"]


@pytest.mark.parametrize(("text", "code"), LINES.items(), ids=LINES.values())
def test_a_line_is_read_by_what_failed(text: str, code: str) -> None:
    """The same part as a sentence of its own would name."""
    (event,) = read(text)

    assert ("driver", code) == (event.kind, event.code)
    assert event.subject in (NIC, "mlx5_4", "hns_2")


def test_each_family_has_a_line() -> None:
    assert {family.code for family in FAMILIES} == set(LINES.values())


def test_a_line_names_its_interface_and_command() -> None:
    (queue,) = read(f"mlx5_core {NIC} ens3f0np0: Failed to move sq 0x81 to ready")
    (refused,) = read(next(text for text in LINES if "op_mod" in text))

    assert {"interface": "ens3f0np0"} == dict(queue.detail)
    assert {"command": "QUERY_XYZ", "what": "bad parameter"} == dict(refused.detail)


@pytest.mark.parametrize(
    "text",
    [
        f"{MLX5}FWTracer: Failed to allocate PD -12",
        f"ice {NIC}: Failed to initialize PTP, error -5",
        f"ena {NIC}: ena_devlink_alloc failed",
        f"bnxt_en {NIC} ens3: RX ring reset failed, rc = -5, falling back to global reset",
        f"{MLX5}Waiting for FW initialization, timeout abort in 100s (0x1)",
        "nvme nvme0: failed to allocate memory",
        f"mlx5_core {NIC}: E-Switch: failed xyz",
    ],
)
def test_what_a_nic_works_without_and_other_parts_are_of_no_family(text: str) -> None:
    assert read_family(text) is None


@pytest.mark.parametrize(
    "text",
    [
        f"mlx5_core {NIC}: firmware version: 28.39.2048",
        f"mlx5_core {NIC}: Rate limit: 127 rates are supported, range: 0Mbps to 97656Mbps",
        f"mlx5_core {NIC}: E-Switch: Total vports 2, per vport: max uc(128) max mc(2048)",
        f"mlx5_core {NIC} ens3f0np0: Dropping C-tag vlan stripping offload due to S-tag vlan",
        f"ice {NIC}: DDP package does not support 802.1ad, enabled double VLAN mode",
        f"ice {NIC}: The DDP package was successfully loaded: ICE OS Default Package version 1.3.41.0",
        f"i40e {NIC}: fw 9.140.76856 api 1.15 nvm 9.30 0x8000e5f2 1.3534.0",
        f"ena {NIC}: LLQ is not supported Fallback to host mode policy.",
        f"bnxt_en {NIC} ens3f0np0: FEC autoneg off encoding: None",
        f"mlx5_core {NIC}: Port module event: module 0, Cable plugged",
        "bond0: (slave ens1f0np0): link status definitely up, 200000 Mbps full duplex",
        "nvme nvme0: 63/0/0 default/read/poll queues",
        'nvme nvme3: new ctrl: NQN "nqn.2014-08.org.nvmexpress.discovery", addr 10.9.8.7:4420',
        "libceph: mon0 (1)10.9.8.7:6789 session established",
        "libceph: osd4 (1)10.9.8.7:6801 socket closed (con state OPEN)",
        "LNet: Added LNI 10.9.8.7@o2ib [8/256/0/180]",
        "Lustre: Mounted scratch-client",
        "IPv6: ADDRCONF(NETDEV_CHANGE): ens1f0np0: link becomes ready",
    ],
)
def test_a_healthy_line_is_none(text: str) -> None:
    assert [] == events(lines(f"[  100.000000] {text}", None))[0]


PAIRS = {
    "nfs": ("storage-silent", "nfs: server {} not responding, still trying", "nfs: server {} OK", "10.9.8.7"),
    "lustre": (
        "storage-silent",
        "Lustre: {}: Connection to scratch-OST0003 (at 10.9.8.7@o2ib) was lost; in progress operations wait",
        "Lustre: {}: Connection restored to 10.9.8.7@o2ib (at 10.9.8.7@o2ib)", "scratch-OST0003-osc-ffff8d11",
    ),
    "nvme": ("storage-silent", "nvme {}: Reconnecting in 10 seconds...",
             "nvme {}: Successfully reconnected (2 attempts)", "nvme4"),
    "ceph": ("storage-silent", "libceph: {} (1)10.9.8.7:6789 session lost, hunting for new mon",
             "libceph: {} (1)10.9.8.7:6789 session established", "mon2"),
    "srp": ("storage-silent", "scsi {}: ib_srp: reconnect attempt 3 failed (-104)",
            "scsi {}: ib_srp: reconnect succeeded", "host5"),
    "bond": ("bond-member-down", "bond0: (slave {}): link status definitely down, disabling slave",
             "bond0: (slave {}): link status definitely up, 100000 Mbps full duplex", "ens3f1np1"),
    "bond before 5.3": ("bond-member-down", "bond0: link status definitely down for interface {}, disabling it",
                        "bond0: link status definitely up for interface {}, 100000 Mbps full duplex", "ens3f1np1"),
    "no port": ("bond-without-port", "{}: now running without any active interface!", "{}: active interface up!",
                "bond0"),
}  # fmt: skip


@pytest.mark.parametrize(("code", "begins", "ends", "name"), PAIRS.values(), ids=PAIRS)
def test_a_fault_is_over_where_a_later_line_ends_it(code: str, begins: str, ends: str, name: str) -> None:
    begin, end, other = begins.format(name), ends.format(name), ends.format(f"{name}9")

    assert [] == read(begin, end)
    assert [(code, name, 1)] == [(event.code, event.subject, event.count) for event in read(begin, other)]
    assert [(code, name, 2)] == [(event.code, event.subject, event.count) for event in read(end, begin, begin)]


def test_each_passing_fault_has_a_pair() -> None:
    used = {
        number
        for _, begins, _, name in PAIRS.values()
        for number, fault in enumerate(PASSING_FAULTS)
        if fault.begins.match(begins.format(name))
    }
    assert set(range(len(PASSING_FAULTS))) == used


def test_a_flood_of_names_ends() -> None:
    assert 200 == len(read(*(f"nfs: server n{number} not responding, timed out" for number in range(250))))


def test_a_very_long_log_keeps_both_ends_of_a_fault() -> None:
    text = "\n".join(form.format(name) for _, *forms, name in PAIRS.values() for form in forms)
    noise = "".join(f"[{number:12.6f}] usb 1-1: new device\n" for number in range(60))

    kept = keep_read_lines(f"{noise}{text}\n{noise}".encode()).decode()

    assert set(text.split("\n")) <= set(kept.split("\n"))
