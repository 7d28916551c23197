"""What `ifconfig` prints (net-tools, of both forms): interfaces, their state, and what they counted.

Grammar: net-tools ifconfig.c and lib/interface.c, 1.60 and 2.x.
"""

from __future__ import annotations

from probes.netdev.rtnetlink import ADMIN_UP, NetlinkLink
from probes.text import ParseError, lazy_pattern

_HEAD = lazy_pattern(r"(?P<name>[\w.-]{1,40}): flags=\d{1,8}<(?P<flags>[A-Z0-9_,-]*)> {1,4}mtu (?P<mtu>\d{1,6})[ \t]*")
_OLD_HEAD = lazy_pattern(r"(?P<name>[\w.-]{1,40}) {1,16}Link encap:(?P<kind>\w{3,20})\b.*")
_OLD_FLAGS = lazy_pattern(r"[ \t]+(?P<flags>(?:[A-Z]{2,16} {1,2}){1,12})MTU:(?P<mtu>\d{1,6})\b.*")
_MAC = lazy_pattern(r".*?\b(?:ether|HWaddr) (?P<mac>(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2})\b.*")
_COUNTS = lazy_pattern(r"[ \t]+(?P<way>[RT]X) (?P<rest>(?:packets|errors)[ :]\d{1,20}\b.*)")
_COUNT = lazy_pattern(r"\b(packets|bytes|errors|dropped|overruns|frame|carrier)[ :](\d{1,20})\b")
_NAMES = {"overruns": "fifo_errors", "frame": "frame_errors", "carrier": "carrier_errors"}
_MOST_LINKS = 1000


def parse_ifconfig(text: str) -> tuple[NetlinkLink, ...]:
    """Every interface, in the order printed. Raises ParseError where there is none.

    >>> text = "ens1: flags=4163<UP,RUNNING>  mtu 9000\\n        RX errors 12  dropped 0  overruns 0  frame 12\\n"
    >>> link, = parse_ifconfig(text)
    >>> link.name, link.mtu, link.operstate, link.statistics["rx_errors"], link.statistics["rx_frame_errors"]
    ('ens1', 9000, 'up', 12, 12)
    """
    links: list[NetlinkLink] = []
    for line in text.splitlines():
        if (head := _HEAD.fullmatch(line)) and len(links) < _MOST_LINKS:
            links.append(_with_flags(NetlinkLink(name=head["name"]), head["flags"].split(","), head["mtu"]))
        elif (head := _OLD_HEAD.fullmatch(line)) and len(links) < _MOST_LINKS:
            links.append(NetlinkLink(name=head["name"]))
        elif links and (flags := _OLD_FLAGS.fullmatch(line)):
            links[-1] = _with_flags(links[-1], flags["flags"].split(), flags["mtu"])
        elif links and (counts := _COUNTS.fullmatch(line)):
            way = counts["way"].lower()
            found = {f"{way}_{_NAMES.get(name, name)}": int(count) for name, count in _COUNT.findall(counts["rest"])}
            links[-1] = links[-1]._replace(statistics={**(links[-1].statistics or {}), **found})
        if links and (mac := _MAC.fullmatch(line)):
            links[-1] = links[-1]._replace(mac=mac["mac"].lower(), type=1)
    if not links:
        raise ParseError("ifconfig printed no interface")
    return tuple(links)


def _with_flags(link: NetlinkLink, flags: list[str], mtu: str) -> NetlinkLink:
    up, running = "UP" in flags, "RUNNING" in flags
    state = "up" if running else "down"
    return link._replace(flags=ADMIN_UP if up else 0, mtu=int(mtu), operstate=state, carrier=running if up else None)
