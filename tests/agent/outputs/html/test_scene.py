"""What the picture shows of a machine, before it is drawn."""

from __future__ import annotations

import msgspec
import pytest

from agent.model.pci import Link, LinkQuality
from agent.outputs.html.drawn_links import make_link_bar
from agent.outputs.html.elements import Severities
from agent.outputs.html.layout import LANE, PORT, STUB, compute_layout
from agent.outputs.html.picture import SMALL
from agent.outputs.html.scene import Box, Scene, build_scene
from tests.machines import HOSTS, scan_machine

H100, CXL = "8xh100-sxm-2s-8xcx7-ib-4nvsw", "2xl40s-2s-4xcxl"
RAILS = [f"0000:{bus}:00.0" for bus in ("1a", "3c", "4d", "5e", "9c", "bc", "cc", "dc")]


def boxes(scene: Scene) -> dict[str, Box]:
    return {box.key: box for node in scene.boxes for box in node.walk()}


@pytest.mark.parametrize("host", HOSTS)
def test_every_gpu_and_nic_has_one_box(host: str) -> None:
    """Each once, wherever it hangs; virtual functions where there is nothing else."""
    report = scan_machine(host)
    keys = [box.key for node in build_scene(report).boxes for box in node.walk() if box.kind in ("gpu", "nic")]

    physical = [nic for nic in report.topology.host_nics if not nic.virtual_function and not nic.software]
    nics = physical or [nic for nic in report.topology.host_nics if not nic.software]
    assert sorted(keys) == sorted([gpu.id for gpu in report.topology.gpus] + [nic.id for nic in nics])


@pytest.mark.parametrize("host", HOSTS)
def test_no_two_boxes_overlap(host: str) -> None:
    """Of boxes of which none is in the other; and each lies inside the picture."""
    report = compute_layout(build_scene(scan_machine(host)))
    flat = [box for box in report.placed if box.box.kind != "node"]

    for number, one in enumerate(flat):
        assert 0 <= one.at.x
        assert one.at.right <= report.wide
        assert one.at.y + one.at.high <= report.high
        for other in flat[number + 1 :]:
            apart = one.at.right <= other.at.x or other.at.right <= one.at.x
            assert apart or one.at.y + one.at.high <= other.at.y or other.at.y + other.at.high <= one.at.y


def test_nvswitches_that_are_alike_are_one_box() -> None:
    """Four of them say no more than one; one that has a finding stands alone."""
    titles = [box.title for box in boxes(build_scene(scan_machine(H100))).values() if box.kind == "nvswitch"]

    assert titles == ["4x NVSwitch"]


def test_a_narrow_uplink_is_marked_with_the_pairs_that_it_limits() -> None:
    """The link is told once, at the switch; what hangs below it has its full width."""
    report = boxes(build_scene(scan_machine(H100, "switch-uplink-x4")))
    uplink = report["0000:38:00.0"].wire

    assert uplink is not None
    assert (uplink.text, uplink.state, uplink.tone) == ("Gen5 x4 of x16", "reduced", "error")
    assert (uplink.now, uplink.could) == (15.754, 63.015)
    assert "GPU0-mlx5_3" in uplink.limits  # it goes through the uplink
    assert "GPU1-mlx5_3" not in uplink.limits  # it stays below the switch
    assert [key for key, box in report.items() if box.wire and box.wire.limits] == ["0000:38:00.0"]


def test_a_device_that_is_slower_than_its_switch_limits_nothing() -> None:
    """A Gen4 NIC in a Gen5 slot is what was bought."""
    assert not [box for box in boxes(build_scene(scan_machine(H100))).values() if box.wire and box.wire.limits]


def test_a_gpu_at_x8_limits_its_own_rail() -> None:
    """What ends at a device that could do more is reported there."""
    report = boxes(build_scene(scan_machine(H100, "gpu-width-x8")))

    assert [box.title for box in report.values() if box.wire and box.wire.limits] == ["GPU2"]


@pytest.mark.parametrize(
    ("state", "speed", "width", "text", "seen"),
    [
        ("conclusive", 32.0, 16, "Gen5 x16", "ok"),
        ("conclusive", 16.0, 16, "Gen4 x16 of Gen5", "reduced"),
        ("conclusive", 32.0, 8, "Gen5 x8 of x16", "reduced"),
        ("idle", 2.5, 16, "Gen1 x16 of Gen5", "idle"),
        ("untrusted", 2.5, 8, "Gen1 x8 of Gen5 x16", "untrusted"),
        ("untrusted", None, None, "1 GB/s", "untrusted"),
        ("asleep", None, None, "asleep", "unknown"),
        ("unreadable", None, None, "link not read", "unknown"),
    ],
)
def test_a_link_is_held_against_its_ends_only_where_it_says_something(
    state: str, speed: float | None, width: int | None, text: str, seen: str
) -> None:
    """Idle, untrusted and unread links are no fault."""
    bandwidth = None if seen == "unknown" else 1.0
    link = Link(
        speed_gt_s=speed, width=width, max_speed_gt_s=32.0, max_width=16, bandwidth_gbyte_s=bandwidth,
        quality=LinkQuality(state=state, reason="why"),
    )  # fmt: skip
    bar = make_link_bar("0000:01:00.0", link)

    assert (bar.text, bar.state) == (text, seen)
    assert bar.could == 63.015
    assert ("why" in bar.note) == (state != "conclusive")


