"""Saved outputs of ethtool, found by the names of the interfaces that the source shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from probes.asking import Asking
from probes.ethtool import text as ethtool_text
from probes.ethtool.probe import Ethernet, EthtoolFacts
from probes.host.interface import Absent, Host
from probes.probe import Reading
from probes.visible_interfaces import interfaces

T = TypeVar("T")


def read_saved(host: Host) -> Reading:
    """What was saved of every interface. Raises Absent where nothing was."""
    asking = Asking(host)
    found = []
    for name in interfaces(asking):
        driver = said(asking, ethtool_text.parse_driver, "ethtool", "-i", name)
        each = Ethernet(
            name=name,
            pause=said(asking, ethtool_text.parse_pause, "ethtool", "-a", name),
            fec=said(asking, ethtool_text.parse_fec, "ethtool", "--show-fec", name),
            modes=said(asking, ethtool_text.parse_settings, "ethtool", name),
            counters=said(asking, ethtool_text.parse_statistics, "ethtool", "-S", name),
            driver=driver.driver if driver else None,
            version=driver.version if driver else None,
            firmware=driver.firmware if driver else None,
        )
        if each != Ethernet(name):
            found.append(each)
    if not found:
        raise Absent("no saved output of ethtool")
    return Reading(EthtoolFacts(tuple(found)), asking.sources, asking.missing)


def said(asking: Asking, parse: Callable[[str], T | None], *argv: str) -> T | None:
    """What a saved output says; None where there is none, or where it says nothing."""
    text = asking.output(*argv) if asking.host.has_output(*argv) else None
    return parse(text) if text else None
