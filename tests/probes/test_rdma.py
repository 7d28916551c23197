"""RDMA devices from sysfs: what real trees hold, and what must not be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.host.door import Denied, Failed, TimedOut
from probes.host.memory import Link
from probes.probe import Outcome, Status, outcome_of
from probes.rdma import PROBE, Gid, RdmaDevice, RdmaPort
from tests.probes.rdma_machine import CLASS, Machine, pci_device, unpacked

ADDRESS = "0000:19:00.0"
FUNCTION = f"/sys/devices/pci0000:00/{ADDRESS}"
DEVICE = f"{FUNCTION}/infiniband/mlx5_0"
PORT = f"{DEVICE}/ports/1"


def machine(live: bool = True) -> Machine:
    """One RoCE card with a port, a VLAN and a virtual function's representor."""
    files = pci_device(
        "mlx5_0",
        ADDRESS,
        vendor="0x15b3\n",
        device="0x1021\n",
        subsystem_vendor="0x15b3\n",
        subsystem_device="0x0050\n",
        power__runtime_status="active\n",
        net__ens1f0np0__dev_port="0\n",
        net__ens1f0npf0vf3__dev_port="0\n",
        net__ens1f1np1__dev_port="1\n",
    )
    return (
        Machine(live=live, kind="live" if live else "tree")
        .put(files)
        .put(
            {
                f"{FUNCTION}/class": "0x020000\n",
                f"{DEVICE}/node_type": "1: CA\n",
                f"{DEVICE}/node_guid": "0002:c903:00a1:0010\n",
                f"{DEVICE}/sys_image_guid": "0002:c903:00a1:0010\n",
                f"{DEVICE}/node_desc": "node1 mlx5_0\n",
                f"{DEVICE}/fw_ver": "28.41.1000\n",
                f"{DEVICE}/board_id": "MT_0000000838\n",
                f"{DEVICE}/hca_type": "MT4129\n",
                f"{PORT}/link_layer": "Ethernet\n",
                f"{PORT}/state": "4: ACTIVE\n",
                f"{PORT}/phys_state": "5: LinkUp\n",
                f"{PORT}/rate": "400 Gb/sec (4X NDR)\n",
                f"{PORT}/lid": "0x0\n",
                f"{PORT}/sm_lid": "0x0\n",
                f"{PORT}/gids/0": "fe80:0000:0000:0000:0002:c9ff:fea1:0010\n",
                f"{PORT}/gids/1": "0000:0000:0000:0000:0000:0000:0000:0000\n",
                f"{PORT}/gids/10": "0000:0000:0000:0000:0000:ffff:c0a8:0105\n",
                f"{PORT}/gid_attrs/types/0": "RoCE v2\n",
                f"{PORT}/gid_attrs/types/10": "RoCE v2\n",
                f"{PORT}/gid_attrs/ndevs/0": "ens1f0np0\n",
                f"{PORT}/gid_attrs/ndevs/10": "ens1f0np0.100\n",
                f"{PORT}/pkeys/0": "0xffff\n",
                f"{PORT}/counters/link_downed": "255\n",
                f"{PORT}/counters/port_rcv_data": "4294967295\n",
                f"{PORT}/counters/symbol_error": "N/A (no PMA)\n",
                f"{PORT}/hw_counters/out_of_sequence": "7\n",
                f"{PORT}/hw_counters/rx_icrc_encapsulated": "18446744073709551615\n",
                f"{PORT}/hw_counters/lifespan": "10\n",
            }
        )
    )


def probed(host: Machine) -> Outcome:
    return outcome_of(PROBE, host)


def devices(host: Machine) -> dict[str, RdmaDevice]:
    return {device.name: device for device in probed(host).facts.devices}


def first_port(host: Machine) -> RdmaPort:
    return devices(host)["mlx5_0"].ports[0]


def counter_reads(host: Machine, below: str = "") -> list[str]:
    return [path for path in host.asked if "counters" in path and below in path]


