"""Which RDMA devices there are, which functions they are, and what must not be read of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.host.interface import Denied, TimedOut
from probes.probe import Status
from probes.rdma.facts import RdmaDevice
from probes.rdma.sysfs import OF_ACCELERATOR
from probes.sources.memory import SymlinkNode
from tests.probes.rdma.rdma_machine import (
    ADDRESS,
    CLASS,
    FUNCTION,
    Machine,
    devices,
    one_card,
    pci_device,
    probed,
    unpacked,
)


class TestWhatMustNotBeRead:
    """Sleeping functions, and functions that a fabric manager owns."""

    @pytest.mark.parametrize("status", ["suspended", "suspending"])
    def test_a_sleeping_function_gets_no_read_after_its_power_status(self, status: str) -> None:
        """A read would wake it; that it was left alone is said."""
        host = one_card().put({f"{FUNCTION}/power/runtime_status": f"{status}\n"})
        outcome = probed(host)

        assert [CLASS, f"{FUNCTION}/power/runtime_status"] == host.asked
        assert (RdmaDevice("mlx5_0", address=ADDRESS, asleep=True),) == outcome.facts.devices
        assert (Status.PARTIAL, True) == (outcome.status, "left asleep" in (outcome.reason or ""))

    def test_power_is_asked_before_anything_else_of_the_function(self) -> None:
        """Also where the answer is that it is awake."""
        host = one_card()
        probed(host)

        assert [CLASS, f"{FUNCTION}/power/runtime_status"] == host.asked[:2]

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
        found = devices(host)

        assert [True] * 4 + [False] == [bool(found[f"mlx5_{n}"].limited) for n in range(5)]
        assert {"mlx5_4"} == {path.split("/")[4] for path in counter_reads(host)}
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

    def test_a_pruned_tree_is_no_answer(self, corpus: Path) -> None:
        """The gather has two InfiniBand cards on PCI, and left the class out."""
        outcome = probed(unpacked(str(corpus / "trees/hwloc-32intel64-2p8co2t+8ve.tar.xz")))

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
    found = devices(host)["mlx5_1"]

    assert (ADDRESS, ("enp25s0f0s4",)) == (found.address, found.ports[0].netdevs)
