"""Versions that differ within a hardware class, and how the rules ended on each node."""

from __future__ import annotations

from collections.abc import Sequence

from agent.fleet.page.reading import Texts, cells
from agent.fleet.page.scene import Coded, Judged, Nodes, Skew

# What a panel lists of a node: column of the table `host`, and how people call it
FACTS = (
    ("seen", "last seen"), ("driver", "GPU driver"), ("cuda", "CUDA of the driver"), ("kernel", "kernel"), ("os", "OS"),
    ("bios", "BIOS"), ("rdma_stack_version", "RDMA stack"), ("nccl", "NCCL"), ("settings", "NCCL settings"),
    ("profile", "platform"), ("serial", "serial"), ("generator", "fabricscope"),
)  # fmt: skip
COMPARED = (
    "driver",
    "kernel",
    "os",
    "bios",
    "rdma_stack_version",
    "nccl",
    "settings",
    "generator",
    "vbios",
    "firmware",
)
VALUES = 8  # of one thing in one class


def skew(nodes: Nodes) -> list[Skew]:
    """By class, the largest first; what differs for most nodes first."""
    compared = [fact for fact in nodes.facts if fact.key in COMPARED]
    members: dict[int, list[int]] = {}
    for at, code in enumerate(nodes.classes.codes):
        members.setdefault(code, []).append(at)
    found = []
    for code in sorted(
        (member for member in members if member >= 0), key=lambda member: (-len(members[member]), member)
    ):
        made = [_one(nodes.classes.labels[code], members[code], coded) for coded in compared]
        found += sorted((each for each in made if each), key=lambda each: (len(each.values[0][1]), each.what))
    return found


def _one(name: str, members: list[int], compared: Coded) -> Skew | None:
    by: dict[int, list[int]] = {}
    for at in members:
        if compared.codes[at] >= 0:
            by.setdefault(compared.codes[at], []).append(at)
    if len(by) < 2:
        return None
    order = sorted(by, key=lambda code: (-len(by[code]), code))
    values = [(compared.labels[code], by[code]) for code in order[:VALUES]]
    rest = sorted(at for code in order[VALUES:] for at in by[code])
    if rest:
        values.append((f"{len(order) - VALUES} others", rest))
    return Skew(hardware_class=name, what=compared.title, of=len(members), values=values)


LINES = 40  # rules that a node's panel gives the reason of
REASON = 200  # letters


def judged(nodes: Sequence[str], rules: list[str], texts: Texts) -> Judged:
    """Rules, and of every node a letter for each."""
    return Judged(rules=rules, vectors=texts.all, codes=[texts.of.get(node, -1) for node in nodes])


def lines(text: str) -> list[str]:
    """Rules that could not be judged, those of one reason in a line."""
    alike: dict[str, list[str]] = {}
    for row in cells(text):
        alike.setdefault(row[1] if len(row) > 1 else "", []).append(row[0])
    said = [f"{reason[:REASON] or 'no reason is given'}: {', '.join(rules)}" for reason, rules in alike.items()]
    return said if len(said) <= LINES else [*said[:LINES], f"and for {len(said) - LINES} more reasons"]
