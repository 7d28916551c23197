"""What explains what: consequences go to the cause that comes before them, by time and by which names which."""

from __future__ import annotations

from agent.job.candidate import ORDER, SLOW, PossibleCause

_CLOCKS = 5.0  # seconds by which clocks of hosts may differ, and lines be late
_BY_SILENCE = frozenset(("missing", "silent"))
_OUTLIVED, _NEAR, _NEXT = 3, 100, 12  # steps after an error; lines between one and the end that it explains
_UNCAUGHT, _MESSAGE = "terminate called after throwing", 2  # lines
_MESSAGES = frozenset(("exception", "connect", "unexplained", "silent"))  # what may come before an exit with a code
_SYMPTOMS = frozenset(("network", "connect", "hang", "silent", "cancel", "consequence", "unexplained"))
_WAITED = frozenset(("missing", "hang"))
_OF_DRIVERS = frozenset(("xid", "sxid"))
# What makes steps slow, and what steps show of it
_SLOW_REASONS = frozenset(("rank-slower", "storage-lost", "ranks-share-cores"))
_SLOW_EFFECTS = frozenset(("pace-dropped", "data-stalls", "waits-for-data"))
_OF_SCHEDULERS = frozenset(("cancelled", "time-limit"))
_ENDED_BY = _OF_SCHEDULERS | {"memory-limit", "job-displaced", "pod-evicted"}
_NO_REASON, _SIGNALS = frozenset(("consequence", "silent")), frozenset(("launcher-signal", "killed"))
# What a scheduler's signal brings about; a process that exits while others run is ended with its step, too
_AFTER_SIGNAL = frozenset(
    ("error", "exit", "crash", "network", "connect", "silent", "cancel", "consequence", "exception")
)
# Exceptions that a program has by its own data and files; others may follow from a peer that is gone
_OF_PROGRAMS = frozenset(
    (
        "KeyError", "IndexError", "ValueError", "TypeError", "AttributeError", "NameError", "AssertionError",
        "ImportError", "ModuleNotFoundError", "FileNotFoundError", "PermissionError", "IsADirectoryError",
        "UnicodeDecodeError", "ZeroDivisionError", "NotImplementedError", "JSONDecodeError", "MemoryError",
    )
)  # fmt: skip
_OWN = frozenset(("error", "crash", "exit", "exception", "missing", "silent"))  # of the process that has the cause
_ENDS = frozenset(("hard", "dead", "error", "missing", "crash", "exit", "exception"))  # a rank that is gone or stuck


def fold(candidates: list[PossibleCause]) -> tuple[list[PossibleCause], dict[int, PossibleCause]]:
    """The causes in order, and for each of the others (by id()) what explains it."""
    ordered = sorted(candidates, key=_rank)
    parents: dict[int, PossibleCause] = {}
    for effect in ordered:
        for cause in ordered:
            if cause is effect or not explains(cause, effect) or _root(cause, parents) is effect:
                continue
            parents[id(effect)] = _root(cause, parents)
            break
    for effect in ordered:
        if id(effect) in parents:
            parents[id(effect)] = _root(parents[id(effect)], parents)
    return [candidate for candidate in ordered if id(candidate) not in parents], parents


def _rank(candidate: PossibleCause) -> tuple[int, bool, bool, float, int, str]:
    at = candidate.at
    # of hard causes the first in time comes first; a weaker kind of evidence never comes before a stronger one
    return candidate.order, candidate.is_plain, at is None, at.seconds if at else 0.0, -candidate.count, candidate.id


def _root(candidate: PossibleCause, parents: dict[int, PossibleCause]) -> PossibleCause:
    seen: set[int] = set()
    while id(candidate) in parents and id(candidate) not in seen:
        seen.add(id(candidate))
        candidate = parents[id(candidate)]
    return candidate


