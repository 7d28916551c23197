"""What is wrong with the pair of switches (MLAG, vPC) that one is of, as its command line states it."""

from __future__ import annotations

from collections.abc import Sequence

from probes.text import lazy_pattern
from probes.tool_reports.facts import ToolReport, state_fault

_IS = r"[ \t]{0,40}:[ \t]{0,40}"
_LOST = r"(?:\bdown\b|suspended|not alive|not reachable|failed|disconnected|connecting|lowerlayerdown|\berror\b)"
_LOST_PEER = lazy_pattern(  # the last: a link of Onyx to its peer
    r"(?i)[ \t]{0,40}(?P<line>(?:peer-?link status|peer status|negotiation status|(?:vpc |peer[- ]?)keep-?alive status"
    rf"|session status|mclag peer status){_IS}(?:\S.{{0,80}}[ \t])?{_LOST}.*|the peer is not alive.*"
    r"|\d{1,3} {1,12}Po\d{1,4} {1,12}\d{1,4} {1,12}Down {1,12}\d{1,3}(?:\.\d{1,3}){3}\b.*)"
)
_OF_OTHERS = lazy_pattern(r"(?i)[ \t]{0,40}(?:session|peer|negotiation) status\b")  # IPsec, BFD and NTP have them
_NAMES_PAIR = lazy_pattern(r"(?i)\bm-?c?-?lag|\bclag\b|\bvpc\b|peer[- ]?link|peer adjacency|\bicc[pl]\b")
_PAIR = lazy_pattern(
    r"(?i)[ \t]{0,40}(?:peer-?link status|peer status|negotiation status|v?pc keep-alive status|vpc role"
    r"|the peer is alive|clag interfaces|mlag status:?)[ \t]{0,40}(?:$|:)"
)
_DIFFERS = lazy_pattern(
    r"(?i)[ \t]{0,40}(?P<line>(?:configuration|per-vlan|type-2) consistency status"
    rf"{_IS}failed.*|peer-config{_IS}inconsistent.*)"
)


_CLAG = lazy_pattern(r"^Our Interface +Peer Interface +CLAG Id\b")
_OF_ONE = lazy_pattern(
    r"[ \t]{1,20}(?P<name>[\w.-]{2,30})[ \t]{2,30}-[ \t]{2,40}\d{1,5}[ \t].*"
)  # without that of the peer
_OF_BOTH = lazy_pattern(r"[ \t]{1,20}(?P<name>[\w.-]{2,30})[ \t]{2,30}\w[\w.-]{1,30}[ \t]{2,40}\d{1,5}[ \t].*")


def is_of_pair(lines: Sequence[str]) -> bool:
    """Whether it is of a pair, with or without a fault.

    >>> is_of_pair(["vPC role                        : primary"]), is_of_pair(["role: primary"])
    (True, False)
    """
    is_named = _is_named(lines)
    return any(_counts(line, is_named) and (_PAIR.match(line) or _LOST_PEER.fullmatch(line)) for line in lines)


def _is_named(lines: Sequence[str]) -> bool:
    return any(map(_NAMES_PAIR.search, lines))


def _counts(line: str, is_named: bool) -> bool:
    """Whether a line is about a pair: by its own words, or by those of the text."""
    return is_named or _OF_OTHERS.match(line) is None


def list_pair_faults(lines: Sequence[str]) -> list[ToolReport]:
    """A lost peer, and settings in which the two differ.

    >>> [report.code for report in list_pair_faults(["Peer status : peer adjacency failed"])]
    ['switch-peer-lost']
    >>> list_pair_faults(["Interface: Tunnel12", "Session status: DOWN-NEGOTIATING"])
    []
    """
    is_named = _is_named(lines)
    single = [match for line in lines if (match := _OF_ONE.fullmatch(line))] if any(map(_CLAG.search, lines)) else []
    whole = sum(_OF_BOTH.fullmatch(line) is not None for line in lines)
    of_one = [state_fault("switch-peer-differs", match["name"], match[0], match[0]) for match in single]
    return [*(of_one if len(single) < whole else ())] + [
        state_fault(code, None, match["line"], match[0])
        for code, pattern in (("switch-peer-lost", _LOST_PEER), ("switch-peer-differs", _DIFFERS))
        for match in map(pattern.fullmatch, lines)
        if match and _counts(match[0], is_named)
    ]
