"""Differences that are faults, here and at the far end."""

from __future__ import annotations

import msgspec
import pytest

from agent.diff import diff
from agent.diff.page import fold_labels, page
from agent.model.nic import FabricNeighbor, Nic
from agent.model.report import Report
from agent.outputs.text.lines import to_plain_text
from fixtures.machine import base_of
from tests.agent.diff.changed import HGX, rows
from tests.machines import FAULTS, scan_machine

# Every fault of the fixtures against its healthy machine: the diff names what changed, and little else.


EXPECTED = {
    "amd-bridge-of-three": [
        "gone xgmi link: GPU0/3, GPU1/3, GPU2/3, GPU3/0-2",
        "new xgmi-bridge-uneven: GPU3",
        "lost path by the driver: GPU3 with GPU0-2",
    ],
    "amd-gpu-not-offered": [
        "gone xgmi link: GPU0/7, GPU1/7, GPU2/7, GPU3/7, GPU4/7 and 2 more",
        "changed xgmi link remote: GPU0/6, GPU1/6, GPU2/6, GPU3/6, GPU4/6, GPU5/6",
        "changed gpudirect: GPU6 - mlx5_6",
        "changed driver_state: GPU6",
        "new amd-kfd-missing: GPU6",
        "lost memory_mib, vbios, xgmi links: GPU6",
        "lost path by the driver: GPU6 with GPU0-5, GPU7",
    ],
    "amd-gpu-outside-hive": [
        "gone xgmi link: GPU0/3, GPU1/3, GPU2/3, GPU3/0-2, GPU3/4-7 and 4 more",
        "new xgmi-hive-split: GPU3",
        "changed check: amd-p2p-missing",
        "lost path by the driver: GPU3 with GPU0-2, GPU4-7",
    ],
    "amd-hive-in-two": [
        "gone xgmi link: GPU0/4-7, GPU1/4-7, GPU2/4-7, GPU3/4-7, GPU4/0-3 and 12 more",
        "new xgmi-hive-split: node",
        "changed check: amd-p2p-missing",
        "lost path by the driver: 16 pairs, most of them of GPU0",
    ],
    "amd-pair-unlinked": [
        "gone xgmi link: GPU2/5, GPU5/2",
        "new xgmi-pair-missing: GPU2 - GPU5",
        "lost path by the driver: GPU2 - GPU5",
    ],
    "amd-partition-lost": [
        "new amd-partition-count: GPU7",
        "changed check: xgmi-bandwidth-uneven",
        "lost xgmi link signal_gbyte_s: GPU0/1-7, GPU1/0, GPU1/2-7, GPU2/0-1, GPU2/3-7 and 35 more",
    ],
    "amd-xgmi-lanes": ["new xgmi-link-slow: GPU4"],
    "config-unreadable": [
        "changed gpudirect: 8 pairs, most of them of GPU0",
        "changed check: gdr-acs-on-path, pcie-mps-mismatch, pcie-mps-small",
        "changed check: gdr-gdrcopy-missing, gdr-gds-not-ready, gdr-ibgda-regkey",
        "changed check: gdr-mrrs-small, gdr-relaxed-ordering-off",
        "changed check: pcie-slot-card-missing",
        "lost acs, aspm, ats, extended_tags, max_payload_bytes, max_read_request_bytes, relaxed_ordering: GPU0-7",
        "lost chassis serial, serial: node",
        "lost acs, aspm, extended_tags, max_payload_bytes, max_read_request_bytes, relaxed_ordering: 0000:3a:00.0, 0000:4a:00.0, 0000:4a:01.0, 0000:4a:02.0, 0000:5a:00.0 and 62 more",  # noqa: E501  # a line a change
        "lost acs, extended_tags, max_payload_bytes, max_read_request_bytes, relaxed_ordering: 0000:00:00.0",
    ],
    "cxl-link-uneven": [
        "changed max_width: 0000:5a:01.0",
        "changed width: 0000:5b:00.0",
        "new cxl-link-uneven: CXL memory 0000:5b:00.0",
    ],
    "cxl-no-driver": [
        "changed driver: 0000:d3:00.0",
        "new cxl-driver-missing: CXL memory 0000:d3:00.0",
    ],
    "cxl-no-memdev": [
        "new cxl-no-memdev: CXL memory 0000:d3:00.0",
    ],
    "cxl-no-region": [
        "new cxl-unused-capacity: CXL memory 0000:a9:00.0, CXL memory 0000:d3:00.0",
    ],
    "cxl-width-x4": [
        "changed width: 0000:5b:00.0",
        "new pcie-width-downgraded: CXL memory 0000:5b:00.0",
    ],
    "gaudi-cable-down": [
        "changed gaudi link state: GPU2/0, GPU3/12",
        "new gaudi-internal-port-down: GPU2 - GPU3",
    ],
    "gaudi-half-the-board": [
        "gone gpu: GPU0 (0000:33:00.0), GPU1 (0000:34:00.0), GPU2 (0000:4d:00.0), GPU3 (0000:4e:00.0)",
        "renamed gpu: GPU4 -> GPU0, GPU5 -> GPU1, GPU6 -> GPU2, GPU7 -> GPU3",
        "renamed nic: hbl_4 -> hbl_0, hbl_5 -> hbl_1, hbl_6 -> hbl_2, hbl_7 -> hbl_3",
        "changed gaudi link remote: GPU0/4, GPU0/12-13, GPU1/0-1, GPU1/17, GPU2/0-1 and 4 more",
        "changed gaudi link remote: GPU0/5, GPU0/14-15, GPU1/16, GPU1/22-23, GPU2/20 and 5 more",
        "changed gaudi link remote: GPU0/6, GPU0/10-11, GPU1/2-3, GPU1/20, GPU2/2-3 and 4 more",
        "changed gaudi link remote: GPU0/8, GPU0/16-17, GPU1/4-5, GPU1/18, GPU2/4-5 and 4 more",
        "changed addresses: enp179s0d14",
        "changed platform profile: node",
        "new gaudi-missing: node",
        "changed check: device-count-low",
        "lost link (unreadable): 0000:4c:01.0, 0000:4c:02.0, 0000:32:01.0, 0000:32:02.0",
    ],
    "gaudi-malfunction": [
        "changed driver_state: GPU4",
        "new gaudi-status: GPU4",
        "changed check: gaudi-internal-port-down",
    ],
    "gaudi-module-twice": [
        "new gaudi-module-id: node",
        "changed check: gaudi-internal-port-down",
        "lost gaudi link remote: GPU0/0-4, GPU0/6-7, GPU0/10-23, GPU1/0-16, GPU1/18-19 and 128 more",
        "lost path: 28 pairs, most of them of GPU0",
    ],
    "gaudi-modules-mixed": [
        "changed module: habanalabs_en",
        "new gaudi-modules-mixed: node",
    ],
    "gaudi-no-device": [
        "gone netdev: enp52s0d17 (0000:34:00.0)",
        "changed gaudi link remote: GPU0/10, GPU0/14-15, GPU2/2-3, GPU2/23, GPU3/7 and 14 more",
        "changed driver_state: GPU1",
        "new gaudi-missing: GPU1",
        "changed check: gaudi-module-id",
        "lost gaudi links: GPU1",
        "lost path by the driver: GPU1 with GPU0, GPU2-7",
    ],
    "gaudi-no-link": [
        "changed gaudi link state: GPU0/0-4, GPU0/6-7, GPU0/10-23, GPU1/0-16, GPU1/18-19 and 128 more",
        "new gaudi-internal-port-down: node",
    ],
    "gaudi-scale-out-down": [
        "changed operstate: enp78s0d8",
        "changed state: hbl_3/8",
        "changed addresses: enp78s0d8",
        "new gaudi-external-port-down: GPU3",
    ],
    "gaudi-scale-out-mtu": [
        "changed mtu: enp179s0d14-15, enp179s0d19",
        "new gaudi-external-uneven: GPU6",
    ],
    "gaudi-scale-out-slow": [
        "changed speed_gbit_s: enp154s0d3",
        "changed rate_gbit_s: hbl_4/3",
        "new gaudi-external-uneven: GPU4",
    ],
    "gaudi2-cable-down": ["changed gaudi link state: GPU1/0, GPU2/0", "new gaudi-internal-port-down: GPU1 - GPU2"],
    "gpu-asleep": [
        "changed state: 0000:61:00.1, GPU3",
        "changed check: counter-outlier",
        "changed check: gpu-clocks-limited",
        "changed check: gpu-driver-unusable",
        "changed check: gpu-ecc, gpu-remap-failed, gpu-remap-pending",
        "changed check: gpu-p2p-blocked, nvlink-inactive, nvlink-speed-low",
        "changed check: gpu-persistence-off",
        "changed check: gpu-power-limited",
        "changed check: imex-channel-denied, imex-down",
        "lost bar1_mib, driver_state, memory_mib, nvlinks, recovery_action, vbios, virtualization: GPU0-3",
        "lost driver cuda: node",
        "lost link (asleep): 0000:60:01.1",
        "lost path by the driver: GPU0 - GPU1, GPU2 - GPU3",
    ],
    "gpu-far-from-nic": [
        "gone nic: mlx5_0 (0000:1a:00.0)",
        "gone bridge: 0000:17:02.0",
        "new nic: mlx5_9 (0000:e8:00.0)",
        "new bridge: 0000:e7:01.0",
        "renamed nic: mlx5_1 -> mlx5_0, mlx5_2 -> mlx5_1, mlx5_3 -> mlx5_2, mlx5_4 -> mlx5_3, mlx5_5 -> mlx5_4 and 4 more",  # noqa: E501  # a line a change
        "new affinity-gpu-far-from-nic: GPU0",
    ],
    "gpu-gone": [
        "changed state: GPU0",
        "changed driver_state: GPU0",
        "new pcie-device-gone: GPU0",
        "changed check: gpu-p2p-redirected",
        "changed check: pcie-path-bottleneck",
        "lost bar1_mib, fabric, memory_mib, nvlinks, recovery_action, vbios, virtualization: GPU0",
        "lost link (unreadable): 0000:17:01.0",
        "lost path by the driver: GPU0 with GPU1-7",
    ],
    "gpu-idle-gen1": [],
    "gpu-idle-x8": [
        "changed width: GPU1",
    ],
    "gpu-link-einval": [
        "changed check: pcie-ends-disagree, pcie-link-down, pcie-speed-downgraded, pcie-width-downgraded, profile-differs",  # noqa: E501  # a line a change
        "changed check: pcie-slot-limits-card, pcie-slower-than-siblings",
        "lost link (unreadable): 0000:d9:01.0, GPU7",
    ],
    "gpu-lost": [
        "changed gpudirect: GPU4 - mlx5_6",
        "changed driver_state: GPU4",
        "new gpu-missing: GPU4",
        "changed check: gdr-bar1-small",
        "changed check: gpu-model-mixed",
        "changed check: gpu-p2p-redirected",
        "changed check: gpu-recovery-needed",
        "changed check: nvlink-recoveries-outlier",
        "lost bar1_mib, fabric, memory_mib, nvlinks, recovery_action, vbios, virtualization: GPU4",
        "lost path by the driver: GPU4 with GPU0-3, GPU5-7",
    ],
    "gpu-not-in-nvml": [
        "renamed gpu: GPU6 -> GPU@0000:cb:00.0, GPU7 -> GPU6",
        "changed gpudirect: GPU@0000:cb:00.0 - mlx5_8",
        "changed driver_state: GPU@0000:cb:00.0",
        "new gpu-missing: GPU@0000:cb:00.0",
        "changed check: gdr-bar1-small",
        "changed check: gpu-model-mixed",
        "changed check: gpu-p2p-redirected",
        "changed check: nvlink-recoveries-outlier",
        "lost bar1_mib, fabric, memory_mib, nvlinks, recovery_action, vbios, virtualization: GPU@0000:cb:00.0",
        "lost path by the driver: GPU@0000:cb:00.0 with GPU0-6",
    ],
    "gpu-speed-gen3": [
        "changed speed_gt_s: GPU5",
        "changed gpudirect: GPU5 - mlx5_7",
        "changed path gbyte_s: GPU5 with mlx5_0, mlx5_3-9",
        "changed path gbyte_s: GPU5 - mlx5_1-2",
        "new pcie-speed-downgraded: GPU5",
    ],
    "gpu-width-x8": [
        "changed width: GPU2",
        "changed gpudirect: GPU2 - mlx5_4",
        "changed path gbyte_s: GPU2 with mlx5_0, mlx5_3-9",
        "new pcie-width-downgraded: GPU2",
    ],
    "ib-no-sm": [
        "changed operstate: ibp26s0, ibp60s0, ibp77s0, ibp94s0, ibp156s0 and 3 more",
        "changed sm_lid: mlx5_0/1, mlx5_3/1, mlx5_4/1, mlx5_5/1, mlx5_6/1 and 3 more",
        "changed state: mlx5_0/1, mlx5_3/1, mlx5_4/1, mlx5_5/1, mlx5_6/1 and 3 more",
        "changed gpudirect: 8 pairs, most of them of GPU0",
        "changed admin_up: ibp26s0, ibp60s0, ibp77s0, ibp94s0, ibp156s0 and 3 more",
        "new ib-no-sm: node",
        "changed check: gdr-devnodes-missing, ib-ar-disabled, ib-mixed-linklayer",
        "changed check: gdr-dmabuf-prereq, gdr-no-path",
        "changed check: gdr-mrrs-small",
        "changed check: ib-pkey-limited",
        "changed check: ib-rate-degraded, ib-rate-unparsed",
        "changed check: ib-rate-mixed",
        "changed check: ib-sm-changed",
        "changed check: ib-subnet-mixed",
    ],
    "ib-port-down": [
        "changed operstate: ibp60s0",
        "changed phys_state: mlx5_3/1",
        "changed sm_lid: mlx5_3/1",
        "changed state: mlx5_3/1",
        "changed gpudirect: GPU1 - mlx5_3",
        "changed admin_up: ibp60s0",
        "new ib-port-down: mlx5_3/1",
    ],
    "ib-rate-2x": [
        "changed speed_gbit_s: ibp204s0",
        "changed rate_gbit_s: mlx5_8/1",
        "changed width: mlx5_8/1",
        "changed gpudirect: GPU6 - mlx5_8",
        "new ib-rate-degraded: mlx5_8/1",
    ],
    "ib-rate-hdr": [
        "changed speed_gbit_s: ibp77s0",
        "changed rate_gbit_s: mlx5_4/1",
        "changed speed: mlx5_4/1",
        "changed gpudirect: GPU2 - mlx5_4",
        "new ib-rate-degraded: mlx5_4/1",
    ],
    "netdev-in-container": [
        "gone netdev: enp138s0f0np0 (0000:8a:00.0)",
        "changed state: mlx5_10",
        "new roce-dcb-unreadable: mlx5_10/1",
        "new roce-netdev-missing: mlx5_10/1",
        "changed check: port-module-fault, rails-one-subnet, roce-class-mismatch, roce-cnp-class, roce-dcbx-firmware-owned and 19 more",  # noqa: E501  # a line a change
        "changed check: roce-global-pause, roce-optics-power",
    ],
    "neuron-ecc": [
        "new neuron-ecc: GPU6",
    ],
    "neuron-link-lost": [
        "gone neuron link: GPU5/9, GPU9/5",
        "new neuron-link-asymmetric: GPU5 - GPU9",
        "lost path by the driver: GPU5 - GPU9",
    ],
    "neuron2-ecc": ["new neuron-ecc: GPU9"],
    "nic-fw-mixed": [
        "changed firmware: mlx5_9",
        "new nic-fw-mixed: mlx5_9",
    ],
    "nic-no-driver": [
        "gone netdev: ibp188s0 (0000:bc:00.0)",
        "renamed nic: mlx5_7 -> 0000:bc:00.0",
        "changed state: 0000:bc:00.0",
        "changed gpudirect: GPU5 - 0000:bc:00.0",
        "changed gpudirect via: 7 pairs, most of them of GPU0",
        "changed driver: 0000:bc:00.0",
        "new pci-driver-missing: 0000:bc:00.0",
        "changed check: gdr-dmabuf-prereq",
        "changed check: gdr-nic-gpu-ratio",
        "changed check: ib-counter-saturated, ib-no-sm, ib-pkey-limited, ib-port-down, ib-rate-degraded and 3 more",
        "changed check: nic-fw-mixed",
    ],
    "nic-width-x8": [
        "changed width: mlx5_5",
        "changed gpudirect: GPU3 - mlx5_5",
        "changed path gbyte_s: mlx5_5 with GPU0-7",
        "new pcie-width-downgraded: mlx5_5",
    ],
    "no-peermem": [
        "changed gpudirect: 8 pairs, most of them of GPU0",
        "gone module: nvidia_peermem",
        "changed driver open: node",
        "changed peer memory clients: node",
        "new gdr-no-path: node",
        "changed check: gdr-dmabuf-prereq",
    ],
    "npu-address-missing": [
        "new npu-roce-ip-missing: NPU 3",
    ],
    "npu-address-twice": [
        "new npu-roce-ip-duplicate: NPU 2",
    ],
    "npu-die-missing": [
        "gone gpu: GPU11 (0000:8b:00.0)",
        "changed platform profile: node",
        "new npu-missing: GPU10",
        "changed check: device-count-low",
        "changed check: gpu-missing",
        "lost path: 7 pairs, most of them of GPU0",
    ],
    "npu-half-the-board": [
        "gone gpu: GPU0 (0000:c1:00.0), GPU1 (0000:01:00.0), GPU2 (0000:c2:00.0), GPU3 (0000:02:00.0)",
        "changed platform profile: node",
        "new npu-missing: node",
        "changed check: device-count-low",
        "lost link (unreadable): 0000:00:01.0, 0000:00:02.0, 0000:c0:01.0, 0000:c0:02.0",
    ],
    "npu-no-device-node": [
        "renamed gpu: GPU5 -> GPU@0000:41:00.0",
        "changed driver_state: GPU@0000:41:00.0",
        "new npu-driver-missing: GPU@0000:41:00.0",
    ],
    "npu-pfc-other-priority": [
        "new npu-pfc-priority: NPU 5",
    ],
    "npu-tls-mixed": [
        "new npu-tls-mixed: node",
    ],
    "numa-minus-one": [
        "new numa-unknown: node",
        "lost numa_node: 0000:15:01.0, 0000:16:00.0, 0000:17:00.0, 0000:17:01.0, 0000:17:02.0 and 3 more",
        "lost path by PCIe: 23 pairs, most of them of GPU0",
        "gained path by the driver: 16 pairs, most of them of GPU0",
    ],
    "nvlink-asymmetric": [
        "gone nvlink: GPU5/14-17",
        "changed path: GPU5 with GPU0-4, GPU6-7",
        "changed path gbyte_s: GPU5 with GPU0-4, GPU6-7",
        "new nvlink-asymmetric: GPU5",
    ],
    "nvlink-half-speed": [
        "changed nvlink signal_gbyte_s: GPU4/0-17",
        "changed path gbyte_s: GPU4 with GPU5-7",
        "new nvlink-speed-low: GPU4",
    ],
    "nvlink-one-inactive": [
        "changed nvlink state: GPU2/7",
        "changed path: GPU2 with GPU0-1, GPU3-7",
        "changed path gbyte_s: GPU2 with GPU0-1, GPU3-7",
        "new nvlink-inactive: GPU2",
    ],
    "nvml-denied": [
        "changed gpudirect via: 8 pairs, most of them of GPU0",
        "changed check: fabric-clique-mixed, fabric-incomplete, gpu-clocks-limited, gpu-driver-unusable, gpu-ecc and 12 more",  # noqa: E501  # a line a change
        "changed check: fabric-unhealthy, imex-channel-denied, imex-down",
        "changed check: gdr-bar1-small",
        "changed check: gdr-dmabuf-prereq",
        "changed check: gpu-model-mixed",
        "changed check: gpu-module-missing",
        "changed check: gpu-p2p-blocked",
        "changed check: gpu-p2p-redirected",
        "changed check: nvlink-bandwidth-mode-reduced",
        "changed check: nvlink-disabled",
        "changed check: nvlink-matrix-uneven",
        "changed check: nvlink-unused-by-mig",
        "changed check: nvls-unavailable",
        "changed probe: nvml",
        "lost bar1_mib, driver_state, fabric, memory_mib, nvlinks, recovery_action, vbios, virtualization: GPU0-7",
        "lost driver cuda: node",
        "lost path by the driver: 28 pairs, most of them of GPU0",
    ],
    "roce-gid-v1-only": [
        "changed gpudirect: GPU2 - mlx5_5",
        "changed gids: mlx5_5/1",
        "new roce-gid-v1-only: mlx5_5/1 (enp69s0f1np0)",
    ],
    "roce-mtu-1500": [
        "changed mtu: enp46s0f0np0",
        "changed active_mtu: mlx5_2/1",
        "new roce-mtu-small: mlx5_2/1 (enp46s0f0np0)",
    ],
    "slot-narrow": [
        "changed width: GPU2",
        "changed max_width: 0000:42:00.0",
        "changed path gbyte_s: GPU2 with GPU0-1, GPU3-7, mlx5_0-1",
        "new pcie-slower-than-siblings: GPU2",
    ],
    "switch-uplink-x4": [
        "changed width: 0000:38:00.0",
        "changed gpudirect: GPU1 - mlx5_3",
        "changed path gbyte_s: 14 pairs, most of them of GPU1",
        "changed path gbyte_s: GPU1 - mlx5_1-2",
        "new pcie-width-downgraded: PCIe port 0000:38:00.0 above GPU1, drive 0000:3a:00.0, mlx5_3",
    ],
}


