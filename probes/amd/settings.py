"""What RCCL asks of the kernel before it lets NICs reach GPU memory: the options that it tests itself.

RCCL: src/init.cc and src/misc/rocmwrap.cc (numa_balancing, CONFIG_PCI_P2PDMA, CONFIG_DMABUF_MOVE_NOTIFY, memory_peers).
"""

from __future__ import annotations

import re

from probes.host.interface import Denied, ReadError
from probes.host_reader import HostReader
from probes.text import lazy_pattern

BALANCING = "/proc/sys/kernel/numa_balancing"
RELEASE = "/proc/sys/kernel/osrelease"
OPTIONS = ("CONFIG_PCI_P2PDMA", "CONFIG_DMABUF_MOVE_NOTIFY")
PEERS = ("/sys/kernel/mm/memory_peers/amdkfd/version", "/sys/kernel/memory_peers/amdkfd/version")
_CONFIG_LIMIT_BYTES = 1 << 20
_RELEASE = lazy_pattern(r"[A-Za-z0-9._+~-]{1,80}")


def read_settings(reader: HostReader) -> dict[str, str]:
    """Settings by name; what could not be read is left out."""
    settings: dict[str, str] = {}
    balancing = reader.text(BALANCING)
    if balancing is not None and re.fullmatch("[0-9]{1,3}", balancing):
        settings["numa_balancing"] = balancing
    release = reader.text(RELEASE)
    if release and _RELEASE.fullmatch(release):
        settings |= _options(reader, f"/boot/config-{release}")
    peers = next((path for path in PEERS if reader.text(path) is not None), None)
    return settings | ({"peer_memory": peers} if peers else {})


def parse_options(text: str) -> dict[str, str]:
    """Of the configuration that a kernel was built with, the options that matter; "n" where one is not set.

    >>> parse_options("CONFIG_PCI_P2PDMA=y\\n# CONFIG_DMABUF_MOVE_NOTIFY is not set\\n")
    {'CONFIG_PCI_P2PDMA': 'y', 'CONFIG_DMABUF_MOVE_NOTIFY': 'n'}
    """
    options = {}
    for option in OPTIONS:
        match = re.search(rf"^{option}=([ymn])$", text, re.MULTILINE)
        options[option] = match[1] if match else "n"
    return options


def _options(reader: HostReader, path: str) -> dict[str, str]:
    try:
        text = reader.host.read(path, _CONFIG_LIMIT_BYTES).decode("ascii", "replace")
    except Denied as why:
        reader.gap(why.reason)
        return {}
    except ReadError:
        return {}
    if "CONFIG_PCI=" not in text:
        return {}
    reader.answered(path)
    return parse_options(text)