class TestOneCard:
    """Every fact of a card whose files are all there."""

    def test_identity(self) -> None:
        """The card is its PCI function; the texts are those of its files."""
        device = devices(machine())["mlx5_0"]

        assert (ADDRESS, "CA", "28.41.1000") == (device.address, device.node_type, device.firmware)
        assert ("MT_0000000838", "MT4129", "node1 mlx5_0") == (
            device.board_id,
            device.hca_type,
            device.node_description,
        )
        assert ("0002:c903:00a1:0010",) * 2 == (device.node_guid, device.system_image_guid)
        assert (False, False, None) == (device.software, device.asleep, device.limited)

    def test_port_state_has_no_numbers(self) -> None:
        """Numbers of the kernel's enumerations are left out, LIDs are numbers."""
        port = first_port(machine())

        assert ("Ethernet", "ACTIVE", "LinkUp", "400 Gb/sec (4X NDR)", 0, 0) == (
            port.link_layer,
            port.state,
            port.phys_state,
            port.rate_text,
            port.lid,
            port.sm_lid,
        )

    def test_used_gids_alone_have_attributes_read(self) -> None:
        """An empty entry is no GID, and its type and interface would only answer EINVAL."""
        host = machine()
        port = first_port(host)

        assert (
            Gid(0, "fe80:0000:0000:0000:0002:c9ff:fea1:0010", "RoCE v2", "ens1f0np0"),
            Gid(10, "0000:0000:0000:0000:0000:ffff:c0a8:0105", "RoCE v2", "ens1f0np0.100"),
        ) == port.gids
        assert port.gids_known
        assert not [path for path in host.asked if path.endswith(("types/1", "ndevs/1"))]

    def test_interfaces_are_those_of_the_port_and_of_its_gids(self) -> None:
        """Not the other port's, not a virtual function's representor."""
        assert ("ens1f0np0", "ens1f0np0.100") == first_port(machine()).netdevs

    def test_counters_without_a_value_are_left_out(self) -> None:
        """No PMA and all-ones are no counts; a saturated counter is one; the cache time is no counter."""
        port = first_port(machine())

        assert {"link_downed": 255, "port_rcv_data": 4294967295} == port.counters
        assert {"out_of_sequence": 7} == port.hw_counters

    def test_everything_answered(self) -> None:
        """The reading is whole and each file was asked once."""
        host = machine()
        outcome = probed(host)

        assert (Status.OK, None, (CLASS,)) == (outcome.status, outcome.reason, outcome.sources)
        assert len(host.asked) == len(set(host.asked))


class TestWhatMustNotBeRead:
    """Sleeping functions, and functions that a fabric manager owns."""

    @pytest.mark.parametrize("status", ["suspended", "suspending"])
    def test_a_sleeping_function_gets_no_read_after_its_power_status(self, status: str) -> None:
        """A read would wake it; that it was left alone is said."""
        host = machine().put({f"{FUNCTION}/power/runtime_status": f"{status}\n"})
        outcome = probed(host)

        assert [CLASS, f"{FUNCTION}/power/runtime_status"] == host.asked
        assert (RdmaDevice("mlx5_0", address=ADDRESS, asleep=True),) == outcome.facts.devices
        assert (Status.PARTIAL, True) == (outcome.status, "left asleep" in (outcome.reason or ""))

    def test_power_is_asked_before_anything_else_of_the_function(self) -> None:
        """Also where the answer is that it is awake."""
        host = machine()
        probed(host)

        assert f"{FUNCTION}/power/runtime_status" == next(path for path in host.asked if path.startswith("/sys/dev"))

    def test_the_subsystem_of_the_switch_manager_is_limited(self) -> None:
        """Its counters are not touched, nor its tables; its state is."""
        host = machine().put({f"{FUNCTION}/subsystem_device": "0x0087\n"})
        device = devices(host)["mlx5_0"]

        assert "fabric manager" in (device.limited or "")
        assert [] == counter_reads(host)
        assert not [path for path in host.asked if "/gids" in path or "/pkeys" in path]
        assert ("ACTIVE", None, None, False) == (
            device.ports[0].state,
            device.ports[0].counters,
            device.ports[0].hw_counters,
            device.ports[0].gids_known,
        )

    def test_four_functions_of_one_infiniband_card_are_limited(self) -> None:
        """One system image, functions 0 to 3: no network card is built like that. The others keep their counters."""
        host = four_functions("0x020700", images=1).put(files_of_a_rail())
        found = devices(host)

        assert [True] * 4 + [False] == [bool(found[f"mlx5_{n}"].limited) for n in range(5)]
        assert [] == counter_reads(host, "0000:05:00.")
        assert {"link_downed": 0} == found["mlx5_4"].ports[0].counters

    @pytest.mark.parametrize(
        ("pci_class", "images", "functions"),
        [("0x020000", 1, 4), ("0x020700", 4, 4), ("0x020700", 1, 2)],
        ids=["ethernet", "four images", "two functions"],
    )
    def test_other_cards_with_several_functions_are_not(self, pci_class: str, images: int, functions: int) -> None:
        """Ethernet cards with four ports and InfiniBand cards with two are rails."""
        host = four_functions(pci_class, images, functions)

        assert [None] * functions == [device.limited for device in devices(host).values()]
        assert counter_reads(host)


