"""How well predictions fit published measurements: `python -m bench.prediction TABLE [--write docs/prediction.md]`.

TABLE has the columns of `measured/collectives.tsv` of the corpus: machine, nodes, collective, size, busbw, state.
"""

from __future__ import annotations

import csv
import re
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from agent.platforms.profiles import load_profile
from agent.recommend.machine import NodeFacts, assume_node
from agent.recommend.predict import HEALTHY, Request, predict, version_of

PLATFORMS = (  # by what the name of a machine holds; the first that fits
    ("p4de", "p4de.24xlarge"), ("p5en", "p5en.48xlarge"), ("p5.48", "p5.48xlarge"), ("p6", "p6-b200.48xlarge"),
    ("H100", "hgx-h100-8"), ("H200", "hgx-h200-8"), ("A100", "hgx-a100-8"), ("a3-mega", "hgx-h100-8"),
    ("GPU4.8", "hgx-a100-8"), ("MI300X", "mi300x-8"), ("MI325X", "mi325x-8"),
)  # fmt: skip
CLASSES = ("nvs-1n", "nvs-Nn", "xgmi", "xgmi-Nn")
LARGE = 1_000_000_000
MARK = "<!-- table -->"


class Fit(NamedTuple):
    """One measured row and its prediction."""

    name: str
    kind: str
    machine: str
    nodes: int
    collective: str
    size: int
    measured: float
    predicted: float | None
    inside: bool  # of the stated range

    @property
    def error(self) -> float:
        """Relative; positive: the prediction is too high."""
        return (self.predicted or 0.0) / self.measured - 1


def fit(table: Path) -> list[Fit]:
    """Every healthy row of a class that is modelled, on whole nodes of eight GPUs."""
    with table.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    return [item for row in rows if (item := _fit(row)) is not None]


def summarize(rows: Iterable[Fit]) -> list[str]:
    """Lines of a Markdown table: one per class, collective and size."""
    groups: dict[tuple[str, str, str], list[Fit]] = defaultdict(list)
    for row in rows:
        size = ">= 1 GB" if row.size >= LARGE else "8-512 MB" if row.size >= 8_000_000 else "< 8 MB"
        groups[row.kind, row.collective, size].append(row)
    lines = ["| class | collective | size | rows | median error | within 10% | inside the range | worst |"]
    lines.append("|---|---|---|---|---|---|---|---|")
    for (kind, collective, size), own in groups.items():
        known = [row for row in own if row.predicted is not None]
        if not known:
            lines.append(f"| {kind} | {collective} | {size} | {len(own)} | not modelled | | | |")
            continue
        errors = [abs(row.error) for row in known]
        worst = max(known, key=lambda row: abs(row.error))
        lines.append(
            f"| {kind} | {collective} | {size} | {len(known)} | {statistics.median(errors):.1%} "
            f"| {sum(error <= 0.1 for error in errors) / len(errors):.0%} "
            f"| {sum(row.inside for row in known) / len(known):.0%} "
            f"| {worst.error:+.0%}: {worst.machine}, {worst.nodes} nodes, {worst.size >> 20} MiB |"
        )
    return lines


def main(arguments: Sequence[str]) -> int:
    """Print the table, or write it into a page below its mark."""
    if len(arguments) not in (1, 3) or (len(arguments) == 3 and arguments[1] != "--write"):
        sys.stderr.write("usage: python -m bench.prediction TABLE [--write PAGE]\n")
        return 2
    text = "\n".join(summarize(fit(Path(arguments[0])))) + "\n"
    if len(arguments) == 1:
        sys.stdout.write(text)
        return 0
    page = Path(arguments[2])
    head, mark, _ = page.read_text(encoding="utf-8").partition(MARK)
    page.write_text(f"{head}{mark}\n\n{text}", encoding="utf-8")
    return 0


def _fit(row: dict[str, str]) -> Fit | None:
    profile = next((name for part, name in PLATFORMS if part in row["machine"]), None)
    if row["state"] != "healthy" or row["class"] not in CLASSES or profile is None or row["gpus_per_node"] != "8":
        return None
    collective = {"alltoall": "all_to_all"}.get(row["collective"], row["collective"])
    version = version_of(row["nccl"] if re.fullmatch(r"2\.\d+(\.\d+)?", row["nccl"]) else None, [])
    request = Request(collective, int(row["size_bytes"]), int(row["nodes"]), version)
    result = predict([_node(profile, row)], request, HEALTHY)
    measured = float(row["busbw_gbyte_s"])
    if not measured:
        return None
    low, high = result.range_gbyte_s or (0.0, 0.0)
    return Fit(
        row["id"], row["class"], row["machine"], request.nodes, collective, request.size, measured,
        result.busbw_gbyte_s, low <= measured <= high,
    )  # fmt: skip


def _node(profile: str, row: dict[str, str]) -> NodeFacts:
    match = re.match(r"(\d+)x(\d+)\b", row["nics_per_node_x_gbit"])
    return assume_node(load_profile(profile), (int(match[1]), float(match[2])) if match else None)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
