"""gdr-nccl-debug-leftover."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from agent.rules.case import Case
from agent.rules.counting import named
from agent.rules.nccl.hcas import NODE, no_gpus
from agent.rules.nccl.settings import Effective, effective, files_unread, number
from agent.rules.rule import Answer, Fail, Pass, Unknown, rule

_RETRIES, _TIMEOUT = 7, 18  # NCCL's default, and a quarter of its default time (4.096 us * 2^18 = 1.07 s)


def _below(value: str, limit: int) -> bool:
    return (read := number(value)) is not None and read < limit


_LEFT: dict[str, Callable[[str], bool]] = {
    "NCCL_ALGO": bool,
    "NCCL_PROTO": bool,
    "NCCL_MIN_NCHANNELS": bool,
    "NCCL_MAX_NCHANNELS": bool,
    "NCCL_CHECKS_DISABLE": lambda value: bool(number(value)),
    "NCCL_IB_TIMEOUT": lambda value: _below(value, _TIMEOUT),
    "NCCL_IB_RETRY_CNT": lambda value: _below(value, _RETRIES),
    "NCCL_DEBUG": lambda value: value.upper() == "TRACE",
}


@rule("gdr-nccl-debug-leftover", "info", needs=("nccl",), references=("gdr-nccl-debug-leftover",))
def gdr_nccl_debug_leftover(case: Case) -> Iterator[Answer]:
    """A file of NCCL fixes what is meant for experiments.

    ## What it checks
    `/etc/nccl.conf` and users' files: variables that NCCL's guide keeps for debugging, and short timeouts.

    ## Why it matters
    A fixed algorithm, protocol or number of channels is right for one size and one version, and wrong for 100 % of the
    others. A timeout of 14 is 67 ms: a port that is down for a second ends the job, where the default (20) waits 4.3 s.

    ## How it is decided
    In a file: `NCCL_ALGO`, `NCCL_PROTO`, `NCCL_MIN_NCHANNELS`, `NCCL_MAX_NCHANNELS`, `NCCL_CHECKS_DISABLE=1`,
    `NCCL_DEBUG=TRACE`, `NCCL_IB_TIMEOUT` below 18, `NCCL_IB_RETRY_CNT` below 7. One finding for the node.

    ## What keeps it silent
    - What a running job sets for itself.
    - Longer timeouts (Oracle's images set 22).
    - No GPU: not applicable. The system's file could not be read: unknown.

    ## How to confirm
    `grep -s . /etc/nccl.conf ~/.nccl.conf`

    ## How to fix
    Remove the lines, and measure anew.

    ## Source
    NCCL user guide, environment variables; InfiniBand specification (local ACK timeout: 4.096 us * 2^n).
    """
    yield from (silent := list(no_gpus(case)))
    if silent:
        return
    found: list[tuple[str, Effective]] = []
    for key, is_left in _LEFT.items():
        found += [(key, each) for each in effective(case, key) if each.persistent and is_left(each.value)]
    if not found:
        why = files_unread(case)
        yield Unknown("node", why) if why else Pass("node")
        return
    yield Fail(
        subject="node",
        label="node",
        summary=f"{found[0][1].unit} fixes {named([f'{key}={each.value}' for key, each in found])}",
        impact="what fits one message size and one version is forced on 100 % of jobs.",
        remedy="Remove these lines, and measure anew.",
        evidence=tuple(each.evidence(key) for key, each in found[:8]),
        cause="+".join(sorted({key for key, _ in found})),
        places=NODE,
    )
