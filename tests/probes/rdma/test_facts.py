"""Facts of RDMA devices and rates of their links."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.probe import Status
from probes.rdma.normalize import SPEEDS, parse_rate, rate_text
from probes.text import ParseError
from tests.probes.machine import Machine
from tests.probes.rdma.rdma_machine import CLASS, devices, probed, unpacked

# RDMA devices of the corpus' real machines, from their sysfs.


def test_meta_dgx_a100(corpus: Path) -> None:
    """The tree kept PCI folders and no class; blanked-out files say nothing."""
    outcome = probed(unpacked(str(corpus / "trees/gcm-learn_good.tar.xz")))

    result = outcome.facts.devices
    assert [f"mlx5_{n}" for n in (0, 1, 2, 3, 6, 7, 8, 9)] == [device.name for device in result]
    assert ["0c", "12", "4b", "54", "8d", "94", "ba", "cc"] == [(device.address or "")[5:7] for device in result]
    assert [(f"ib{n}",) for n in range(8)] == [device.ports[0].netdevs for device in result]
    assert {("20.31.2354", None, None)} == {(d.firmware, d.board_id, d.node_guid) for d in result}
    assert {("ACTIVE", "LinkUp", "200 Gb/sec (4X HDR)", None)} == {
        (port.state, port.phys_state, port.rate_text, port.lid) for device in result for port in device.ports
    }
    assert Status.PARTIAL == outcome.status


@pytest.mark.parametrize("tree", ["learn_ib_intf_operstate_down", "learn_ib_misbound_if"])
def test_meta_faults_are_faults_of_interfaces(corpus: Path, tree: str) -> None:
    """All eight ports are up there as well; a misbound card shows by its address."""
    result = devices(unpacked(str(corpus / f"trees/gcm-{tree}.tar.xz")))

    assert 8 == len(result)
    assert {"ACTIVE"} == {device.ports[0].state for device in result.values()}
    assert {"learn_ib_intf_operstate_down": "0000:0c:00.0", "learn_ib_misbound_if": "0000:12:00.0"}[tree] == (
        result["mlx5_0"].address
    )


def test_gpud_h100(corpus: Path) -> None:
    """Eight rails and a bond without a PCI side; one port has a saturated link counter. The index tells of 22
    counters a port, the sample holds 21."""
    result = devices(unpacked(str(corpus / "trees/gpud-infiniband-h100.tar.xz"), CLASS))

    assert [*(f"mlx5_{n}" for n in (0, 1, 4, 5, 6, 7, 8, 9)), "mlx5_bond_0"] == list(result)
    assert ("MT41692", "Ethernet", "200 Gb/sec (2X NDR)") == (
        result["mlx5_bond_0"].hca_type,
        result["mlx5_bond_0"].ports[0].link_layer,
        result["mlx5_bond_0"].ports[0].rate_text,
    )
    assert {"mlx5_1": 255} == {
        name: device.ports[0].counters["link_downed"]
        for name, device in result.items()
        if device.ports[0].counters and device.ports[0].counters["link_downed"]
    }
    first = result["mlx5_0"].ports[0]
    assert (14, 15, 2489603687) == tuple(
        (first.counters or {})[name]
        for name in ("port_rcv_errors", "excessive_buffer_overrun_errors", "port_xmit_wait")
    )
    assert {(21, 25)} == {(len(d.ports[0].counters or {}), len(d.ports[0].hw_counters or {})) for d in result.values()}


def test_procfs(corpus: Path) -> None:
    """Three drivers, two ports on one card, no hw_counters on two."""
    result = devices(unpacked(str(corpus / "trees/procfs.tar.xz")))

    assert {"hfi1_0": 1, "mlx4_0": 2, "mlx5_0": 1} == {name: len(device.ports) for name, device in result.items()}
    assert ("1.27.0", None) == (result["hfi1_0"].firmware, result["hfi1_0"].hca_type)
    assert ["40 Gb/sec (4X QDR)"] * 2 == [port.rate_text for port in result["mlx4_0"].ports]
    assert ("25 Gb/sec (1X EDR)", "0a7f:bc12:45ef:d23b") == (
        result["mlx5_0"].ports[0].rate_text,
        result["mlx5_0"].node_guid,
    )
    assert [None, None, 24] == [
        device.ports[0].hw_counters and len(device.ports[0].hw_counters) for device in result.values()
    ]


def test_dell_r910_qib(corpus: Path) -> None:
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
def test_checkbox_dgx_a100(corpus: Path, tree: str, with_ports: int) -> None:
    """Ten devices by udev; ports only where the other machine's were merged in, and the rest is said."""
    outcome = probed(unpacked(str(corpus / f"trees/{tree}.tar.xz")))

    assert [f"mlx5_{n}" for n in range(10)] == [device.name for device in outcome.facts.devices]
    assert ("0000:0c:00.0", "0000:e1:00.1") == (outcome.facts.devices[0].address, outcome.facts.devices[9].address)
    assert with_ports == sum(bool(device.ports) for device in outcome.facts.devices)
    assert (Status.PARTIAL, True) == (outcome.status, "mlx5_8, mlx5_9" in (outcome.reason or ""))