def four_functions(pci_class: str, images: int, functions: int = 4) -> Machine:
    host = Machine(live=True, kind="live")
    for number in range(functions):
        host.put(files_of(f"mlx5_{number}", f"0000:05:00.{number}", pci_class, f"0002:c903:00a1:000{number % images}"))
    return host


def files_of_a_rail() -> dict[str, str | Link]:
    return files_of("mlx5_4", "0000:18:00.0", "0x020700", "0002:c903:00a1:0018")


def files_of(name: str, address: str, pci_class: str, image: str) -> dict[str, str | Link]:
    files = pci_device(name, address, vendor="0x15b3", subsystem_vendor="0x15b3", subsystem_device="0x0050")
    function = f"/sys/devices/pci0000:00/{address}"
    return files | {
        f"{function}/device": "0x1021",
        f"{function}/class": pci_class,
        f"{function}/infiniband/{name}/sys_image_guid": image,
        f"{function}/infiniband/{name}/ports/1/state": "4: ACTIVE",
        f"{function}/infiniband/{name}/ports/1/counters/link_downed": "0",
    }


class TestNoDevices:
    """The difference between "none" and "not known"."""

    def test_a_kernel_without_the_class_has_none(self) -> None:
        """No RDMA driver was ever loaded: that is an answer."""
        outcome = probed(Machine(live=True, kind="live").put({"/sys/class/net/lo/mtu": "65536"}))

        assert (Status.OK, ()) == (outcome.status, outcome.facts.devices)

    def test_the_replay_of_a_capture_says_the_same(self) -> None:
        """What a recording does not hold was not there."""
        outcome = probed(Machine(kind="capture").put({"/sys/class/net/lo/mtu": "65536"}))

        assert (Status.OK, ()) == (outcome.status, outcome.facts.devices)

    def test_no_sysfs_is_no_answer(self) -> None:
        """A container may hide it."""
        assert Status.ABSENT == probed(Machine(live=True, kind="live")).status

    def test_a_pruned_tree_is_no_answer(self, corpus: Path) -> None:
        """The gather has two InfiniBand cards on PCI, and left the class out."""
        outcome = probed(unpacked(str(corpus / "trees/hwloc-32intel64-2p8co2t+8ve.tar.xz")))

        assert (Status.ABSENT, "the source holds no /sys/class/infiniband") == (outcome.status, outcome.reason)

    @pytest.mark.parametrize(("why", "status"), [(Denied, Status.DENIED), (TimedOut, Status.TIMED_OUT)])
    def test_a_class_that_cannot_be_listed_keeps_its_reason(self, why: type[Denied | TimedOut], status: Status) -> None:
        """Denied is not absent."""
        host = machine()
        host.refused[CLASS] = why("no")

        assert status == probed(host).status


