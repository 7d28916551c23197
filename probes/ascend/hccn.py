"""What is kept about NPUs and their RoCE ports: /etc/hccn.conf, versions, device nodes; saved outputs, rank tables.

The host has no interface of these ports: the NIC is inside the NPU. /etc/hccn.conf (root) holds only what was set: a
missing key is the firmware's default. Keys: hicann/driver, src/custom/network/hccn, cfg.c and tool_cmd.c.

A rank table of HCCL states which device of which server has which address (HCCL manual, cluster_info_config). Versions
1.0 and 1.2 have servers, the oldest one groups; 2.0 (Ascend 950) has ranks, which name no server. Tables that people
copied from the manual have // remarks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from probes.ascend.hccn_tool import MOST_NPUS, PortOutput, parse_hccn
from probes.ascend.npu import find_device_nodes
from probes.host.commands import HCCN, HCCN_CONF, HCCN_OF_NPU, RANK_TABLE
from probes.host.interface import Absent, Host, ReadError
from probes.host_reader import HostReader
from probes.named_tuple import NamedTuple
from probes.probe import Reading
from probes.text import ParseError, lazy_pattern, parse_digits

CONFIGURATION = "/etc/hccn.conf"
DRIVER, FIRMWARE = "/usr/local/Ascend/driver/version.info", "/usr/local/Ascend/firmware/version.info"
_LINE = lazy_pattern(r"[ \t]*([A-Za-z][A-Za-z0-9_]{1,39}?)_(\d{1,2})[ \t]*=([^\n]{0,240})")
_VERSION = lazy_pattern(r"^Version=([\w.]{1,40})$", re.MULTILINE)
_LIMIT_BYTES = 64 << 10


class HccnFacts(NamedTuple):
    """`keys`: of /etc/hccn.conf by NPU. `configuration`: read | empty | why it could not be read."""

    keys: Mapping[int, Mapping[str, str]]
    configuration: str | None = None
    outputs: tuple[PortOutput, ...] = ()
    device_nodes: int | None = None
    driver_version: str | None = None
    firmware_version: str | None = None
    ranks: tuple[RankDevice, ...] = ()


def read(host: Host) -> Reading:
    """Everything that is there. Raises Absent where nothing is."""
    reader = HostReader(host)
    keys, configuration = _configuration(reader)
    nodes = find_device_nodes(reader)
    facts = HccnFacts(
        keys=keys,
        configuration=configuration,
        outputs=_merge(_saved_ports(reader)) if not host.live else (),
        device_nodes=None if nodes is None else len(nodes),
        driver_version=_version(reader.text(DRIVER)),
        firmware_version=_version(reader.text(FIRMWARE)),
        ranks=()
        if host.live
        else tuple(reader.parsed(reader.saved(*RANK_TABLE), parse_rank_table, "rank table: ") or ()),
    )
    if not (facts.outputs or facts.ranks or facts.device_nodes or facts.driver_version or keys):
        raise Absent(reader.missing or f"neither {CONFIGURATION} nor device nodes nor saved outputs of hccn_tool")
    return Reading(facts, reader.sources, reader.missing)


def parse_hccn_conf(text: str) -> dict[int, dict[str, str]]:
    """Keys and values by the physical id of the NPU; of a repeated key the last one.

    >>> parse_hccn_conf("address_0=10.0.0.1\\nbitmap_0=0,0,0,0,1,0,0,0\\n# x\\nIPv6address_1=::1\\n")
    {0: {'address': '10.0.0.1', 'bitmap': '0,0,0,0,1,0,0,0'}, 1: {'IPv6address': '::1'}}
    """
    addresses_by_npu: dict[int, dict[str, str]] = {}
    for line in text.splitlines()[:4096]:
        match = _LINE.fullmatch(line)
        value = match[3].strip() if match else ""
        if match and value and int(match[2]) < MOST_NPUS:
            addresses_by_npu.setdefault(int(match[2]), {})[match[1]] = value
    return dict(sorted(addresses_by_npu.items()))


def _configuration(reader: HostReader) -> tuple[dict[int, dict[str, str]], str]:
    if not reader.host.live and reader.host.has_output(*HCCN_CONF):
        text = reader.output(*HCCN_CONF) or ""
    else:
        try:
            text = reader.host.read(CONFIGURATION, _LIMIT_BYTES).decode("utf-8", "replace")
        except ReadError as why:
            if not isinstance(why, Absent):
                reader.gap(why.reason)
            return {}, why.reason
        reader.answered(CONFIGURATION)
    keys = parse_hccn_conf(text)
    return keys, "read" if keys else "empty"


def _version(text: str | None) -> str | None:
    match = _VERSION.search(text or "")
    return match[1] if match else None


def _saved_ports(reader: HostReader) -> Iterable[PortOutput]:
    host = reader.host
    numbers = {parse_digits(text, 2) for argv in HCCN_OF_NPU for text in host.saved_arguments(*argv)}
    for number in sorted(number for number in numbers if number is not None and number < MOST_NPUS):
        for argv in HCCN_OF_NPU:
            yield from _parse(reader, (argv[0], "-i", str(number), *argv[2:]), number)
    for port in _parse(reader, HCCN, None):
        if port.npu is not None:
            yield port


def _parse(reader: HostReader, argv: tuple[str, ...], npu: int | None) -> list[PortOutput]:
    return reader.parsed(reader.saved(*argv), lambda text: parse_hccn(text, npu), f"{' '.join(argv)}: ") or []


def _merge(ports: Iterable[PortOutput]) -> tuple[PortOutput, ...]:
    merged: dict[int | None, PortOutput] = {}
    for port in ports:
        before = merged.setdefault(port.npu, port)
        filled = (own if own is not None else more for own, more in zip(before, port, strict=True))
        merged[port.npu] = PortOutput._make(filled)._replace(
            counters={**(port.counters or {}), **(before.counters or {})} or None
        )
    return tuple(merged.values())


MOST_DEVICES = 4096
_REMARK = lazy_pattern(r'("(?:[^"\\\n]|\\.)*"?)|//[^\n]*')  # a string without an end goes on to that of the line


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
        number = parse_digits(str(row.get("device_id")), 3) if isinstance(row, dict) else None
        if number is not None:
            address = row.get("device_ip")
            name = str(server.get("server_id", ""))[:100]
            yield RankDevice(name, number, address[:60] if isinstance(address, str) and address else None)
