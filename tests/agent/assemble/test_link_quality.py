"""How far a link may be believed: every state, and what keeps a slow link from being taken for a broken one."""

from __future__ import annotations

import pytest

from agent.assemble.link_quality import LinkClassifier, link_capability
from agent.assemble.pcie_tree import PcieTree
from agent.model.pci import LinkQuality
from probes.gpu.facts import Gpu
from tests.agent.assemble.boards import GEN1, GEN3, GEN4, GEN5, Board, hgx

GPU, NIC = "0000:13:00.0", "0000:14:00.0"
ROOT, UP, DOWN, NIC_PORT = "0000:10:01.0", "0000:11:00.0", "0000:12:00.0", "0000:12:01.0"


def classify(board: Board, address: str, gpu: Gpu | None = None, virtual: bool = False) -> LinkQuality:
    """The quality of one link of a machine."""
    tree = PcieTree(board.functions)
    result = LinkClassifier(tree, {GPU: gpu} if gpu else {}, virtual).quality(tree.functions[address])
    assert result is not None, f"{address} has no link"
    return result


def slow_gpu(speed: float = GEN1, width: int = 16) -> Board:
    """A switch with a GPU whose link runs below what it can do."""
    board = hgx(1)
    board.change(GPU, current_link_speed_gt_s=speed, current_link_width=width)
    return board


@pytest.mark.parametrize(
    ("output", "state"),
    [
        (Gpu(pstate=0, link_generation=1), "conclusive"),
        (Gpu(pstate=0), "conclusive"),
        (Gpu(pstate=2, utilization_percent=40), "conclusive"),
        (Gpu(pstate=2, utilization_percent=0), "idle"),
        (Gpu(pstate=2), "idle"),
        (Gpu(pstate=3, utilization_percent=90), "idle"),
        (Gpu(pstate=8, utilization_percent=0), "idle"),
        (Gpu(utilization_percent=5), "conclusive"),
        (Gpu(utilization_percent=0), "idle"),
        (Gpu(), "idle"),
        (None, "idle"),
        (Gpu(pstate=0, link_generation=5), "idle"),  # NVML saw another speed: the link changed between the reads
    ],
)
def test_a_slow_gpu_link_proves_something_only_where_the_gpu_was_busy(output: Gpu | None, state: str) -> None:
    """P0, or P2 and better under load, around the read; without a P-state, load."""
    assert state == classify(slow_gpu(), GPU, output).state


def test_a_narrow_gpu_link_is_treated_as_a_slow_one() -> None:
    """Width may drop when idle, too."""
    assert "idle" == classify(slow_gpu(GEN5, 8), GPU, Gpu(pstate=8)).state
    assert "conclusive" == classify(slow_gpu(GEN5, 8), GPU, Gpu(pstate=0, link_generation=5)).state


@pytest.mark.parametrize(
    ("maker", "peers", "speed", "narrow", "state"),
    [
        ("0x1da3", 3, GEN5, 1, "conclusive"),
        ("0x19e5", 3, GEN5, 1, "conclusive"),
        ("0x1da3", 2, GEN5, 1, "idle"),  # one other proves nothing
        ("0x1da3", 3, GEN4, 1, "idle"),  # slower, too: it may save power
        ("0x1da3", 4, GEN5, 2, "idle"),  # two are narrow
        ("0x10de", 3, GEN5, 1, "idle"),  # of NVIDIA the P-state decides
    ],
)
def test_a_part_without_p_state_that_is_narrow_alone_is_conclusive(
    maker: str, peers: int, speed: float, narrow: int, state: str
) -> None:
    """Gaudi and Ascend have no P-state: at full speed, and narrower than all others of their model."""
    board = hgx(peers)
    gpus = [function.address for function in board.functions if function.class_code == "0x030200"]
    for address in gpus:
        board.change(address, vendor=maker, device="0x1060", class_code="0x030200" if maker == "0x10de" else "0x120000")
    for address in gpus[:narrow]:
        board.change(address, current_link_speed_gt_s=speed, current_link_width=8)
    assert state == classify(board, gpus[0]).state


def test_an_idle_gpu_at_full_speed_is_conclusive_whatever_its_p_state() -> None:
    """Nothing slowed it. What the port above can do counts, not what the card alone can do."""
    board = hgx(1)
    slot = slow_gpu(GEN4)
    for place in (ROOT, UP, DOWN):
        slot.change(place, max_link_speed_gt_s=GEN4, current_link_speed_gt_s=GEN4)

    assert "conclusive" == classify(board, GPU).state
    assert "conclusive" == classify(slot, GPU).state


