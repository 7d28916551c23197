"""The daemons of the NVLink fabric: the version of the fabric manager, and how IMEX is set up on this node.

NVIDIA Fabric Manager user guide (`nv-fabricmanager --version`, /var/log/fabricmanager.log) and IMEX guide
(/etc/nvidia-imex/nodes_config.cfg, one address a line; `nvidia-imex-ctl -q`).
"""

from __future__ import annotations

import re

from probes.asking import Asking
from probes.host.interface import READ_LIMIT_BYTES

LOG = "/var/log/fabricmanager.log"
NODES_CONFIG = "/etc/nvidia-imex/nodes_config.cfg"
_VERSION = re.compile(
    r"Fabric Manager version(?: is)?[ \t]*(?::[ \t]*)?(\d{1,4}(?:\.\d{1,4}){1,3})(?![\d.])", re.IGNORECASE | re.ASCII
)
_STATE = re.compile(r"[A-Z][A-Z_]{1,39}", re.ASCII)


def fabric_manager_version(asking: Asking) -> str | None:
    """What the installed program says of itself; else what it wrote when it last started. None: neither."""
    said = parse_version(asking.output("nv-fabricmanager", "--version") or "")
    if said:
        return said
    log = asking.text(LOG, READ_LIMIT_BYTES) or ""
    return parse_version(log) if len(log) < READ_LIMIT_BYTES - 4 else None  # cut: its last start is not in it


def parse_version(text: str) -> str | None:
    """The last version that a text names.

    >>> parse_version("Fabric Manager version is : 570.124.06")
    '570.124.06'
    >>> parse_version("[INFO] Fabric Manager version 535.54.03 is running with the following configuration options")
    '535.54.03'
    """
    found = _VERSION.findall(text)
    return found[-1] if found else None


def imex(asking: Asking, running: bool) -> dict[str, str]:
    """How many nodes IMEX is told of ("0": none), and the state of the local daemon where it runs. What is not known
    is left out."""
    said = {}
    names = asking.names(NODES_CONFIG.rpartition("/")[0])
    if names is not None:
        text = asking.text(NODES_CONFIG, READ_LIMIT_BYTES) if NODES_CONFIG.rpartition("/")[2] in names else ""
        if text is not None:
            said["nodes_config"] = str(parse_nodes(text))
    state = parse_state(asking.output("nvidia-imex-ctl", "-q") or "") if running else None
    if state:
        said["node"] = state
    return said


def parse_nodes(text: str) -> int:
    r"""How many nodes a configuration names.

    >>> parse_nodes("# nodes\n10.0.0.1\n\n10.0.0.2\n")
    2
    """
    lines = (line.strip() for line in text.splitlines())
    return sum(bool(line) and not line.startswith("#") for line in lines)


def parse_state(text: str) -> str | None:
    r"""The daemon's state, a word alone on its line; None for anything else.

    >>> parse_state("READY\n"), parse_state("Error: no such daemon\n")
    ('READY', None)
    """
    return next((line.strip() for line in text.splitlines()[:20] if _STATE.fullmatch(line.strip())), None)
