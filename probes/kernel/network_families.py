"""Lines of drivers of NICs that read as a failure and have no row of their own, by what it is that failed.

Some thousand such lines are in the drivers of one kernel, and few of them differ in what a person can do. A family is
recognized by words that all of these drivers use, and by no more: what it means has low confidence. Sources: Linux 6.12
drivers/net/ethernet/{mellanox,broadcom/bnxt,intel,amazon,pensando,hisilicon,chelsio,microsoft,google,huawei},
drivers/infiniband.
"""

from __future__ import annotations

import re

from probes.kernel.log_facts import LogEvent
from probes.kernel.sentence import BDF, DRIVER, NIC_DRIVERS, address
from probes.named_tuple import NamedTuple
from probes.text import lazy_pattern

_LINE = lazy_pattern(
    rf"(?:(?:{NIC_DRIVERS}) {BDF}(?: (?:(?P<interface>[\w.@-]{{1,32}})|\(unn[^:]{{1,60}}))?"
    r"|infiniband (?P<name>[\w-]{1,32})): (?P<text>.*)"
)
_FAILS = (
    r"(?:[Ff]ail(?:ed|ure|s)?|FAILED|[Uu]nable|[Cc](?:an|ould)(?: ?not|n't|'t)|[Ii]nvalid|[Rr]eject(?:ed|ing|s)?|"
    r"[Ee]rr(?:or)?)"
)
# What a NIC works without: clocks, offloads, filters, what drivers write about themselves
_OPTIONAL = lazy_pattern(
    r"allocate command entry|"  # the queue is full for a moment, as while it boots
    r"\bPTP|\bptp_|\bPHC|phc_|TLS\b|MACsec|IPsec|ipsec|[Tt]racer|[Dd]ump|crdump|hwmon|[Dd]ebugfs|[Dd]evlink|sysfs|"
    r"[Ff]low [Dd]irector|[Ff]ilter|ntuple|aRFS|RFS\b|[Tt]unnel|UDP|[Ff]alling back|[Aa]ffinity|NVM config|[Cc]oalesc|"
    r"[Tt]imestamp|[Tt]ime stamp|GNSS|gnss|DPLL|dpll|PPS|\bVPD\b|vsc\b|[Ww]ake|LRO|XDP|rate limit|[Tt]x rate|tc[_-]|"
    r"flash|timeout abort in|during close"
)


class FailureFamily(NamedTuple):
    """Lines of one kind of failure."""

    code: str
    pattern: re.Pattern[str]


def _family(code: str, *forms: str) -> FailureFamily:
    return FailureFamily(code, lazy_pattern("|".join(forms)))


def _failing(words: str, characters: int = 40) -> str:
    """That something failed, before or after what it was."""
    near = f".{{0,{characters}}}"
    return f"{_FAILS}{near}(?:{words})|(?:{words}){near}{_FAILS}"


