"""pcie-errors-correctable."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.counters import netdev_counters
from agent.rules.case import Case
from agent.rules.device_runtime.links import ABOVE_A_LINK, End, budget, called, ends, of_function, port_above
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule
from agent.rules.runtime import HOUR, MINUTE, Counters, Limit, Moved, Words, judged, moved, rate, span
from agent.rules.threshold import Threshold

_TIMES = Threshold(
    "pcie-errors-correctable.times_budget", 1, "times the errors a minute that its bit error rate allows"
)
_GRAVE = Threshold("pcie-errors-correctable.error_times_budget", 10, "the same: an error")
_SIGNAL = Threshold("pcie-errors-correctable.signal_per_hour", 10, "signal integrity errors an hour that a NIC counts")
# Of the link itself; NonFatalErr is advisory, and others are of the device's inside
_OF_LINK = tuple(f"correctable.{name}" for name in ("RxErr", "BadTLP", "BadDLLP", "Rollover", "Timeout"))
_OF_NIC = ("rx_pci_signal_integrity", "tx_pci_signal_integrity")
_IMPACT = "Each is sent again: bandwidth falls by little, but a link that errs so is on its way to fatal errors."
_REMEDY = "Reseat card and riser, try another slot, renew firmware and BIOS; then replace the card."


@rule(
    "pcie-errors-correctable",
    "warning",
    needs=("pci",),
    references=("PCIE-019", "roce-rt-pcie-integrity"),
    absorbs=("pcie-replays", "pcie-recoveries"),
    thresholds=(_TIMES, _GRAVE, _SIGNAL),
)
def pcie_errors_correctable(case: Case) -> Iterator[Answer]:
    """A PCIe link corrects more errors than a sound link has.

    ## What it checks
    How the correctable AER errors of the link moved (receiver errors, bad TLPs and DLLPs, replay rollovers and
    timeouts), on both ends of the links of GPUs, RDMA NICs, NVSwitches, NVMe drives and the ports above them; and the
    signal integrity errors that an mlx5 NIC counts.

    ## Why it matters
    Corrected errors cost little, and announce what cannot be corrected: a link whose bit error rate is ten times the
    allowed 10^-12 soon drops to half its lanes, 31.5 of 63 GB/s.

    ## How it is decided
    More a minute than a bit error rate of 10^-12 gives at the link's best speed and width (31 for Gen 5 x16, 16 for
    Gen 4, 8 for Gen 3): warning. Ten times that: error. Ten signal integrity errors an hour: warning. On NICs that are
    no rails one step lower.

    ## What keeps it silent
    - Advisory non-fatal errors and what a device corrects inside; what every boot brings.
    - A device that is gone or asleep, and links of which neither end counts: not applicable.
    - No earlier sample, counters that could not be read or were reset: unknown.

    ## How to confirm
    `grep . /sys/bus/pci/devices/ADDRESS/aer_dev_correctable`, twice, on both ends; `dmesg | grep AER`

    ## How to fix
    Reseat card and riser, try another slot, renew firmware and BIOS; then replace the card.

    ## Source
    DCGM `PcieMain.cpp` (budget); Linux `sysfs-bus-pci-devices-aer_stats`, mlx5 `counters.rst` (signal integrity).
    """
    for each in ends(case):
        yield _judge(case, each) if isinstance(each, End) else each


def _judge(case: Case, each: End) -> Answer:
    port = port_above(case, each.function)
    if each.function.port_type in ABOVE_A_LINK:
        return NotApplicable(each.place.subject, "judged with the device at the other end of its link")
    counters = [each.counters]
    if port is not None:
        counters.append(of_function(port))
    answers = [_of_end(case, each, one) for one in counters if one.now]
    answers += [_of_nic(case, each, one) for one in _interfaces(case, each)]
    order = (Fail, Unknown, Pass, NotApplicable)
    ranked = [answer for kind in order for answer in answers if isinstance(answer, kind)]
    grave = next((answer for answer in ranked if isinstance(answer, Fail) and answer.severity == "error"), None)
    return grave or next(iter(ranked), NotApplicable(each.place.subject, "no AER counters"))


def _of_end(case: Case, each: End, counters: Counters) -> Answer:
    place, count = each.place, moved(case, counters, _OF_LINK)
    if not isinstance(count, Moved):
        return count._replace(subject=place.subject)
    allowed, found = budget(each.function.link), rate(case, count.total, MINUTE)
    times = found / allowed
    if times <= case.threshold(_TIMES):
        return Unknown(place.subject, count.gap) if count.gap else Pass(place.subject)
    grave = times > case.threshold(_GRAVE)
    limit = allowed * case.threshold(_GRAVE if grave else _TIMES)
    return Fail(
        subject=place.subject,
        label=place.label,
        summary=f"{count.total} correctable PCIe errors in {span(case)}, limit {limit:g}/min",
        impact=_IMPACT,
        remedy=_REMEDY,
        evidence=count.evidence,
        severity=place.severity("error" if grave else "warning"),
        places=place.places,
    )


def _of_nic(case: Case, each: End, counters: Counters) -> Answer:
    words = Words("signal integrity errors that the NIC counts", _IMPACT, _REMEDY, cause="signal")
    return judged(case, each.place, moved(case, counters, _OF_NIC), (Limit(_SIGNAL, "warning", HOUR),), words)


def _interfaces(case: Case, each: End) -> Iterator[Counters]:
    for netdev in case.topology.netdevs:
        if netdev.pci == each.function.id and any(name in netdev.counters for name in _OF_NIC):
            yield Counters(f"netdev:{netdev.id}", netdev_counters(netdev), called(f"ethtool -S {netdev.label}"))
