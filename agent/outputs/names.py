"""Names and durations for people: short addresses, labels, `GPU0-7` for eight of a kind, `3 min`."""

from __future__ import annotations

import re

from agent.model.finding import Location
from agent.model.gpu import NpuPort
from agent.model.nic import Nic, Port
from agent.model.report import Report

_UNSPECIFIC = frozenset(("GPU", "NPU", "NIC", "PCI device", "interface"))  # parts of which nothing more is known
_BRACKETED = re.compile(r".*\[([^\[\]]+)\]")


class DisplayNames:
    """Display names of one report's devices. Addresses omit the domain if every function is in domain 0000."""

    def __init__(self, report: Report) -> None:
        topology = report.topology
        self.domains = any(not function.id.startswith("0000:") for function in topology.pci)
        self.labels = {function.id: self.short(function.id) for function in topology.pci}
        self.labels |= {netdev.id: self.short(netdev.label) for netdev in topology.netdevs}
        self.labels |= {nic.id: self.short(nic.label) for nic in topology.host_nics}  # wins over its interface's name
        self.labels |= {gpu.id: self.short(gpu.label) for gpu in topology.gpus}

    def short(self, text: str) -> str:
        """An address, or a label with one, without a common domain."""
        return text if self.domains else text.replace("0000:", "", 1)

    def subject(self, subject: str) -> str:
        """The display name of a check's subject: `GPU3`, `mlx5_0`, `GPU3 link 7`."""
        kind, _, which = subject.partition(":")
        if not which:
            return subject
        if kind == "pair":
            return "+".join(self.labels.get(word, self.short(word)) for word in which.split("+"))
        device, _, part = which.partition("/")
        numbered = f"{kind.upper()} {device}" if device.isdecimal() else self.short(device)  # an NPU without an address
        label = self.labels.get(device, numbered)
        return f"{label} link {part}" if kind == "link" and part else label


def describe_location(location: Location | None) -> list[str]:
    """The physical part of a finding: socket or slot, serial number or UUID, MAC or GUID, the far end of the cable."""
    if location is None:
        return []
    slot = f"slot {location.slot}" if location.slot and location.slot not in location.part else ""
    identity = f"serial {location.serial}" if location.serial else location.uuid
    port = f"MAC {location.mac}" if location.mac else f"GUID {location.port_guid}" if location.port_guid else ""
    far = location.far_end
    cable = " port ".join(name for name in (far.system, far.port) if name) if far else ""
    part = "" if location.part in _UNSPECIFIC else location.part
    known = (part, slot, identity, port, f"cable to {cable}" if cable else "")
    return [text for text in known if text]


def format_duration(seconds: float) -> str:
    """A duration for people, in one unit.

    >>> format_duration(90), format_duration(200), format_duration(9000), format_duration(400_000), format_duration(1e9)
    ('90 s', '3 min', '2.5 h', '4.6 days', '11574 days')
    """
    for unit, size, limit in (("s", 1, 120), ("min", 60, 7200), ("h", 3600, 172_800)):
        if seconds < limit:
            return f"{round(seconds / size, 0 if unit != 'h' else 1):g} {unit}"
    days = seconds / 86_400
    return f"{round(days, 1):g} days" if days < 100 else f"{days:.0f} days"


_IDENTIFIER = re.compile(  # of the first word
    r"nvidia-|[a-z./-]*[_\d/]|[a-z]+\.conf\b"
    r"|(?:[a-z]{2,8}-smi|lspci|lsmod|dmesg|kubectl|docker|dcgmi|ethtool|ibstat|opensm|sinfo)\b"
)


def short_model(name: str | None) -> str:
    """The short model name: without the vendor; of a database name only the part in brackets.

    >>> short_model("MT2910 Family [ConnectX-7]"), short_model("NVIDIA H100 80GB HBM3"), short_model(None)
    ('ConnectX-7', 'H100 80GB HBM3', '')
    """
    match = _BRACKETED.fullmatch(name or "")
    return (match[1] if match else name or "").removeprefix("NVIDIA ")


def begin_sentence(text: str) -> str:
    """With a capital letter, except where it begins with the name of a service, module, file or device.

    >>> begin_sentence("no driver is bound"), begin_sentence("nvidia-fabricmanager does not run")
    ('No driver is bound', 'nvidia-fabricmanager does not run')
    >>> begin_sentence("mlx5_0: down"), begin_sentence("")
    ('mlx5_0: down', '')
    >>> begin_sentence("lspci shows links"), begin_sentence("npu-smi reports Health Alarm")
    ('lspci shows links', 'npu-smi reports Health Alarm')
    """
    return text if _IDENTIFIER.match(text) else text[:1].upper() + text[1:]


def visible_nics(report: Report) -> list[Nic]:
    """NICs to show: no software devices, and virtual functions only if there are no others."""
    real = [nic for nic in report.topology.host_nics if not nic.software]
    physical = [nic for nic in real if not nic.virtual_function]
    return physical or real


def nics_by_role(report: Report) -> list[Nic]:
    """Those NICs, rails first."""
    order = {"rail": 0, "unknown": 1}
    return sorted(visible_nics(report), key=lambda nic: order.get(nic.role, 2))


def format_gib(mib: int | None) -> str:
    """Memory for people.

    >>> format_gib(131072), format_gib(None)
    ('128 GiB', 'size unknown')
    """
    return f"{mib / 1024:.3g} GiB" if mib is not None else "size unknown"


def describe_npu_port(port: NpuPort, link: Port) -> str:
    """The RoCE port inside an NPU in a few words: `RoCE 200G up 192.0.2.10 PFC 4`."""
    state = {"ACTIVE": "up", "DOWN": "down"}.get(link.state or "", "")
    words = ["RoCE", f"{link.rate_gbit_s:g}G" if link.rate_gbit_s else "", state, port.address or ""]
    if port.pfc is not None:
        words.append(f"PFC {','.join(map(str, port.pfc))}" if port.pfc else "PFC off")
    return " ".join(word for word in words if word)


def name_link_layer(nic: Nic, port: Port) -> str:
    """What people call the kind of a port.

    >>> name_link_layer(Nic(id="x", label="x", driver="efa"), Port(port=1, link_layer="unspecified"))
    'EFA'
    """
    if nic.driver == "efa":
        return "EFA"
    return {"InfiniBand": "IB", "Ethernet": "RoCE"}.get(port.link_layer or "", port.link_layer or "")


def describe_port(nic: Nic, port: Port, *if_up: str) -> str:
    """Kind, rate and state of a port: `IB 400G NDR`; `if_up`: words in place of the state where it is active."""
    speed = port.speed if port.speed and port.link_layer == "InfiniBand" else ""
    rate = f"{port.rate_gbit_s:g}G" if port.rate_gbit_s else ""
    state = if_up if port.state == "ACTIVE" else ((port.state or "state not known").lower(), port.phys_state or "")
    number = f"p{port.port}" if len(nic.ports) > 1 else ""
    return " ".join(filter(None, (number, name_link_layer(nic, port), rate, speed, *state)))


def describe_scale_out(nic: Nic) -> str:
    """The ports of a Gaudi that leave the box, in a few words: `scale-out 3/3 200G`."""
    up = [port for port in nic.ports if port.state == "ACTIVE"]
    known = any(port.state for port in nic.ports)
    rates = sorted({port.rate_gbit_s for port in up if port.rate_gbit_s})
    speed = f" {'/'.join(f'{rate:g}' for rate in rates)}G" if rates else ""
    return f"scale-out {len(up) if known else '?'}/{len(nic.ports)}{speed}"
