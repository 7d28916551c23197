"""What `ip -d link` prints (with or without -s, -o not); `ip link` and `ip address` (with or without -br),
`ifconfig` and the metrics of node_exporter, which state no kinds: interfaces where neither netlink nor sysfs shows
them.

Grammar: iproute2's ip/ipaddress.c and iplink_*.c, 4.x to 6.x; net-tools' ifconfig.c and lib/interface.c, 1.60 and 2.x.
"""

from __future__ import annotations

import re
from contextlib import suppress

from probes.host_reader import HostReader
from probes.netdev.rtnetlink import ADMIN_UP, LOOPBACK, NetlinkLink
from probes.text import ParseError, first_line, lazy_pattern, parse_digits, require

_IFCONFIG: tuple[str, ...] = ("ifconfig",)
_EXPORTER: tuple[str, ...] = ("node_exporter",)
SAVED = (("ip", "-s", "-d", "link"), ("ip", "-d", "link"), ("ip", "link"), _IFCONFIG, _EXPORTER)

_HEAD = lazy_pattern(r"(\d{1,9}): ([^\s:@]{1,40}(?::[^\s:@]{1,20})?)(?:@([^\s:]{1,40}))?: <([A-Z0-9_,-]*)>([^\n]*)")
_BRIEF = lazy_pattern(  # ip -br link
    r"([^\s:@]{1,40})(?:@([^\s:]{1,40}))?[ \t]{1,40}([A-Z]{2,16})[ \t]{1,40}([0-9a-f:]{17,95})[ \t]{1,8}"
    r"<([A-Z0-9_,-]{2,200})>[ \t]*"
)
_BRIEF_ADDRESS = lazy_pattern(  # ip -br address
    r"([^\s:@]{1,40})(?:@([^\s:]{1,40}))?[ \t]{1,40}(UP|DOWN|UNKNOWN|DORMANT|LOWERLAYERDOWN)"
    r"((?:[ \t]{1,40}[0-9a-f:.]{2,45}(?:/\d{1,3})?(?: metric \d{1,6})?){0,32})[ \t]*"
)
_ADDRESS = lazy_pattern(  # of ip, and of both forms of ifconfig
    r"[ \t]+inet6? (?:addr: ?)?(?P<address>[0-9a-f:.]{2,45})(?P<prefix>/\d{1,3})?(?![^\s/])"
    r"(?:[ \t].*?(?:netmask |Mask:)(?P<mask>[\d.]{7,15})|[ \t]+prefixlen (?P<length>\d{1,3}))?.*"
)
# Interfaces whose addresses are read. What software makes (a load balancer, tunnels, containers) has some of others on
# purpose, and these outputs state no kinds
_OF_NIC = lazy_pattern(r"(?:en[opsx]\w*|eth\d\w*|ib\w*|bond\w*|team\w*|rdma\d\w*|roce\w*|rail\w*)(?:\.\d{1,4})?")
_LAYER = lazy_pattern(r"\s+link/([a-z0-9]+)(?: ([0-9a-f:]{2,95}))?(?: |$)")
_TYPES = {"ether": 1, "infiniband": 32, "loopback": LOOPBACK}  # ARPHRD_*
_KINDS = frozenset(
    {"bond", "bridge", "dummy", "geneve", "gre", "gretap", "ifb", "ipip", "ipoib", "ipvlan", "macvlan", "macvtap"}
    | {"netkit", "nlmon", "openvswitch", "sit", "team", "tun", "veth", "vlan", "vrf", "vxlan", "wireguard"}
)
_PCI = lazy_pattern(r"\bparentbus pci parentdev ([0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])(?: |$)")
_WORDS = lazy_pattern(r"\b(mtu|master|state|portname|id|mode|miimon) (\S{1,64})")
_EGRESS = lazy_pattern(r"\begress-qos-map \{ ((?:[0-9]{1,10}:[0-7] ){1,16})\}")
_STATISTICS = lazy_pattern(r"[ \t]{1,12}(RX|TX)( errors)?: {1,12}((?:[a-z]{2,12}[ \t]*){3,8})")
_NUMBERS = lazy_pattern(r"[ \t]{1,40}\d{1,20}(?:[ \t]{1,40}\d{1,20}){2,7}[ \t]*")
_SIZED = lazy_pattern(  # of a second command that chose name and MTU, by values that are hardly anything else
    r"([^\s:@]{1,40}):?[ \t]{1,40}(?:mtu )?(1500|2044|4092|4200|9\d{3}|65520)[ \t]*"
)
_MOST_LINKS, _MOST_LINES = 10_000, 200_000


