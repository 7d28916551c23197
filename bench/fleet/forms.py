"""How each kind of text of a report is written for a node: a form a line, all of them pure."""

from __future__ import annotations

import functools
import hashlib
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from bench.fleet.identity import Identity, domain, uuid

DAY = 86_400
_POOL = 4_096
_COUNTS = [((n * 2_654_435_761) % (1 << 32)) * 1_009 + 1_000 for n in range(_POOL)]
_NOISE = [0.7 + ((n * 2_654_435_761) % _POOL) / _POOL * 0.8 for n in range(_POOL)]  # 0.7 to 1.5
_SECONDS_OF_PROBES = {"nvml": 0.31, "nvidia-smi": 0.9, "ethtool": 0.12, "optics": 0.24, "lldp": 0.08, "pci": 0.06}
_LEVELS = 8  # of a probe's usual time


class Moment(NamedTuple):
    """When a node was looked at."""

    at: int  # Unix seconds
    up: float  # seconds since it was started
    boots: int = 0  # how often it was restarted in this fleet's time
    hours: int = 0  # since the first sweep: counters grow with it


class Node(NamedTuple):
    """A node at a moment: all that a text may depend on."""

    who: Identity
    when: Moment


class Recipe(NamedTuple):
    """What a finding's fingerprint is made of: constants and slots by turns."""

    rule: str
    cause: str
    constants: Sequence[str]
    slots: Sequence[tuple[str, int]]


def stamp(at: int) -> str:
    """RFC 3339, UTC.

    >>> stamp(1_768_464_000)
    '2026-01-15T08:00:00Z'
    """
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))


def write(node: Node, form: str, keys: Sequence[int]) -> list[str]:
    """The texts of one form, by key."""
    return replaced(node, form, keys, FORMS[form](node, keys))


def replaced(node: Node, form: str, keys: Sequence[int], made: list[str]) -> list[str]:
    """The same, with those that are planted."""
    over = node.who.over
    return [over.get((form, key), text) for key, text in zip(keys, made, strict=True)] if over else made


def fingerprint(node: Node, recipe: Recipe) -> str:
    """As agent/rules/engine.py makes it."""
    parts = list(recipe.constants)
    own = [write(node, form, [key])[0] for form, key in recipe.slots]
    identity = parts[0] + "".join(text + part for text, part in zip(own, parts[1:], strict=True))
    return hashlib.sha256("\n".join((recipe.rule, identity, recipe.cause)).encode()).hexdigest()[:16]


def usual_seconds(probe: str, number: int) -> float:
    """What a probe usually takes, on a machine like this."""
    return _SECONDS_OF_PROBES.get(probe, 0.004 + 0.003 * (number % _LEVELS))


def _hexes(node: Node, keys: Sequence[int]) -> list[tuple[str, str, str]]:
    result = node.who.hexes(keys)
    return [(text[:2], text[2:4], text[4:]) for text in result]


def _guid(node: Node, keys: Sequence[int]) -> list[str]:
    return [f"b83f:d203:00{a}:{b}{c}" for a, b, c in _hexes(node, keys)]


def _mac(node: Node, keys: Sequence[int]) -> list[str]:
    return [f"b8:3f:d2:{a}:{b}:{c}" for a, b, c in _hexes(node, keys)]


def _mac_of_guid(node: Node, keys: Sequence[int]) -> list[str]:
    return [f"b8:3f:d2:03:00:{a}:{b}:{c}" for a, b, c in _hexes(node, keys)]


def _dsn(node: Node, keys: Sequence[int]) -> list[str]:
    return [f"b8-3f-d2-03-00-{a}-{b}-{c}" for a, b, c in _hexes(node, keys)]


def _eui(node: Node, keys: Sequence[int]) -> list[str]:
    return [f"ba3f:d2ff:fe{a}:{b}{c}" for a, b, c in _hexes(node, keys)]


def _eui_short(node: Node, keys: Sequence[int]) -> list[str]:
    return [f"ba3f:d2ff:fe{a}:{(b + c).lstrip('0') or '0'}" for a, b, c in _hexes(node, keys)]