def test_the_port_above_an_idle_gpu_tells_of_the_same_wire() -> None:
    """So does the audio function beside the GPU."""
    board = slow_gpu()
    board.change(DOWN, current_link_speed_gt_s=GEN1)
    board.device("0000:13:00.1", DOWN, "0x040300", "0x10de", "0x228b", speed=GEN1, max_speed=GEN5)

    assert "idle" == classify(board, DOWN).state
    assert GPU in (classify(board, DOWN).reason or "")
    assert "idle" == classify(board, "0000:13:00.1").state
    assert "conclusive" == classify(board, UP).state


def test_a_slow_nic_is_conclusive_at_once() -> None:
    """NICs do not idle down."""
    board = hgx(1)
    board.change(NIC, current_link_speed_gt_s=GEN3)

    assert "conclusive" == classify(board, NIC).state


@pytest.mark.parametrize(
    ("fields", "state", "word"),
    [
        ({"asleep": True, "runtime_status": "suspended"}, "asleep", "suspended"),
        ({"power_state": "D3hot"}, "asleep", "D3hot"),
        ({"power_state": "D3cold", "gone": True, "current_link_width": 63}, "asleep", "D3cold"),
        ({"gone": True}, "unreadable", "all-ones"),
        ({"current_link_width": 63}, "unreadable", "all-ones"),
        ({"link_error": "EINVAL"}, "unreadable", "EINVAL"),
        ({"current_link_width": 0}, "unreadable", "width 0"),
        ({"current_link_speed_gt_s": None}, "unreadable", "not known"),
        ({"current_link_width": None}, "unreadable", "not known"),
        ({"current_link_speed_gt_s": 64.0}, "untrusted", "maximum"),
        ({"current_link_width": 16, "max_link_width": 8}, "untrusted", "maximum"),
    ],
)
def test_what_registers_cannot_say_is_not_taken_for_health(fields: dict[str, object], state: str, word: str) -> None:
    """Each state says why."""
    board = hgx(1)
    board.change(NIC, **fields)
    result = classify(board, NIC)

    assert state == result.state
    assert word in (result.reason or "")


def test_a_function_below_a_port_of_which_nothing_is_said_is_unreadable_not_without_a_link() -> None:
    """lspci without root prints no capabilities."""
    board = hgx(1)
    nothing = dict.fromkeys(("current_link_speed_gt_s", "current_link_width", "max_link_speed_gt_s", "max_link_width"))
    board.change(NIC, **nothing)

    assert "unreadable" == classify(board, NIC).state


def test_virtual_functions_and_what_sits_in_the_root_complex_have_no_link() -> None:
    """The link is that of the physical function; an integrated device has none."""
    board = hgx(1)
    board.change(NIC, physical_function="0000:14:00.1")
    board.device("0000:10:00.0", None, "0x088000", "0x8086", "0x09a2", speed=None, width=None)
    tree = PcieTree(board.functions)
    judge = LinkClassifier(tree, {}, False)

    assert judge.quality(tree.functions[NIC]) is None
    assert judge.quality(tree.functions["0000:10:00.0"]) is None


def test_in_a_virtual_machine_only_a_gpu_at_its_own_maximum_is_believed() -> None:
    """Ports are emulated; what the host's slot can do is not visible, so a slower GPU link proves nothing either."""
    board = hgx(1)
    busy = Gpu(pstate=0, link_generation=4)

    assert "conclusive" == classify(board, GPU, virtual=True).state
    assert "untrusted" == classify(slow_gpu(GEN4), GPU, busy, virtual=True).state
    assert "untrusted" == classify(board, NIC, virtual=True).state
    assert "untrusted" == classify(board, ROOT, virtual=True).state


def test_an_emulated_port_gives_itself_away_even_where_the_hypervisor_does_not() -> None:
    """QEMU's root ports have a vendor of their own."""
    board = hgx(1)
    board.change(DOWN, vendor="0x1b36")

    assert "untrusted" == classify(board, DOWN).state
    assert "conclusive" == classify(board, GPU).state
    assert "untrusted" == classify(slow_gpu_below_qemu(), GPU, Gpu(pstate=0, link_generation=1)).state


def slow_gpu_below_qemu() -> Board:
    """A GPU at generation 1 below an emulated port."""
    board = slow_gpu()
    board.change(DOWN, vendor="0x1b36")
    return board