def test_every_fault_has_its_row() -> None:
    """A new fault says here what its diff is."""
    assert FAULTS == sorted(EXPECTED)


@pytest.mark.parametrize("fault", EXPECTED)
def test_a_fault_is_a_small_difference(fault: str) -> None:
    """One line a cause; an idle GPU that slowed its link down is none."""
    result = diff(scan_machine(base_of(fault)), scan_machine("", fault))

    assert EXPECTED[fault] == [
        f"{c.kind} {c.what}: {fold_labels([p.label for p in c.subjects])}" for c in result.changes
    ]


@pytest.mark.parametrize("fault", EXPECTED)
def test_the_page_of_a_fault_fits_a_terminal(fault: str) -> None:
    """Folded at 80 columns, and about a screen."""
    lines = to_plain_text(page(diff(scan_machine(base_of(fault)), scan_machine("", fault)), 80)).splitlines()

    assert max(map(len, lines)) <= 80
    assert len(lines) <= 44


# A cable that was moved to another port of the switch is a difference; what ran on it is the port's own matter.


FAR = FabricNeighbor(name="leaf-1", port=17, width="4X", source="iblinkinfo")


def cabled(neighbor: FabricNeighbor | None) -> Report:
    """A machine whose first InfiniBand rail leads there."""
    first = next(
        nic.id for nic in scan_machine(HGX).topology.nics if nic.ports and nic.ports[0].link_layer == "InfiniBand"
    )

    def led(nic: Nic) -> Nic:
        if nic.id != first:
            return nic
        return msgspec.structs.replace(nic, ports=[msgspec.structs.replace(nic.ports[0], neighbor=neighbor)])

    return rows(scan_machine(HGX), "nics", led)


