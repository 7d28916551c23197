"""Settings of a job, judged by the version that read them: out of range, misspelt, removed, dangerous, uneven."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec

from agent.job.catalogue import FOLDER
from agent.job.evidence import Evidence
from agent.model.job_answer import JobSetting
from agent.toml_file import read_toml
from probes.text import lazy_pattern

_MOST = 200
_EVEN = lazy_pattern(
    r"NCCL_(?:PROTO|ALGO|BUFFSIZE|NTHREADS|LL_\w+|LL128_\w+|IB_TC|IB_SL|NET\w*|TOPO_FILE|CHECK_\w+|CROSS_NIC|MAX_\w+|MIN_\w+|"
    r"P2P_\w+|IB_QPS_PER_CONNECTION|IB_SPLIT_DATA_ON_QPS|NVLS_ENABLE|COLLNET_ENABLE)"
)
Version = tuple[int, int]
_NEAR = 2  # letters by which a misspelt name differs


class Range(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A setting that is a number."""

    name: str
    least: int
    most: int


class Words(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A setting that is one of a few words, or a list of them."""

    name: str
    values: list[str]


class Risky(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A value that does harm in production."""

    name: str
    when: str
    reason: str
    since: str | None = None


class Values(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file of values."""

    others: dict[str, list[str]]
    range: list[Range]
    words: list[Words]
    risky: list[Risky]


class Names(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file of names."""

    since: dict[str, list[str]]
    last: dict[str, str]
    gone: dict[str, str]


@cache
def _names() -> Names:
    return read_toml(os.path.join(FOLDER, "names.toml"), Names)


@cache
def _values() -> Values:
    return read_toml(os.path.join(FOLDER, "values.toml"), Values)


@cache
def _known() -> dict[str, Version]:
    """Every name with its prefix, and the first version that has it."""
    return {f"NCCL_{name}": _version(version) for version, names in _names().since.items() for name in names}


def _version(text: str) -> Version:
    parts = re.findall(r"\d{1,4}", text)
    return int(parts[0]), int(parts[1]) if len(parts) > 1 else 0


def judge_settings(evidence: Evidence) -> list[JobSetting]:
    """All settings that the files show, those to look at first."""
    version = _version(evidence.library[1]) if evidence.library and evidence.library[1] else None
    if evidence.library and evidence.library[0] in ("HCCL", "HCL"):
        version = None
    amd = bool(evidence.library and evidence.library[0] == "RCCL")
    rows = [
        row
        for name, values in sorted(evidence.settings.items())
        for row in _judge(evidence, name, values, version, amd)
    ]
    order = ("misspelt", "out_of_range", "removed", "too_new", "uneven", "risky", "unknown", "ok")
    return sorted(rows, key=lambda row: (order.index(row.verdict), row.name, row.value))[:_MOST]


def _judge(
    evidence: Evidence, name: str, values: dict[str, dict[str, Any]], version: Version | None, amd: bool
) -> Iterator[JobSetting]:
    name_verdict = judge_name(name, version, amd)
    ranked = {value: [place for place in places if place.startswith("rank ")] for value, places in values.items()}
    uneven = _EVEN.fullmatch(name) is not None and sum(bool(places) for places in ranked.values()) > 1
    for value, places in sorted(values.items()):
        verdict, reason = name_verdict or judge_value(name, value, version) or ("ok", None)
        if uneven and verdict in ("ok", "risky"):
            verdict, reason = "uneven", "ranks have different values: collectives break, hang or are slow"
        yield JobSetting(name=name, value=value, where=_where(places, evidence), verdict=verdict, reason=reason)


def _where(places: dict[str, Any], evidence: Evidence) -> str:
    numbers = sorted(int(place[5:]) for place in places if place.startswith("rank "))
    if numbers:
        from agent.job.candidate import name_numbers

        everybody = evidence.ranks.world == len(numbers) > 1
        text = f"all {len(numbers)} ranks" if everybody else f"rank {name_numbers(numbers)}"
        return f"environment of {text}"
    return next((place for place in places if place in ("launch command", "job definition")), "environment")


def find_nearest(name: str) -> str | None:
    """The setting of NCCL that a misspelt name is near; None: it is near none.

    >>> find_nearest("NCCL_IB_GID_INDX")
    'NCCL_IB_GID_INDEX'
    """
    known = list(_known())
    return _nearest(name, known) or _nearest_by_parts(name, known)


def judge_name(name: str, version: Version | None, amd: bool = False) -> tuple[str, str] | None:
    """What is wrong with a name, and why; None: nothing.

    >>> judge_name("NCCL_IB_GID_INDX", (2, 20))
    ('misspelt', 'NCCL has no such setting: NCCL_IB_GID_INDEX is meant')
    >>> judge_name("NCCL_MNNVL_ENABLE", (2, 18))
    ('too_new', 'NCCL has it since 2.21, and the log is of 2.18: no effect')
    """
    known, values = _known(), _values()
    if name.startswith("TORCH_NCCL_"):
        inner = name.removeprefix("TORCH_NCCL_")
        near = _nearest(inner, values.others["torch"])
        if inner in values.others["torch"] or near is None:
            return None
        return "misspelt", f"PyTorch has no such setting: TORCH_NCCL_{near} is meant"
    if not name.startswith("NCCL_"):
        return None  # names of others are not known as a whole
    if name in known:
        last = _names().last.get(name.removeprefix("NCCL_"))
        if version is not None and version < known[name]:
            return (
                "too_new",
                f"NCCL has it since {_dotted(known[name])}, and the log is of {_dotted(version)}: no effect",
            )
        if version is not None and last is not None and version > _version(last) and not amd:
            return "removed", f"NCCL had it until {last}: no effect in {_dotted(version)}"
        return None
    gone = _names().gone.get(name.removeprefix("NCCL_"))
    if gone is not None:
        return "removed", f"removed long ago: no effect{f'; {gone} took its place' if gone else ''}"
    if name in values.others["names"] or name.startswith(tuple(values.others["prefixes"])):
        return None
    for ours, theirs in (("_DISABLE", "_ENABLE"), ("_ENABLE", "_DISABLE")):
        if name.endswith(ours) and name.removesuffix(ours) + theirs in known:
            return "misspelt", f"NCCL has no such setting: {name.removesuffix(ours) + theirs}, its opposite, is meant"
    if name in values.others["aliases"]:
        return "misspelt", "NCCL has no such setting: NCCL_IB_HCA is meant"
    near = find_nearest(name)
    if near is not None:
        return "misspelt", f"NCCL has no such setting: {near} is meant"
    return "unknown", "no setting of NCCL, PyTorch or a known plugin has this name"


def _dotted(version: Version) -> str:
    return f"{version[0]}.{version[1]}"


def _nearest(name: str, names: list[str]) -> str | None:
    """The name that differs by the fewest letters, at most two."""
    best = min(
        ((distance(name, other, _NEAR), other) for other in names if abs(len(other) - len(name)) <= _NEAR), default=None
    )
    return best[1] if best is not None and best[0] <= _NEAR else None


def _nearest_by_parts(name: str, names: list[str]) -> str | None:
    """The name of the same words without underscores, or with one word more: NCCL_GID_INDEX."""
    flat = name.replace("_", "")
    same = [other for other in names if other.replace("_", "") == flat]
    parts = set(name.split("_"))
    wider = [other for other in names if parts < set(other.split("_")) and len(set(other.split("_")) - parts) == 1]
    close = same or (wider if len(wider) == 1 or len(parts) > 2 else [])
    return min(close, key=lambda other: (len(other), other)) if close else None


def distance(one: str, other: str, most: int) -> int:
    """Letters to change, add or remove; `most` + 1 where there are more.

    >>> distance("GID_INDX", "GID_INDEX", 2), distance("TIMEOUT", "RETRY", 2)
    (1, 3)
    """
    row = list(range(len(other) + 1))
    for number, letter in enumerate(one, 1):
        before, row[0] = row[0], number
        for place, letter_there in enumerate(other, 1):
            here = min(row[place] + 1, row[place - 1] + 1, before + (letter != letter_there))
            before, row[place] = row[place], here
        if min(row) > most:
            return most + 1
    return min(row[-1], most + 1)


def judge_value(name: str, value: str, version: Version | None) -> tuple[str, str] | None:
    """What is wrong with a value, and why; None: nothing.

    >>> judge_value("NCCL_IB_TIMEOUT", "200", None)
    ('out_of_range', '0 to 31')
    """
    short = name.removeprefix("NCCL_")
    for numeric in _values().range if name.startswith("NCCL_") else ():
        if numeric.name == short:
            if not re.fullmatch(r"-?(?:0x[0-9a-fA-F]{1,8}|\d{1,9})", value.strip()):
                return "out_of_range", f"no number; {numeric.least} to {numeric.most}"
            if not numeric.least <= int(value, 0 if "x" in value else 10) <= numeric.most:
                return "out_of_range", f"{numeric.least} to {numeric.most}"
            if short == "IB_TC" and int(value, 0 if "x" in value else 10) in range(1, 64) and int(value, 0) % 4:
                return "out_of_range", "the traffic class is DSCP * 4: a DSCP was given"
    for one_of in _values().words if name.startswith("NCCL_") else ():
        if one_of.name == short:
            words = [word for word in re.split(r"[,:;\s^]+", value.upper()) if word]
            foreign = [word for word in words if word not in one_of.values and not word.isdecimal()]
            if short == "ALGO" and re.search(r"[:;]", value):
                foreign = []  # by function, since 2.24
            if foreign or (short == "DEBUG" and value.strip().isdecimal()):
                return "out_of_range", f"one of {', '.join(one_of.values)}"
    if name == "NCCL_IB_HCA" and " " in value.strip():
        return "out_of_range", "names are separated by commas without blanks"
    if name == "NCCL_IB_GID_INDEX" and value == "-1" and version is not None and version < (2, 21):
        return "out_of_range", "-1 is for NCCL 2.21 and later"
    for risky in _values().risky:
        if risky.name == name and re.fullmatch(risky.when, value.strip()):
            if risky.since is not None and (version is None or version < _version(risky.since)):
                continue
            return "risky", risky.reason
    return None
