"""What changed between two reports: devices are matched first, then each one is compared, a module per subject.

Only reports are compared here. It reads no host and no state file.
"""

from __future__ import annotations

from collections.abc import Sequence

from agent.diff import settings
from agent.diff.counters import CounterSpan, counters, span
from agent.diff.devices import devices, list_missing
from agent.diff.ledger import Diff, Ledger, Side
from agent.diff.node import node, software
from agent.diff.pairing import pairing
from agent.diff.verdicts import probes, verdicts
from agent.model.report import Report


def diff(old: Report, new: Report) -> Diff:
    """Compare two reports. Times, loads, temperatures, order and counters of traffic are no difference."""
    same_host = is_same_host(old, new)
    pairs = pairing(old, new, same_host)
    between = span(old, new)
    backwards = (between.seconds or 0) < 0
    ledger = Ledger()
    devices(ledger, old, new, pairs)
    settings.pci(ledger, old, new, pairs)
    settings.gpus(ledger, pairs)
    settings.nics(ledger, pairs)
    settings.netdevs(ledger, pairs)
    settings.paths(ledger, old, new, pairs)
    settings.gpudirect(ledger, old, new, pairs)
    node(ledger, old, new, same_host)
    software(ledger, old, new)
    verdicts(ledger, old, new, pairs)
    probes(ledger, old, new)
    if same_host and not backwards:
        counters(ledger, pairs, between)
    return Diff(
        old=_side(old),
        new=_side(new, list_missing(new, pairs) if same_host else []),
        same_host=same_host,
        notes=_notes(old, new, same_host, between),
        changes=ledger.changes(),
    )


def is_same_host(old: Report, new: Report) -> bool:
    """By the machine's serial number, its machine id (which cloned images share), its name: whichever both have."""
    same_name = old.node.hostname is not None and old.node.hostname == new.node.hostname
    for before, after in ((old.node.serial, new.node.serial), (old.node.machine_id, new.node.machine_id)):
        if before and after:
            return before == after or same_name
    return same_name or None in (old.node.hostname, new.node.hostname)


def _notes(old: Report, new: Report, same_host: bool, between: CounterSpan) -> list[str]:
    notes = []
    if not same_host:
        notes.append("two hosts: compared by slot and label; serial numbers, addresses and counters are left out")
    if between.rebooted and same_host:
        notes.append("the host was restarted in between: counters begin again")
    if same_host and (between.seconds or 0) < 0:
        notes.append("OLD was observed after NEW: counters are not compared")
    if old.source.kind != new.source.kind:
        notes.append(f"the evidence differs: {old.source.kind} and {new.source.kind}")
    if old.config.changed != new.config.changed:
        notes.append("the reports were judged by different configurations")
    if old.generator.version != new.generator.version:
        notes.append(
            f"the reports were judged by different versions ({old.generator.version}, {new.generator.version})"
        )
    return notes


def _side(report: Report, missing: Sequence[str] = ()) -> Side:
    return Side(
        hostname=report.node.hostname,
        source=f"{report.source.kind} {report.source.path or ''}".strip(),
        observed_at=report.observed_at,
        generator=report.generator.version,
        verdict=report.summary.verdict,
        missing=list(missing),
    )
