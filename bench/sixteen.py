"""A healthy machine of 16 GPUs and 18 NICs: one of 8 and 18, with a second GPU beside each, behind the same switch."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from agent.model.report import Report


def sixteen(report: Report) -> Report:
    """Of a report with 8 GPUs below switches. The second of each pair has its own place, identity, links and paths."""
    whole = msgspec.to_builtins(report)
    topology = whole["topology"]
    twins = {gpu["id"]: _beside(gpu["id"]) for gpu in topology["gpus"]}
    functions = {row["id"]: row for row in topology["pci"]}
    for old, new in twins.items():
        port = functions[functions[old]["parent"]]
        topology["pci"] += [
            {**port, "id": _beside(port["id"])},
            {**functions[old], "id": new, "parent": _beside(port["id"]), "serial": None},
        ]
    for number, gpu in enumerate([_copied(each) for each in topology["gpus"]], len(twins)):
        gpu |= {"id": twins[gpu["id"]], "pci": twins[gpu["pci"]], "label": f"GPU{number}", "index": number}
        gpu |= {
            "minor": number,
            "uuid": f"{gpu['uuid'][:-4]}{number:04d}",
            "serial": f"{number}",
            "module_id": number + 1,
        }
        gpu["p2p"] = {twins[peer]: said for peer, said in (gpu["p2p"] or {}).items()}
        topology["gpus"].append(gpu)
    topology["paths"] += list(_paths(topology["paths"], twins))
    for gpu in topology["gpus"]:
        ok = next(iter((gpu["p2p"] or {}).values()), None)
        gpu["p2p"] = ok and {other["id"]: ok for other in topology["gpus"] if other is not gpu}
    for rows in (topology["pci"], topology["gpus"]):
        rows.sort(key=lambda row: row["id"])
    return msgspec.convert(whole, Report)


def _beside(place: str) -> str:
    """The same bus, another device number."""
    bus, _, rest = place.rpartition(":")
    return f"{bus}:{int(rest[:2], 16) + 16:02x}{rest[2:]}"


def _paths(paths: list[dict[str, Any]], twins: dict[str, str]) -> Any:
    """Those of the second of each pair, and of the two with each other."""
    for path in paths:
        ends = {path["a"], path["b"]} & twins.keys()
        for chosen in ({end} for end in ends):
            yield _moved(path, {old: twins[old] for old in chosen})
        if len(ends) == 2:
            yield _moved(path, {old: twins[old] for old in ends})
    between = next(path for path in paths if {path["a"], path["b"]} <= twins.keys())
    for old, new in twins.items():
        yield {**between, "a": old, "b": new, "pcie_kind": "PIX", "hops": []}


def _moved(path: dict[str, Any], other: dict[str, str]) -> dict[str, Any]:
    made = _copied(path)
    for end in ("a", "b", "limiting"):
        made[end] = other.get(made[end], made[end])
    return made


def _copied(row: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(json.dumps(row))
    return made
