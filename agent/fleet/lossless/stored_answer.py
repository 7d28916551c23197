"""The answer that `fleet lossless --store` left in a dataset, as far as its tables keep it."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from agent.fleet.engines.engine import Tables
from agent.fleet.engines.query import table_query
from agent.fleet.lossless.answer import LosslessAnswer, count_paths
from agent.fleet.lossless.host_ports import commonest
from agent.fleet.lossless.rows import HopEnd, HopRow, SwitchRow
from agent.fleet.lossless.verdict import VERDICTS
from agent.fleet.stored_rows import StoredRow, build_part
from agent.fleet.text.parts import split_steps
from agent.model.finding import Evidence, Finding, Step
from agent.model.node import SWITCH_PREFIX

_EVIDENCE = msgspec.json.Decoder(list[Evidence])
_SWITCH = ("name", "nos", "model", "version", "role", "ports", "configuration", "dscp", "observed_at")
_HOP = ("switch", "port", "far_kind", "far_node", "far_port", "rail", "verdict", "reason", "settle", "told_by",
        "priority", "far_priority", "pfc", "far_pfc", "metres_plan", "metres_module", "findings")  # fmt: skip
_FINDING = ("node", "rule", "severity", "subject", "label", "summary", "impact", "remedy", "evidence", "confidence",
            "devices", "fingerprint", "silenced")  # fmt: skip


def read_stored_answer(tables: Tables) -> LosslessAnswer | None:
    """The newest answer about each switch; None where none was stored. Raises EngineRefused."""
    switches = sorted(_read(tables, "switch", _SWITCH), key=lambda row: row["name"])
    if not switches:
        return None
    hops = [_make_hop(row) for row in _read(tables, "hop", _HOP)]
    hosts = {(end.node, end.port) for hop in hops for end in (hop.a, hop.b) if end.kind == "host"}
    moments = [f"{row['observed_at']:%Y-%m-%d %H:%M} UTC" for row in switches]
    outputs = " to ".join(sorted({min(moments), max(moments)}))
    return LosslessAnswer(
        dscp=commonest(row["dscp"] for row in switches) or 0,
        dscp_source=f"as stored, from outputs of {outputs}",
        switches=[
            build_part(
                SwitchRow,
                row,
                ports=row["ports"] or 0,
                complete=bool(row["configuration"]),
                unknown_columns=0,
                sources=[],
                observed_at=row["observed_at"].isoformat(),
            )
            for row in switches
        ],
        hosts=len({node for node, _ in hosts}),
        host_ports=len(hosts),
        counts={verdict: sum(hop.verdict == verdict for hop in hops) for verdict in VERDICTS},
        hops=hops,
        paths=count_paths(hops),
        findings=[
            _make_finding(row)
            for row in _read(tables, "finding", _FINDING)
            if row["node"].startswith(SWITCH_PREFIX) and not row["silenced"]
        ],
        changes=[],
        not_read=[],
        notes=[],
    )


def _read(tables: Tables, table: str, columns: tuple[str, ...]) -> Iterator[StoredRow]:
    for row in tables.many_rows(table_query(table, columns)):
        yield dict(zip(columns, row, strict=True))


def _make_hop(row: StoredRow) -> HopRow:
    """A host's end is the first one, as in an answer."""
    here = HopEnd(
        node=row["switch"], port=row["port"], kind="switch", priority=row["priority"], pfc=_parse_bits(row["pfc"])
    )
    far = HopEnd(
        node=row["far_node"] or "",
        port=row["far_port"] or "",
        kind=row["far_kind"],
        rail=row["rail"],
        priority=row["far_priority"],
        pfc=_parse_bits(row["far_pfc"]),
    )
    a, b = (here, far) if far.kind == "switch" else (far, here)
    return build_part(HopRow, row, a=a, b=b, findings=(row["findings"] or "").split())


def _make_finding(row: StoredRow) -> Finding:
    return build_part(
        Finding,
        row,
        evidence=_EVIDENCE.decode(row["evidence"] or "[]"),
        steps=[Step(do=step) for step in split_steps(row["remedy"])] if row["remedy"] else [],
        devices=(row["devices"] or "").split(),
        silenced=None,
    )


def _parse_bits(text: str | None) -> list[int] | None:
    """
    >>> _parse_bits("00011000"), _parse_bits("00000000"), _parse_bits(None)
    ([3, 4], [], None)
    """
    return None if text is None else [number for number, bit in enumerate(text) if bit == "1"]
