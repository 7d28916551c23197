"""A healthy machine of 16 GPUs and 18 NICs: one of 8 and 18, with a second GPU beside each behind the same switch."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from agent.model.report import Report


def make_sixteen_gpus(report: Report) -> Report:
    """Double the 8 GPUs of a report; each twin has its own address, identity, links and paths."""
    whole = msgspec.to_builtins(report)
    topology = whole["topology"]
    twins = {gpu["id"]: _twin_address(gpu["id"]) for gpu in topology["gpus"]}
    functions = {row["id"]: row for row in topology["pci"]}
    for old, new in twins.items():
        port = functions[functions[old]["parent"]]
        topology["pci"] += [
            {**port, "id": _twin_address(port["id"])},
            {**functions[old], "id": new, "parent": _twin_address(port["id"]), "serial": None},
        ]
    for number, gpu in enumerate([_copy(gpu) for gpu in topology["gpus"]], len(twins)):
        gpu |= {"id": twins[gpu["id"]], "pci": twins[gpu["pci"]], "label": f"GPU{number}", "index": number}
        gpu |= {
            "minor": number,
            "uuid": f"{gpu['uuid'][:-4]}{number:04d}",
            "serial": f"{number}",
            "module_id": number + 1,
        }
        gpu["p2p"] = {twins[peer]: status for peer, status in (gpu["p2p"] or {}).items()}
        topology["gpus"].append(gpu)
    topology["paths"] += list(_paths(topology["paths"], twins))
    for gpu in topology["gpus"]:
        ok = next(iter((gpu["p2p"] or {}).values()), None)
        gpu["p2p"] = ok and {other["id"]: ok for other in topology["gpus"] if other is not gpu}
    for rows in (topology["pci"], topology["gpus"]):
        rows.sort(key=lambda row: row["id"])
    return msgspec.convert(whole, Report)


def _twin_address(place: str) -> str:
    """The same bus, another device number."""
    bus, _, rest = place.rpartition(":")
    return f"{bus}:{int(rest[:2], 16) + 16:02x}{rest[2:]}"


def _paths(paths: list[dict[str, Any]], twins: dict[str, str]) -> Any:
    """The paths of the twins, and between each GPU and its twin."""
    for path in paths:
        ends = {path["a"], path["b"]} & twins.keys()
        for chosen in ({end} for end in ends):
            yield _replace_ends(path, {old: twins[old] for old in chosen})
        if len(ends) == 2:
            yield _replace_ends(path, {old: twins[old] for old in ends})
    between = next(path for path in paths if {path["a"], path["b"]} <= twins.keys())
    for old, new in twins.items():
        yield {**between, "a": old, "b": new, "pcie_kind": "PIX", "hops": []}


def _replace_ends(path: dict[str, Any], other: dict[str, str]) -> dict[str, Any]:
    copy = _copy(path)
    for end in ("a", "b", "limiting"):
        copy[end] = other.get(copy[end], copy[end])
    return copy


def _copy(row: dict[str, Any]) -> dict[str, Any]:
    copy: dict[str, Any] = json.loads(json.dumps(row))
    return copy
