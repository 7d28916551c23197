"""pcie-errors-uncorrectable."""

from __future__ import annotations

from collections.abc import Iterator

from agent.rules.case import Case
from agent.rules.device_runtime.links import End, ends
from agent.rules.devices import kernel_log
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, rule
from agent.rules.runtime import Limit, Moved, Words, judged, moved
from agent.rules.threshold import Threshold

_EVENTS = Threshold("pcie-errors-uncorrectable.events", 1, "uncorrectable PCIe errors of one function in the window")
_REQUEST = "UnsupReq"  # what a driver that probes a device provokes, too


@rule(
    "pcie-errors-uncorrectable",
    "critical",
    needs=("pci",),
    references=("PCIE-018",),
    absorbs=("pcie-errors-correctable", "pcie-replays", "pcie-containment"),
    thresholds=(_EVENTS,),
)
def pcie_errors_uncorrectable(case: Case) -> Iterator[Answer]:
    """A PCIe device or port had errors that its link could not correct.

    ## What it checks
    How the AER counters of fatal and non-fatal errors moved: of GPUs, NICs that can do RDMA, NVSwitches and NVMe
    drives, and of every port above them.

    ## Why it matters
    A non-fatal error loses a transaction: data of a job is wrong or missing. After a fatal one the link is reset, and
    all GPUs of an 8-GPU job wait for a device that does not come back.

    ## How it is decided
    One fatal error and more in the window: critical. Non-fatal: error. On NICs that are no rails one step lower.
    Nothing but unsupported requests, which a driver provokes while it looks for features: info.

    ## What keeps it silent
    - Counters of earlier days: only what moved in the window counts, and not what every boot brings.
    - A device that is gone, asleep or came while the scan ran: not applicable; so are devices without AER.
    - No earlier sample, counters that could not be read or were reset: unknown.

    ## How to confirm
    `grep . /sys/bus/pci/devices/ADDRESS/aer_dev_{fatal,nonfatal}`, twice; `dmesg | grep AER`

    ## How to fix
    Drain the node. Reseat card and riser, look at firmware; the device that repeats it is replaced.

    ## Source
    Linux `Documentation/ABI/testing/sysfs-bus-pci-devices-aer_stats`; PCI Express specification, 6.2.
    """
    for each in ends(case):
        yield _judge(case, each) if isinstance(each, End) else each


def _judge(case: Case, each: End) -> Answer:
    if each.function.aer is None:
        return NotApplicable(each.place.subject, "no AER counters")
    answers = [
        _of_kind(case, each, kind, severity) for kind, severity in (("fatal", "critical"), ("nonfatal", "error"))
    ]
    found = next((answer for answer in answers if isinstance(answer, Fail)), None)
    return found or next((answer for answer in answers if not isinstance(answer, Pass)), answers[0])


def _of_kind(case: Case, each: End, kind: str, severity: str) -> Answer:
    names = [name for name in each.counters.now if name.startswith(f"{kind}.") and not _is_total(name)]
    count = moved(case, each.counters, names)
    harmless = isinstance(count, Moved) and set(count.parts) == {f"{kind}.{_REQUEST}"}
    words = Words(
        f"{kind} PCIe errors".replace("nonfatal", "non-fatal"),
        "0 % by itself: a driver or a tool asked the device for a feature that it does not have."
        if harmless
        else "After each the link is reset or a transaction is lost: jobs on this device fail, 100 % of them.",
        "Nothing, unless they grow under load; then compare firmware and driver with those of a good node."
        if harmless
        else "Drain the node; reseat card and riser; look at firmware; replace what repeats it.",
        cause="unsupported-request" if harmless else kind,
    )
    answer = judged(case, each.place, count, (Limit(_EVENTS, "info" if harmless else severity),), words)
    if isinstance(answer, Fail):
        return answer._replace(evidence=answer.evidence + kernel_log(case, each.function.id))
    return answer


def _is_total(name: str) -> bool:
    return name.partition(".")[2].startswith("TOTAL")
