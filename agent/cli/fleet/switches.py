"""Reads what commands join: saved outputs of switches, and the RoCE ports of a dataset's hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from agent.cli.errors import CliError, ErrorTranslation

if TYPE_CHECKING:
    from agent.fleet.engines.engine import Tables
    from agent.fleet.lossless.answer import LosslessAnswer
    from agent.fleet.lossless.cluster_links import SwitchOutputs
    from agent.fleet.lossless.hop import HostPort
    from probes.switches.collection import Collection


def read_switches(paths: list[str], dscp: int | None = None) -> Collection:
    """At least one switch. Raises CliError."""
    found = read_collected(paths, dscp)
    if not found.switches:
        reason = found.problems[0] if found.problems else f"{paths[0]}: contains no file"
        raise CliError(f"no output of a switch could be read: {reason}")
    return found


def read_collected(paths: list[str], dscp: int | None = None) -> Collection:
    """All that can be read. Raises CliError."""
    from probes.switches.collection import UnreadableCollection, read_collection

    with ErrorTranslation(UnreadableCollection):
        return read_collection(paths, dscp)


def read_host_ports(tables: Tables) -> list[HostPort]:
    """Ports of a dataset's hosts. Raises EngineRefused."""
    from agent.fleet.engines.query import table_query
    from agent.fleet.lossless.host_ports import DATASET_COLUMNS, read_dataset_ports

    rows: dict[str, list[dict[str, Any]]] = {}
    for table, columns in DATASET_COLUMNS.items():
        rows[table] = [
            dict(zip(columns, row, strict=True)) for row in tables.many_rows(table_query(table, list(columns)))
        ]
    return read_dataset_ports(rows)


class FabricAnswer(NamedTuple):
    """What outputs of switches add to a page."""

    outputs: SwitchOutputs
    answer: LosslessAnswer


def read_hops(paths: list[str], tables: Tables) -> FabricAnswer:
    """Outputs of switches joined with the hosts of a dataset, and judged. Raises CliError, EngineRefused."""
    from agent.fleet.collection import without_collection
    from agent.fleet.lossless.answer import Inputs, judge
    from agent.fleet.lossless.cluster_links import SwitchOutputs
    from agent.fleet.lossless.host_ports import choose_marking

    with without_collection():
        hosts = read_host_ports(tables)
        found = read_switches(paths, choose_marking(None, hosts).dscp)
        answer = judge(Inputs(found.switches, {}, hosts, [], found.problems, None, only_known_hosts=True))
        return FabricAnswer(SwitchOutputs(found.switches, hosts, found.problems), answer)
