"""`rdma link`, and RDMA devices from all saved outputs: tools complete each other."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.catalogue import probe
from probes.host.interface import TimedOut
from probes.probe import Status, outcome_of
from probes.rdma.facts import GidEntry
from probes.rdma.tools import TOOLS, parse_rdma_link
from tests.probes.machine import Machine
from tests.probes.rdma.tool_texts import IBDEV2NETDEV, IBSTAT, IBSTATUS, IBV_DEVINFO, RDMA_LINK, SHOW_GIDS

PROBE = probe("rdma_tools")


def test_two_views_of_one_host_are_one_device(corpus: Path) -> None:
    """ibstat knows the card and its GUIDs, ibstatus the width and speed; the LID 48 is 0x30 in the other."""
    host = Machine(kind="dump")
    host.says("ibstat", stdout=(corpus / "text/ib-ibstat/cx7-400g-card-at-200.txt").read_text())
    host.says("ibstatus", stdout=(corpus / "text/ib-ibstatus/cx7-hdr-same-host.txt").read_text())
    outcome = outcome_of(PROBE, host)

    (device,) = outcome.facts.devices
    (port,) = device.ports
    assert ("28.40.1000", "MT4129", "c470:bd03:00cf:4964") == (device.firmware, device.hca_type, device.node_guid)
    assert ("200 Gb/sec (4X HDR)", 48, 48, "ACTIVE") == (port.rate_text, port.lid, port.sm_lid, port.state)
    assert (Status.OK, ("ibstatus", "ibstat")) == (outcome.status, outcome.sources)


def test_a_table_of_gids_completes_the_default_gid() -> None:
    """One GID has a type and an interface in one tool, none in the other."""
    host = Machine(kind="dump").says("ibv_devinfo", "-v", stdout=IBV_DEVINFO).says("show_gids", stdout=SHOW_GIDS)
    device = next(device for device in outcome_of(PROBE, host).facts.devices if device.name == "mlx5_0")

    (port,) = device.ports
    assert GidEntry(0, "fe80:0000:0000:0000:0002:c9ff:fea1:0010", "RoCE v2", "rdma0") == port.gids[0]
    assert ([0, 1, 2, 3], True, ("rdma0",)) == ([gid.index for gid in port.gids], port.gids_known, port.netdevs)


def test_a_lid_of_zero_is_not_a_gap_to_fill() -> None:
    """Zero is known: the later tool must not replace it."""
    host = Machine(kind="dump").says("ibstatus", stdout=IBSTATUS.replace("0x10", "0x0"))
    host.says("ibstat", stdout=IBSTAT.replace("mlx4_0", "mlx5_0"))
    (device,) = outcome_of(PROBE, host).facts.devices

    assert 0 == device.ports[0].lid


def test_every_device_of_every_tool_is_listed_once() -> None:
    """Sorted by name, numbers as numbers."""
    host = Machine(kind="dump")
    for argv, text in {
        ("ibstat",): IBSTAT,
        ("ibstatus",): IBSTATUS,
        ("rdma", "link"): RDMA_LINK,
        ("ibdev2netdev",): IBDEV2NETDEV,
    }.items():
        host.says(*argv, stdout=text)
    names = [device.name for device in outcome_of(PROBE, host).facts.devices]

    assert ["mlx4_0", "mlx5_0", "mlx5_2", "mlx5_10", "roceo1", "roceo2"] == names


@pytest.mark.parametrize("argv", [argv for argv, _ in TOOLS], ids=" ".join)
def test_any_of_the_outputs_is_evidence(argv: tuple[str, ...]) -> None:
    """A recorded source is asked for each of them; a live host never."""
    host = Machine(kind="dump").says(*argv, stdout="")

    assert PROBE.evidence(host)
    assert not PROBE.evidence(Machine(kind="dump"))
    host.live = True
    assert not PROBE.evidence(host)


def test_a_live_host_is_asked_for_committed_commands_only() -> None:
    """Saved variants (-v, show) are for recorded sources."""

    class Strict(Machine):
        def run(self, *argv: str):
            assert argv in {
                ("ibstat",),
                ("ibstatus",),
                ("ibv_devinfo", "-v"),
                ("rdma", "link"),
                ("ibdev2netdev",),
                ("show_gids",),
            }
            return super().run(*argv)

    host = Strict(live=True, kind="live").says("ibdev2netdev", stdout=IBDEV2NETDEV)

    assert ("ibdev2netdev",) == outcome_of(PROBE, host).sources


def test_without_outputs_the_source_holds_nothing() -> None:
    """Absent, with the names of what would help."""
    outcome = outcome_of(PROBE, Machine(kind="dump"))

    assert (Status.ABSENT, True) == (outcome.status, "ibstat" in (outcome.reason or ""))


def test_outputs_that_say_nothing_are_a_failure_not_an_empty_machine() -> None:
    """An error message is not "no devices"; the reason tells it."""
    host = Machine(kind="dump").says(
        "ibv_devinfo", "-v", stdout="", stderr="Failed to get IB devices list\n", returncode=1
    )
    outcome = outcome_of(PROBE, host)

    assert (Status.FAILED, None) == (outcome.status, outcome.facts)
    assert "Failed to get IB devices list" in (outcome.reason or "")


def test_a_cut_output_makes_the_reading_partial() -> None:
    """What is whole is told, and what is cut is named."""
    host = Machine(kind="dump").says("ibstat", stdout=IBSTAT[: IBSTAT.rindex("\t\tBase lid")])
    outcome = outcome_of(PROBE, host)

    assert (Status.PARTIAL, "ibstat: mlx4_0 port 2 is cut off") == (outcome.status, outcome.reason)
    assert not outcome.facts.whole
    assert ("56", None) == (outcome.facts.devices[0].ports[1].rate_text, outcome.facts.devices[0].ports[1].lid)


def test_one_whole_list_is_enough() -> None:
    """Where another tool lists all devices, a cut text hides none."""
    host = Machine(kind="dump").says("ibstat", stdout=IBSTAT[: IBSTAT.rindex("\t\tBase lid")])
    host.says("ibv_devices", stdout="    device\t node GUID\n    mlx4_0\t ec0d9a0300d3730b\n")

    assert outcome_of(PROBE, host).facts.whole


def test_a_tool_that_hangs_does_not_take_the_others() -> None:
    """Its reason stays."""
    host = Machine(kind="dump").says("ibstat", stdout=IBSTAT)
    host.outputs["ibstatus",] = TimedOut("ibstatus: no answer within 5 s")
    outcome = outcome_of(PROBE, host)

    assert (Status.PARTIAL, "ibstatus: no answer within 5 s") == (outcome.status, outcome.reason)
    assert ["mlx4_0"] == [device.name for device in outcome.facts.devices]


def rows(text: str) -> list[tuple[str, int, str | None, str | None, tuple[str, ...]]]:
    return [
        (device.name, port.port, port.state, port.phys_state, port.netdevs)
        for device in parse_rdma_link(text).devices
        for port in device.ports
    ]


def test_interfaces_in_pods_are_not_seen(corpus: Path) -> None:
    """Seven of eight links of a cloud node have their interface in another namespace."""
    (block,) = (corpus / "blocks/rdma-link").glob("google*")

    assert [()] * 3 + [("gpu3rdma0",)] + [()] * 4 == [row[4] for row in rows(block.read_text())]


def test_soft_roce_is_software(corpus: Path) -> None:
    """It must not be counted as RDMA hardware."""
    (device,) = parse_rdma_link((corpus / "text/rdma-link/rxe-softroce-in-vm.txt").read_text()).devices

    assert device.software


def test_an_infiniband_link_has_lids() -> None:
    """Decimal, as iproute2 prints them."""
    port = parse_rdma_link(RDMA_LINK).devices[0].ports[0]

    assert (133, 49151) == (port.lid, port.sm_lid)


def test_lines_that_were_wrapped_are_put_together() -> None:
    """Mail programs break them anywhere between words; capabilities (-d) stand on lines of their own."""
    wrapped = RDMA_LINK.replace(" sm_lid", "\n    sm_lid").replace(" netdev", "\nnetdev")

    assert rows(RDMA_LINK) == rows(wrapped + "    caps: <CM, IP_BASED_GIDS>\n")


def test_the_form_of_old_iproute2_is_read() -> None:
    """Before 2019 a link began with the indexes of device and port."""
    assert [("mlx5_0", 1, "ACTIVE", "LinkUp", ("ib0",))] == rows(
        "1/1: mlx5_0/1: state ACTIVE physical_state LINK_UP netdev ib0 \n"
    )


def test_a_cut_line_is_named() -> None:
    """A state without its physical state is not the whole link."""
    result = parse_rdma_link(RDMA_LINK + "link roceo3/1 state ACTI")

    assert ("rdma link: roceo3/1 is cut off",) == result.cut
    assert result.devices[-1].ports[0].state is None


def test_only_infiniband_has_a_subnet_prefix() -> None:
    """nldev_port_fill of the kernel: of other ports the link layer is not told."""
    text = (
        "link mlx5_0/1 subnet_prefix fe80:0000:0000:0000 lid 0 sm_lid 0 lmc 0 state DOWN physical_state POLLING\n"
        "link mlx5_1/1 state ACTIVE physical_state LINK_UP netdev eth0\n"
    )
    one, other = parse_rdma_link(text).devices

    assert ("InfiniBand", None) == (one.ports[0].link_layer, other.ports[0].link_layer)
