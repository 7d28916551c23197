"""A cause of one device on half of the devices of its kind, on all but one, and on all: a majority is no norm."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from agent.config import Configuration
from tests.matrix.cases import EVERY_GPU, EVERY_RAIL, PLACEHOLDER, Cause, NotHere, causes, filled, pairs
from tests.matrix.together import Laid, compare, judge_all, merge, read_listed, seen

SHARES = ("half", "all but one", "all")


def spreads() -> Iterator[tuple[str, str, str]]:
    """Every cause of one device, on each machine that has three or more of its kind, with every share."""
    for name, shape in pairs():
        if len(_devices(causes()[name], shape)) > 2:
            yield from ((name, shape, share) for share in SHARES)


def lay_on(name: str, shape: str, share: str) -> Laid:
    """The cause on that many devices. Raises Collision where it is one fact of the whole machine."""
    cause, devices = causes()[name], _devices(causes()[name], shape)
    count = {"half": len(devices) // 2, "all but one": len(devices) - 1, "all": len(devices)}[share]
    item = [_moved(cause, device) for device in devices[:count]]
    whole = item[0]
    for other in item[1:]:
        whole = msgspec.structs.replace(
            whole,
            overlay=merge({}, whole.overlay, other.overlay, "overlay"),
            earlier=merge({}, whole.earlier, other.earlier, "earlier") if whole.earlier else whole.earlier,
            finds=[*whole.finds, *other.finds],
        )
    report = seen(whole, shape)
    return compare(judge_all(report, msgspec.convert(cause.config, Configuration)), filled(whole.finds, shape))


def _devices(cause: Cause, shape: str) -> Sequence[str]:
    """Its kind with every number; nothing where a cause is not of one device."""
    text = json.dumps([cause.overlay, cause.earlier, cause.finds])
    named = {kind + number for _, kind, number in PLACEHOLDER.findall(text)}
    if len(named) != 1 or not cause.finds or EVERY_GPU in text or EVERY_RAIL in text:
        return ()
    kind = re.sub(r"\d+$", "", named.pop())
    collected = []
    try:
        while True:
            filled(_renamed(msgspec.structs.astuple(cause), f"{kind}{len(collected)}"), shape)
            collected.append(f"{kind}{len(collected)}")
    except NotHere:
        return collected


def _moved(cause: Cause, device: str) -> Cause:
    """The same cause of another device."""
    return msgspec.structs.replace(
        cause,
        overlay=_renamed(cause.overlay, device),
        earlier=_renamed(cause.earlier, device),
        finds=_renamed(cause.finds, device),
    )


def _renamed(value: Any, device: str) -> Any:
    if isinstance(value, dict):
        return {_renamed(key, device): _renamed(item, device) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_renamed(item, device) for item in value)
    if isinstance(value, str):
        return PLACEHOLDER.sub(lambda found: f"{{{found[1] + ':' if found[1] else ''}{device}}}", value)
    return value


def is_listed(name: str, share: str, rules: frozenset[str]) -> bool:
    """Whether consequences.toml says why a cause on so many devices is not named as on one. `rules`: what stands."""
    return any(
        share in row["shares"]
        and name in row["causes"]
        and ("instead" not in row or not rules.isdisjoint(row["instead"]))
        for row in read_listed()["spread"]
    )