def saved_links(reader: HostReader) -> dict[str, NetlinkLink]:
    """The interfaces of a saved output, by name; none on a live host, where netlink answers."""
    saved = [argv for argv in SAVED if not reader.host.live and reader.host.has_output(*argv)]
    if not saved:
        return {}
    argv: tuple[str, ...] = saved[0]
    parse = {_IFCONFIG: parse_ifconfig, _EXPORTER: parse_exported}.get(argv, parse_ip_link)
    links = reader.parsed(reader.output(*argv) or None, parse, f"{' '.join(argv)}: ")
    return {link.name: link for link in links or ()}


def parse_ip_link(text: str) -> tuple[NetlinkLink, ...]:
    r"""Every interface, in the order printed. Raises ParseError where there is none.

    >>> link, = parse_ip_link("4: ib0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 4092 qdisc mq state UP mode DEFAULT\n"
    ...     "    link/infiniband 00:00:10:29:fe brd 00:ff promiscuity 0 parentbus pci parentdev 0000:1a:00.0 \n")
    >>> link.name, link.type, link.mtu, link.operstate, link.carrier, link.parent_pci
    ('ib0', 32, 4092, 'up', True, '0000:1a:00.0')
    """
    links: list[NetlinkLink] = []
    columns: list[str] = []  # of the line of numbers that follows
    layer = False  # the line before was the link layer's: what comes now states the kind
    for line in text.splitlines()[:_MOST_LINES]:
        head = _HEAD.fullmatch(line)
        if brief := _BRIEF.fullmatch(line):
            links.append(_brief_link(brief))
        elif brief := _BRIEF_ADDRESS.fullmatch(line):
            name, lower, state, rest = brief.groups()
            links.append(NetlinkLink(name=name, operstate=state.lower(), lower=lower))
            for address in rest.split():
                links[-1] = _with_address(links[-1], address)
        elif head is not None and len(links) < _MOST_LINKS:
            links.append(_link(head))
            layer = False
        elif links and (match := _LAYER.match(line)) is not None:
            links[-1] = _with_layer(links[-1], match, line)
            layer = True
        elif links and (address := _read_address(line)):
            links[-1] = _with_address(links[-1], address)
            layer = False
        elif links and (heading := _STATISTICS.fullmatch(line)):
            columns = [f"{heading[1].lower()}_{_name_counter(word, bool(heading[2]))}" for word in heading[3].split()]
        elif links and columns and _NUMBERS.fullmatch(line):
            counts = dict(zip(columns, map(int, line.split()), strict=False))
            links[-1] = links[-1]._replace(statistics={**(links[-1].statistics or {}), **counts})
            columns = []
        elif layer:
            links[-1] = _with_parent(_with_kind(links[-1], line.split()), line)
            layer = False
        elif links and links[-1].kind == "vlan" and (egress := _EGRESS.search(line)):
            links[-1] = links[-1]._replace(vlan_egress=",".join(egress[1].split()))
        elif links and (sized := _SIZED.fullmatch(line)):
            at = next((at for at, link in enumerate(links) if link.name == sized[1] and link.mtu is None), None)
            if at is not None:
                links[at] = links[at]._replace(mtu=int(sized[2]))
        elif links and " parentbus " in f" {line.strip()}":
            links[-1] = _with_parent(links[-1], line)
    if not links:
        raise ParseError(f"ip printed no interface; it begins with: {first_line(text)}")
    return tuple(links)


def _read_address(line: str) -> str | None:
    """The address in a line, with the length of its prefix.

    >>> _read_address("    inet 10.0.1.7/24 brd 10.0.1.255 scope global ens1")
    '10.0.1.7/24'
    >>> _read_address("        inet 10.0.1.7  netmask 255.255.252.0  broadcast 10.0.3.255")
    '10.0.1.7/22'
    >>> _read_address("          inet6 addr: fe80::1/64 Scope:Link"), _read_address("        inet6 ::1  prefixlen 128")
    ('fe80::1/64', '::1/128')
    """
    match = _ADDRESS.fullmatch(line) if "inet" in line else None
    if match is None:
        return None
    octets = [parse_digits(octet, 3) or 0 for octet in (match["mask"] or "").split(".")]
    length = sum(octet.bit_count() for octet in octets) if match["mask"] else match["length"]
    prefix = match["prefix"] or (f"/{length}" if length is not None else "")
    return f"{match['address']}{prefix}" if prefix else None


