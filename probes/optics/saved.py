"""Saved outputs of `ethtool -m`, found by the names of the interfaces that the source shows."""

from __future__ import annotations

from probes.asking import Asking
from probes.ethtool.saved import said
from probes.host.interface import Absent, Host
from probes.optics.ethtool_text import parse
from probes.optics.probe import OpticsFacts, Socket
from probes.probe import Reading
from probes.visible_interfaces import interfaces


def read_saved(host: Host) -> Reading:
    """The modules whose memory was printed. Raises Absent where none was."""
    asking = Asking(host)
    modules = ((name, said(asking, parse, "ethtool", "-m", name)) for name in interfaces(asking))
    found = tuple(Socket(name, module) for name, module in modules if module)
    if not found:
        raise Absent("no saved output of ethtool -m")
    return Reading(OpticsFacts(found), asking.sources, asking.missing)
