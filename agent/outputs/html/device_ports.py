"""The connections that leave a device other than by PCIe: network ports, NVLinks, C2C."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from agent.model.gpu import Gpu, link_name
from agent.model.nic import Nic, Port
from agent.outputs.html.elements import Severities
from agent.outputs.names import name_link_layer

UNUSED_ROLES = ("auxiliary", "unused")  # of NICs whose links and ports are drawn in grey


class DevicePort(NamedTuple):
    """A port of a NIC, or all direct links of a GPU."""

    kind: str  # nvlink | port | c2c
    text: str
    state: str  # ok | down | unknown
    up: int = 0  # NVLinks
    all: int = 0
    far: tuple[str, ...] = ()  # ids of GPUs at the far end; "switch"; empty: unknown
    severity: str | None = None  # of a finding on it: only then it is drawn in that colour
    in_use: bool = True

    @property
    def tone(self) -> str:
        """The class of its colour: the severity of its finding, quiet, or flow."""
        if self.severity:
            return self.severity
        return "flow" if self.state == "ok" and self.in_use else "quiet"


def is_in_use(nic: Nic) -> bool:
    """Whether jobs or the host's network use it, as far as known."""
    return not nic.limited and nic.role not in UNUSED_ROLES


def describe_gpu_links(gpu: Gpu, severities: Severities) -> tuple[DevicePort, ...]:
    """NVLinks (or their kin) as one connection, and C2C."""
    ports = []
    if gpu.links:
        states = Counter(link.state for link in gpu.links)
        up = states["active"] + states["sleep"]
        remotes = [link.remote for link in gpu.links if link.remote]
        far = {
            "switch" if remote.kind == "switch" else remote.id or ""
            for remote in remotes
            if remote.kind in ("switch", "gpu")
        }
        state = "unknown" if states["unknown"] else "down" if up < len(gpu.links) else "ok"
        name = link_name(gpu.links)
        text = f"{name} {up if up or not states['unknown'] else '?'}/{len(gpu.links)}"
        severity = severities.nvlinks.get(gpu.id)
        ports.append(DevicePort("nvlink", text, state, up, len(gpu.links), tuple(sorted(far - {""})), severity))
    if gpu.c2c and gpu.c2c.enabled:
        ports.append(DevicePort("c2c", "C2C", "ok"))
    return tuple(ports)


def describe_nic_port(nic: Nic, port: Port, severities: Severities) -> DevicePort:
    """`IB 400G NDR`, with the state where it is not ACTIVE."""
    up = port.state == "ACTIVE"
    speed = port.speed if port.speed and port.link_layer == "InfiniBand" else ""
    words = [f"p{port.port}" if len(nic.ports) > 1 else "", name_link_layer(nic, port)]
    words += [f"{port.rate_gbit_s:g}G" if port.rate_gbit_s else "", speed]
    words += [] if up else [(port.state or "state not known").lower(), port.phys_state or ""]
    state = "ok" if up else "down" if port.state else "unknown"
    severity = severities.ports.get(f"{nic.id}/{port.port}") or severities.ports.get(nic.id)
    text = " ".join(word for word in words if word)
    return DevicePort("port", text, state, severity=severity, in_use=is_in_use(nic))
