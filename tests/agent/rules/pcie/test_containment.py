"""What a fatal PCIe error cut off: lines of a recovery that failed, with the PCI list and without."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from agent.model.node import Event
from agent.rules.context import RuleContext
from agent.rules.pcie.devices import pcie_containment
from agent.rules.rule import Fail
from tests.agent.rules.build import probe, server, topology

PORT, OTHER, BELOW = "0000:4a:00.0", "0000:6a:00.0", "0000:4b:00.0"


def aer(subject: str | None, code: str | None = None, **detail: str) -> Event:
    """A line of the kernel log about AER."""
    text = "AER: can't recover" if code else "PCIe Bus Error: severity=Uncorrectable (Fatal)"
    return Event(kind="aer", text=text, source="/dev/kmsg", subject=subject, code=code, detail=detail)


def bare_log(*events: Event) -> RuleContext:
    """A log, and no PCI list."""
    context = probe(topology(server(), pci=[], gpus=[], nics=[], netdevs=[]), "pci", "absent", "no")
    return replace(context, events=list(events))


def find_fault(context: RuleContext, port: str = PORT) -> Fail:
    """The finding of a port."""
    return next(a for a in pcie_containment.check(context) if isinstance(a, Fail) and a.subject == f"pci:{port}")


def quoted(fault: Fail) -> int:
    """How many lines of the log are its evidence."""
    return len(fault.evidence)


@pytest.mark.parametrize(
    ("more", "lines", "lost"),
    [
        pytest.param([aer(BELOW, "no-recovery", driver="mlx5_core")], 2, f"mlx5_core {BELOW}", id="the one port"),
        pytest.param(
            [aer(BELOW, "no-recovery")], 1, "what was below it", id="no driver says that it could not recover"
        ),
        pytest.param([aer(PORT, "no-recovery")], 2, "what was below it", id="the port itself"),
        pytest.param(
            [aer(BELOW, "no-recovery", driver="mlx5_core"), aer(OTHER, severity="fatal")],
            1,
            "what was below it",
            id="two ports: which of them is above is not known",
        ),
        pytest.param(
            [
                aer(BELOW, "no-recovery", driver="mlx5_core"),
                Event(kind="xid", text="fatal", source="x", subject=OTHER, detail={"severity": "fatal"}),
            ],
            2,
            f"mlx5_core {BELOW}",
            id="only errors of PCIe are of ports",
        ),
        pytest.param(
            [aer(PORT, "no-recovery"), aer(OTHER, severity="fatal"), aer(OTHER, "no-recovery")],
            2,
            "what was below it",
            id="each port has its own lines",
        ),
    ],
)
def test_recovery_that_failed_without_a_pci_list(more: list[Event], lines: int, lost: str) -> None:
    """A log alone does not show what is below a port."""
    fault = find_fault(bare_log(aer(PORT, severity="fatal"), *more))

    assert (lines, f"a fatal PCIe error cut off {lost}{'; recovery failed' if lines > 1 else ''}") == (
        quoted(fault),
        fault.summary,
    )
    assert PORT in fault.ids


def fatal(code: str | None, bits: str | None = None, kind: str = "aer") -> Event:
    """A fatal error with the bits of its status."""
    return replace(aer(PORT, **({"bits": bits} if bits else {})), code=code, kind=kind)


@pytest.mark.parametrize(
    ("events", "packet"),
    [
        ([fatal("MalfTLP")], "MalfTLP"),
        ([fatal("MalfTLP", "MalfTLP, ECRC")], "ECRC, MalfTLP"),
        ([fatal("MalfTLP", "SDES, MalfTLP")], None),
        ([fatal("SDES")], None),
        ([fatal(None)], None),
        ([fatal("MalfTLP"), aer(PORT, "no-recovery")], None),
        ([fatal("MalfTLP"), fatal("SDES")], None),
        ([fatal("MalfTLP", kind="dpc")], None),
    ],
)
def test_a_fatal_error_of_a_packet_alone(events: list[Event], packet: str | None) -> None:
    """Nothing was cut off by it: its steps suspect no part."""
    fault = find_fault(bare_log(*events))

    assert (packet is not None, fault.situation) == ("cut off" not in fault.summary, "malformed" if packet else "")
    assert packet is None or f"({packet})" in fault.summary


@pytest.mark.parametrize(
    ("code", "logged", "is_part"),
    [
        ("79", "+301.600 s", True),
        ("79", "+361.500 s", True),
        ("79", "+361.600 s", False),
        ("154", "+301.600 s", False),
        ("79", None, False),
    ],
)
def test_a_gpu_that_was_lost_then_is_a_part_of_it(code: str, logged: str | None, is_part: bool) -> None:
    """Within a minute, where both times are known."""
    errors = [aer(PORT, severity="fatal"), aer(BELOW, "no-recovery", driver="nvidia")]
    errors = [replace(error, logged="+301.500 s") for error in errors]
    lost = Event(kind="xid", text="Xid", source="/dev/kmsg", subject=BELOW, code=code, logged=logged)

    assert is_part == (f"{BELOW}/xid" in (find_fault(bare_log(*errors, lost)).explains_ids or ()))


def test_a_gpu_with_another_error_is_not() -> None:
    moment = {"at": "2026-01-15T07:00:00Z"}
    errors = [replace(aer(PORT, severity="fatal"), **moment), aer(BELOW, "no-recovery", driver="nvidia")]
    xids = [
        Event(kind="xid", text="Xid", source="/dev/kmsg", subject=BELOW, code=code, **moment) for code in ("79", "48")
    ]

    assert f"{BELOW}/xid" in (find_fault(bare_log(*errors, xids[0])).explains_ids or ())
    assert f"{BELOW}/xid" not in (find_fault(bare_log(*errors, *xids)).explains_ids or ())