class TestTroubles:
    """Files that do not answer."""

    @pytest.mark.parametrize("code", ["EINVAL", "EOPNOTSUPP", "EAGAIN"])
    def test_what_a_driver_does_not_have_is_no_gap(self, code: str) -> None:
        """The rate of a virtual adapter, a counter, the type of a GID that went away in between."""
        host = machine()
        refused = ("rate", "counters/link_downed", "gid_attrs/types/10", "gids/0")
        host.refused |= {f"{CLASS}/mlx5_0/ports/1/{name}": Failed("no", code) for name in refused}
        outcome = probed(host)

        (port,) = outcome.facts.devices[0].ports
        assert (Status.OK, None) == (outcome.status, port.rate_text)
        assert {"port_rcv_data": 4294967295} == port.counters
        assert (Gid(10, "0000:0000:0000:0000:0000:ffff:c0a8:0105", None, "ens1f0np0.100"),) == port.gids

    @pytest.mark.parametrize("why", [Denied("denied: state", "EACCES"), TimedOut("timed out: state")])
    def test_what_was_refused_is_said(self, why: Denied | TimedOut) -> None:
        """The port is there, its state is unknown, and the reading is not whole."""
        host = machine()
        host.refused[f"{CLASS}/mlx5_0/ports/1/state"] = why
        outcome = probed(host)

        assert (Status.PARTIAL, why.reason) == (outcome.status, outcome.reason)
        assert (None, "LinkUp") == (
            outcome.facts.devices[0].ports[0].state,
            outcome.facts.devices[0].ports[0].phys_state,
        )

    def test_a_table_that_was_not_read_whole_is_not_known(self) -> None:
        """One entry failed: an absent GID may be that one."""
        host = machine()
        host.refused[f"{CLASS}/mlx5_0/ports/1/gids/1"] = Failed("input/output error", "EIO")

        assert not first_port(host).gids_known

    def test_a_device_that_vanishes_is_left_out_and_said(self) -> None:
        """Its name was listed, its folder is gone."""
        host = machine().put({f"{CLASS}/mlx5_9": Link("../../devices/gone/infiniband/mlx5_9")})
        outcome = probed(host)

        assert ["mlx5_0"] == [device.name for device in outcome.facts.devices]
        assert (Status.PARTIAL, "mlx5_9 vanished while it was read") == (outcome.status, outcome.reason)

    def test_a_huge_gid_table_is_bounded(self) -> None:
        """Only so many entries are read; an unread rest means that the table is not known."""
        host = machine().put({f"{PORT}/gids/{index}": "::" for index in range(11, 400)})
        port = first_port(host)

        assert ([0, 10], False) == ([gid.index for gid in port.gids], port.gids_known)
        assert 256 == len([path for path in host.asked if "/gids/" in path])

    def test_unused_partitions_end_the_search(self) -> None:
        """Each read can be a firmware command: after a block without a key no more are asked for."""
        host = machine().put({f"{PORT}/pkeys/{index}": "0x0000" for index in range(1, 128)})
        host.put({f"{PORT}/pkeys/31": "0x8001"})

        assert ("0xffff", "0x8001") == first_port(host).pkeys
        assert 64 == len([path for path in host.asked if "/pkeys/" in path])


class TestOtherKinds:
    """Software devices, sub-functions, drivers that count by device."""

    @pytest.mark.parametrize(
        ("folder", "attribute"),
        [
            ("virtual/infiniband/rxe0", ("ports/1/rate", "10 Gb/sec (4X)")),
            (f"pci0000:00/{ADDRESS}/infiniband/rxe0", ("parent", "ens1f0np0")),
            (f"pci0000:00/{ADDRESS}/infiniband/rxe0", ("node_desc", "Software iWARP stack")),
        ],
        ids=["virtual", "soft RoCE below a card", "soft iWARP below a card"],
    )
    def test_a_software_device_has_no_address(self, folder: str, attribute: tuple[str, str]) -> None:
        """It must not be taken for the card below which old kernels hang it."""
        host = machine().put({f"{CLASS}/rxe0": Link(f"../../devices/{folder}")})
        host.put({f"/sys/devices/{folder}/{name}": text for name, text in (("node_guid", "0"), attribute)})

        assert (True, None) == (devices(host)["rxe0"].software, devices(host)["rxe0"].address)

    def test_a_sub_function_belongs_to_its_function(self) -> None:
        """It hangs below an auxiliary device, which has the interface."""
        below = f"{FUNCTION}/mlx5_core.sf.4"
        host = machine().put(
            {
                f"{CLASS}/mlx5_1": Link(f"../../devices/pci0000:00/{ADDRESS}/mlx5_core.sf.4/infiniband/mlx5_1"),
                f"{below}/infiniband/mlx5_1/device": Link("../../../mlx5_core.sf.4"),
                f"{below}/infiniband/mlx5_1/ports/1/state": "4: ACTIVE",
                f"{below}/net/enp25s0f0s4/dev_port": "0",
            }
        )
        found = devices(host)["mlx5_1"]

        assert (ADDRESS, ("enp25s0f0s4",)) == (found.address, found.ports[0].netdevs)

    def test_counters_of_a_device_with_one_port_are_the_ports(self) -> None:
        """The port's own value stands where both have a name."""
        host = machine().put({f"{DEVICE}/hw_counters/sent_cnps": "5", f"{DEVICE}/hw_counters/out_of_sequence": "1"})

        assert {"out_of_sequence": 7, "sent_cnps": 5} == first_port(host).hw_counters

    def test_an_infiniband_port_guid_is_its_first_gid(self) -> None:
        """By the definition of GID 0; an Ethernet port has none."""
        host = machine().put({f"{PORT}/link_layer": "InfiniBand\n"})

        assert "0002:c9ff:fea1:0010" == first_port(host).port_guid
        assert first_port(machine()).port_guid is None