@pytest.mark.parametrize(("name", "downed"), [("mlx5_0", 0), ("mlx5_1", 255)])
def test_flattened_snapshots(corpus: Path, name: str, downed: int) -> None:
    """A listing "path:value" of one device, put back into files."""
    lines = (corpus / f"text/rdma-hw_counters/sysfs-h100-{name}.txt").read_text().splitlines()
    host = Machine().put({f"{CLASS}/{path}": value for path, _, value in (line.partition(":") for line in lines)})
    port = devices(host)[name].ports[0]

    assert ("400 Gb/sec (4X NDR)", "ACTIVE", "LinkUp") == (port.rate_text, port.state, port.phys_state)
    assert (downed, 14, 0) == tuple(
        (port.counters or {})[counter] for counter in ("link_downed", "port_rcv_errors", "symbol_error")
    )
    assert 3 == (port.hw_counters or {})["roce_adp_retrans"]


def test_omni_path_counters(corpus: Path) -> None:
    """Its driver counts by device, under names of its own."""
    rows = (corpus / "text/rdma-hw_counters/omnipath-hfi1.txt").read_text().splitlines()
    host = Machine().put({f"{CLASS}/hfi1_0/ports/1/state": "4: ACTIVE"})
    host.put({f"{CLASS}/hfi1_0/hw_counters/{row.split()[0]}": row.split()[1] for row in rows})
    counters = devices(host)["hfi1_0"].ports[0].hw_counters or {}

    assert (134, 2079, False) == (counters["PktDrop"], counters["RcResend"], "lifespan" in counters)


# Link rates as text.


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("800 Gb/sec (4X XDR)\n", (800.0, "4X", "XDR")),
        ("400 Gb/sec (4X NDR)", (400.0, "4X", "NDR")),
        ("200 Gb/sec (2X NDR)", (200.0, "2X", "NDR")),
        ("100 Gb/sec (2X HDR)", (100.0, "2X", "HDR")),
        ("100 Gb/sec (4X EDR)", (100.0, "4X", "EDR")),
        ("40 Gb/sec (4X FDR10)", (40.0, "4X", "FDR10")),
        ("2.5 Gb/sec (1X SDR)", (2.5, "1X", "SDR")),
        ("10 Gb/sec (4X)", (10.0, "4X", None)),
        ("56", (56.0, None, None)),
    ],
)
def test_printed_rates(text: str, rate: tuple[float, str | None, str | None]) -> None:
    """sysfs of new and old kernels, and the bare number of ibstat."""
    assert rate == parse_rate(text)


@pytest.mark.parametrize("text", ["", "-1", "unknown", "400 Gb/sec (4X ND", "400 Gb", "1e3", "٤٠٠"])
def test_anything_else_is_no_rate(text: str) -> None:
    """A cut or foreign text gives no number."""
    with pytest.raises(ParseError, match="rate"):
        parse_rate(text)


@given(st.sampled_from((1, 2, 4, 8, 12)), st.sampled_from(sorted(SPEEDS)))
def test_what_is_put_together_can_be_taken_apart(lanes: int, code: int) -> None:
    """The text made from width and speed code is one that sysfs could print."""
    name, lane = SPEEDS[code]

    assert (lanes * lane, f"{lanes}X", name) == parse_rate(rate_text(lanes, code) or "")
