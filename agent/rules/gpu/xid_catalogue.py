"""NVIDIA's Xid catalogue: what each number means, what it needs at once, and what to look into when it comes back.

Buckets as of docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html on 2025-10-29 (sheets "Xids" and "Xid 144-150
Decode"); rows that it leaves empty have "". The severity is this project's.
"""

from __future__ import annotations

import re

import msgspec

from agent.model.node import Event

DATE = "2025-10-29"


class Xid(msgspec.Struct, frozen=True):
    """One number: how severe it is, what it states, and the buckets of the catalogue."""

    severity: str
    meaning: str
    at_once: str = ""  # "RESET_GPU": the immediate action
    after: str = ""  # "CONTACT_SUPPORT": the investigatory action


_RESTART, _RESET, _IGNORE, _SUPPORT = "RESTART_APP", "RESET_GPU", "IGNORE", "CONTACT_SUPPORT"
_SYMPATHETIC, _SOFTWARE, _APPLICATION, _LINK = "SYMPATHETIC", "INVESTIGATE_SW", "CHECK_APP", "WORKFLOW_NVLINK5_ERR"
_MEMORY = "WORKFLOW_XID_48"
_COMMANDS = ("11", "25", "32", "80")
_VIDEO = ("68", "82", "83", "84", "86", "88", "89", *map(str, range(96, 106)), "139")
_TLW = ("TLW_CTRL", *(f"TLW_{way}{pipe}" for way in ("RX", "TX") for pipe in ("", "_PIPE0", "_PIPE1")))
_COPY_ENGINES = ("39", "40", "41", "70", "71", "72", "75", "76", "77", "85", "126", *map(str, range(127, 136)))
_LISTED: tuple[tuple[str, str, str, str, str], ...] = (
    ("79", "critical", "the GPU fell off the bus", "RESTART_BM", _SUPPORT),
    ("167", "critical", "PCIe fatal timeout", "", ""),
    ("143", "critical", "the GPU could not be initialized", _RESET, _SUPPORT),
    ("74", "error", "NVLink error", "WORKFLOW_NVLINK_ERR", _SUPPORT),
    ("144", "error", "NVLink 5: SAW error", _LINK, _LINK),
    ("145", "error", "NVLink 5: RLW error", _LINK, _LINK),
    ("146", "error", "NVLink 5: TLW error", _LINK, _LINK),
    ("147", "error", "NVLink 5: TREX error", _LINK, _LINK),
    ("148", "error", "NVLink 5: NVLPW_CTRL error", _LINK, _LINK),
    ("149", "error", "NVLink 5: NETIR error", _LINK, _LINK),
    ("150", "error", "NVLink 5: MSE error", _LINK, _LINK),
    ("155", "error", "NVLink: error declared by software", _RESET, "INVESTIGATE_SW_USER"),
    ("137", "warning", "NVLink: privileged access error, often an application's", _IGNORE, _APPLICATION),
    ("166", "warning", "NVLink: encryption error", "", ""),
    ("170", "warning", "NVLink: other security error", "", ""),
    ("121", "warning", "C2C error", _IGNORE, _SUPPORT),
    ("154", "warning", "the driver asks for a recovery action", "XID_154", ""),
    ("158", "error", "GPU fatal timeout", _RESET, _SUPPORT),
    ("109", "error", "context switch timeout", _RESET, _SUPPORT),
    ("110", "error", "security fault", _RESET, _SOFTWARE),
    ("46", "error", "the GPU stopped processing", _RESET, _SUPPORT),
    ("54", "error", "auxiliary power is not connected, or too low", "CHECK_MECHANICALS", _SUPPORT),
    ("62", "error", "the GPU's micro-controller stopped", _RESET, _SUPPORT),
    ("136", "error", "link training failed", _RESET, "INVESTIGATE_LINK_SI"),
    ("151", "warning", "key rotation failed (confidential computing)", "RESTART_VM", _SUPPORT),
    ("159", "warning", "unified memory error", "CHECK_UVM", _SYMPATHETIC),
    ("168", "warning", "less GPU memory: errors in a protected region", "", ""),
    ("169", "warning", "the security processor (SEC2) stopped", "", ""),
    ("119", "error", "GSP does not answer", _RESET, _SOFTWARE),
    ("120", "error", "GSP error", _RESET, _SOFTWARE),
    ("48", "error", "double-bit ECC error", _MEMORY, _MEMORY),
    ("63", "info", "a row was remapped, or a page retired", _IGNORE, _IGNORE),
    ("64", "error", "row remapping, or page retirement, failed", _RESET, _SUPPORT),
    ("92", "warning", "high rate of single-bit ECC errors", _IGNORE, _SUPPORT),
    ("94", "error", "contained ECC error", _RESTART, _SYMPATHETIC),
    ("95", "error", "uncontained ECC error", _RESET, _SYMPATHETIC),
    ("140", "error", "ECC error that was not recovered from", _RESET, _SUPPORT),
    ("156", "error", "resource retirement", _RESET, _IGNORE),
    ("157", "error", "resource retirement failed", _IGNORE, _SUPPORT),
    ("171", "error", "memory error, more of Xid 48 and 94", "", ""),
    ("172", "error", "memory error, more of Xid 48 and 94", "", ""),
    ("13", "info", "graphics engine exception, mostly an application's", _RESTART, _APPLICATION),
    ("31", "info", "memory page fault, mostly an application's", _RESTART, _APPLICATION),
    ("43", "info", "the GPU stopped processing, mostly an application's", _IGNORE, _SUPPORT),
    ("45", "info", "clean-up after another error", "WORKFLOW_XID_45", "RESTART_FM"),
    ("69", "info", "graphics engine class error, mostly an application's", _RESTART, _APPLICATION),
    ("161", "info", "a note of the driver, to be ignored by NVIDIA's catalogue", _IGNORE, _SOFTWARE),
    *((code, "info", "corrupted commands, mostly an application's", _RESTART, _APPLICATION) for code in _COMMANDS),
    *((code, "info", "video or image engine error, mostly an application's", _RESTART, _SUPPORT) for code in _VIDEO),
    *((code, "info", "copy engine error, mostly an application's", _RESTART, _SUPPORT) for code in _COPY_ENGINES),
)  # fmt: skip
XIDS = {code: Xid(*rest) for code, *rest in _LISTED}
UNLISTED = Xid("info", "not in this catalogue")
NVLINK5 = frozenset(code for code, xid in XIDS.items() if xid.at_once == _LINK)