def _with_address(link: NetlinkLink, address: str) -> NetlinkLink:
    """The interface with one more address, where it is one of a NIC's and not of the host as a whole."""
    if "/" not in address or address.endswith(("/32", "/128")) or not _OF_NIC.fullmatch(link.name):
        return link
    return link._replace(addresses=(*link.addresses, address))


def _link(head: re.Match[str]) -> NetlinkLink:
    index, name, lower, flags, rest = head.groups()
    states = flags.split(",")
    words = dict(_WORDS.findall(rest))
    up = "UP" in states
    return NetlinkLink(
        name=name,
        index=int(index),
        flags=ADMIN_UP if up else 0,
        mtu=parse_digits(words.get("mtu"), 9),
        operstate=words["state"].lower() if "state" in words else None,
        carrier="LOWER_UP" in states if up else None,
        master=words.get("master"),
        lower=lower if lower != "NONE" else None,
    )


def _brief_link(row: re.Match[str]) -> NetlinkLink:
    name, lower, state, address, flags = row.groups()
    up = "UP" in flags.split(",")
    return NetlinkLink(
        name=name,
        type=_TYPES["loopback"] if "LOOPBACK" in flags else None,
        flags=ADMIN_UP if up else 0,
        operstate=state.lower(),
        carrier="LOWER_UP" in flags.split(",") if up else None,
        mac=address if address.strip("0:") else None,
        lower=lower if lower != "NONE" else None,
    )


def _with_layer(link: NetlinkLink, match: re.Match[str], line: str) -> NetlinkLink:
    address = match[2] if match[2] and match[2].strip("0:") else None
    return _with_parent(link._replace(type=_TYPES.get(match[1]), mac=address), line)


def _with_parent(link: NetlinkLink, line: str) -> NetlinkLink:
    """Words of the link layer's line; of IPoIB and of what has a master the kind comes first, and these behind it."""
    pci, words = _PCI.search(line), dict(_WORDS.findall(line))
    return link._replace(
        port_name=link.port_name or words.get("portname"), parent_pci=link.parent_pci or (pci[1] if pci else None)
    )


def _with_kind(link: NetlinkLink, words: list[str]) -> NetlinkLink:
    if not words or words[0] not in _KINDS:
        return link._replace(lower=None)
    values = dict(_WORDS.findall(" ".join(words[:40])))
    kind = words[0]
    bond = {key: values[key] for key in ("mode", "miimon") if key in values} if kind == "bond" else None
    vlan = parse_digits(values.get("id"), 9) if kind == "vlan" else None
    lower, egress = (link.lower, "") if kind == "vlan" else (None, None)  # a map, if any, comes on the next line
    return link._replace(kind=kind, bond=bond, vlan_id=vlan, lower=lower, vlan_egress=egress)


def _name_counter(column: str, is_error: bool) -> str:
    """The name that rtnetlink gives to a column.

    >>> _name_counter("crc", True), _name_counter("errors", False), _name_counter("window", True)
    ('crc_errors', 'errors', 'window_errors')
    """
    return f"{column}_errors" if is_error else column


_NEW_HEAD = lazy_pattern(
    r"(?P<name>[\w.-]{1,40}): flags=\d{1,8}<(?P<flags>[A-Z0-9_,-]*)> {1,4}mtu (?P<mtu>\d{1,6})[ \t]*"
)
_OLD_HEAD = lazy_pattern(r"(?P<name>[\w.-]{1,40}) {1,16}Link encap:(?P<kind>\w{3,20})\b.*")
_OLD_FLAGS = lazy_pattern(r"[ \t]+(?P<flags>(?:[A-Z]{2,16} {1,2}){1,12})MTU:(?P<mtu>\d{1,6})\b.*")
_MAC = lazy_pattern(r".*?\b(?:ether|HWaddr) (?P<mac>(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2})\b.*")
_UNNAMED = "ethX"  # of lines that a filter left
_COUNTS = lazy_pattern(r"[ \t]*(?P<way>[RT]X) (?P<rest>(?:packets|errors)[ :]\d{1,20}\b.*)")
_COUNT = lazy_pattern(r"\b(packets|bytes|errors|dropped|overruns|frame|carrier)[ :](\d{1,20})\b")
_NAMES = {"overruns": "fifo_errors", "frame": "frame_errors", "carrier": "carrier_errors"}


