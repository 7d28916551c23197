"""pcie-tags-off."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.rules.case import Case
from agent.rules.devices import away
from agent.rules.folding import folded
from agent.rules.pcie.registers import Gear, gear, not_told, register
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule

_FAST_GT_S, _WIDE = 16.0, 16


@rule("pcie-tags-off", "info", needs=("pci|lspci",), references=("PCIE-016",))
def pcie_tags_off(case: Case) -> Iterator[Answer]:
    """A fast device may keep fewer reads in flight than it and its ports could.

    ## What it checks
    GPUs and NICs in use with a link of 16 GT/s x16 or more: extended (8-bit) and 10-bit tags.

    ## Why it matters
    A tag names a read in flight. 32 reads of 512 bytes are 16 KiB; a Gen 5 x16 link with 1 µs of latency needs 63 KB on
    the way. With too few the link idles between answers.

    ## How it is decided
    The device can use extended tags (DevCap), and they are off (DevCtl); or it can use 10-bit tags as requester, every
    port above it can complete them (DevCap2), and they are off (DevCtl2). It is information: firmware often manages
    tags by itself, and Linux does not switch 10-bit tags on. Where all are so, it is one finding for the node.

    ## What keeps it silent
    - Slower or narrower links; devices and ports that cannot; virtual functions and machines; NICs without a use.
    - An older lspci does not print 10-bit tags, and without CAP_SYS_ADMIN nothing of this can be read: unknown.

    ## How to confirm
    `lspci -vvv -s ADDRESS | grep -E 'ExtTag|10BitTag'`

    ## How to fix
    Look for "extended tags" or "10-bit tags" in the BIOS; update the firmware of the card.

    ## Source
    PCI Express Base Specification, Device Control and Device Control 2; Linux `pci_configure_extended_tags()`.
    """
    answers = (_judge(case, each) if isinstance(each, Gear) else each for each in gear(case))
    yield from folded(answers, "fewer reads in flight than possible on every GPU and NIC")


def _judge(case: Case, each: Gear) -> Answer:
    function, link, above = each.function, each.function.link, case.ancestors(each.function)
    if link is None or link.max_speed_gt_s is None or link.max_width is None:
        return Unknown(each.subject, "what its link can do is not known")
    if link.max_speed_gt_s < _FAST_GT_S or link.max_width < _WIDE:
        return NotApplicable(each.subject, "a link that needs few tags")
    if not above or any(away(port) for port in above):
        return NotApplicable(each.subject, "no port above it that answers")
    if function.extended_tags_supported is None or function.extended_tags is None:
        return Unknown(each.subject, not_told(function, "extended tags"))
    if function.extended_tags_supported and not function.extended_tags:
        return _fault(each, "extended tags", 32, register(function, "extended tags", "off", "DevCtl: ExtTag"))
    if function.ten_bit_tags_supported is False or function.ten_bit_tags:
        return Pass(each.subject)
    completers = [port.ten_bit_tags_supported for port in above]
    if False in completers:
        return Pass(each.subject)
    if None in (function.ten_bit_tags_supported, function.ten_bit_tags, *completers):
        return Unknown(each.subject, not_told(function, "10-bit tags"))
    return _fault(each, "10-bit tags", 256, register(function, "10-bit tags", "off", "DevCtl2: 10BitTagReq"))


def _fault(each: Gear, which: str, reads: int, evidence: Evidence) -> Fail:
    return Fail(
        subject=each.subject,
        label=each.label,
        summary=f"{which} are off, and the device and all ports above it could use them",
        impact=f"{reads} reads in flight at most; large reads may not fill the link.",
        remedy="Look for the setting in the BIOS; update the firmware of the card.",
        evidence=(evidence,),
        confidence="low",
        cause=which,
        places=each.places,
    )
