"""Parses the output of `rdma link` (iproute2): a line a port."""

from __future__ import annotations

import re
from itertools import pairwise

from probes.rdma import normalize as rdma_words
from probes.rdma.facts import RdmaDevice, RdmaPort
from probes.rdma.normalize import Parsed
from probes.text import Unparsable

_LINK = re.compile(rf"(?:link|[0-9]{{1,4}}/[0-9]{{1,4}}:)\s+({rdma_words.NAME})/([0-9]{{1,4}}):?(?:\s|$)")
_KEYS = frozenset({"state", "physical_state", "netdev", "lid", "sm_lid"})


def parse_rdma_link(text: str) -> Parsed:
    """Every port that the text names, by device. Raises Unparsable without any.

    >>> parse_rdma_link("link roceo1/1 state ACTIVE physical_state LINK_UP netdev eno1\\n").devices[0].ports[0].netdevs
    ('eno1',)
    >>> parse_rdma_link("link mlx5_0/1 subnet_prefix fe80:0000:0000:0000 lid 7 sm_lid 1 lmc 0 state INIT "
    ...                 "physical_state LINK_UP\\n").devices[0].ports[0].lid
    7
    """
    ports: dict[str, dict[int, RdmaPort]] = {}
    cut = []
    for line in _unwrapped(text):
        match = _LINK.match(line)
        if not match:
            continue
        name, number = match[1], int(match[2])
        port = _port(number, line[match.end() :].split())
        ports.setdefault(name, {})[number] = port
        if port.state is None or port.phys_state is None:
            cut.append(f"rdma link: {name}/{number} is cut off")
    if not ports:
        raise Unparsable('rdma link: no line "link DEVICE/PORT ..."')
    devices = [
        RdmaDevice(name, software=rdma_words.is_software(name), ports=tuple(port for _, port in sorted(of.items())))
        for name, of in ports.items()
    ]
    return Parsed(tuple(devices), tuple(cut))


def _unwrapped(text: str) -> list[str]:
    """One line a link: mail programs wrap them, and `-d` prints capabilities below. A blank line ends a link."""
    whole: list[list[str]] = []
    open_ = False
    for line in text.splitlines():
        bare = line.strip()
        if _LINK.match(bare):
            whole.append([bare])
            open_ = True
        elif not bare:
            open_ = False
        elif open_:
            whole[-1].append(bare)
    return [" ".join(parts) for parts in whole]


def _port(number: int, words: list[str]) -> RdmaPort:
    said: dict[str, str] = {}
    for key, value in pairwise(words):
        if key in _KEYS and value not in _KEYS:
            said.setdefault(key, value)
    return RdmaPort(
        port=number,
        link_layer=rdma_words.link_layer("InfiniBand") if "subnet_prefix" in words else None,  # no other port has one
        state=rdma_words.state(said.get("state")),
        phys_state=rdma_words.physical_state(said.get("physical_state")),
        lid=rdma_words.number(said.get("lid")),
        sm_lid=rdma_words.number(said.get("sm_lid")),
        netdevs=(said["netdev"],) if "netdev" in said else (),
    )