def _ip(node: Node, keys: Sequence[int]) -> list[str]:
    return [f"10.{a}.{b}.{c}" for a, b, c in map(node.who.address, keys)]


def _ip_in_gid(node: Node, keys: Sequence[int]) -> list[str]:
    if node.who.over:  # a borrowed address is in the GID, too
        result = [text.split(".") for text in write(node, "ip", keys)]
        return [f"{int(z):02x}{int(a):02x}:{int(b):02x}{int(c):02x}" for z, a, b, c in result]
    return [f"0a{a:02x}:{b:02x}{c:02x}" for a, b, c in map(node.who.address, keys)]


def _prefix_in_mac(node: Node, keys: Sequence[int]) -> list[str]:
    digits = node.who.place.subnet.replace(":", "")
    return [":".join(digits[n : n + 2] for n in range(0, 16, 2))] * len(keys)


def _counter(node: Node, keys: Sequence[int]) -> list[str]:
    pool, first = _pool(node.when.hours), node.who.place.number * 61
    return [pool[(first + key * 7) % _POOL] for key in keys]


@functools.lru_cache(maxsize=64)
def _pool(hours: int) -> list[str]:
    return [str(count + hours * (count >> 8)) for count in _COUNTS]


def seconds(node: Node, keys: Sequence[int], usual: Sequence[float]) -> list[str]:
    """What probes took, some more and some less than is usual."""
    first = node.who.place.number * 131 + node.when.hours * 11
    noise = [_NOISE[(first + key * 37) % _POOL] for key in keys]
    return [repr(max(round(item * factor, 3), 0.001)) for item, factor in zip(usual, noise, strict=True)]


def _domain(node: Node) -> str:
    return domain(node.who.seed, node.who.place.rack)


def _one(make: Callable[[Node], str]) -> Callable[[Node, Sequence[int]], list[str]]:
    """A form that a node has one of."""
    return lambda node, keys: [make(node)] * len(keys)


FORMS: dict[str, Callable[[Node, Sequence[int]], list[str]]] = {
    "hostname": _one(lambda node: node.who.place.hostname),
    "machine-id": _one(lambda node: node.who.bits(0)),
    "boot-id": _one(lambda node: uuid(f"{node.when.boots:02x}{node.who.bits(1)[2:]}")),
    "serial": _one(lambda node: node.who.decimal(0, 8)),
    "chassis": _one(lambda node: node.who.decimal(1, 8)),
    "rack": _one(lambda node: f"{(node.who.place.rack * 7_919 + node.who.seed) % 10**8:08d}"),
    "tray": _one(lambda node: str(node.who.place.tray)),
    "slot": _one(lambda node: str(node.who.place.tray + 1 + 9 * (node.who.place.tray >= 10))),  # switch trays between
    "domain": _one(_domain),
    "guid": _guid,
    "mac": _mac,
    "mac-of-guid": _mac_of_guid,
    "dsn": _dsn,
    "eui": _eui,
    "eui-short": _eui_short,
    "uuid": lambda node, keys: ["GPU-" + uuid(node.who.bits(2 + key)) for key in keys],
    "gpu-serial": lambda node, keys: ["1" + node.who.decimal(key, 12) for key in keys],
    "module": lambda node, keys: ["MT" + node.who.decimal(key, 13) for key in keys],
    "ip": _ip,
    "ip-in-gid": _ip_in_gid,
    "prefix": _one(lambda node: node.who.place.subnet),
    "prefix-in-mac": _prefix_in_mac,
    "lid": lambda node, keys: [str(node.who.place.lids[key]) for key in keys],
    "far-switch": lambda node, keys: [node.who.place.far[key].switch for key in keys],
    "far-port": lambda node, keys: [node.who.place.far[key].port for key in keys],
    "far-chassis": lambda node, keys: [node.who.place.far[key].chassis for key in keys],
    "time": _one(lambda node: stamp(node.when.at)),
    "uptime": _one(lambda node: repr(round(node.when.up, 2))),
    "total": lambda node, keys: seconds(node, keys, [1.6] * len(keys)),
    "counter": _counter,
}