def explains(cause: PossibleCause, effect: PossibleCause) -> bool:
    """Whether the effect follows from the cause."""
    if _has_message(cause, effect) or _has_message(effect, cause):
        return _has_message(cause, effect)
    if _has_more(cause, effect) or _has_more(effect, cause):
        return _has_more(cause, effect)
    if (
        effect.role == "dead"
        and effect.is_general
        and cause.role in _ENDS - _BY_SILENCE
        and _same_process(cause, effect)
    ):
        return _stands_before(cause, effect)  # why the process that did not answer ended; clocks may differ
    if effect.is_plain and not cause.is_plain and cause.role == effect.role and _same_process(cause, effect):
        return _precedes(cause, effect)  # the same failure, on its way up
    if cause.id in _OF_DRIVERS and cause.role == "hard" and effect.id.startswith("cuda-") and len(effect.ranks) > 1:
        return not (cause.hosts and effect.hosts) or _share(cause.hosts, effect.hosts)  # of a host, not of one program
    if _is_watchdog(cause, effect) or _is_watchdog(effect, cause):
        return _is_watchdog(cause, effect)
    if cause.id == "qp-invalid" and effect.id in ("qp-address-unresolved", "qp-no-route"):
        return True  # its own parameters are wrong: the other ends wait
    if cause.id == "killed" and effect.id == "mpi-daemon-lost":
        return _precedes(cause, effect)  # its container was
    if cause.role == "cancel" and effect.id in ("killed", "ends-in-error"):
        return _precedes(cause, effect)  # what a scheduler does not end in time it kills
    if cause.id == "deepep-timeout" and effect.id == "cuda-719":
        return _precedes(cause, effect)  # its kernels stop themselves so after their time-out
    if cause.id in _ENDED_BY and effect.id not in _ENDED_BY and (effect.role in _NO_REASON or effect.id in _SIGNALS):
        return True  # who ended it is often written after what the processes wrote of it
    if cause.id in _SLOW_REASONS and effect.role == "slow" and effect.id in _SLOW_EFFECTS - {cause.id}:
        return True
    if cause.id in _OF_SCHEDULERS and effect.role in _AFTER_SIGNAL and _stands_before(cause, effect):
        return True
    if cause.role == "consequence" and effect.id == "ends-in-error":
        return _precedes(cause, effect)  # it shows more than a line that no row is for
    if "exit-code" in (cause.id, effect.id) and not _MESSAGES.isdisjoint((cause.role, effect.role)):
        return _is_before_exit(cause, effect)
    if cause.order >= SLOW or (effect.order >= SLOW) or cause.role in ("consequence", "unexplained", "cancel"):
        return (
            cause.role == effect.role == "slow"
            and cause.id == "efa-not-found"
            and effect.id in ("sockets", "gpudirect-off")
        )
    if cause.role == "exception" and effect.role == "hang":
        return _left_out(cause, effect)
    early = cause.at is None or effect.at is None or cause.at.seconds <= effect.at.seconds + _CLOCKS
    if not early:
        return False
    if effect.role == "consequence":
        return True
    together = _same_process(cause, effect)
    if cause.role == "port":
        return _explains_of_port(cause, effect)
    if effect.role == "missing" and cause.role in ("hard", "dead", "error", "crash", "exit", "exception"):
        return (
            together
            or (not cause.ranks and not cause.hosts and cause.id not in ("exit-code", "aborted"))
            or bool(cause.hosts and not cause.ranks and _share(cause.hosts, effect.hosts))
        )
    if effect.role == "missing" and cause.role == "network":
        return together
    if cause.role in _ENDS and effect.role in _SYMPTOMS:
        is_unsure = effect.confidence == "low" and effect.role == "network"
        return (
            ORDER[cause.role] < ORDER[effect.role]
            or cause.at is not None
            or ((is_unsure or cause.steps_after < _OUTLIVED) and _stands_before(cause, effect))
        )
    if effect.role in _OWN and cause.role in _ENDS:
        return ORDER[cause.role] < ORDER[effect.role] and (
            together
            or not effect.ranks
            or effect.role == "exception"
            or effect.id == "aborted"
            or (effect.role == "exit" and cause.waiting >= effect.ranks.keys())
        )
    if cause.role == effect.role == "hard":
        return _rank(cause) < _rank(effect) and bool(_share(cause.ranks, effect.ranks)) and cause.fault == effect.fault
    if cause.role == "network":
        weaker = effect.role in ("connect", "hang", "silent", "cancel", "exception", "unexplained") or (
            effect.role in ("error", "crash", "exit") and together
        )
        return weaker or (effect.role == "network" and _rank(cause) < _rank(effect) and _touch(cause, effect))
    if cause.role == "hang":
        return effect.role in ("exception", "exit", "connect", "silent", "cancel", "unexplained", "crash")
    return cause.role in ("connect", "silent") and effect.role in ("cancel", "unexplained")


def _has_message(cause: PossibleCause, crash: PossibleCause) -> bool:
    """Whether a failure is the message of the C++ exception that ended a process: the line after it."""
    first, line = crash.first_line, cause.first_line
    if crash.facts.get("how") != _UNCAUGHT or cause.role not in ("connect", "hard", "error", "network"):
        return False
    return first is not None and line is not None and first[0] == line[0] and 0 < line[1] - first[1] <= _MESSAGE


