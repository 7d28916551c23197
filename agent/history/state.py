"""What a run leaves for later ones, and what it makes of what earlier ones left. Data in, data out: no file, no clock.

Counters are compared within one boot. What lasts, the inventory and settings, is compared over reboots, too.
"""

from __future__ import annotations

import msgspec

from agent.history.happened import Settings, links_up, settings, went_down
from agent.history.window import Sample, kept, sample, seen_at, window
from agent.model.identity import Earlier, identities
from agent.model.report import CountersWindow, History, Known, Report
from agent.rules.case import SETTLE_SECONDS
from agent.rules.host.inventory_matching import inventory, matched, merged, sound

STATE = "fabricscope.state/1"
DOWNS_SECONDS = 86_400.0  # how long it is remembered that a link went down
MOST_DOWNS = 64  # of one link, the newest
MOST_KNOWN = 4096  # things of an inventory
RUNNING = ("live", "rooted")  # sources that are a host as it is now, never an older one

FIRST = "the first run that is remembered: the next one has something to compare with"
OLDER = "the last run saw this host at the time of this evidence, or later"


class Down(msgspec.Struct, frozen=True, kw_only=True):
    """One time that a run saw that a link had gone down."""

    uptime_seconds: float
    at: str


class State(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that earlier runs on one host left."""

    schema: str = STATE
    hostname: str | None = None
    serial: str | None = None
    boot_id: str | None = None
    last_run: str | None = None
    runs: int = 0
    samples: list[Sample] = []  # of this boot, the oldest first; the last is of the last run
    links_up: dict[str, bool] = {}
    downs: dict[str, list[Down]] = {}  # of this boot
    settings: Settings = {}
    identity: dict[str, str] = {}  # what lasts of the subjects of all these
    inventory: list[Known] = []
    last_good: str | None = None


def compared(state: State | None, report: Report) -> Report:
    """The report with what earlier runs know of its host."""
    why = _unusable(state, report)
    twice = report.counters_window  # of this run's own two readings
    if state is None or why:
        made = twice or CountersWindow(reset_reason=why)
        return msgspec.structs.replace(report, counters_window=made, history=History(reason=why))
    return msgspec.structs.replace(
        report,
        counters_window=twice or _window(state, report),
        history=History(
            last_good=state.last_good,
            last_run=state.last_run,
            runs=state.runs,
            inventory=state.inventory,
            link_downs={subject: [down.at for down in downs] for subject, downs in _downs(state, report).items()},
            settings=_changed(state, report),
        ),
    )


def remember(state: State | None, report: Report) -> State:
    """What the next run shall know. Evidence that is older than what is known teaches nothing."""
    why = _unusable(state, report)
    if state is not None and why == OLDER:
        return state
    if state is None or why:
        state = State()
    made, same_boot = sample(report), _same_boot(state, report)
    samples = state.samples if same_boot else []
    known, whole = merged(state.inventory, report.topology)
    now = settings(report)
    earlier = Earlier(state.identity, state.settings, report.topology)
    found = {subject: {**state.settings.get(earlier.subject(subject) or "", {}), **row} for subject, row in now.items()}
    away = {each.subject for each in known} - now.keys()
    return State(
        hostname=report.node.hostname,
        serial=report.node.serial or state.serial,
        boot_id=report.node.boot_id,
        last_run=seen_at(report),
        runs=state.runs + 1,
        samples=kept(samples, made) if made else samples,
        links_up=links_up(report),
        downs=_downs(state, report),
        settings={**{subject: row for subject, row in state.settings.items() if subject in away}, **found},
        identity={**{s: own for s, own in state.identity.items() if s in away}, **identities(report.topology)},
        inventory=known[:MOST_KNOWN],
        last_good=seen_at(report) if whole else state.last_good,
    )


def accepted(state: State | None, report: Report) -> State | None:
    """The state of a host of which things were taken out on purpose: what is here is the inventory."""
    if state is None:
        return None
    here = sound(report.topology)
    rows = [row for row in inventory(report.topology) if row.subject in here]
    return msgspec.structs.replace(state, inventory=rows[:MOST_KNOWN], last_good=seen_at(report))


def _unusable(state: State | None, report: Report) -> str | None:
    """Why nothing can be compared with this state; None where it is this host's, and older than the report."""
    if state is None or not state.runs:
        return FIRST
    if _another_host(state, report):
        return f"the state is of another host with the same machine id ({state.hostname})"
    if report.source.kind in RUNNING:
        return None
    up, last = report.node.uptime_seconds, state.samples[-1].uptime_seconds if state.samples else None
    if _same_boot(state, report):
        return OLDER if up is not None and last is not None and up <= last else None
    return OLDER if (report.observed_at or "9999") < (state.last_run or "") else None


def _another_host(state: State, report: Report) -> bool:
    """Clones of one image have one machine id: told by serial, else by a name and devices that are all others."""
    node = report.node
    if node.serial and state.serial:
        return node.serial != state.serial
    if not node.hostname or not state.hostname or node.hostname == state.hostname:
        return False
    match = matched(state.inventory, inventory(report.topology))
    here = set(identities(report.topology).values())
    lasting = {each.identity for each in state.inventory if each.identity}
    return bool(lasting and match.replaced and not lasting & here)


def _same_boot(state: State, report: Report) -> bool:
    return state.boot_id is not None and state.boot_id == report.node.boot_id


def _window(state: State, report: Report) -> CountersWindow:
    if report.node.boot_id is None or state.boot_id is None:
        return CountersWindow(reset_reason="the source does not say of which boot its counters are")
    if not _same_boot(state, report):
        return CountersWindow(reset_reason="the host was started anew since the last run")
    up = report.node.uptime_seconds
    if up is not None and state.samples and up < state.samples[-1].uptime_seconds:
        return CountersWindow(reset_reason="the clock since boot went back: not the same system as in the last run")
    return window(state.samples, report)


def _downs(state: State, report: Report) -> dict[str, list[Down]]:
    """Times at which links of this boot were seen to have gone down, those of this run too."""
    up = report.node.uptime_seconds
    if up is None or not _same_boot(state, report):
        return {}
    earlier = Earlier(state.identity, {*state.links_up, *state.downs}, report.topology)
    last = state.samples[-1] if state.samples else None
    times: dict[str, int] = {}
    if last and SETTLE_SECONDS <= last.uptime_seconds < up:  # while a host starts, links go up and down
        times = went_down(state.links_up, last, report, earlier)
    found: dict[str, list[Down]] = {}
    here = [f"port:{nic.id}/{port.port}" for nic in report.topology.nics for port in nic.ports]
    for subject in [*here, *(f"netdev:{netdev.id}" for netdev in report.topology.netdevs)]:
        before = [down for down in state.downs.get(earlier.subject(subject) or "", []) if _recent(down, up)]
        now = [Down(uptime_seconds=up, at=seen_at(report))] * min(times.get(subject, 0), MOST_DOWNS)
        if before or now:
            found[subject] = [*before, *now][-MOST_DOWNS:]
    return found


def _recent(down: Down, up: float) -> bool:
    return 0 <= up - down.uptime_seconds <= DOWNS_SECONDS


def _changed(state: State, report: Report) -> Settings:
    """What settings were in the last run, where they are others now."""
    earlier = Earlier(state.identity, state.settings, report.topology)
    found: Settings = {}
    for subject, now in settings(report).items():
        was = state.settings.get(earlier.subject(subject) or "", {})
        changed = {name: was[name] for name, value in now.items() if name in was and was[name] != value}
        if changed:
            found[subject] = changed
    return found
