"""Lines of HCCL that tie ranks to hosts and NPUs, and its table of links that were not established."""

from __future__ import annotations

import re

from agent.job.evidence import LinkError
from agent.job.file_state import FileState
from agent.job.lines import LogLine

_TLS = re.compile(
    r"\|\s{0,8}(?P<peer>[\d.a-fA-F:]{3,45})\((?P<peer_rank>\d{1,7})\)\s{0,8}\|[^|]{0,30}\|\s{0,8}(?P<own>[\d.a-fA-F:]{3,45})"
    r"\((?P<own_rank>\d{1,7})\)\s{0,8}\|[^|]{0,30}\|[^|]{0,30}\|[^|]{0,30}\|\s{0,8}(?P<tls>\w{1,20})"
)
_KEY_INFO = re.compile(
    r"\[LocalRank Key Info\]userRank\[(?P<rank>\d{1,7})\] hostIp\[(?P<host>[^\]]{1,60})\] "
    r"devicePhyId\[(?P<device>\d{1,4})\]"
    r" server\[[^\]]{0,80}\] deviceIp\[(?P<address>[^\]]{0,60})\]"
)
_ROOT_INFO = re.compile(r"Inner:ranks\[(?P<ranks>\d{1,7})\], rank\[(?P<rank>\d{1,7})\]")
_PLOG = re.compile(
    r"\[(?P<level>ERROR|WARNING|INFO|EVENT|DEBUG)\] ?(?:HCCL|HCCP|ROCE|RUNTIME|TDT|DRV)\((?P<pid>\d{1,9}),"
)


def read_hccl(state: FileState, line: LogLine) -> None:
    """Ranks, hosts and NPUs of a line of HCCL."""
    evidence = state.evidence
    form = _PLOG.search(line.text)
    if form is None:
        return
    state.found.add("hccl")
    evidence.library = evidence.library or ("HCCL", None)
    pid = int(form["pid"])
    if (match := _KEY_INFO.search(line.text)) is not None:
        rank, host = int(match["rank"]), match["host"]
        process = evidence.ranks.process(host, pid)
        process.rank, process.cuda, process.world = rank, int(match["device"]), evidence.ranks.world
        evidence.ranks.host_of[rank], evidence.ranks.local_of[rank] = host, int(match["device"])
        evidence.ranks.device_addresses[match["address"]] = rank
        evidence.ranks.seen.add(rank)
    elif (match := _ROOT_INFO.search(line.text)) is not None:
        evidence.ranks.world = max(evidence.ranks.world, int(match["ranks"]))
    elif (match := _TLS.search(line.text)) is not None:
        own, peer = int(match["own_rank"]), int(match["peer_rank"])
        if len(evidence.links) < 50_000:
            evidence.links.append(LinkError(own, peer, match["tls"].upper(), line))
        evidence.ranks.device_addresses.setdefault(match["own"], own)
        evidence.ranks.device_addresses.setdefault(match["peer"], peer)