def test_a_moved_cable_is_a_difference() -> None:
    """From one far end to the other."""
    (change,) = diff(cabled(FAR), cabled(msgspec.structs.replace(FAR, port=18))).changes

    assert ("links", "changed", "neighbor", "leaf-1 port 17", "leaf-1 port 18") == (
        change.group, change.kind, change.what, change.old, change.new,
    )  # fmt: skip


def test_ports_inside_an_accelerator_are_compared_and_neither_gone_nor_new() -> None:
    """The accelerator is what can be gone; a report made without root does not have its ports."""
    whole = scan_machine("8x910b-4s-atlas-a2")
    unread = msgspec.structs.replace(
        whole, topology=msgspec.structs.replace(whole.topology, nics=whole.topology.host_nics)
    )

    def run(nic: Nic, state: str) -> Nic:
        return msgspec.structs.replace(nic, ports=[msgspec.structs.replace(nic.ports[0], state=state)])

    up, down = (rows(whole, "nics", lambda nic, state=state: run(nic, state)) for state in ("ACTIVE", "DOWN"))

    assert [] == [*diff(whole, unread).changes, *diff(unread, whole).changes]
    assert [("state", "ACTIVE", "DOWN")] == [(change.what, change.old, change.new) for change in diff(up, down).changes]


def test_other_words_of_the_same_far_end_are_none() -> None:
    """Another output, and what ran while it was made."""
    other = msgspec.structs.replace(FAR, source="ibnetdiscover", lid=9, width="2X", could_width="4X")

    assert [] == diff(cabled(FAR), cabled(other)).changes


def test_a_far_end_that_one_side_does_not_know_is_evidence_lost_or_gained() -> None:
    """No cable was touched. A switch without a name goes by its GUID; without either nothing is known."""
    by_guid = FabricNeighbor(node_guid="0c42:a103:00bb:0200", port=17, source="ibnetdiscover")
    nobody = FabricNeighbor(port=17, source="iblinkinfo")

    assert [("evidence", "lost")] == [(c.group, c.kind) for c in diff(cabled(FAR), cabled(None)).changes]
    assert [("evidence", "gained")] == [(c.group, c.kind) for c in diff(cabled(nobody), cabled(by_guid)).changes]