class TestRealTrees:
    """What the corpus' machines had."""

    def test_meta_dgx_a100(self, corpus: Path) -> None:
        """The tree kept PCI folders and no class; blanked-out files say nothing."""
        outcome = probed(unpacked(str(corpus / "trees/gcm-learn_good.tar.xz")))

        found = outcome.facts.devices
        assert [f"mlx5_{n}" for n in (0, 1, 2, 3, 6, 7, 8, 9)] == [device.name for device in found]
        assert ["0c", "12", "4b", "54", "8d", "94", "ba", "cc"] == [(device.address or "")[5:7] for device in found]
        assert [(f"ib{n}",) for n in range(8)] == [device.ports[0].netdevs for device in found]
        assert {("20.31.2354", None, None)} == {(d.firmware, d.board_id, d.node_guid) for d in found}
        assert {("ACTIVE", "LinkUp", "200 Gb/sec (4X HDR)", None)} == {
            (port.state, port.phys_state, port.rate_text, port.lid) for device in found for port in device.ports
        }
        assert Status.PARTIAL == outcome.status

    @pytest.mark.parametrize("tree", ["learn_ib_intf_operstate_down", "learn_ib_misbound_if"])
    def test_meta_faults_are_faults_of_interfaces(self, corpus: Path, tree: str) -> None:
        """All eight ports are up there as well; a misbound card shows by its address."""
        found = devices(unpacked(str(corpus / f"trees/gcm-{tree}.tar.xz")))

        assert 8 == len(found)
        assert {"ACTIVE"} == {device.ports[0].state for device in found.values()}
        assert {"learn_ib_intf_operstate_down": "0000:0c:00.0", "learn_ib_misbound_if": "0000:12:00.0"}[tree] == (
            found["mlx5_0"].address
        )

    def test_gpud_h100(self, corpus: Path) -> None:
        """Eight rails and a bond without a PCI side; one port has a saturated link counter. The index tells of 22
        counters a port, the sample holds 21."""
        found = devices(unpacked(str(corpus / "trees/gpud-infiniband-h100.tar.xz"), CLASS))

        assert [*(f"mlx5_{n}" for n in (0, 1, 4, 5, 6, 7, 8, 9)), "mlx5_bond_0"] == list(found)
        assert ("MT41692", "Ethernet", "200 Gb/sec (2X NDR)") == (
            found["mlx5_bond_0"].hca_type,
            found["mlx5_bond_0"].ports[0].link_layer,
            found["mlx5_bond_0"].ports[0].rate_text,
        )
        assert {"mlx5_1": 255} == {
            name: device.ports[0].counters["link_downed"]
            for name, device in found.items()
            if device.ports[0].counters and device.ports[0].counters["link_downed"]
        }
        first = found["mlx5_0"].ports[0]
        assert (14, 15, 2489603687) == tuple(
            (first.counters or {})[name]
            for name in ("port_rcv_errors", "excessive_buffer_overrun_errors", "port_xmit_wait")
        )
        assert {(21, 25)} == {
            (len(d.ports[0].counters or {}), len(d.ports[0].hw_counters or {})) for d in found.values()
        }

    def test_procfs(self, corpus: Path) -> None:
        """Three drivers, two ports on one card, no hw_counters on two."""
        found = devices(unpacked(str(corpus / "trees/procfs.tar.xz")))

        assert {"hfi1_0": 1, "mlx4_0": 2, "mlx5_0": 1} == {name: len(device.ports) for name, device in found.items()}
        assert ("1.27.0", None) == (found["hfi1_0"].firmware, found["hfi1_0"].hca_type)
        assert ["40 Gb/sec (4X QDR)"] * 2 == [port.rate_text for port in found["mlx4_0"].ports]
        assert ("25 Gb/sec (1X EDR)", "0a7f:bc12:45ef:d23b") == (
            found["mlx5_0"].ports[0].rate_text,
            found["mlx5_0"].node_guid,
        )
        assert [None, None, 24] == [
            device.ports[0].hw_counters and len(device.ports[0].hw_counters) for device in found.values()
        ]

    def test_dell_r910_qib(self, corpus: Path) -> None:
        """Of five GIDs four are empty prefixes; one P_Key of four is used; saturated counters stay."""
        device = devices(unpacked(str(corpus / "trees/hwloc-40intel64-2g2n4c+pcilocality.tar.xz")))["qib0"]

        (port,) = device.ports
        assert ("0000:43:00.0", "0011:7500:0077:cfc8", ("ib0",)) == (device.address, port.port_guid, port.netdevs)
        assert ([0], True, ("0xffff",)) == ([gid.index for gid in port.gids], port.gids_known, port.pkeys)
        assert ("ACTIVE", 298, 1, 4294967295) == (
            port.state,
            port.lid,
            port.sm_lid,
            (port.counters or {})["port_rcv_data"],
        )

    @pytest.mark.parametrize(("tree", "with_ports"), [("merged-dgx-a100", 8), ("udev-dgx-a100", 0)])
    def test_checkbox_dgx_a100(self, corpus: Path, tree: str, with_ports: int) -> None:
        """Ten devices by udev; ports only where the other machine's were merged in, and the rest is said."""
        outcome = probed(unpacked(str(corpus / f"trees/{tree}.tar.xz")))

        assert [f"mlx5_{n}" for n in range(10)] == [device.name for device in outcome.facts.devices]
        assert ("0000:0c:00.0", "0000:e1:00.1") == (outcome.facts.devices[0].address, outcome.facts.devices[9].address)
        assert with_ports == sum(bool(device.ports) for device in outcome.facts.devices)
        assert (Status.PARTIAL, True) == (outcome.status, "mlx5_8, mlx5_9" in (outcome.reason or ""))

    @pytest.mark.parametrize(("name", "downed"), [("mlx5_0", 0), ("mlx5_1", 255)])
    def test_flattened_snapshots(self, corpus: Path, name: str, downed: int) -> None:
        """A listing "path:value" of one device, put back into files."""
        lines = (corpus / f"text/rdma-hw_counters/sysfs-h100-{name}.txt").read_text().splitlines()
        host = Machine().put({f"{CLASS}/{path}": value for path, _, value in (line.partition(":") for line in lines)})
        port = devices(host)[name].ports[0]

        assert ("400 Gb/sec (4X NDR)", "ACTIVE", "LinkUp") == (port.rate_text, port.state, port.phys_state)
        assert (downed, 14, 0) == tuple(
            (port.counters or {})[counter] for counter in ("link_downed", "port_rcv_errors", "symbol_error")
        )
        assert 3 == (port.hw_counters or {})["roce_adp_retrans"]

    def test_omni_path_counters(self, corpus: Path) -> None:
        """Its driver counts by device, under names of its own."""
        rows = (corpus / "text/rdma-hw_counters/omnipath-hfi1.txt").read_text().splitlines()
        host = Machine().put({f"{CLASS}/hfi1_0/ports/1/state": "4: ACTIVE"})
        host.put({f"{CLASS}/hfi1_0/hw_counters/{row.split()[0]}": row.split()[1] for row in rows})
        counters = devices(host)["hfi1_0"].ports[0].hw_counters or {}

        assert (134, 2079, False) == (counters["PktDrop"], counters["RcResend"], "lifespan" in counters)
