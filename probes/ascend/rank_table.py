"""Rank tables of HCCL: which device of which server has which address (HCCL manual, cluster_info_config).

Versions 1.0 and 1.2 have servers, the oldest one groups; 2.0 (Ascend 950) has ranks, which name no server. Tables that
people copied from the manual have // remarks.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from probes.named_tuple import NamedTuple
from probes.text import ParseError, lazy_pattern

MOST_DEVICES = 4096
_REMARK = lazy_pattern(r'("(?:[^"\\\n]|\\.){0,4000}")|//[^\n]*')


class RankDevice(NamedTuple):
    """One device of a table."""

    server: str
    npu: int
    address: str | None


def parse_rank_table(text: str) -> list[RankDevice]:
    """The devices of all servers. Raises ParseError.

    >>> devices = '[{"device_id": "1", "device_ip": "10.0.0.2"}]'
    >>> parse_rank_table(f'{{"server_list": [{{"server_id": "n0", "device": {devices}}}]}}')
    [RankDevice(server='n0', npu=1, address='10.0.0.2')]
    """
    try:
        table = json.loads(_REMARK.sub(lambda match: match[1] or "", text))
    except (ValueError, RecursionError) as why:
        raise ParseError(f"no JSON: {str(why)[:80]}") from None
    servers = list(_servers(table))
    if not servers:
        known = isinstance(table, dict) and isinstance(table.get("rank_list"), list)
        raise ParseError(
            "a rank table of version 2.0, which names no server" if known else "no servers of a rank table"
        )
    return [device for server in servers for device in _devices(server)][:MOST_DEVICES]


def _servers(table: Any) -> Iterator[dict[str, Any]]:
    groups = table.get("group_list") if isinstance(table, dict) else None
    holders = [*(groups if isinstance(groups, list) else ()), table]
    for holder in holders:
        for name in ("server_list", "instance_list"):
            value = holder.get(name) if isinstance(holder, dict) else None
            yield from (server for server in (value if isinstance(value, list) else ()) if isinstance(server, dict))


def _devices(server: dict[str, Any]) -> Iterator[RankDevice]:
    rows = server.get("device", server.get("devices"))
    for row in rows if isinstance(rows, list) else ():
        number = str(row.get("device_id", "")) if isinstance(row, dict) else ""
        if number.isascii() and number.isdigit() and len(number) <= 3:
            address = row.get("device_ip")
            name = str(server.get("server_id", ""))[:100]
            yield RankDevice(name, int(number), address[:60] if isinstance(address, str) and address else None)