def parse_ifconfig(text: str) -> tuple[NetlinkLink, ...]:
    """Every interface, in the order printed. Raises ParseError where there is none.

    >>> text = "ens1: flags=4163<UP,RUNNING>  mtu 9000\\n        RX errors 12  dropped 0  overruns 0  frame 12\\n"
    >>> link, = parse_ifconfig(text)
    >>> link.name, link.mtu, link.operstate, link.statistics["rx_errors"], link.statistics["rx_frame_errors"]
    ('ens1', 9000, 'up', 12, 12)
    """
    links: list[NetlinkLink] = []
    for line in text.splitlines():
        if (head := _NEW_HEAD.fullmatch(line)) and len(links) < _MOST_LINKS:
            links.append(_with_flags(NetlinkLink(name=head["name"]), head["flags"].split(","), head["mtu"]))
        elif (head := _OLD_HEAD.fullmatch(line)) and len(links) < _MOST_LINKS:
            links.append(NetlinkLink(name=head["name"]))
        elif links and (flags := _OLD_FLAGS.fullmatch(line)):
            links[-1] = _with_flags(links[-1], flags["flags"].split(), flags["mtu"])
        elif counts := _COUNTS.fullmatch(line):
            links = links or [NetlinkLink(name=_UNNAMED)]
            way = counts["way"].lower()
            found = {f"{way}_{_NAMES.get(name, name)}": int(count) for name, count in _COUNT.findall(counts["rest"])}
            links[-1] = links[-1]._replace(statistics={**(links[-1].statistics or {}), **found})
        elif links and (address := _read_address(line)):
            links[-1] = _with_address(links[-1], address)
        if links and (mac := _MAC.fullmatch(line)):
            links[-1] = links[-1]._replace(mac=mac["mac"].lower(), type=1)
    require(links, "ifconfig printed no interface")
    return tuple(links)


def _with_flags(link: NetlinkLink, flags: list[str], mtu: str) -> NetlinkLink:
    up, running = "UP" in flags, "RUNNING" in flags
    state = "up" if running else "down"
    return link._replace(flags=ADMIN_UP if up else 0, mtu=int(mtu), operstate=state, carrier=running if up else None)


_EXPORTED = lazy_pattern(
    r"node_network_(?P<way>receive|transmit|carrier)_(?P<word>\w{2,20})_total\{[^}]{0,200}?"
    r'device="(?P<device>[\w.@:-]{1,32})"'
    r"[^}]{0,200}\}(?: =>)? (?P<value>\d[\d.e+]{0,24})(?: \d{1,16})?[ \t]*"
)
_EXPORTED_NAMES = {"errs": "errors", "drop": "dropped", "fifo": "fifo_errors", "frame": "frame_errors"}


def parse_exported(text: str) -> tuple[NetlinkLink, ...]:
    """Every interface of which node_exporter counts something, by name. Raises ParseError where there is none.

    >>> link, = parse_exported('node_network_receive_errs_total{device="ens1"} 8.12e+05\\n')
    >>> link.name, link.statistics
    ('ens1', {'rx_errors': 812000})
    """
    links: dict[str, NetlinkLink] = {}
    for line in text.splitlines()[:_MOST_LINES]:
        if (row := _EXPORTED.fullmatch(line)) and len(links) < _MOST_LINKS:
            link = links.get(row["device"], NetlinkLink(name=row["device"]))
            with suppress(ValueError, OverflowError):
                count = int(float(row["value"]))
                if row["way"] != "carrier":
                    way = "rx" if row["way"] == "receive" else "tx"
                    name = f"{way}_{_EXPORTED_NAMES.get(row['word'], row['word'])}"
                    link = link._replace(statistics={**(link.statistics or {}), name: count})
                elif row["word"] == "down_changes":
                    link = link._replace(carrier_down_count=count)
                links[row["device"]] = link
    require(links, "no counter of an interface")
    return tuple(links[name] for name in sorted(links))
