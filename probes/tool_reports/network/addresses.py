"""What `ip addr`, `ip route`, `ip link` and `show_gids` state of addresses: interfaces that share a network, virtual
functions that their physical one keeps down, devices without a GID. Sources: iproute2 ip/ipaddress.c, ip/iproute.c.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping, Sequence

from probes.named_tuple import NamedTuple
from probes.text import check_length, lazy_pattern, require, short_lines
from probes.tool_reports.facts import ToolReport, state_fault

_SHOWN = 8
_VIRTUAL = lazy_pattern(
    r"(?:lo|docker|br|virbr|veth|cali|cilium|flannel|cni|vxlan|tun|tap|wg|dummy|kube|nodelocal|ovs)"
)
_ROUTE = lazy_pattern(r"[ \t]*(?P<network>[0-9a-fA-F.:]{2,40}/\d{1,3}) dev (?P<name>\S{1,60})(?P<rest>.*)")
_ANY_ROUTE = lazy_pattern(r"^[ \t]*(?:default|[0-9a-fA-F.:]{2,40}(?:/\d{1,3})?) (?:via|dev) \S", re.MULTILINE)
_HEAD = lazy_pattern(
    r"\d{1,6}: (?P<name>[^\s:@]{1,60})(?:@\S{1,60})?: <(?P<flags>[A-Z0-9_,-]*)> (?:mtu (?P<mtu>\d{1,5}) )?.*"
)
_BRIEF = lazy_pattern(
    r"(?P<name>[^\s@]{1,60})(?:@\S{1,60})?[ \t]+UP[ \t]+(?P<addresses>[0-9a-f][0-9a-fA-F.:/ ]{6,400})"
)
_TAKEN = lazy_pattern(r"[ \t]*inet6 (?P<address>[0-9a-f:]{3,40})/\d{1,3}\b.{0,80}?\bdadfailed\b.{0,40}")
_ADDRESS = lazy_pattern(r"[ \t]+inet6? (?P<address>[0-9a-fA-F.:]{2,45}/\d{1,3})\b.*")
_FUNCTION = lazy_pattern(r"[ \t]+vf (?P<number>\d{1,4}) .*\blink-state (?P<state>\w+)\b.*")
_NO_DEVICES = lazy_pattern(
    r"(?:[^\n]{0,200}[$#>] ?ibv_devices[ \t]*\n)?\s*device[ \t]+node GUID\s+-{3,20}[ \t]+-{3,40}\s*"
)
_GID_ROW = lazy_pattern(
    r"(?m)^[ \t>]{0,8}(?P<device>[a-z][\w.-]{1,40})[ \t]{1,20}\d{1,3}[ \t]{1,20}\d{1,4}[ \t]{1,20}"
    r"(?:[0-9a-f]{4}:){7}[0-9a-f]{4}[ \t]{1,20}(?P<address>\d{1,3}(?:\.\d{1,3}){3})[ \t]{1,20}"
    r"(?:v\d[ \t]{1,20})?(?P<netdev>[a-zA-Z][\w.@-]{1,40})[ \t\r]{0,20}$"
)
_EMPTY = lazy_pattern(r"^[ \t]{0,40}n_gids_found=0[ \t\r]{0,40}$", re.MULTILINE)
_SETTING = lazy_pattern(
    r"[ \t]*net\.ipv4\.conf\.(?P<name>[\w./@:-]{2,32}?)\.(?P<setting>arp_ignore|rp_filter)[ \t]*=[ \t]*(?P<value>\d)"
    r"[ \t\r]*"
)
_NUMBERS = lazy_pattern(r"\d{1,6}")
_ALL = ("all", "default")
_MOST_CHOSEN = 200  # lines: what `sysctl -a` prints is more
_USUAL_MTU, _FEW = 1500, 4  # bytes, interfaces
_MOST_HOSTS_BITS = 2  # of a link between two hosts


class _Head(NamedTuple):
    """What the first line of an interface has."""

    flags: Sequence[str]
    mtu: int


def list_shared_networks(text: str) -> list[ToolReport]:
    """Networks that the main table reaches over several interfaces at once, so that the first carries what is sent.
    Raises ParseError where the text has no route.

    >>> row = "10.8.0.0/16 dev {} proto kernel scope link\\n"
    >>> [report.detail for report in list_shared_networks(row.format("eno1") + row.format("eth5"))]
    [(('what', '10.8.0.0/16 on eno1, eth5'),)]
    """
    require(_ANY_ROUTE.search(check_length(text)), "no route")
    rows = [
        (row["network"], row["name"])
        for line in short_lines(text)
        if (row := _ROUTE.fullmatch(line.rstrip())) and "linkdown" not in row["rest"] and " via " not in row["rest"]
    ]
    return _list_shared(rows)


def list_link_faults(text: str) -> list[ToolReport]:
    """The same of the addresses of interfaces, and virtual functions whose link their physical one keeps down. Raises
    ParseError where there is none.

    >>> rows = "3: ib0: <UP,LOWER_UP> mtu 4092\\n    vf 1     link/infiniband 00:28 brd 00:ff, link-state disable\\n"
    >>> [(report.code, report.subject, report.detail) for report in list_link_faults(rows)]
    [('vf-link-off', 'ib0', (('what', 'vf 1'),))]
    """
    name, is_up, is_closed = "", False, False
    heads: dict[str, _Head] = {}
    rows, claimed = list[tuple[str, str]](), list[tuple[str, str]]()
    off: dict[str, list[str]] = {}
    closed: dict[str, int] = {}  # physical functions that are not up, and how many virtual ones they have
    for line in short_lines(text):
        if head := _HEAD.fullmatch(line.rstrip()):
            flags = head["flags"].split(",")
            name, is_up = head["name"], "LOWER_UP" in flags and "SLAVE" not in flags
            is_closed = "UP" not in flags
            heads.setdefault(name, _Head(flags, int(head["mtu"] or 0)))
        elif brief := _BRIEF.fullmatch(line.rstrip()):
            rows += [(address, brief["name"]) for address in brief["addresses"].split() if "/" in address]
        elif name and (taken := _TAKEN.fullmatch(line.rstrip())):
            claimed.append((name, taken["address"]))
        elif is_up and (address := _ADDRESS.fullmatch(line.rstrip())):
            rows.append((address["address"], name))
        elif name and (function := _FUNCTION.fullmatch(line.rstrip())):
            if function["state"].startswith("disable"):
                off.setdefault(name, []).append(f"vf {function['number']}")
            elif is_closed and function["state"] == "auto":
                closed[name] = closed.get(name, 0) + 1
    reports = _list_shared(rows) + [
        state_fault("address-taken", one, f"{address} of {one}: dadfailed") for one, address in claimed
    ]
    reports += [
        state_fault(
            "vf-link-off", one, shown + (" and more" if len(functions) > _SHOWN else ""), f"{shown}: link-state disable"
        )
        for one, functions in off.items()
        if (shown := ", ".join(functions[:_SHOWN]))
    ]
    reports += [
        state_fault("pf-off", one, f"{count} of them", f"{one}: not UP, {count} with link-state auto")
        for one, count in closed.items()
    ]
    physical = {one: head for one, head in heads.items() if not _VIRTUAL.match(one)}
    reports += [
        ToolReport("carrier-none", one, f"{one}: {', '.join(head.flags)}")
        for one, head in physical.items()
        if "NO-CARRIER" in head.flags and (len(physical) == 1 or _is_odd(one, physical))
    ]
    require(reports, "no network of two interfaces, and no virtual function that is kept down")
    return reports


def list_open_settings(text: str) -> list[ToolReport]:
    """Interfaces that answer ARP for the addresses of the others, and drop what comes back another way, as sysctl shows
    it in lines that someone chose. Raises ParseError where fewer than two have such settings.

    >>> rows = "net.ipv4.conf.ens{0}.arp_ignore = {1}\\nnet.ipv4.conf.ens{0}.rp_filter = {1}\\n"
    >>> list_open_settings("".join(rows.format(n, 1) for n in range(4)))[0].detail
    (('what', 'rp_filter 1 on ens0, ens1, ens2, ens3'),)
    >>> list_open_settings("".join(rows.format(n, 0) for n in range(2)))[0].detail
    (('what', 'arp_ignore 0 on ens0, ens1'),)
    """
    values: dict[str, dict[str, int]] = {}  # of each setting, by interface
    lines = short_lines(text)
    for match in map(_SETTING.fullmatch, lines if len(lines) <= _MOST_CHOSEN else ()):
        if match:
            values.setdefault(match["setting"], {})[match["name"]] = int(match["value"])
    found = []
    for setting, risky in (("arp_ignore", 0), ("rp_filter", 1)):
        of_all = values.get(setting, {})
        names = [
            name
            for name, value in of_all.items()
            if name not in _ALL and not _VIRTUAL.match(name) and max(value, of_all.get("all", 0)) == risky
        ]  # the kernel takes the larger
        found += [f"{setting} {risky} on {', '.join(names[:_SHOWN])}"] if len(names) > 1 else []
    require(found, "no two interfaces with such settings")
    return [state_fault("paths-open", None, "; ".join(found))]


def list_empty_tables(text: str) -> list[ToolReport]:
    """That no device has a GID here, that two have the same, or that there is no device (`ibv_devices`). Raises
    ParseError where one has, or is.

    >>> row = "mlx5_{} 1 3 0000:0000:0000:0000:0000:ffff:0a0a:030e 10.10.3.14 v2 eth10{}\\n"
    >>> [report.detail for report in list_empty_tables(row.format(2, 2) + row.format(5, 5))]
    [(('what', '10.10.3.14 on mlx5_2, mlx5_5'),)]
    """
    if _NO_DEVICES.fullmatch(check_length(text)):
        return [ToolReport("verbs-no-device", None, "ibv_devices: no device below the heading", ())]
    if shared := _list_shared_gids(text):
        return shared
    require(_EMPTY.search(text), "no empty table of GIDs or devices")
    return [state_fault("gid-none", None, "the table of GIDs is empty", "n_gids_found=0")]


def _list_shared_gids(text: str) -> list[ToolReport]:
    """Addresses that several devices of a table have, each on its own interface."""
    owners: dict[str, dict[str, str]] = {}  # by address the device of each interface
    for match in _GID_ROW.finditer(text):
        owners.setdefault(match["address"], {}).setdefault(match["netdev"], match["device"])
    return [
        state_fault(
            "gid-shared", None, f"{address} on {', '.join(devices.values())}", f"{address}: {', '.join(devices)}"
        )
        for address, devices in owners.items()
        if len(set(devices.values())) > 1
    ]


def _is_odd(name: str, shown: Mapping[str, _Head]) -> bool:
    """Whether it is the one of a few, named alike, that has no carrier, and has their large MTU: it was set up for data
    as they were. In a longer list many have no cable."""
    shape = _NUMBERS.sub("#", name)
    others = [head for one, head in shown.items() if one != name and _NUMBERS.sub("#", one) == shape]
    return (
        0 < len(others) < _FEW
        and shown[name].mtu > _USUAL_MTU
        and all("LOWER_UP" in head.flags and head.mtu == shown[name].mtu for head in others)
    )


def _list_shared(rows: list[tuple[str, str]]) -> list[ToolReport]:
    """Networks of several interfaces that are no virtual ones of the host itself."""
    names: dict[str, dict[str, None]] = {}
    for network, name in _list_networks(rows):
        names.setdefault(network, {}).setdefault(name)
    return [
        state_fault("network-shared", None, what, f"{network}: {', '.join(of)}")
        for network, of in names.items()
        if len(of) > 1 and (what := f"{network} on {', '.join(list(of)[:_SHOWN])}")
    ]


def _list_networks(rows: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    for address, name in rows:
        if _VIRTUAL.match(name):
            continue
        try:
            network = ipaddress.ip_interface(address).network
        except ValueError:
            continue
        is_wide = network.max_prefixlen - network.prefixlen >= _MOST_HOSTS_BITS
        if is_wide and not network.is_link_local and not network.is_multicast and not network.is_loopback:
            yield str(network), name
