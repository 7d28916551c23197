"""RDMA devices and their ports from sysfs: what each file says, and files that do not answer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.host.interface import Denied, Failed, TimedOut
from probes.probe import Status
from probes.rdma.facts import GidEntry, RdmaDevice
from probes.rdma.sysfs import OF_ACCELERATOR
from probes.sources.memory import SymlinkNode
from tests.probes.machine import Machine
from tests.probes.rdma.rdma_machine import (
    ADDRESS,
    CLASS,
    DEVICE,
    FUNCTION,
    PORT,
    devices,
    first_port,
    one_card,
    pci_device,
    probed,
)

# Which RDMA devices there are, which functions they are, and what must not be read of them.
LINKS = (CLASS, f"{CLASS}/mlx5_0", f"{CLASS}/mlx5_0/device")  # none of them a question to the function


class TestWhatMustNotBeRead:
    """Sleeping functions, and functions that a fabric manager owns."""

    @pytest.mark.parametrize("status", ["suspended", "suspending"])
    def test_a_sleeping_function_gets_no_read_after_its_power_status(self, status: str) -> None:
        """A read would wake it; that it was left alone is said."""
        host = one_card().put({f"{FUNCTION}/power/runtime_status": f"{status}\n"})
        outcome = probed(host)

        assert [*LINKS, f"{FUNCTION}/power/runtime_status"] == host.asked
        assert (RdmaDevice("mlx5_0", address=ADDRESS, asleep=True),) == outcome.facts.devices
        assert (Status.PARTIAL, True) == (outcome.status, "left asleep" in (outcome.reason or ""))

    def test_power_is_asked_before_anything_else_of_the_function(self) -> None:
        """Also where the answer is that it is awake."""
        host = one_card()
        probed(host)

        assert [*LINKS, f"{FUNCTION}/power/runtime_status"] == host.asked[:4]

    def test_the_subsystem_of_the_switch_manager_is_limited(self) -> None:
        """Its counters are not touched, nor its tables; its state is."""
        host = one_card().put({f"{FUNCTION}/subsystem_device": "0x0087\n"})
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

    @pytest.mark.parametrize(
        ("name", "pci_class"), [("hbl_0", "0x020000"), ("hlib_0", "0x020000"), ("mlx5_0", "0x120000")]
    )
    def test_ports_of_an_accelerator_give_their_state_alone(self, name: str, pci_class: str) -> None:
        """Each counter of a Gaudi is a question to its firmware, and it has thousands."""
        host = Machine(live=True, kind="live").put(files_of(name, ADDRESS, pci_class, "0"))
        device = devices(host)[name]

        assert OF_ACCELERATOR == device.limited
        assert {"state", "phys_state"} == {path.rsplit("/", 1)[-1] for path in host.asked if "/ports/1/" in path}
        assert ["ACTIVE"] == [port.state for port in device.ports]

    def test_four_functions_of_one_infiniband_card_are_limited(self) -> None:
        """One system image, functions 0 to 3: no network card is built like that. The others keep their counters."""
        host = four_functions("0x020700", images=1).put(files_of_a_rail())
        result = devices(host)

        assert [True] * 4 + [False] == [bool(result[f"mlx5_{n}"].limited) for n in range(5)]
        assert {"mlx5_4"} == {path.split("/")[4] for path in counter_reads(host)}
        assert {"link_downed": 0} == result["mlx5_4"].ports[0].counters

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


def files_of_a_rail() -> dict[str, str | SymlinkNode]:
    return files_of("mlx5_4", "0000:18:00.0", "0x020700", "0002:c903:00a1:0018")


def files_of(name: str, address: str, pci_class: str, image: str) -> dict[str, str | SymlinkNode]:
    files = pci_device(name, address, vendor="0x15b3", subsystem_vendor="0x15b3", subsystem_device="0x0050")
    function = f"/sys/devices/pci0000:00/{address}"
    return files | {
        f"{function}/device": "0x1021",
        f"{function}/class": pci_class,
        f"{function}/infiniband/{name}/sys_image_guid": image,
        f"{function}/infiniband/{name}/ports/1/state": "4: ACTIVE",
        f"{function}/infiniband/{name}/ports/1/counters/link_downed": "0",
    }


def counter_reads(host: Machine) -> list[str]:
    return [path for path in host.asked if "counters" in path]


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

    def test_a_pruned_tree_is_no_answer(self) -> None:
        """Other tools leave the class out: without it nothing is known of a tree."""
        outcome = probed(Machine().put({f"{FUNCTION}/vendor": "0x15b3", "/sys/class/net/lo/mtu": "65536"}))

        assert (Status.ABSENT, "the source holds no /sys/class/infiniband") == (outcome.status, outcome.reason)

    @pytest.mark.parametrize(("why", "status"), [(Denied, Status.DENIED), (TimedOut, Status.TIMED_OUT)])
    def test_a_class_that_cannot_be_listed_keeps_its_reason(self, why: type[Denied | TimedOut], status: Status) -> None:
        """Denied is not absent."""
        host = one_card()
        host.refused[CLASS] = why("no")

        assert status == probed(host).status


@pytest.mark.parametrize(
    ("folder", "attribute"),
    [
        ("virtual/infiniband/rxe0", ("ports/1/rate", "10 Gb/sec (4X)")),
        (f"pci0000:00/{ADDRESS}/infiniband/rxe0", ("parent", "ens1f0np0")),
        (f"pci0000:00/{ADDRESS}/infiniband/rxe0", ("node_desc", "Software iWARP stack")),
    ],
    ids=["virtual", "soft RoCE below a card", "soft iWARP below a card"],
)
def test_a_software_device_has_no_address(folder: str, attribute: tuple[str, str]) -> None:
    """It must not be taken for the card below which old kernels hang it."""
    host = one_card().put({f"{CLASS}/rxe0": SymlinkNode(f"../../devices/{folder}")})
    host.put({f"/sys/devices/{folder}/{name}": text for name, text in (("node_guid", "0"), attribute)})

    assert (True, None) == (devices(host)["rxe0"].software, devices(host)["rxe0"].address)


def test_a_sub_function_belongs_to_its_function() -> None:
    """It hangs below an auxiliary device, which has the interface."""
    below = f"{FUNCTION}/mlx5_core.sf.4"
    host = one_card().put(
        {
            f"{CLASS}/mlx5_1": SymlinkNode(f"../../devices/pci0000:00/{ADDRESS}/mlx5_core.sf.4/infiniband/mlx5_1"),
            f"{below}/infiniband/mlx5_1/device": SymlinkNode("../../../mlx5_core.sf.4"),
            f"{below}/infiniband/mlx5_1/ports/1/state": "4: ACTIVE",
            f"{below}/net/enp25s0f0s4/dev_port": "0",
        }
    )
    result = devices(host)["mlx5_1"]

    assert (ADDRESS, ("enp25s0f0s4",)) == (result.address, result.ports[0].netdevs)


class TestTreesOfOtherTools:
    """They leave folders and links out, and blank files."""

    def test_devices_below_functions_stand_for_the_class(self) -> None:
        """What is below no function is not known, and that is said."""
        files = pci_device("mlx5_0", ADDRESS, infiniband__mlx5_0__ports__1__state="4: ACTIVE")
        del files[f"{CLASS}/mlx5_0"]
        outcome = probed(Machine().put(files))

        (device,) = outcome.facts.devices
        assert ("mlx5_0", ADDRESS, "ACTIVE") == (device.name, device.address, device.ports[0].state)
        assert (Status.PARTIAL, True) == (
            outcome.status,
            "only what lies below PCI functions" in (outcome.reason or ""),
        )

    def test_the_place_of_a_device_names_its_function(self) -> None:
        """Where the link `device` is not in the tree."""
        files = pci_device("mlx5_0", ADDRESS, infiniband__mlx5_0__ports__1__state="4: ACTIVE")
        del files[f"{DEVICE}/device"]

        assert ADDRESS == devices(Machine().put(files))["mlx5_0"].address

    def test_a_device_below_no_function_has_no_address(self) -> None:
        """The class alone was kept, as folders."""
        (device,) = devices(Machine().put({f"{CLASS}/hfi1_0/ports/1/state": "4: ACTIVE"})).values()

        assert (None, False) == (device.address, device.software)
        assert (None, None) == (device.ports[0].counters, device.ports[0].hw_counters)

    def test_a_device_without_ports_is_named(self) -> None:
        """Its ports were left out: that they are up is not known."""
        outcome = probed(one_card(live=False).put(pci_device("mlx5_1", "0000:1a:00.0")))

        assert ("mlx5_0", "mlx5_1") == tuple(device.name for device in outcome.facts.devices)
        assert "the source holds no ports of mlx5_1" == outcome.reason
        assert probed(one_card(live=False)).reason is None

    def test_a_file_that_holds_its_own_name_states_nothing(self) -> None:
        """It was blanked out; an interface of a GID that is not in the tree is none."""
        host = one_card(live=False).put({f"{DEVICE}/fw_ver": "fw_ver\n"})
        host.put({f"{PORT}/gids/2": "fe80:0000:0000:0000:0002:c9ff:fea1:0011\n"})
        device = devices(host)["mlx5_0"]

        assert (None, "MT4129") == (device.firmware, device.hca_type)
        assert ("ens1f0np0", "ens1f0np0.100") == device.ports[0].netdevs

    def test_an_infiniband_port_without_gids_has_no_guid(self) -> None:
        """The table was left out."""
        host = Machine().put({f"{CLASS}/qib0/ports/1/link_layer": "InfiniBand"})

        assert ("InfiniBand", None) == (
            devices(host)["qib0"].ports[0].link_layer,
            devices(host)["qib0"].ports[0].port_guid,
        )


# The ports of an RDMA device from sysfs: what each file says, and files that do not answer.


class TestOneCard:
    """Every fact of a card whose files are all there."""

    def test_identity(self) -> None:
        """The card is its PCI function; the texts are those of its files."""
        device = devices(one_card())["mlx5_0"]

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
        port = first_port(one_card())

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
        host = one_card()
        port = first_port(host)

        assert (
            GidEntry(0, "fe80:0000:0000:0000:0002:c9ff:fea1:0010", "RoCE v2", "ens1f0np0"),
            GidEntry(10, "0000:0000:0000:0000:0000:ffff:c0a8:0105", "RoCE v2", "ens1f0np0.100"),
        ) == port.gids
        assert port.gids_known
        assert not [path for path in host.asked if path.endswith(("types/1", "ndevs/1"))]

    def test_interfaces_are_those_of_the_port_and_of_its_gids(self) -> None:
        """Not the other port's, not a virtual function's representor."""
        assert ("ens1f0np0", "ens1f0np0.100") == first_port(one_card()).netdevs

    def test_counters_without_a_value_are_left_out(self) -> None:
        """No PMA and all-ones are no counts; a saturated counter is one; the cache time is no counter."""
        port = first_port(one_card())

        assert {"link_downed": 255, "port_rcv_data": 4294967295} == port.counters
        assert {"out_of_sequence": 7} == port.hw_counters

    def test_everything_answered(self) -> None:
        """The reading is whole and each file was asked once."""
        host = one_card()
        outcome = probed(host)

        assert (Status.OK, None, (CLASS,)) == (outcome.status, outcome.reason, outcome.sources)
        assert len(host.asked) == len(set(host.asked))


class TestTroubles:
    """Files that do not answer."""

    @pytest.mark.parametrize("code", ["EINVAL", "EOPNOTSUPP", "EAGAIN"])
    def test_what_a_driver_does_not_have_is_no_gap(self, code: str) -> None:
        """The rate of a virtual adapter, a counter, the type of a GID that went away in between."""
        host = one_card()
        refused = ("rate", "counters/link_downed", "gid_attrs/types/10", "gids/0")
        host.refused |= {f"{CLASS}/mlx5_0/ports/1/{name}": Failed("no", code) for name in refused}
        outcome = probed(host)

        (port,) = outcome.facts.devices[0].ports
        assert (Status.OK, None) == (outcome.status, port.rate_text)
        assert {"port_rcv_data": 4294967295} == port.counters
        assert (GidEntry(10, "0000:0000:0000:0000:0000:ffff:c0a8:0105", None, "ens1f0np0.100"),) == port.gids

    @pytest.mark.parametrize("why", [Denied("denied: state", "EACCES"), TimedOut("timed out: state")])
    def test_what_was_refused_is_said(self, why: Denied | TimedOut) -> None:
        """The port is there, its state is unknown, and the reading is not whole."""
        host = one_card()
        host.refused[f"{CLASS}/mlx5_0/ports/1/state"] = why
        outcome = probed(host)

        assert (Status.PARTIAL, why.reason) == (outcome.status, outcome.reason)
        assert (None, "LinkUp") == (
            outcome.facts.devices[0].ports[0].state,
            outcome.facts.devices[0].ports[0].phys_state,
        )

    def test_a_table_that_was_not_read_whole_is_not_known(self) -> None:
        """One entry failed: an absent GID may be that one."""
        host = one_card()
        host.refused[f"{CLASS}/mlx5_0/ports/1/gids/1"] = Failed("input/output error", "EIO")

        assert not first_port(host).gids_known

    def test_a_device_that_vanishes_is_left_out_and_said(self) -> None:
        """Its name was listed, its folder is gone."""
        host = one_card().put({f"{CLASS}/mlx5_9": SymlinkNode("../../devices/gone/infiniband/mlx5_9")})
        outcome = probed(host)

        assert ["mlx5_0"] == [device.name for device in outcome.facts.devices]
        assert (Status.PARTIAL, "mlx5_9 vanished while it was read") == (outcome.status, outcome.reason)

    def test_a_huge_gid_table_is_bounded(self) -> None:
        """Only so many entries are read; an unread rest means that the table is not known."""
        host = one_card().put({f"{PORT}/gids/{index}": "::" for index in range(11, 400)})
        port = first_port(host)

        assert ([0, 10], False) == ([gid.index for gid in port.gids], port.gids_known)
        assert 256 == len([path for path in host.asked if "/gids/" in path])

    def test_unused_partitions_end_the_search(self) -> None:
        """Each read can be a firmware command: after a block without a key no more are asked for."""
        host = one_card().put({f"{PORT}/pkeys/{index}": "0x0000" for index in range(1, 128)})
        host.put({f"{PORT}/pkeys/31": "0x8001"})

        assert ("0xffff", "0x8001") == first_port(host).pkeys
        assert 64 == len([path for path in host.asked if "/pkeys/" in path])


def test_counters_of_a_device_with_one_port_are_the_ports() -> None:
    """The port's own value stands where both have a name."""
    host = one_card().put({f"{DEVICE}/hw_counters/sent_cnps": "5", f"{DEVICE}/hw_counters/out_of_sequence": "1"})

    assert {"out_of_sequence": 7, "sent_cnps": 5} == first_port(host).hw_counters


def test_an_infiniband_port_guid_is_its_first_gid() -> None:
    """By the definition of GID 0; an Ethernet port has none."""
    host = one_card().put({f"{PORT}/link_layer": "InfiniBand\n"})

    assert "0002:c9ff:fea1:0010" == first_port(host).port_guid
    assert first_port(one_card()).port_guid is None


NAMES = ("state", "rate", "lid", "link_layer", "gids/0", "pkeys/0", "gid_attrs/types/0", "counters/link_downed")


@given(st.sampled_from(NAMES), st.binary() | st.text().map(str.encode))
def test_any_content_is_survived(name: str, content: bytes) -> None:
    """Whatever a file holds: the other facts stay, and no number is made of it that is not in it."""
    host = one_card()
    host.files.add(f"{PORT}/{name}", content)
    outcome = probed(host)

    assert Status.OK == outcome.status
    assert "LinkUp" == outcome.facts.devices[0].ports[0].phys_state
