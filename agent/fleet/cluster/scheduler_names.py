"""Names that Slurm, Kubernetes and topograph take, made of what switches and hosts are called."""

from __future__ import annotations

import re
from collections.abc import Iterable

LIMIT = 64  # of a switch's name: topology.conf(5)


def clean(name: str, otherwise: str = "switch") -> str:
    """Letters, digits, "-", "_" and "."; at most LIMIT.

    >>> clean("LG28-08"), clean("B09 leaf [1]"), clean("..."), len(clean("x" * 99))
    ('LG28-08', 'B09-leaf-1', 'switch', 64)
    """
    fit = re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-._")[:LIMIT].strip("-._")
    return fit or otherwise


def make_unique(names: Iterable[str], taken: Iterable[str] = (), otherwise: str = "switch") -> dict[str, str]:
    """Each cleaned, none twice: the second of a name gets "-2".

    >>> make_unique(["a b", "a-b", "c"], taken=["c"])
    {'a b': 'a-b', 'a-b': 'a-b-2', 'c': 'c-2'}
    """
    used = set(taken)
    unique_names = {}
    for name in names:
        fit = chosen = clean(name, otherwise)
        number = 2
        while chosen in used:
            tail = f"-{number}"
            chosen, number = fit[: LIMIT - len(tail)] + tail, number + 1
        used.add(chosen)
        unique_names[name] = chosen
    return unique_names


def make_node_names(hosts: Iterable[str]) -> dict[str, str | None]:
    """Hosts as Slurm calls its nodes: without a cluster's prefix and a domain; None where it would take no such name.

    Two hosts whose short names are the same keep their domains.

    >>> make_node_names(["gpu1.site.org", "east/gpu2", "a b"])
    {'gpu1.site.org': 'gpu1', 'east/gpu2': 'gpu2', 'a b': None}
    >>> make_node_names(["n1.east", "n1.west"])
    {'n1.east': 'n1.east', 'n1.west': 'n1.west'}
    """
    listed = list(hosts)
    short: dict[str, str] = {host: host.rsplit("/", 1)[-1].split(".")[0] for host in listed}
    count: dict[str, int] = {}
    for name in short.values():
        count[name] = count.get(name, 0) + 1
    names: dict[str, str | None] = {}
    for host in listed:
        name = short[host] if count[short[host]] == 1 else host.rsplit("/", 1)[-1]
        names[host] = name if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}", name) else None
    return names


def format_comment(text: str) -> str:
    """What a name may be in a comment: one line of plain letters.

    >>> format_comment("leaf\\n\\x1b[31m é")
    'leaf??[31m ?'
    """
    return re.sub(r"[^ -~]", "?", text)[:200]


def format_yaml_text(text: str) -> str:
    """A YAML scalar: plain where it can only be read as this text, else quoted.

    >>> [format_yaml_text(text) for text in ("gpu[001-018]", "on", "12", "1e3", "")]
    ['gpu[001-018]', '"on"', '"12"', '"1e3"', '""']
    """
    words = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}
    if re.fullmatch(r"[A-Za-z][A-Za-z0-9_./\[\],-]*", text) and text.lower() not in words:
        return text
    return '"' + re.sub(r"[^ -~]", "?", text).replace("\\", "\\\\").replace('"', '\\"') + '"'