def test_an_endpoint_on_the_root_bus_without_a_port_is_not_believed() -> None:
    """As hypervisors place devices."""
    board = Board()
    board.nic("0001:00:00.0", None, speed=GEN1, max_speed=GEN4)

    assert "untrusted" == classify(board, "0001:00:00.0").state


@pytest.mark.parametrize("ports", [("0x1002:0x1478", "0x1002:0x1479"), ("0x1022:0x1500", "0x1002:0x1501")])
def test_behind_the_switch_of_an_amd_card_the_link_that_counts_is_the_card_s(ports: tuple[str, str]) -> None:
    """The upstream port leads to the slot, all else is inside; the card slows down when idle like any GPU."""
    (vendor, device), below = ports[0].split(":"), ports[1].split(":")
    board = Board()
    root = board.root_port("0000:60:01.0", speed=GEN4)
    up = board.upstream("0000:61:00.0", root, vendor=vendor, device=device, speed=GEN1, max_speed=GEN4)
    down = board.downstream("0000:62:00.0", up, vendor=below[0], device=below[1], speed=GEN4)
    gpu = board.device("0000:63:00.0", down, "0x120000", "0x1002", "0x74a1", speed=GEN1, max_speed=GEN4)

    assert "untrusted" == classify(board, gpu).state
    assert "untrusted" == classify(board, down).state
    assert "idle" == classify(board, up).state
    board.change(up, current_link_speed_gt_s=GEN4)
    assert "conclusive" == classify(board, up).state


def test_inside_a_connectx_the_nic_s_link_is_no_wire_but_the_gpu_s_is() -> None:
    """On HGX B200 the GPU hangs below the NIC's switch."""
    board = Board()
    root = board.root_port("0000:15:01.0")
    up = board.upstream("0000:16:00.0", root, vendor="0x15b3", device="0x1979")
    to_nic = board.downstream("0000:17:00.0", up, vendor="0x15b3", device="0x1979")
    to_gpu = board.downstream("0000:17:01.0", up, vendor="0x15b3", device="0x1979")
    nic = board.nic("0000:18:00.0", to_nic, speed=GEN4, max_speed=GEN5)
    gpu = board.gpu("0000:1b:00.0", to_gpu, device="0x2901")

    assert ["untrusted", "conclusive", "conclusive"] == [classify(board, item).state for item in (nic, gpu, up)]


def test_inside_a_pensando_card_the_link_that_counts_is_the_card_s() -> None:
    """A virtual port leads to each function of the card; a NIC of another maker below it is none of the card's."""
    board = Board()
    root = board.root_port("0000:40:01.0")
    up = board.upstream("0000:41:00.0", root, vendor="0x1dd8", device="0x1000")
    down = board.downstream("0000:42:01.0", up, vendor="0x1dd8", device="0x1001")
    nic = board.device("0000:44:00.0", down, "0x020000", "0x1dd8", "0x1002", speed=GEN1, max_speed=GEN5)
    other = board.device("0000:45:00.0", down, "0x020000", "0x14e4", "0x1760", speed=GEN4, max_speed=GEN5)

    assert ["untrusted", "conclusive", "conclusive"] == [classify(board, item).state for item in (nic, other, up)]


def test_nvswitches_and_what_leads_only_to_them_are_management() -> None:
    """Narrow by design; a switch that leads to a GPU too is not."""
    board = hgx(1)
    board.device("0000:19:00.0", board.downstream("0000:12:0f.0", UP), "0x068000", "0x10de", "0x22a3", width=2)
    root = board.root_port("0000:80:01.0")
    up = board.upstream("0000:81:00.0", root, width=2, max_width=16)
    down = board.downstream("0000:82:00.0", up)
    board.device("0000:83:00.0", down, "0x068000", "0x10de", "0x22a3", width=2)

    assert ["untrusted"] * 4 == [classify(board, item).state for item in (root, up, down, "0000:83:00.0")]
    assert "conclusive" == classify(board, UP).state


