"""DCB of every Ethernet interface of a PCI device: PFC, traffic classes, DSCP map, buffers; and what marks traffic.

Asked of the driver over DCB netlink (no privilege is needed to read). Besides: what NVIDIA's OFED shows in sysfs
(qos/, ecn/, tc/), rdma-cm's configfs where its folder is there already (making one would change the host), and
saved outputs of `mlnx_qos` and `dcb`.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from probes import netlink
from probes.dcb import netlink as dcb_netlink
from probes.dcb.facts import Dcb, DcbFacts, DcbInterface, TrafficMarking
from probes.host.commands import DCB_OBJECTS
from probes.host.interface import Absent, Failed, Host, ReadError
from probes.host_reader import SLEEPING, HostReader
from probes.netdev import sysfs as sysfs
from probes.netdev.probe import on_pci
from probes.netdev.shown_links import shown_links
from probes.probe import Reading
from probes.text import ParseError, lazy_pattern, natural

T = TypeVar("T")
INFINIBAND = "/sys/class/infiniband"
CONFIGURED = "/sys/kernel/config/rdma_cm"
ETHERNET = 1  # ARPHRD_ETHER
MOST, MOST_SAVED = 1024, 128  # interfaces, RDMA devices: more are no machine's; those with saved outputs
NO_DCB = ("EOPNOTSUPP", "ENOTSUP")  # one number on Linux
PRIORITIES = tuple(str(priority) for priority in range(8))
SAVED = lazy_pattern(r"[A-Za-z0-9_.:-]{1,15}")


def read(host: Host) -> Reading:
    """Every Ethernet interface whose device is awake. Raises Absent where there is none, and nothing marks traffic."""
    reader = HostReader(host)
    here = [(source_view.link, source_view.place.pci, source_view.folder) for source_view in on_pci(reader)]
    known = {link.name for link, _, _ in here}
    here += [(link, link.parent_pci, None) for name, link in shown_links(reader).items() if name not in known]
    ethernet = [
        (link.name, pci, folder)
        for link, pci, folder in here
        if link.type in (None, ETHERNET) and (pci or (link.kind is None and _read_saved(HostReader(host), link.name)))
    ]
    rows = tuple(_interface(reader, *place, number < MOST_SAVED) for number, place in enumerate(ethernet[:MOST]))
    markings = tuple(_markings(reader))
    if not rows and not markings:
        raise Absent("no Ethernet interface of a PCI device is seen here")
    return Reading(DcbFacts(rows, markings), reader.sources, reader.missing)


def _interface(reader: HostReader, name: str, pci: str | None, folder: str | None, with_saved: bool) -> DcbInterface:
    answers: list[Dcb] = []
    reason = None
    try:
        answers.append(_driver(reader, name))
    except ReadError as why:
        reason = _reason(why)
    row = DcbInterface(name, pci)
    if folder:
        answers += _read_ofed(reader, folder)
        row = _with_ecn(reader, folder, row)
    answers += _read_saved(reader, name) if with_saved else []
    return row._replace(said=tuple(answers), reason=reason)


def _reason(why: ReadError) -> str:
    if why.code in NO_DCB:
        return "the driver has no DCB here (EOPNOTSUPP)"
    if why.code == "ENODEV":
        return "ENODEV: no such interface in this network namespace"
    return f"{why.code}: {why.reason}" if why.code else why.reason


def _driver(reader: HostReader, name: str) -> Dcb:
    """What the driver answers. Raises ReadError."""
    answer = _query(reader, name, dcb_netlink.IEEE_GET, dcb_netlink.parse_ieee)
    if answer.dcbx is None:
        with contextlib.suppress(ReadError):  # a driver without that operation
            answer = answer._replace(dcbx=_query(reader, name, dcb_netlink.GET_DCBX, dcb_netlink.parse_dcbx))
    if answer.pfc is None and answer.prio_tc is None:
        try:
            older = _query(reader, name, dcb_netlink.CEE_GET, dcb_netlink.parse_cee)
        except ReadError:
            return answer
        answer = answer._replace(pfc=older.pfc, dcbx=answer.dcbx or older.dcbx)
    return answer


def _query(reader: HostReader, name: str, command: int, parse: Callable[[bytes], T]) -> T:
    """One question. Raises ReadError, also for an answer that cannot be read."""
    try:
        answer = netlink.messages(reader.host.netlink(netlink.ROUTE, dcb_netlink.question(name, command)))
        payload = next((m.payload for m in answer if m.type == dcb_netlink.GET_DCB), None)
        if payload is None:
            raise Failed("DCB netlink: an answer without content")
        parsed = parse(payload)
    except ParseError as why:
        raise Failed(str(why)) from why
    reader.answered("DCB netlink RTM_GETDCB")
    return parsed


def _read_ofed(reader: HostReader, folder: str) -> list[Dcb]:
    names = ("trust", "pfc", "prio2buffer", "buffer_size")
    files = reader.attributes(f"{folder}/qos", names, source=f"{sysfs.CLASS}/*/qos")
    pfc = _eight(files.get("pfc"))
    row = Dcb(
        "qos/trust",
        trust=files["trust"] if files.get("trust") in ("dscp", "pcp") else None,
        pfc=tuple(number == 1 for number in pfc) if pfc and max(pfc) <= 1 else None,
        prio_buffer=_eight(files.get("prio2buffer")),
        buffer_bytes=_eight(files.get("buffer_size")),
    )
    return [row] if row != Dcb("qos/trust") else []


def _eight(text: str | None) -> tuple[int, ...] | None:
    """Eight numbers with blanks or commas between them, or eight digits 0 and 1.

    >>> _eight("0 0 0 1 0 0 0 0") == _eight("0,0,0,1,0,0,0,0,") == _eight("00010000")
    True
    """
    words = (text or "").replace(",", " ").split()
    if len(words) == 1 and re.fullmatch("[01]{8}", words[0]):
        words = list(words[0])
    return tuple(map(int, words)) if len(words) == 8 and all(re.fullmatch("[0-9]{1,9}", w) for w in words) else None


def _with_ecn(reader: HostReader, folder: str, row: DcbInterface) -> DcbInterface:
    ecn = {}
    for point in ("np", "rp"):
        place = f"{folder}/ecn/roce_{point}/enable"
        files = reader.attributes(place, PRIORITIES, source=f"{sysfs.CLASS}/*/ecn/roce_{point}/enable")
        if files:
            ecn[point] = tuple({"0": False, "1": True}.get(files.get(priority, "")) for priority in PRIORITIES)
    names = ("cnp_dscp", "cnp_802p_prio")
    cnp = reader.attributes(f"{folder}/ecn/roce_np", names, source=f"{sysfs.CLASS}/*/ecn/roce_np")
    return row._replace(
        ecn=ecn or None,
        cnp_dscp=_parse_bounded(64, cnp.get("cnp_dscp")),
        cnp_priority=_parse_bounded(8, cnp.get("cnp_802p_prio")),
    )


def _parse_bounded(bound: int, text: str | None) -> int | None:
    number = sysfs.whole(text)
    return number if number is not None and number < bound else None


def _read_saved(reader: HostReader, name: str) -> list[Dcb]:
    """Saved outputs for this interface: no tool is run."""
    if reader.host.live or not SAVED.fullmatch(name):
        return []
    from probes.dcb.tools import parse_dcb, parse_mlnx_qos  # lazy: a live host has no saved outputs
    from probes.ethtool.saved import parse_flow_control, read_saved_interface

    questions: list[tuple[tuple[str, ...], Callable[[str], Dcb]]] = [(("mlnx_qos", "-i", name), parse_mlnx_qos)]
    for about in DCB_OBJECTS:
        as_json, as_text = ("dcb", "-j", about, "show", "dev", name), ("dcb", about, "show", "dev", name)
        questions += [(argv, partial(parse_dcb, about)) for argv in (as_json, as_text)]
    parsed = [reader.parsed(reader.saved(*argv), parse, f"{' '.join(argv)}: ") for argv, parse in questions]
    answers = [answer for answer in parsed if answer is not None]
    control = read_saved_interface(reader, parse_flow_control, "ethtool", "-S", name)
    return [*answers, Dcb("ethtool -S", pfc=control[0])] if control is not None else answers


def _markings(reader: HostReader) -> list[TrafficMarking]:
    """A forced traffic class (OFED), and rdma-cm's default mode where someone made its folder."""
    configured = set(reader.names(CONFIGURED) or ())
    markings = []
    for device in sorted((reader.names(INFINIBAND) or [])[:MOST], key=natural):
        status = reader.text(
            f"{INFINIBAND}/{device}/device/power/runtime_status", source=f"{INFINIBAND}/*/device/power"
        )
        if status in SLEEPING:
            continue
        ports = set(reader.names(f"{INFINIBAND}/{device}/tc") or ())
        folder = f"{CONFIGURED}/{device}/ports"
        modes = set(reader.names(folder) or ()) if device in configured else set[str]()
        for port in sorted((p for p in ports | modes if re.fullmatch("[1-9][0-9]{0,2}", p)), key=int):
            row = TrafficMarking(device, int(port))
            if port in ports:
                place = f"{INFINIBAND}/{device}/tc/{port}/traffic_class"
                text = reader.text(place, source=f"{INFINIBAND}/*/tc/*/traffic_class")
                row = row._replace(traffic_class=traffic_class(text or ""))
            if port in modes:
                mode = reader.text(f"{folder}/{port}/default_roce_mode", source=f"{CONFIGURED}/*/default_roce_mode")
                row = row._replace(default_roce_mode=mode if mode and len(mode) <= 32 else None)
            markings.append(row)
    return markings


def traffic_class(text: str) -> int | None:
    r"""The ToS byte that OFED forces on every queue pair; None: none.

    >>> traffic_class("Global tclass=106\n"), traffic_class(""), traffic_class("Global tclass=999")
    (106, None, None)
    """
    match = re.search(r"^Global tclass=([0-9]{1,3})\b", text, re.MULTILINE)
    return int(match[1]) if match and int(match[1]) <= 255 else None
