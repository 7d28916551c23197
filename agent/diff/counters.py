"""Error counters as rates: how many more in how many seconds. Counters of traffic grow, and that is no difference."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from typing import NamedTuple

from agent.diff.ledger import ChangedThing, Ledger
from agent.diff.pairing import Pairing
from agent.diff.settings import link_word
from agent.model.report import Report

# What counts faults, of RDMA ports, interfaces, NVLinks and AER. rx_dropped is none of them: it grows with every frame
# of a protocol that no one listens to, on every healthy host.
_FAULT = re.compile(
    r"err|discard|downed|recovery|timeout|overrun|replay|crc|retry|(?<!rx_)(?<!tx_)(?<!otherhost_)dropped|missed"
    r"|out_of_buffer|fatal|fail|collision|fifo",
    re.IGNORECASE,
)


class CounterSpan(NamedTuple):
    """The time between two reports. `seconds` is None where one does not show when its host was seen."""

    seconds: float | None
    rebooted: bool
    kept: bool = False  # a report holds outcomes of another time than its own: nothing in it shows a rate


def span(old: Report, new: Report) -> CounterSpan:
    """How long, and whether the host was restarted in between: its counters then begin again."""
    before, after = _moment(old), _moment(new)
    boots = (old.node.boot_id, new.node.boot_id)
    return CounterSpan(
        seconds=after - before if before is not None and after is not None else None,
        rebooted=None not in boots and boots[0] != boots[1],
        kept=any(run.observed_at for report in (old, new) for run in report.probes),
    )


def counters(ledger: Ledger, pairs: Pairing, between: CounterSpan) -> None:
    """Every error counter of every device on both sides."""
    for place, old, new in _tables(pairs):
        for name in sorted(old.keys() & new.keys()):
            _counter(ledger, name, place, old[name], new[name], between)


def is_fault(name: str) -> bool:
    """Whether a counter of that name counts something bad.

    >>> [is_fault(name) for name in ("symbol_error", "port_rcv_data", "rx_dropped")]
    [True, False, False]
    """
    return _FAULT.search(name) is not None


def _tables(pairs: Pairing) -> Iterator[tuple[ChangedThing, Mapping[str, int], Mapping[str, int]]]:
    for a, b in pairs.pci.pairs:
        for severity in sorted((a.aer or {}).keys() & (b.aer or {}).keys()):
            rows = [
                {f"aer {severity} {name}": count for name, count in side[severity].items() if "TOTAL" not in name}
                for side in (a.aer, b.aer)
            ]
            yield pairs.place("pci", a, b), rows[0], rows[1]
    for a, b in pairs.gpus.pairs:
        far = {link.link: link for link in b.links}
        for link in a.links:
            if link.link in far:
                errors = [
                    {f"{link_word(a.links)} error {k}": v for k, v in side.errors.items()}
                    for side in (link, far[link.link])
                ]
                yield pairs.place("gpu", a, b, f"/{link.link}"), errors[0], errors[1]
    for a, b in pairs.nics.pairs:
        ports = {port.port: port for port in b.ports}
        for port in a.ports:
            if port.port in ports:
                place, other = pairs.place("nic", a, b, f"/{port.port}"), ports[port.port]
                yield place, _faults(port.counters), _faults(other.counters)
                yield place, _faults(port.hw_counters), _faults(other.hw_counters)
    for a, b in pairs.netdevs.pairs:
        yield pairs.place("netdev", a, b), _faults(a.counters), _faults(b.counters)


def _faults(counters: Mapping[str, int]) -> dict[str, int]:
    return {name: count for name, count in counters.items() if is_fault(name)}


def _counter(ledger: Ledger, name: str, place: ChangedThing, old: int, new: int, between: CounterSpan) -> None:
    if between.rebooted or new < old:
        if new > 0:
            why = "restarted since the host was booted" if between.rebooted else "it fell: restarted"
            ledger.add("counters", "reset", name, place, old, new, note=why)
    elif new > old:
        rate = (new - old) / between.seconds if between.seconds and not between.kept else None
        ledger.add("counters", "grew", name, place, old, new, per_second=_short(rate))


def _short(rate: float | None) -> float | None:
    """Three digits that mean something."""
    return float(f"{rate:.3g}") if rate is not None and math.isfinite(rate) else None


def _moment(report: Report) -> float | None:
    try:
        at = datetime.fromisoformat((report.observed_at or "").replace("Z", "+00:00"))
        return (at if at.tzinfo else at.replace(tzinfo=timezone.utc)).timestamp()
    except (ValueError, OverflowError):
        return None
