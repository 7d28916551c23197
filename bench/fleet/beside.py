"""The same questions to the same reports: a dataset of ours, and plain DuckDB that reads the JSON.

    python -m bench.fleet.make --nodes 2000 --out reports.ndjson --ndjson
    fabricscope fleet ingest reports.ndjson --dataset DIR
    python -m bench.fleet.beside reports.ndjson DIR [--runs 3]

Whole processes; wall and CPU time are the least of the runs, one after the other in each. Answers must be equal.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from typing import Any, NamedTuple

from agent.fleet.dataset import open_dataset

# Its own guess of the types, from the first reports, and what it costs not to guess: one column a part of the report.
GUESSED = "read_json('{file}', format='newline_delimited', ignore_errors=true, maximum_object_size=67108864)"
RAW = (
    "read_json('{file}', format='newline_delimited', ignore_errors=true, maximum_object_size=67108864, "
    "columns={{node: 'STRUCT(hostname VARCHAR)', topology: '{topology}', findings: 'STRUCT(\"rule\" VARCHAR)[]'}})"
)
QUESTIONS = {
    "nodes by rule that found something": (
        "select rule, count(distinct node) from finding group by 1 order by 1",
        "select f.rule, count(distinct n) from (select node.hostname n, unnest(findings) f from {reports}) "
        "group by 1 order by 1",
    ),
    "links below 16 lanes, by lanes": (
        "select width, count(*) from pci join link using (node, id) where width < 16 and max_width >= 16 "
        "and pci.port_type not in ('root_port', 'downstream') group by 1 order by 1",
        "select f.link.width w, count(*) from (select unnest(topology.pci) f from {reports}) "
        "where w < 16 and f.link.max_width >= 16 and f.port_type not in ('root_port', 'downstream') "
        "group by 1 order by 1",
    ),
    "GUIDs that two have": (
        "select node_guid, count(*) from nic where node_guid is not null group by 1 having count(*) > 1 order by 1",
        "select d.node_guid, count(*) from (select unnest(topology.nics) d from {reports}) "
        "where d.node_guid is not null group by 1 having count(*) > 1 order by 1",
    ),
}
_TOPOLOGY = (
    "STRUCT(pci STRUCT(id VARCHAR, port_type VARCHAR, link STRUCT(width BIGINT, max_width BIGINT))[], "
    "nics STRUCT(node_guid VARCHAR)[])"
)
_DUCKDB = (
    "import duckdb, json, sys; c = duckdb.connect(); c.execute('set threads to 2'); "
    "[print(json.dumps(each)) for each in c.execute(sys.argv[1]).fetchall()]"
)


class Cost(NamedTuple):
    """Of one way: seconds, CPU seconds, the most memory (MiB), and the answer."""

    wall: float
    cpu: float
    memory: float
    answer: list[list[Any]]


def measured(command: list[str]) -> Cost:
    """A process that writes rows on stdout, JSON, one a line."""
    began = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        text = child.stdout.read()
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{command[:6]} ended with {child.returncode}")
    wall = time.perf_counter() - began
    return Cost(
        wall,
        used.ru_utime + used.ru_stime,
        used.ru_maxrss / 1024,
        [_row(json.loads(line)) for line in text.splitlines()],
    )


def _row(row: Any) -> list[Any]:
    return list(row.values()) if isinstance(row, dict) else list(row)


def least(runs: list[Cost]) -> Cost:
    """The least of each."""
    return Cost(min(r.wall for r in runs), min(r.cpu for r in runs), min(r.memory for r in runs), runs[0].answer)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("reports")
    parser.add_argument("dataset")
    parser.add_argument("--runs", type=int, default=3)
    request = parser.parse_args()
    print(
        f"{open_dataset(request.dataset).manifest.nodes:,} nodes, "
        f"{os.path.getsize(request.reports) / 1e6:,.0f} MB of JSON"
    )
    print("| question | way | wall s | CPU s | MiB |")
    print("|---|---|---|---|---|")
    guessed = GUESSED.format(file=request.reports)
    typed = RAW.format(file=request.reports, topology=_TOPOLOGY)
    ours = [sys.executable, "-m", "fabricscope", "fleet", "query", "--dataset", request.dataset, "--format", "json"]
    for name, (query, plain) in QUESTIONS.items():
        ways = {
            "fabricscope fleet query": [*ours, query],
            "read_json, types told": [sys.executable, "-c", _DUCKDB, plain.format(reports=typed)],
            "read_json": [sys.executable, "-c", _DUCKDB, plain.format(reports=guessed)],
        }
        answers = []
        for way, command in ways.items():
            cost = least([measured(command) for _ in range(request.runs)])
            answers.append(cost.answer)
            print(f"| {name} | {way} | {cost.wall:.2f} | {cost.cpu:.2f} | {cost.memory:.0f} |", flush=True)
        if any(answer != answers[0] for answer in answers):
            raise SystemExit(f"{name}: the answers differ: {answers}")


if __name__ == "__main__":
    main()
