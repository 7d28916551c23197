"""One made-up fleet with every planted oddity, taken in by the real ingest."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest

from agent.fleet.engines import connect
from agent.fleet.engines.engine import Engine
from agent.fleet.ingest.run import IngestOptions, ingest
from bench.fleet.cables import CABLES, OF_MANY
from bench.fleet.kinds import KINDS, ON_REQUEST
from bench.fleet.plan import Plan, plan

OF_CABLES = (*CABLES, *OF_MANY)  # tests/agent/fleet/cluster asks for these
ON_THEIR_OWN = ("flapping", *ON_REQUEST)  # tests with fleets of their own ask for these


class Fleet(NamedTuple):
    """The dataset, and what is odd in it."""

    path: Path
    engine: Engine
    truth: dict[str, Any]
    fabrics: dict[str, str]

    def hosts(self, *kinds: str) -> set[str]:
        """Nodes with one of these oddities."""
        return {host for outlier in self.truth["oddities"] if outlier["kind"] in kinds for host in outlier["hosts"]}


# Platforms on which every kind of oddity can be planted, in 256 nodes
EVERY_KIND = {"gb200-ib": 2.0, "l40s-roce": 1.0, "h200-roce": 3.0, **{f"h200-twin-{n}": 1.0 for n in (1, 2, 3)}}


def made(place: Path, nodes: int, seed: int, mix: dict[str, float] | None) -> Plan:
    """Make reports, and take them in."""
    faults = {kind: 1 for kind in KINDS if kind not in OF_CABLES and kind not in ON_THEIR_OWN}
    fleet = plan(nodes, seed, faults, sweeps=2, mix=mix)
    for sweep in (0, 1):
        source = place / f"sweep-{sweep}.ndjson"
        with source.open("wb") as file:
            for data in fleet.reports(sweep, one_line=True):
                file.write(data.replace(b"\n", b" ") + b"\n")
        ingest(IngestOptions(sources=[str(source)], dataset=str(place / "dataset")), lambda _stage, _done: None)
        source.unlink()
    return fleet


def _planted(place: Path) -> tuple[dict[str, Any], dict[str, str]]:
    fleet = made(place, 256, 3, EVERY_KIND)
    return fleet.truth, {name: "".join(fleet.fabric_text(name)) for name in fleet.fabrics}


@pytest.fixture(scope="session")
def fleet(make_once):
    place, (truth, fabrics) = make_once("planted", _planted)
    engine = connect(None, str(place / "dataset"))
    yield Fleet(place / "dataset", engine, truth, fabrics)
    engine.close()