FAMILIES = (  # in this order: the first that fits
    _family(
        "nic-hardware",
        r"\bECC\b|[Pp]arity|[Hh]ardware (?:[Ee]rror|[Ff]ault|access error)|\bHW [Ee]rror|\[error status=0x",
        r"[Uu]nrecoverable (?:netlist|runtime) error|[Cc]ritical PE Error|\bHMC Error",
        r"(?:EEPROM|NVM)\b.{0,20}[Cc]hecksum",
    ),
    _family("nic-gone", r"PCI channel offline|config space inaccessible"),
    _family(
        "firmware-mismatch",
        r"(?:[Ff]irmware|FW|NVM|HWRM|DDP|[Pp]ackage|[Dd]river|cmdif|ABI)\b.{0,80}\b(?:version|rev)\b.{0,60}"
        r"(?:older|newer|lower|higher|too old|mismatch|not supported|differs|should be)",
        r"[Vv]ersion mismatch|not compatible|[Ii]ncompatible",
    ),
    _family("module-refused", r"unsupported .{0,24}module|[Mm]odule (?:is )?not (?:supported|present)"),
    _family("nic-interrupts", _failing(r"MSI-?[Xx]|\birqs?\b|IRQ|_irq|[Ii]nterrupts?\b|[Vv]ectors?\b|\bintrs?\b")),
    _family("vf-refused", _failing(r"\bVFs?\b|SR-?IOV|sriov", 60)),
    _family("roce-lag", _failing(r"\bLAG\b|\blag\b|single FDB")),
    _family("qos-refused", _failing(r"\bETS\b|\bPFC\b|\bDCB|buffer ownership|config (?:BW|prio)\b")),
    _family("gid-refused", _failing(r"\bS?GIDs?\b|\bgid\b|RoCE address", 24)),
    _family(
        "rdma-start",
        _failing(r"RDMA|R[Oo]CE|RNIC|[Aa]uxiliary", 60),
        _failing(r"(?:ib_|IB |ib |register )device", 24),
    ),
    _family("queue-stalled", r"(?:\b[Tt][Xx]|[Tt]ransmit)[ _-]?(?:[Tt]imeout|[Hh]ang|Unit Hang)"),
    _family(
        "queue-error",
        r"\bCQ (?:error|Process\w{0,6})|[Ee]rror cqe|[Ff]atal QP|work queue .{0,24}error|on MAD QP",
        rf"{_FAILS} to move [rs]q",
    ),
    _family(
        "reset-incomplete",
        _failing(r"\b[Rr]eset|[Rr]ebuild|[Rr]ecovery\b"),
        r"\b[Rr]eset\b.{0,40}(?:timed out|timeout|abort)|mlx5_pci_link_toggle|FW Update Reset",
    ),
    _family(
        "firmware-silent",
        r"(?:[Cc]ommand|[Cc]ompletion|\bcmd|CMD|\bAQ|[Aa]dmin|[Mm]ailbox|mbx|HWC|HWRM|[Ff]irmware|FW|CQP|\b[Ww]ait)"
        r"\w{0,20}\b.{0,60}(?:[Tt]ime(?:d )?-?[Oo]ut|TIMEOUT|respon)",
        r"(?:[Tt]imed out|[Tt]imeout).{0,40}(?:command|firmware|\bFW\b|HWC|completion)|[Aa]bandoning msg",
        r"isn't ready|contact the device's firmware",
    ),
    _family(
        "nic-start",
        r", aborting\b|\bprobe\b.{0,24}[Ff]ail|handle_hca_cap|_hca\b|\bhca failed|(?:function_enable|load_one) err",
        _failing(
            r"\b(?:[Ii]nit\w{0,12}|[Ss]et ?up|establish|identify|enable|net ?dev\w{0,12}|net device|BAR|bar|PCI)\b", 24
        ),
        rf"_init\w{{0,12}}(?:\(\))? {_FAILS}",
    ),
    _family(
        "nic-memory",
        _failing(r"alloc\w{0,12}(?:\(\))?|(?:dma|DMA)\w{0,12} ?map\w{0,6}|\bmap\b|\bmemory\b", 30),
        r"(?:[Oo]ut of|[Ii]nsufficient|[Nn]o) memory",
    ),
    _family(
        "rdma-refused",
        rf"{_FAILS}.{{0,24}}(?:[Cc]reat|[Mm]odif|[Rr]egister|[Dd]estroy|post).{{0,24}}"
        r"\b(?:QPs?|CQs?|MR|AH|PD|SRQ|qp|cq|mr|ah|pd|srq|mkey)\b",
        r"[Mm]odify_?qp|create_(?:qp|cq|mr|ah)",
    ),
    _family("port-setup", _failing(r"\b[Ll]ink\b|\b(?:phy|PHY)\b|\bptys\b|port_pause|\bspeed\b")),
    _family("command-refused", r"op_mod\(0x[0-9a-f]+\) failed, status|\bhwrm|HWRM|aq_err|\bAQ\b|[Cc]ommand|\bcmd\b"),
)
_COMMAND = lazy_pattern(
    r"\b(?P<command>[A-Z][A-Z_0-9]{3,40})\(0x[0-9a-f]{1,4}\) op_mod.{0,20} failed, status (?P<what>[\w ]{3,40})\("
)


def read_family(text: str) -> LogEvent | None:
    """The event of a line that reads as a failure; None where it is of no NIC, or of something a NIC works without.

    >>> event = read_family("ice 0000:3b:00.0: Failed to initialize the mailbox, err -5")
    >>> event and (event.subject, event.code)
    ('0000:3b:00.0', 'nic-start')
    """
    line = _LINE.match(text)
    if line is None or _OPTIONAL.search(line["text"]):
        return None
    family = next((family for family in FAMILIES if family.pattern.search(line["text"])), None)
    if family is None:
        return None
    detail = {name: value for name in ("interface",) if (value := line[name])}
    if command := _COMMAND.search(line["text"]):
        detail |= command.groupdict()
    subject = address(line["bdf"]) if line["bdf"] else line["name"]
    return LogEvent(DRIVER, text, None, subject, family.code, detail=tuple(sorted(detail.items())))
