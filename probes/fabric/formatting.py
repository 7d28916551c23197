"""The spellings in which the tools of a fabric state one thing: GUIDs, lanes, speeds, states, node descriptions."""

from __future__ import annotations

from probes.fabric.topology import FabricNode
from probes.named_tuple import NamedTuple
from probes.rdma.normalize import SPEEDS
from probes.text import lazy_pattern

LANE_GBIT_S = dict(SPEEDS.values())  # "NDR": 100.0, as the kernel counts them
KINDS = {"S": "switch", "H": "ca", "R": "router", "SW": "switch", "CA": "ca", "RT": "router"}
# Signalling rate of a lane as infiniband-diags prints it: libibmad/dump.c
_SIGNALLED = {
    "2.5": "SDR", "5.0": "DDR", "10.0": "QDR", "14.0625": "FDR", "25.78125": "EDR", "53.125": "HDR", "106.25": "NDR",
    "212.5": "XDR",
}  # fmt: skip
NO_LIDS = (0, 0xFFFF)  # not given yet, and the permissive one

_VENDORS = lazy_pattern(r"Mellanox Technologies|Mellanox Tech|\bInfiniHost\b|NVIDIA (?:Corporation|Technologies)")
_AGGREGATION = lazy_pattern(r"\bAggregation Node\b")
_MANAGED = lazy_pattern(r"MF[0-9];([^:]{1,64}):([^/]{1,64})(?:/(.{1,64}))?")
_ON_HOST = lazy_pattern(
    r"(\S{1,64}) +(HCA-[0-9]{1,4}|(?:mlx|ib|roce|rdma|opa|hfi|qib|bnxt|irdma|mthca)[\w.:-]{1,60}|\w{1,60}_[0-9]{1,4})"
)


class NodeDescription(NamedTuple):
    """What a node description states. `role`: host | switch | aggregation (SHARP, in a switch) | router | unknown."""

    role: str
    name: str | None = None  # None: a description that its vendor gave
    device: str | None = None  # of a host: "HCA-1", "mlx5_0"
    model: str | None = None  # of a switch: "MQM9700"
    part: str | None = None  # of a switch with several: "U1", "L07/U1"


def describe_node(node: FabricNode) -> NodeDescription:
    """The host or switch that a node is part of.

    >>> describe_node(FabricNode("", "ca", "gpu-7 mlx5_0 "))
    NodeDescription(role='host', name='gpu-7', device='mlx5_0', model=None, part=None)
    >>> describe_node(FabricNode("", "ca", "gpu-7 HCA-1")).device
    'HCA-1'
    >>> describe_node(FabricNode("", "switch", "MF0;leaf-1:MQM9700/U1"))
    NodeDescription(role='switch', name='leaf-1', device=None, model='MQM9700', part='U1')
    >>> describe_node(FabricNode("", "ca", "Mellanox Technologies Aggregation Node")).role
    'aggregation'
    >>> describe_node(FabricNode("", "ca", "MT4129 ConnectX7   Mellanox Technologies"))
    NodeDescription(role='host', name=None, device=None, model=None, part=None)
    """
    text = " ".join(node.name[:256].split())
    if node.kind != "switch" and _AGGREGATION.search(text):
        return NodeDescription("aggregation")
    managed = _MANAGED.fullmatch(text)
    if managed and node.kind in ("switch", "unknown"):
        return NodeDescription("switch", managed[1], None, managed[2], managed[3])
    name = None if not text or _VENDORS.search(text) else text
    on_host = _ON_HOST.fullmatch(text) if name else None
    if on_host and node.kind in ("ca", "unknown"):
        return NodeDescription("host", on_host[1], on_host[2])
    return NodeDescription({"ca": "host"}.get(node.kind, node.kind), name)


def kind_in_name(name: str) -> str:
    """The kind of node that a description alone gives away.

    >>> kind_in_name("MF0;leaf-1:MQM9700/U1"), kind_in_name("gpu-7 mlx5_0"), kind_in_name("leaf1")
    ('switch', 'ca', 'unknown')
    """
    description = describe_node(FabricNode("", "unknown", name))
    return {"host": "ca", "aggregation": "ca"}.get(description.role, description.role)


def guid16(digits: str) -> str:
    """A GUID with its leading zeros.

    >>> guid16("c42a10300303dbe")
    '0c42a10300303dbe'
    """
    return digits.lower().zfill(16)


def lid_of(text: str | None) -> int | None:
    """A LID; None for none, and for the two that mean none."""
    lid = int(text) if text and text.isdecimal() and len(text) <= 9 else None
    return None if lid in NO_LIDS else lid


def lanes(text: str) -> int | None:
    """The lanes of "4X" or "4x".

    >>> lanes("4X"), lanes("12x"), lanes("??"), lanes("3X")
    (4, 12, None, None)
    """
    return {"1": 1, "2": 2, "4": 4, "8": 8, "12": 12}.get(text[:-1]) if text[-1:] in ("x", "X") else None


def speed_named(text: str) -> str | None:
    """A speed by its name; None for what is no known one ("???", a cut one).

    >>> speed_named("HDR"), speed_named("???"), speed_named("HD")
    ('HDR', None, None)
    """
    return text if text in LANE_GBIT_S else None


def speed_signalled(text: str) -> str | None:
    """A speed as iblinkinfo prints it.

    >>> speed_signalled("106.25 Gbps"), speed_signalled("10.0 Gbps (FDR10)"), speed_signalled("undefined (8)")
    ('NDR', 'FDR10', None)
    """
    return "FDR10" if "FDR10" in text else _SIGNALLED.get(text.partition(" Gbps")[0].strip())