def _is_watchdog(cause: PossibleCause, effect: PossibleCause) -> bool:
    """Whether a process was aborted by the watchdog that reported the hang before, or before others waited for it."""
    if effect.id == "aborted":
        return cause.role in _WAITED and _is_earlier(cause, effect)
    is_own = bool(cause.ranks) and effect.waiting.isdisjoint(cause.ranks)
    return cause.id == "aborted" and effect.role in _WAITED and is_own and _is_earlier(cause, effect)


def _has_more(cause: PossibleCause, effect: PossibleCause) -> bool:
    """Whether a failure that shows more is above one that has only that something ended, is gone or took too long:
    what comes later and is general cannot be the cause of what came earlier and is not."""
    if not effect.is_general or cause.is_general or cause.role not in (_ENDS | _MESSAGES) - _BY_SILENCE:
        return False
    if cause.steps_after > _OUTLIVED or not _is_earlier(cause, effect):
        return False
    is_own = _same_process(cause, effect)
    if cause.role in _MESSAGES:  # which a program may have caught
        after = _NEXT if cause.role == "exception" else _MESSAGE if cause.id == "ends-in-error" else 0
        lines = _NEAR if is_own or effect.id != "crash" else after
        if not _is_near(cause, effect, lines):
            return False
    if is_own or _share(cause.hosts, effect.hosts):
        return True
    return not (cause.hosts and effect.hosts) or effect.role in ("exit", "network", "connect", "hang")


def _is_earlier(cause: PossibleCause, effect: PossibleCause) -> bool:
    if cause.at is not None and effect.at is not None and cause.at.seconds != effect.at.seconds:
        return cause.at.seconds < effect.at.seconds
    return _stands_before(cause, effect)


def _is_near(cause: PossibleCause, effect: PossibleCause, lines: int) -> bool:
    one, other = cause.first_line, effect.first_line
    return one is not None and other is not None and one[0] == other[0] and other[1] - one[1] <= lines


def _is_before_exit(cause: PossibleCause, effect: PossibleCause) -> bool:
    """Whether a process wrote why it exited with a code, or is the one of many that the others lost before."""
    if cause.role == "exception":
        return _same_process(cause, effect) or not cause.ranks or not effect.ranks
    if cause.role == "silent":
        return _same_process(cause, effect) and len(cause.ranks) < len(effect.ranks)
    if cause.role in ("connect", "unexplained"):
        return (_same_process(cause, effect) or not cause.ranks) and _precedes(cause, effect)
    return effect.role == "silent" and not _is_before_exit(effect, cause)


def _left_out(cause: PossibleCause, effect: PossibleCause) -> bool:
    """Whether a rank that stopped is one for which the others waited: it is none of them, and it stopped first, or for
    a reason of its own; a traceback without a time may be printed late."""
    if not cause.ranks or not effect.waiting or not effect.waiting.isdisjoint(cause.ranks):
        return False
    return _precedes(cause, effect) or (cause.at is None and cause.facts.get("kind") in _OF_PROGRAMS)


def _precedes(cause: PossibleCause, effect: PossibleCause) -> bool:
    if cause.at is not None and effect.at is not None:
        return cause.at.seconds <= effect.at.seconds + _CLOCKS
    one, other = cause.first_line, effect.first_line
    return one is None or other is None or one[0] != other[0] or one[1] < other[1]


def _stands_before(cause: PossibleCause, effect: PossibleCause) -> bool:
    """Whether a failure comes before another in one file whose lines have no times."""
    one, other = cause.first_line, effect.first_line
    return one is not None and other is not None and one[0] == other[0] and one[1] < other[1]


def _explains_of_port(cause: PossibleCause, effect: PossibleCause) -> bool:
    if effect.role == "network":
        if cause.nic and effect.nic:
            return cause.nic == effect.nic
        return _touch(cause, effect) or not (effect.ranks or effect.hosts)
    if effect.role == "hang":
        return effect.waits_for_all or effect.confidence == "low"
    if effect.role == "port":
        return False
    if effect.role in ("error", "crash", "exit", "missing"):
        return effect.role in ("exit", "crash") and cause.at is not None
    return effect.role in ("connect", "silent", "cancel", "exception", "unexplained")


def _same_process(cause: PossibleCause, effect: PossibleCause) -> bool:
    return bool(_share(cause.ranks, effect.ranks) or cause.pids & effect.pids)


def _touch(cause: PossibleCause, effect: PossibleCause) -> bool:
    """Whether one has hosts of the other, as its own or as its peer."""
    return bool(_share(cause.hosts | cause.peers, effect.hosts | effect.peers))


def _share(one: dict[int, None] | dict[str, None], other: dict[int, None] | dict[str, None]) -> bool:
    return not one.keys().isdisjoint(other)
