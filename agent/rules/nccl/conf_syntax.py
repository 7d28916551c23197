"""gdr-nccl-conf-syntax."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.model.node import NcclSetting
from agent.rules.case import Case
from agent.rules.devices import lowered
from agent.rules.nccl.hcas import no_gpus
from agent.rules.nccl.settings import files_unread, number, unit_of
from agent.rules.rule import Answer, Fail, Pass, Unknown, rule

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NUMBER = re.compile(r"-?(?:0[xX][0-9a-fA-F]+|[0-9]+)")
_LISTS = frozenset({"NCCL_IB_HCA", "NCCL_SOCKET_IFNAME"})  # where a second "=" asks for whole names
_TWICE, _MISSPELT = "set before", "is not a name of NCCL"
_NEAR_NAME = re.compile(r"(?i)(?:nccl+|ncl+|ncc|nnccl|nncl|nlcc|ncccl)_")


@rule(
    "gdr-nccl-conf-syntax",
    "error",
    needs=("nccl",),
    references=("gdr-nccl-conf-syntax",),
    absorbs=("gdr-nccl-conf-shadowed",),
)
def gdr_nccl_conf_syntax(case: Case) -> Iterator[Answer]:
    """A line of NCCL's file does not set what it seems to set.

    ## What it checks
    Every line of `/etc/nccl.conf`, of users' `~/.nccl.conf`, and of files that running jobs name by `NCCL_CONF_FILE`.

    ## Why it matters
    NCCL takes all that stands before the first "=" as the name and all after it as the value, and says nothing of what
    it does not know. `NCCL_IB_TC = 106` sets a variable with a blank at the end of its name, which nobody reads:
    traffic stays in class 0, and 100 % of it outside the lossless one.

    ## How it is decided
    A blank or tab in a name, `export`, a line without "=", a name that is nearly `NCCL_`; a value with quotes, with
    blanks or a carriage return around it, or with a remark behind it; a blank in a list of names; a number after two
    "="; a name that a file sets twice with different values (the first counts). One finding for each file. The
    system's file: error, a user's: warning. Where every such line still has its effect (a number that a blank or a
    remark follows, `NCCL_DEBUG`): info.

    ## What keeps it silent
    - `NCCL_IB_HCA==mlx5_0` and `NCCL_SOCKET_IFNAME==eth0`: a list of whole names.
    - Remarks, also those that do not begin in the first column; empty lines.
    - Variables of others (`UCX_TLS=rc`): NCCL sets them like its own.
    - No GPU: not applicable. The system's file could not be read: unknown.

    ## How to confirm
    `cat -A /etc/nccl.conf` shows blanks, tabs and carriage returns; `NCCL_DEBUG=INFO` in a job names what it took.

    ## How to fix
    Write `KEY=value`, with nothing around it.

    ## Source
    NCCL `src/misc/param.cc` (setEnvFile, ncclLoadParam).
    """
    yield from (silent := list(no_gpus(case)))
    if silent:
        return
    wrong: dict[str, list[tuple[NcclSetting, str, bool]]] = {}
    for setting, why, harmless in _wrong_lines(case):
        wrong.setdefault(unit_of(setting.source), []).append((setting, why, harmless))
    yield from (_fault(file, lines) for file, lines in sorted(wrong.items()))
    if not wrong:
        unread = files_unread(case)
        yield Unknown("node", unread) if unread else Pass("node")


def _wrong_lines(case: Case) -> Iterator[tuple[NcclSetting, str, bool]]:
    """Lines that do not do what they say: the line, why, and whether it has its effect all the same."""
    first: dict[tuple[str, str], NcclSetting] = {}
    for setting in case.software.nccl.settings:
        if setting.line is None:
            continue  # of an environment
        why, harmless = _wrong(setting)
        if why:
            yield setting, why, harmless
        earlier = first.setdefault((unit_of(setting.source), setting.key), setting)
        if earlier.value != setting.value:
            yield setting, f"{_TWICE} in line {earlier.source.rpartition(':')[2]}, which counts", False
    for line in case.software.nccl.not_settings:
        meant = "NCCL" in line.value
        yield line, "no =, so it sets nothing", not meant


def _wrong(setting: NcclSetting) -> tuple[str, bool]:
    key, value = setting.key, setting.value
    clean = _cleaned(value)
    if not _NAME.fullmatch(key):
        return f"sets {key!r}, which nobody reads", False
    if not key.startswith("NCCL_") and _NEAR_NAME.match(key):
        return f"{key} {_MISSPELT}", False
    if value.startswith("=") and key not in _LISTS:
        return "two =: the second is part of the value", False
    if key in _LISTS and clean == value and re.search(r"\s", value):
        return f"the value is {value!r}: a name in it begins or ends with a blank", False
    if clean == value:
        return "", False
    as_meant = bool(_NUMBER.fullmatch(clean)) and number(value) == number(clean)
    return f"the value is {value!r}, with all that stands in it", as_meant or key.startswith("NCCL_DEBUG")


def _cleaned(value: str) -> str:
    """What a person meant who writes quotes, blanks and remarks."""
    return re.sub(r"\s#.*\Z", "", value, flags=re.DOTALL).strip().strip("\"'")


def _fault(file: str, lines: list[tuple[NcclSetting, str, bool]]) -> Fail:
    severity = "error" if lines[0][0].scope in ("system", "service") else lowered("error")
    if all(harmless for _, _, harmless in lines):
        severity = "info"
    shown = sorted(lines, key=lambda each: each[2])
    setting, why, _ = shown[0]
    more = f"; {len(lines) - 1} more lines" if len(lines) > 1 else ""
    return Fail(
        subject="node",
        label=file,
        summary=f"{setting.source}: {why}{more}",
        impact=_impact(severity, why),
        remedy=_remedy(file, [reason for _, reason, _ in shown]),
        evidence=tuple(
            Evidence(what=reason, value=repr(line.line or line.value)[1:-1], source=line.source)
            for line, reason, _ in shown[:8]
        ),
        severity=severity,
        cause=file,
        places=frozenset({file, *(line.source for line, _, _ in lines)}),
    )


def _impact(severity: str, worst: str) -> str:
    if severity == "info":
        return "the line has its effect by luck: nothing is lost until its value is no number."
    if worst.startswith(_TWICE):
        return "the line has no effect, 0 %: jobs run with the value of the earlier one."
    return "what these lines should set is not set: jobs run with NCCL's defaults, 100 % of them."


def _remedy(file: str, reasons: list[str]) -> str:
    """What mends each kind of mistake that is in the file."""
    twice = any(reason.startswith(_TWICE) for reason in reasons)
    misspelt = any(reason.endswith(_MISSPELT) for reason in reasons)
    shape = any(not reason.startswith(_TWICE) and not reason.endswith(_MISSPELT) for reason in reasons)
    steps = [f"in {file} write KEY=value, without blanks, quotes, export or a remark behind it"] if shape else []
    steps += [f"correct the name in {file}: NCCL's own begin with NCCL_"] if misspelt else []
    steps += [f"keep one line of each name in {file}"] if twice else []
    text = "; ".join(steps)
    return f"{text[0].upper()}{text[1:]}."
