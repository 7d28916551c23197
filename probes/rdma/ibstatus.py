"""Parses the output of `ibstatus` (infiniband-diags): a paragraph a port, values as sysfs prints them."""

from __future__ import annotations

import re

from probes.rdma import normalize as rdma_words
from probes.rdma.facts import Gid, RdmaDevice, RdmaPort
from probes.rdma.normalize import Parsed
from probes.text import Unparsable

_HEADER = re.compile(rf"[Ii]nfini[Bb]and device '({rdma_words.NAME})' port ([0-9]{{1,3}}) status:")


def parse_ibstatus(text: str) -> Parsed:
    """Every port that the text names, by device. Raises Unparsable without any.

    >>> parse_ibstatus("Infiniband device 'mlx5_0' port 1 status:\\n\\trate:\\t\\t 100 Gb/sec (4X EDR)\\n"
    ...                "\\tlink_layer:\\t InfiniBand\\n").devices[0].ports[0].rate_text
    '100 Gb/sec (4X EDR)'
    """
    paragraphs = _paragraphs(text)
    if not paragraphs:
        raise Unparsable("ibstatus: no line \"Infiniband device '...' port N status:\"")
    ports: dict[str, list[RdmaPort]] = {}
    for (name, number), said in sorted(paragraphs.items()):
        ports.setdefault(name, []).append(_port(number, said))
    devices = [RdmaDevice(name, software=rdma_words.is_software(name), ports=tuple(of)) for name, of in ports.items()]
    cut = [
        f"ibstatus: {name} port {number} is cut off"
        for (name, number), said in paragraphs.items()
        if rdma_words.link_layer(said.get("link_layer")) is None
    ]
    return Parsed(tuple(devices), tuple(cut))


def _paragraphs(text: str) -> dict[tuple[str, int], dict[str, str]]:
    paragraphs: dict[tuple[str, int], dict[str, str]] = {}
    said: dict[str, str] | None = None
    lines, rest = rdma_words.whole_lines(text)
    for line in [*lines, *_if_last_of_port(rest)]:
        bare = line.strip()
        if match := _HEADER.fullmatch(bare):
            said = paragraphs[match[1], int(match[2])] = {}
        elif said is not None:
            key, colon, value = bare.partition(":")
            if colon:
                said.setdefault(key.strip(), value.strip())
    return paragraphs


def _if_last_of_port(line: str) -> list[str]:
    """The unended last line, where it is the one that ends a port and is itself whole."""
    key, _, value = line.strip().partition(":")
    return [line] if key == "link_layer" and rdma_words.link_layer(value) else []


def _port(number: int, said: dict[str, str]) -> RdmaPort:
    default = rdma_words.gid(said.get("default gid"))
    return RdmaPort(
        port=number,
        link_layer=rdma_words.link_layer(said.get("link_layer")),
        state=rdma_words.state(said.get("state")),
        phys_state=rdma_words.physical_state(said.get("phys state")),
        rate_text=said.get("rate") or None,
        lid=rdma_words.number(said.get("base lid")),
        sm_lid=rdma_words.number(said.get("sm lid")),
        gids=(Gid(0, default),) if default else (),
    )
