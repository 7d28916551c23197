"""What `fabricscope fleet` finds of what is planted, as the table of docs/fleet.md: `python -m bench.fleet.recall`.

Each fleet is made, taken into a dataset by the installed command, and asked every question; what was missed or
reported without having been planted is named on stderr, and makes the exit code 1.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from agent.fleet.engines import connect
from agent.fleet.hostlist import fold
from bench.fleet.answers import compared
from bench.fleet.cables import HALF, OF_MANY
from bench.fleet.faults import HIGH_COUNTERS, MODELS, RATES
from bench.fleet.overlaid import PAIRS
from bench.fleet.plan import plan


class Scenario(NamedTuple):
    """Fleets of one kind."""

    name: str
    what: str
    faults: Mapping[str, int] | None  # None: all that are not on request
    nodes: int = 250
    seeds: Sequence[int] = (11, 12, 13, 14)
    sweeps: int = 2
    mix: Mapping[str, float] | None = None


_INFINIBAND = {"h100-ib": 2.0, "h200-roce": 1.0}
SCENARIOS = (
    Scenario("every kind", "every difference, duplicate and finding", None, nodes=1000, seeds=(1,)),
    Scenario(
        "rates and models",
        "link downs, symbol errors and retransmissions between two reports; a GPU of another model; not to be found: "
        "counters that are high since before",
        dict.fromkeys([*RATES, *MODELS, *HIGH_COUNTERS], 1) | {"gpus-half-lost": 1, "driver": 1},
        mix=_INFINIBAND,
    ),
    Scenario(
        "two causes on one node",
        ", ".join(" and ".join(pair) for pair in PAIRS),
        dict.fromkeys(map("+".join, PAIRS), 1),
        mix=_INFINIBAND,
    ),
    Scenario(
        "cables of many",
        "a side of two leaves exchanged; a unit with about half of its cables up; two rails exchanged in a unit or on "
        "half of its nodes; a rail exchanged between two units",
        dict.fromkeys(OF_MANY, 1),
        mix=_INFINIBAND,
    ),
    Scenario(
        "half a unit",
        "two rails exchanged on half of a unit's nodes, beside a port that is down and a swapped cable",
        {HALF: 1, "port-down": 1, "cable-swapped-rails": 1},
        nodes=256,
        seeds=(21, 22),
        sweeps=1,
        mix={"h100-ib": 1.0},
    ),
    Scenario(
        "causes on one leaf or unit",
        "the same beside swapped cables, a port that is down, symbol errors and a GPU of another model, in one fabric",
        dict.fromkeys(
            [*OF_MANY, "cable-swapped-rails", "cable-swapped-ports", "port-down", "rate-symbol-errors", "gpu-model"], 1
        ),
        nodes=256,
        mix={"h100-ib": 1.0},
    ),
)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", metavar="NAME", help="one kind of fleets")
    only = parser.parse_args().only
    wrong = 0
    print("| fleet | planted | found, missed, false |\n|---|---|---|")
    for scenario in SCENARIOS:
        if only in (None, scenario.name):
            right, missed, invented = measure(scenario)
            wrong += sum(missed.values()) + sum(invented.values())
            answers = "; ".join(
                f"{question} {right[question]}, {missed[question]}, {invented[question]}"
                for question in sorted({*right, *missed, *invented})
                if right[question] or missed[question] or invented[question]
            )
            count = f"{len(scenario.seeds)} fleets of" if len(scenario.seeds) > 1 else "one fleet of"
            reports = "1 report" if scenario.sweeps == 1 else f"{scenario.sweeps} reports"
            print(f"| {count} {scenario.nodes:,} nodes, {reports} each: {scenario.name} | "
                  f"{scenario.what} | {answers} |", flush=True)  # fmt: skip
    raise SystemExit(bool(wrong))


def measure(scenario: Scenario) -> tuple[Counter[str], Counter[str], Counter[str]]:
    """How many answers of each question are right, missed and invented, in all fleets of a scenario."""
    right: Counter[str] = Counter()
    missed: Counter[str] = Counter()
    invented: Counter[str] = Counter()
    for seed in scenario.seeds:
        with tempfile.TemporaryDirectory() as folder:
            made = plan(scenario.nodes, seed, scenario.faults, sweeps=scenario.sweeps, mix=scenario.mix)
            reports, dataset = Path(folder, "reports.ndjson"), Path(folder, "dataset")
            with reports.open("wb") as file:
                for sweep in range(made.sweeps):
                    for line in made.reports(sweep, one_line=True):
                        file.write(line if line.endswith(b"\n") else line + b"\n")
            command = [sys.executable, "-m", "fabricscope", "fleet", "ingest", str(reports)]
            subprocess.run([*command, "--dataset", str(dataset), "-q"], check=True)
            fabrics = {name: "".join(made.fabric_text(name)) for name in made.fabrics}
            engine = connect(None, str(dataset))
            truth = json.loads(json.dumps(made.truth))
            for question, sides in compared(engine, truth, fabrics).items():
                right[question] += sides.right
                missed[question] += len(sides.missed)
                invented[question] += len(sides.invented)
                for name, side in (("missed", sides.missed), ("false", sides.invented)):
                    for what in sorted({what for what, _ in side}):
                        hosts = fold(host for one, host in side if one == what)
                        print(f"{scenario.name}, seed {seed}: {question}: {name} {what}: {hosts}", file=sys.stderr)
            engine.close()
    return right, missed, invented


if __name__ == "__main__":
    main()
