"""One sentence that a driver writes into the kernel log: its shape, and the pieces that the tables of them share."""

import re

from probes.named_tuple import NamedTuple
from probes.text import lazy_pattern

BDF = r"(?P<bdf>[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-7])?)"
DRIVER, STARTED = "driver", "started"
NIC_DRIVERS = (
    r"mlx[45]_core|bnxt_en|ice|i40e|ixgbe|idpf|ena|efa|ionic|hns3|cxgb4|mana|gve|hinic|sfc|enic|pds_core|octeontx2|hfi1|"
    r"erdma|hns_roce|cxi_core|cxi_user|cxi_ss1|cxi_eth"
)
DRIVERS = f"nvidia|nouveau|vfio-pci|{NIC_DRIVERS}|amdgpu|habanalabs|neuron"
KERNEL_DRIVERS = f"pcieport|i915|xe|{DRIVERS}"  # whose lines begin with their name and the address of the function
TOOLS = (  # and services, as the kernel names their processes
    r"nvidia-smi|nvidia-persiste\w{0,2}|nv-hostengine|nv-fabricmanag\w{0,2}|nvidia-imex|nvlsm|rocm-smi|amd-smi|npu-smi|"
    r"hl-smi|neuron-\w{1,10}|ibstat|opensm"
)


def address(text: str) -> str:
    """A PCI address as ours; a message of the driver leaves the function out.

    >>> address("0018:01:00"), address("00000000:3B:00.0"), address("10000:e1:00.0")
    ('0018:01:00.0', '0000:3b:00.0', '10000:e1:00.0')
    """
    domain, _, rest = text.lower().partition(":")
    return f"{int(domain, 16):04x}:{rest}" + ("" if "." in rest else ".0")


class Sentence(NamedTuple):
    """One sentence. Named groups of its pattern: bdf, name, code; others are details."""

    kind: str
    code: str | None  # None: the group of that name
    module: str  # that writes it
    needle: str  # a literal that every such line contains
    pattern: re.Pattern[str]
    source: str


def row(kind: str, code: str | None, module: str, needle: str, pattern: str, source: str) -> Sentence:
    """A sentence of a table; its pattern is compiled when it is first used."""
    return Sentence(kind, code, module, needle, lazy_pattern(pattern), source)
