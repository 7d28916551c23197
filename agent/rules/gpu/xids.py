"""What an Xid of the NVIDIA driver means for links and for the node.

NVIDIA's Xid catalogue (docs.nvidia.com/deploy/xid-errors), as gpud embeds it. A number that is not here is not judged.
"""

from __future__ import annotations

from typing import NamedTuple


class Xid(NamedTuple):
    """One number: how grave it is, what it says, what to do."""

    severity: str
    meaning: str
    action: str


_RESET = "Stop the jobs on this GPU and reset it (`nvidia-smi -r -i`); where that fails, reboot."
_REBOOT = "Drain the node and power-cycle it; look at the GPU's slot, riser and power."
_NVLINK5 = "Read the link's counters (`nvidia-smi nvlink -e`); reset the GPU; where it comes back, have it looked at."
_MEMORY = "Reset the GPU when the job has ended; where it comes back, have the GPU replaced (NVIDIA's RMA criteria)."
_APPLICATION = "Look at the application first: a fault of its own ends so, or one that another Xid explains."

_LISTED: tuple[tuple[str, str, str, str], ...] = (
    ("79", "critical", "the GPU fell off the bus", _REBOOT),
    ("167", "critical", "PCIe fatal timeout", _REBOOT),
    ("143", "critical", "the GPU could not be initialized", _RESET),
    ("74", "error", "NVLink error", "Reset the GPU; where it comes back, look at both ends of the link named there."),
    ("144", "error", "NVLink 5: SAW error", _NVLINK5),
    ("145", "error", "NVLink 5: RLW error", _NVLINK5),
    ("146", "error", "NVLink 5: TLW error", _NVLINK5),
    ("147", "error", "NVLink 5: TREX error", _NVLINK5),
    ("148", "error", "NVLink 5: NVLPW_CTRL error", _NVLINK5),
    ("149", "error", "NVLink 5: NETIR error", _NVLINK5),
    ("150", "error", "NVLink 5: MSE error", _NVLINK5),
    ("155", "error", "NVLink: error that software declared", _RESET),
    ("137", "warning", "NVLink: privileged access error, often an application's", _APPLICATION),
    ("166", "warning", "NVLink: encryption error", "Look at the confidential computing set-up of both ends."),
    ("170", "warning", "NVLink: other security error", "Look at the confidential computing set-up of both ends."),
    ("121", "warning", "C2C error", "Watch its rate; where it grows, have the superchip looked at."),
    ("154", "warning", "the driver asks for a recovery action", "Do what `nvidia-smi -q` names as recovery action."),
    ("158", "error", "GPU fatal timeout", _RESET),
    ("109", "error", "context switch timeout", _RESET),
    ("110", "error", "security fault", _RESET),
    ("119", "error", "GSP does not answer", _RESET),
    ("120", "error", "GSP error", _RESET),
    ("48", "error", "double-bit ECC error", _MEMORY),
    ("63", "info", "a row was remapped, or a page retired", _MEMORY),
    ("64", "error", "row remapping, or page retirement, failed", _MEMORY),
    ("92", "warning", "high rate of single-bit ECC errors", _MEMORY),
    ("94", "error", "contained ECC error", _MEMORY),
    ("95", "error", "uncontained ECC error", _MEMORY),
    ("140", "error", "ECC error that was not recovered from", _MEMORY),
    ("156", "error", "resource retirement", _MEMORY),
    ("157", "error", "resource retirement failed", _MEMORY),
    ("171", "error", "memory error, more of Xid 48 and 94", _MEMORY),
    ("172", "error", "memory error, more of Xid 48 and 94", _MEMORY),
    ("13", "info", "graphics engine exception, mostly an application's", _APPLICATION),
    ("31", "info", "memory page fault, mostly an application's", _APPLICATION),
    ("43", "info", "the GPU stopped processing, mostly an application's", _APPLICATION),
    ("45", "info", "clean-up after another error", _APPLICATION),
)  # fmt: skip
XIDS = {code: Xid(severity, meaning, action) for code, severity, meaning, action in _LISTED}
