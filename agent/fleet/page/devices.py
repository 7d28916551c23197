"""GPUs and rails: in words for a node's panel, as cells and as numbers for the map. All pure, on folded texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from agent.fleet.hostlist import fold
from agent.fleet.page.columns import find_distinct
from agent.fleet.page.reading import GPU, RAIL, Texts, read_cells
from agent.fleet.page.scene import Rails, RailState
from agent.model.labels import group_by_key, natural

MOST = 64  # rails of a node, and lines about it
DOWN = "not active"
LETTERS = 60  # of a name that a device chooses


NO_CLUSTER = "00000000-0000-0000-0000-000000000000"  # NVLink ends at the node


class Shape(NamedTuple):
    """What one text states of a node. Numbers are of the worst device; None: not known."""

    lines: tuple[str, ...] = ()
    link: float | None = None  # GB/s in one direction
    versions: str | None = None  # of VBIOS or firmware, those that differ
    nvlinks: float | None = None
    rate: float | None = None  # Gbit/s, 0: a rail that is not active
    domain: str | None = None


def make_gpu_shape(text: str) -> Shape:
    """GPUs that are alike in one line."""
    rows = [dict(zip(GPU, row, strict=False)) for row in read_cells(text)]
    active = [_number(row.get("nvlinks_active")) for row in rows if _number(row.get("nvlinks")) != 0]
    domain_rows = [(row.get("uuid_of_domain", ""), row.get("clique", "")) for row in rows]
    domains = {f"{uuid}.{clique}" for uuid, clique in domain_rows if uuid and clique and uuid != NO_CLUSTER}
    return Shape(
        tuple(_list_lines([(row.get("label", ""), _format_gpu(row)) for row in rows])),
        _find_lowest([_number(row.get("bandwidth")) for row in rows]),
        _join_versions([row.get("vbios", "") for row in rows]),
        nvlinks=_find_lowest(active) if None not in active else None,
        domain=domains.pop() if len(domains) == 1 else None,
    )


def make_rail_shape(text: str) -> Shape:
    """Rails that are alike in one line."""
    rows = [dict(zip(RAIL, row, strict=False)) for row in read_cells(text)]
    rates = [_read_rate(row) for row in rows]
    return Shape(
        tuple(_list_lines([(f"rail{row.get('rail', '')}", _format_rail(row)) for row in rows])),
        _find_lowest([_number(row.get("bandwidth")) for row in rows]),
        _join_versions(
            [f"{row.get('model') or 'NIC'} {row['firmware']}" if row.get("firmware") else "" for row in rows]
        ),
        rate=_find_lowest(rates) if None not in rates else None,
    )


def build_rails(
    nodes: Sequence[str],
    texts: Texts,
    severities: Mapping[str, Mapping[str, int]],
    leaves: Mapping[str, Mapping[int, str]],
) -> Rails:
    """Cells of the map. `severities`: node -> NIC -> the worst finding on it; `leaves`: node -> rail -> its switch."""
    rows = [[dict(zip(RAIL, row, strict=False)) for row in read_cells(text)][:MOST] for text in texts.all]
    numbers = [[int(_number(row.get("rail")) or 0) for row in node_rows] for node_rows in rows]
    names = sorted({leaf for value in leaves.values() for leaf in value.values()}, key=natural)
    places = {name: at for at, name in enumerate(names)}
    rates = _rank_values({_read_rate(row) for rail in rows for row in rail}, "Gbit/s")
    links = _rank_values({_number(row.get("bandwidth")) for node_rows in rows for row in node_rows}, "GB/s")
    nothing: dict[str, int] = {}
    nowhere: dict[int, str] = {}
    kinds: list[tuple[int, tuple[int, ...], tuple[int, ...]] | None] = []
    for node in nodes:
        code = texts.of.get(node)
        if code is None or not rows[code]:
            kinds.append(None)
            continue
        worst, at = severities.get(node, nothing), leaves.get(node, nowhere)
        severity = tuple(worst.get(row.get("id", ""), 0) for row in rows[code]) if worst else (0,) * len(rows[code])
        kinds.append((code, severity, tuple(places.get(at.get(place, ""), -1) for place in numbers[code])))
    sets, codes = find_distinct(kinds)
    rated = [[rates.get(_read_rate(row), (-1, ""))[0] for row in node_rows] for node_rows in rows]
    linked = [[links.get(_number(row.get("bandwidth")), (-1, ""))[0] for row in node_rows] for node_rows in rows]
    return Rails(
        leaves=names,
        rates=[text for _, text in sorted(rates.values())],
        links=[text for _, text in sorted(links.values())],
        sets=[
            [RailState(*state) for state in zip(numbers[code], worst, at, rated[code], linked[code], strict=True)]
            for code, worst, at in sets
        ],
        codes=codes,
    )


def format_gbyte_s(value: float) -> str:
    """As the page states it.

    >>> format_gbyte_s(63.015), format_gbyte_s(3.938)
    ('63 GB/s', '3.94 GB/s')
    """
    return f"{value:.3g} GB/s" if value < 10 else f"{value:.0f} GB/s"


def _format_gpu(row: Mapping[str, str]) -> str:
    lines = [row.get("name", "")[:LETTERS]]
    lines += [f"{memory:.0f} MiB" for memory in [_number(row.get("memory_mib"))] if memory]
    lines += [f"VBIOS {row['vbios'][:LETTERS]}"] if row.get("vbios") else []
    links, active = _number(row.get("nvlinks")), _number(row.get("nvlinks_active"))
    if links:
        lines.append(f"{'?' if active is None else f'{active:.0f}'} of {links:.0f} NVLinks active")
    lines += [f"fabric {row['fabric_state']}"] if row.get("fabric_state") else []
    lines += [f"PCIe {_format_pcie(row)}"] if _format_pcie(row) else []
    lines += ["MIG"] if row.get("mig") == "true" else []
    lines += [f"driver: {row['driver_state']}"] if row.get("driver_state", "open") not in ("", "open") else []
    lines += (
        [f"recovery: {row['recovery_action']}"]
        if row.get("recovery_action", "none").lower() not in ("", "none")
        else []
    )
    return ", ".join(line for line in lines if line)


def _format_rail(row: Mapping[str, str]) -> str:
    rate = _read_rate(row)
    lines = [row.get("model", "")[:LETTERS]]
    lines += [f"firmware {row['firmware'][:LETTERS]}"] if row.get("firmware") else []
    lines += [DOWN if rate == 0 else f"{row.get('link_layer', '')} {rate:g} Gbit/s".strip()] if rate is not None else []
    lines += [row["nic_state"]] if row.get("nic_state", "present") not in ("", "present") else []
    lines += [f"MTU {row['mtu']}"] if row.get("mtu") else []
    lines += [f"PCIe {_format_pcie(row)}"] if _format_pcie(row) else []
    return ", ".join(line for line in lines if line)


def _format_pcie(row: Mapping[str, str]) -> str:
    speed, width = _number(row.get("speed")), _number(row.get("width"))
    return f"{speed:g} GT/s x{width:.0f}" if speed and width else ""


def _read_rate(row: Mapping[str, str]) -> float | None:
    """Of a port: 0 where it carries nothing now."""
    state = row.get("state", "")
    if not state:
        return None
    return _number(row.get("rate")) if state.upper() == "ACTIVE" else 0.0


def _list_lines(rows: list[tuple[str, str]]) -> list[str]:
    alike = group_by_key((text, label) for label, text in rows)
    lines = [f"{fold(labels)}: {text or 'nothing more is known'}" for text, labels in alike.items()]
    return lines if len(lines) <= MOST else [*lines[:MOST], f"and {len(lines) - MOST} more that differ"]


def _number(text: str | None) -> float | None:
    try:
        return float(text) if text else None
    except ValueError:
        return None


def _find_lowest(numbers: Sequence[float | None]) -> float | None:
    known = [number for number in numbers if number is not None]
    return min(known) if known else None


def _join_versions(values: Sequence[str]) -> str | None:
    return ", ".join(sorted({value[:LETTERS] for value in values if value})) or None


def _rank_values(values: set[float | None], unit: str) -> dict[float | None, tuple[int, str]]:
    known = sorted(value for value in values if value is not None)
    return {rate: (at, f"{rate:.3g} {unit}" if rate else DOWN) for at, rate in enumerate(known)}
