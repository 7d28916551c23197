"""Parses the output of `ibdev2netdev` (MLNX_OFED, DOCA), plain or with -v: which interface a port has."""

from __future__ import annotations

import re

from probes.rdma import normalize as rdma_words
from probes.rdma.facts import RdmaDevice, RdmaPort
from probes.rdma.normalize import Parsed
from probes.text import Unparsable

_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_NETDEV = re.compile(r"(\S{1,64})\s+\((?:Up|Down)\)")
_ARROW = "==>"


def parse_ibdev2netdev(text: str) -> Parsed:
    """Devices with the interface of each port. What it prints in the end is the interface's state: it is left out,
    because the port has one of its own. Raises Unparsable without any line of it.

    >>> parse_ibdev2netdev("mlx5_1 port 1 ==> bond0 (Up)\\n").devices[0].ports[0].netdevs
    ('bond0',)
    """
    addresses: dict[str, str | None] = {}
    firmware: dict[str, str | None] = {}
    ports: dict[str, dict[int, RdmaPort]] = {}
    cut = []
    for line in text.splitlines():
        left, arrow, right = line.partition(_ARROW)
        words = left.split()
        address = words.pop(0) if words and _ADDRESS.fullmatch(words[0]) else None
        at = _port_at(words)
        if not arrow or at is None or not re.fullmatch(rdma_words.NAME, words[0]):
            continue
        name, number, interface = words[0], int(words[at + 1]), _NETDEV.fullmatch(right.strip())
        addresses[name] = address
        firmware[name] = words[words.index("fw") + 1] if "fw" in words[:at] else None
        ports.setdefault(name, {})[number] = RdmaPort(number, netdevs=(interface[1],) if interface else ())
        if not interface and right.strip() not in ("(Up)", "(Down)"):
            cut.append(f"ibdev2netdev: the line of {name} port {number} is cut off")
    if not ports:
        raise Unparsable('ibdev2netdev: no line "DEVICE port N ==> INTERFACE (Up)"')
    return Parsed(
        tuple(
            RdmaDevice(
                name,
                address=addresses[name],
                firmware=firmware[name],
                software=rdma_words.is_software(name),
                ports=tuple(port for _, port in sorted(of.items())),
            )
            for name, of in ports.items()
        ),
        tuple(cut),
    )


def _port_at(words: list[str]) -> int | None:
    """Where "port N" stands, after the name."""
    for at in range(1, len(words) - 1):
        if words[at] == "port" and re.fullmatch(r"[0-9]{1,3}", words[at + 1]):
            return at
    return None