def test_nvlinks_end_at_switches_or_at_other_gpus() -> None:
    """Pairs without a switch are joined directly, each pair once."""
    switched, paired = build_scene(scan_machine(H100)), build_scene(scan_machine("4xrtx3090-1s-nvlink-pairs"))

    assert switched.direct == {}
    assert {port.far for box in boxes(switched).values() for port in box.ports if port.kind == "nvlink"} == {
        ("switch",)
    }
    assert sorted(paired.direct.values()) == [4, 4]


def test_one_inactive_nvlink_is_seen_at_its_gpu() -> None:
    """17 of 18, and no other."""
    report = boxes(build_scene(scan_machine(H100, "nvlink-one-inactive")))
    lacking = [(box.title, port.text) for box in report.values() for port in box.ports if port.state == "down"]

    assert lacking == [("GPU2", "NVLink 17/18")]


@pytest.mark.parametrize(
    ("host", "fault", "expected"),
    [
        (H100, "gpu-width-x8", {"0000:4c:00.0": "error"}),
        (H100, "ib-port-down", {"0000:3c:00.0": "error"}),
        (H100, "switch-uplink-x4", {"0000:38:00.0": "error"}),
        (H100, "ib-no-sm", dict.fromkeys(RAILS, "critical")),
        (H100, None, {}),
    ],
)
def test_findings_stand_at_their_box(host: str, fault: str | None, expected: dict[str, str]) -> None:
    """A port's at its NIC, a link's at its GPU, that of the node at each device that it is about."""
    assert {
        key: severity for key, severity in Severities(scan_machine(host, fault)).devices.items() if severity != "info"
    } == expected


def test_an_interface_belongs_to_its_nic_and_a_pair_to_both() -> None:
    """The worst of several counts."""
    report = scan_machine("8xh200-sxm-2s-16xcx7-roce-4nvsw", "roce-mtu-1500")
    finding = next(finding for finding in report.findings if finding.severity != "info")
    netdev = next(netdev for netdev in report.topology.netdevs if netdev.nic)
    gpu, nic = report.topology.gpus[0].id, report.topology.nics[0].id
    output = [
        msgspec.structs.replace(finding, subject=f"netdev:{netdev.id}", severity="warning"),
        msgspec.structs.replace(finding, subject=f"pair:{gpu}+{nic}", severity="info"),
        msgspec.structs.replace(finding, subject=f"link:{gpu}/3", severity="critical"),
    ]

    severities = Severities(msgspec.structs.replace(report, findings=output)).devices

    assert severities[netdev.nic or ""] == "warning"
    assert severities[gpu] == "critical"
    assert severities[nic] in ("info", "warning")


def test_cxl_memory_hangs_where_its_slot_is() -> None:
    """Each expander at its socket, with the node that is its memory; none is joined with NVMe drives."""
    nodes = {node.key: {box.title: box for box in node.walk()} for node in build_scene(scan_machine(CXL)).boxes}

    assert ("128 GiB as NUMA 2", "39:00.0") == nodes["numa:0"]["CXL mem3"].words
    assert ["CXL mem1", "CXL mem0"] == [title for title in nodes["numa:1"] if title.startswith("CXL")]
    assert nodes["numa:0"]["CXL mem2"].wire is not None
    assert "NVMe" in nodes["numa:0"]


def test_cxl_memory_without_driver_region_or_place() -> None:
    """What is missing is said; a device without a known function is not drawn."""
    report = scan_machine(CXL, "cxl-no-driver")
    cxl = report.topology.cxl
    assert cxl is not None
    bare = boxes(build_scene(report))["0000:d3:00.0"]
    topology = msgspec.structs.replace(
        report.topology,
        cxl=msgspec.structs.replace(cxl, devices=[msgspec.structs.replace(cxl.devices[0], id="mem0")], regions=[]),
    )

    assert ("CXL memory", ("no memory device", "d3:00.0"), "error") == (bare.title, bare.words, bare.severity)
    assert not any(
        box.kind == "memory" for box in boxes(build_scene(msgspec.structs.replace(report, topology=topology))).values()
    )


def test_texts_of_ports_stand_beside_links_between_gpus() -> None:
    """Not below them: where GPUs are joined directly, the picture is wider by the lane of these links."""
    joined, apart = (compute_layout(build_scene(scan_machine(host))) for host in ("8xgaudi3-2s", CXL))

    assert STUB == apart.stub < joined.stub <= LANE
    assert LANE - STUB == joined.wide - apart.wide


def test_texts_of_ports_begin_where_short_links_end() -> None:
    """Links between the two dies of a module need no wide lane: the texts are whole."""
    report = scan_machine("16x910c-4s-atlas-a3")
    layout = compute_layout(build_scene(report))
    texts = [port.text for item in layout.placed for port in item.box.ports if port.kind == "port"]

    assert STUB < layout.stub < LANE
    assert 16 == len(texts)
    assert max(map(len, texts)) * SMALL <= layout.room
    assert layout.stub + layout.room < PORT + LANE - STUB