# Unit, code of a link event or bits of the status word, what a line needs at once and after. Of several rows of a unit
# the first that fits; other bits that the driver calls nonfatal: nothing at once, then support.
_DECODED: tuple[tuple[str, int, str, str], ...] = (
    ("SAW_MVB", 0x12, _RESET, _SUPPORT),
    ("SAW_MVB", 0x24, _IGNORE, _IGNORE),
    ("RLW_REMAP", 0xC0, _RESET, _SUPPORT),
    ("RLW_REMAP", 0x03, "XID_154_EVAL", _SUPPORT),
    ("RLW_REMAP", 0x3C, "XID_154_EVAL", "INVESTIGATE_LINK_SI"),
    ("RLW_REMAP", 0x300, _IGNORE, _IGNORE),
    ("RLW_RSPCOL", 0x2, _RESET, _SUPPORT),
    ("RLW_RSPCOL", 0x1, _IGNORE, _IGNORE),
    ("RLW_SRC_TRACK", 0x31, _RESET, _SUPPORT),
    ("RLW_SRC_TRACK", 0x0C, "XID_154_EVAL", _IGNORE),
    ("RLW_SRC_TRACK", 0x02, _IGNORE, _IGNORE),
    ("RLW_TAGSTATE", 0x120002, _RESET, _SUPPORT),
    ("RLW_TAGSTATE", 0x010001, _IGNORE, _IGNORE),
    *((unit, 0x4, _RESET, _SUPPORT) for unit in _TLW),
    *((unit, 0x1, _IGNORE, _IGNORE) for unit in _TLW),
)
_QUIET = frozenset({"RLW_CTRL", "RLW_RXPIPE", "TREX", "NVLPW_CTRL", "NVLPW", *(row[0] for row in _DECODED)})
_LINK_DOWN = {  # the code in the first word of NETIR's link events
    0: (_RESET, _SYMPATHETIC),
    1: (_RESET, _SUPPORT),
    **dict.fromkeys((2, 4, 10, 42, 43), (_RESET, "INVESTIGATE_LINK_SI")),
    **dict.fromkeys((15, 16, 17, 18, 22), (_RESET, "INVESTIGATE_SW_USER")),
    **dict.fromkeys((21, *range(32, 38)), (_RESET, "INVESTIGATE_PEER_DEVICE")),
    38: (_IGNORE, "INVESTIGATE_SW_USER"),
    40: (_IGNORE, "INVESTIGATE_HOST"),
}
_HARMLESS_MFDE = 3  # of the status words of NETIR_MFDE_EVENT the one that is ignored
_WORDS = r"\(0x([0-9a-fA-F]{1,8}) 0x([0-9a-fA-F]{1,8})\b"


def effective_code(event: Event) -> str:
    """45 is the clean-up after another error, which its line names; that error's own line may have left the log."""
    previous = event.detail.get("previous", "")
    return previous if event.code == "45" and previous in XIDS else event.code or ""


def decode_link_error(event: Event) -> tuple[str, str] | None:
    """What the words of a line of Xid 144 to 150 need at once and after; None where the sheet does not have them."""
    words = re.search(_WORDS, event.text) if event.code in NVLINK5 else None
    unit = event.detail.get("unit", "")
    if words is None:
        return None
    code, status = int(words[1], 16) >> 20 & 0x3F, int(words[2], 16)
    if unit in ("NETIR_LINK_EVT", "NETIR_LINK_DOWN"):
        return _LINK_DOWN.get(code)
    if unit == "NETIR_BER_EVENT":
        return _IGNORE, "INVESTIGATE_LINK_SI"
    if unit == "NETIR_MFDE_EVENT":
        return (_IGNORE, _IGNORE) if status == _HARMLESS_MFDE else (_RESET, _SUPPORT)
    if unit in ("NETIR", "NETIR_INT", "MSE_WATCHDOG"):
        return _RESET, _SUPPORT if unit == "MSE_WATCHDOG" else _SYMPATHETIC
    row = next((row for row in _DECODED if row[0] == unit and status & row[1]), None)
    if row:
        return row[2], row[3]
    return (_IGNORE, _SUPPORT) if unit in _QUIET and event.detail.get("severity") == "Nonfatal" else None