def test_a_synthetic_port_is_told_from_a_slow_switch() -> None:
    """At most two generations below both neighbours, at full width; an x8 upstream port or a Gen3 switch is real."""
    board = hgx(1)
    board.change(UP, vendor="0x1000", device="0xc030", max_link_speed_gt_s=5.0, current_link_speed_gt_s=5.0)
    slow = hgx(1)
    slow.change(UP, vendor="0x1000", device="0xc030", current_link_speed_gt_s=5.0)
    named = hgx(1)
    named.change(DOWN, vendor="0x1000", device="0xc034", subsystem_vendor="0x1000", subsystem_device="0x100b")

    old_switch = hgx(1)
    old_slot = hgx(1)
    for place in (UP, DOWN, NIC_PORT, NIC, GPU):
        old_switch.change(
            place, vendor="0x1000", device="0xc010", max_link_speed_gt_s=GEN3, current_link_speed_gt_s=GEN3
        )
    for place in (ROOT, UP):
        old_slot.change(place, vendor="0x1000", device="0xc030", max_link_speed_gt_s=GEN3, current_link_speed_gt_s=GEN3)

    assert "untrusted" == classify(board, UP).state
    assert ["conclusive"] * 3 == [classify(item, UP).state for item in (slow, old_switch, old_slot)]
    assert LinkQuality(
        state="untrusted", reason="virtual switch port, reported speed ignored: its subsystem id is that of one"
    ) == (classify(named, DOWN))
    assert "far slower than what is above and below it" in (classify(board, UP).reason or "")


@pytest.mark.parametrize(
    ("device", "width", "state"), [("0x57ad", 4, "untrusted"), ("0x57ad", 2, "conclusive"), ("0x57a3", 4, "conclusive")]
)
def test_a_chipset_is_wired_narrower_than_both_its_ends_could(device: str, width: int, state: str) -> None:
    """X570 on AM4: x4 where both ends say x8. Narrower still is no wiring, and its other ports are slots."""
    board = Board()
    root = board.root_port("0000:00:01.2", vendor="0x1022", device="0x1483", speed=GEN4, width=8)
    board.change(root, current_link_width=width)
    board.upstream("0000:01:00.0", root, vendor="0x1022", device=device, speed=GEN4, width=8)
    board.change("0000:01:00.0", current_link_width=width)

    assert [state, state] == [classify(board, address).state for address in ("0000:01:00.0", root)]


def test_a_slow_link_below_a_port_without_registers_is_inside_a_chip() -> None:
    """The X722 of an Intel chipset shows 2.5 GT/s of 8: nothing is wrong with it. At its maximum it is believed."""
    board = Board()
    root = board.root_port("0000:5d:02.0", speed=GEN3)
    down = board.downstream("0000:5f:03.0", root, speed=None, width=None, current_link_width=None)
    nic = board.device("0000:60:00.0", down, "0x020000", "0x8086", "0x37d2", speed=GEN1, max_speed=GEN3, width=1)

    assert "untrusted" == classify(board, nic).state
    board.change(nic, current_link_speed_gt_s=GEN3)
    assert "conclusive" == classify(board, nic).state


def test_the_expectation_is_the_lesser_end_as_far_as_known() -> None:
    """A Gen5 card in a Gen4 x8 slot."""
    board = hgx(1)
    board.change(DOWN, max_link_speed_gt_s=GEN4, max_link_width=8)
    tree = PcieTree(board.functions)
    gpu, port = tree.functions[GPU], tree.functions[DOWN]

    assert (GEN4, 8) == link_capability(gpu, port)
    assert (GEN5, 16) == link_capability(gpu, None)


def test_what_a_source_says_against_its_own_numbers_makes_them_untrusted() -> None:
    """A placeholder, a file for a kind of machine: no wire was read."""
    board = hgx(1)
    board.change(NIC, link_doubt="written by hand")

    assert LinkQuality(state="untrusted", reason="written by hand") == classify(board, NIC)


def test_a_bandwidth_alone_is_told_and_not_judged() -> None:
    """It may be many lanes that are slow, or few that are fast."""
    board = hgx(1)
    nothing = dict.fromkeys(
        ("current_link_speed_gt_s", "current_link_width", "max_link_speed_gt_s", "max_link_width"), None
    )
    board.change(NIC, link_gbyte_s=15.754, **nothing)

    assert "unreadable" == classify(board, NIC).state
    assert "what it carries is known, and not at what speed and width" == classify(board, NIC).reason


def test_a_root_bus_that_is_not_named_says_nothing_of_a_port() -> None:
    """A NCCL topology leaves root ports out: what hangs from the processor is not for that an emulated device."""
    board = hgx(1)
    board.change(NIC, parent=None, root_bus="", port_type=None)

    assert "conclusive" == classify(board, NIC).state
