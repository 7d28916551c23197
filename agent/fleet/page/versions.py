"""Versions that differ within a hardware class, and how the rules ended on each node."""

from __future__ import annotations

from collections.abc import Sequence

from agent.fleet.page.reading import Texts, read_cells
from agent.fleet.page.scene import CodedColumn, JudgedRules, Nodes, Skew

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


def find_skew(nodes: Nodes) -> list[Skew]:
    """By class, the largest first; what differs for most nodes first."""
    compared = [fact for fact in nodes.facts if fact.key in COMPARED]
    members: dict[int, list[int]] = {}
    for at, code in enumerate(nodes.classes.codes):
        members.setdefault(code, []).append(at)
    skews = []
    for code in sorted(
        (member for member in members if member >= 0), key=lambda member: (-len(members[member]), member)
    ):
        skew_or_none = [_find_one(nodes.classes.labels[code], members[code], coded) for coded in compared]
        skews += sorted((one for one in skew_or_none if one), key=lambda one: (len(one.values[0][1]), one.what))
    return skews


def _find_one(name: str, members: list[int], compared: CodedColumn) -> Skew | None:
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


def read_judged(nodes: Sequence[str], rules: list[str], texts: Texts) -> JudgedRules:
    """Rules, and of every node a letter for each."""
    return JudgedRules(rules=rules, vectors=texts.all, codes=[texts.of.get(node, -1) for node in nodes])


def format_lines(text: str) -> list[str]:
    """Rules that could not be judged, those of one reason in a line."""
    alike: dict[str, list[str]] = {}
    for row in read_cells(text):
        alike.setdefault(row[1] if len(row) > 1 else "", []).append(row[0])
    texts = [f"{reason[:REASON] or 'no reason is given'}: {', '.join(rules)}" for reason, rules in alike.items()]
    return texts if len(texts) <= LINES else [*texts[:LINES], f"and for {len(texts) - LINES} more reasons"]
