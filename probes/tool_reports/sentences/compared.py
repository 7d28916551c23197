"""Values that people state together with what they should be: "GPU 5 shows x8 instead of x16", "7 of 8 GPUs".

A sentence counts that names a part, and has two values of one unit with words of a comparison between them, of which
the first is the smaller. Which value is right, nothing here judges: the person does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from probes.prose import is_denied
from probes.text import lazy_pattern
from probes.tool_reports.facts import ToolReport, state_fault
from probes.tool_reports.sentences.parts import DEVICES, find_part

_LONGEST, _LONGEST_TEXT = 1200, 100_000  # of a sentence; of a text: more is a log
_SHOWN = 160
_FAR = 0.85  # of what a bandwidth should be
_SENTENCE = lazy_pattern(r"(?<=[.;!?])(?<!vs\.)\s+(?=[A-Z0-9`])|\n")
_PART = lazy_pattern(
    r"(?<![\w.-])(?:(?P<kind>GPU|NPU|HPU|NIC|[Pp]ort|[Rr]ail|[Cc]ard) ?#?(?P<number>\d{1,3})|(?P<name>hl\d{1,2}|"
    r"(?:gpu|npu|node|host|compute|worker|dgx|hgx|mi|n|c|r|cn)[\w-]{0,24}\d{1,5}))\b(?![.-]\d)"
)
_INSTEAD = (
    r"(?:,? (?:but )?(?:instead of|rather than|vs\.?|versus|where|while|whereas|not|and not|should be|expected)"
    r"|,? (?:and )?(?:the )?(?:rest|others)(?: (?:is|are|have|has|at))?(?: at)?(?= )"
    r"|,? ?\((?:should be|expected|expect|others?|all others?|instead of|vs\.?|spec|max|of|was|the others))"
    r"(?: (?:the|all|are|is|be|have|has|at|of|on|run|runs|show|shows|other|others|rest|every|peers|usual|expected|it|"
    r"should|get|reach|GPUs?|NPUs?|NICs?|ports?|links?|cards?|nodes?)){0,6}:? "
)
_VALUES = (  # code, the unit, the value
    ("below-width", r"x ?{}\b(?! ?(?:GPU|MI|H\d|A\d|NVIDIA|AMD))", r"\d{1,2}"),
    ("below-speed", r"(?:PCIe )?[Gg]en ?{}\b", r"[1-7]"),
    ("below-speed", r"{} ?GT/s", r"\d{1,2}(?:\.\d)?"),
    ("below-rate", r"{} ?(?:Gb/s|Gbps|Gbit/s|Gb/sec|G\b|GbE)", r"\d{1,4}"),
    ("below-bandwidth", r"{} ?(?:GB/s|GiB/s|TFLOPS)", r"\d{1,5}(?:\.\d{1,3})?"),
)
_PAIRS = tuple(
    (
        code,
        lazy_pattern(
            unit.replace("{}", f"(?P<value>{number})", 1) + _INSTEAD + unit.replace("{}", f"(?P<want>{number})", 1)
        ),
    )
    for code, unit, number in _VALUES
)
_PARTS = r"(?:cards?|ports?|GPUs?|NPUs?|nodes?|hosts?|links?|rails?|HCAs?|NICs?|ones)"
_OTHERS = (  # further behind the value, and with or without its unit
    rf"[^.;\n]{{0,60}}?\b(?:all |the )?(?:others|other {_PARTS}|rest|everything else|everyone else)\b"
    r"(?: (?:all|do|gets?|have|has|are|is|at|on|runs?|shows?|reach|see|with|around|about)){0,3}:? "
)
_LABELS = (
    ("below-rate", "(?:[Rr]ate|[Ss]peed)", r"\d{1,4}"),
    ("below-width", "[Ww]idth", r"\d{1,2}"),
    ("below-bandwidth", "(?:[Bb]andwidth|(?:bus|alg)?bw)", r"\d{1,5}(?:\.\d{1,3})?"),
)
_BESIDE_OTHERS = tuple(
    (code, lazy_pattern(rf"(?<![\w.]){value}{_OTHERS}(?:x|[Gg]en ?)?(?P<want>{number})(?![\d.]*\d)(?! {_PARTS}\b)"))
    for code, value, number in (
        *((code, unit.replace("{}", f"(?P<value>{number})", 1), number) for code, unit, number in _VALUES),
        *((code, rf"{label}(?:s?:| is| of| =)? ?(?P<value>{number})(?![\d.]*\d)", number)
          for code, label, number in _LABELS),
    )
)  # fmt: skip
_DEVICES = r"(?:GPU|NPU|HPU|NVLink|HCA|NIC)s?|XGMI links|IB ports|devices"
_OUT_OF = lazy_pattern(
    rf"\b(?P<value>\d{{1,3}}) (?:of|out of|/) (?:the |all )?(?P<want>\d{{1,3}}) (?:{_DEVICES})\b"
    r"(?! (?:are|were) (?:fine|ok|healthy|up|visible again))"
    r"(?P<lost> (?:(?:are|is) )?(?:down|inactive|missing|failed|lost|dead|faulty|unhealthy|gone)\b)?"
)
_EXPECTED = lazy_pattern(
    r"(?i:expected|should (?:have|be|see)|configured)(?: count)?:? (?P<want>\d{1,3})(?: [A-Za-z]{2,8})?[,;:]? "
    r"(?:(?:and|but|only|is|there|are|we|it|the|node|host|I|actual|actually):? ){0,4}?"
    r"(?:found|got|have|has|see|sees|detected|actual|shows?|reports?|lists?|are|is):? (?:only )?(?P<value>\d{1,3})\b"
)
_SINCE = lazy_pattern(  # fewer than before, though not how many these were
    r"\bonly (?:sees?|shows?|lists?|finds?|has|detects?|reports?) (?P<value>\d{1,3}) (?:GPU|NPU|HPU|HCA|NIC)s?\b"
    r"(?: (?:now|left))?(?=,? (?:since|after) "
    r"(?:[\w']{1,12} ){0,3}(?:reboot|restart|reset|crash|power|upda|upgra|outage))"
)
_TIMES = lazy_pattern(  # a line above others of one time
    r"(?i)[ \t>#*-]{0,8}(?:(?P<before>before|prior to|old|vorher)|(?:after|now|new|nachher))\b[^\n:]{0,60}:[ \t*]*"
)
_LABELLED = tuple(
    (code, lazy_pattern(rf"\b{label}s?(?::| ?=| is)? ?x?(?P<value>{number})(?![\d.]*\d)"))
    for code, label, number in _LABELS
)
_OF_DEVICES = lazy_pattern(rf"\b(?:{_DEVICES})\b")
_LISTED = lazy_pattern(r"(?i)\b(?:only|just|sees?|shows?|lists?|finds?|found|detect\w+|reports?|missing|left)\b")
_LEFT = lazy_pattern(r"(?i)\b(?:visible|detected|found|listed|left|active|up|present)\b")
_USUAL = lazy_pattern(
    r"(?i)\b(?:us(?:e|es|ed|ing)|runs?(?! at\b)|training|ranks?|comm|normal|by design|as designed|as expected|"
    r"no problem|idle|not a problem|power sav\w+|intentional\w*|bifurcat\w+|fixed|resolved|used to|was showing|before|"
    r"example|e\.g\.|would|could|if|per job|each job|request\w*|allocat\w*|\w*VISIBLE_DEVICES|NCCL_\w+)\b|\?"
)


_MAC = r"[0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2}){5}"
_CLAIMED = (  # what one alone may have, and who has it, of lines with a text
    ("address-taken", "reply from",
     lazy_pattern(rf"(?:Uni|Broad)cast reply from (?P<what>[\d.]{{7,15}}) \[(?P<owner>{_MAC})\]")),
    ("address-taken", "DUP: ", lazy_pattern(rf"(?m)^(?P<what>[\d.]{{7,15}})\t(?P<owner>{_MAC})\t")),
    ("sm-second-master", "SMINFO_MASTER",
     lazy_pattern(r"sm guid (?P<owner>0x[0-9a-f]{1,16}), [^\n]{0,80} (?P<what>SMINFO_MASTER)")),
)  # fmt: skip
_ASKED_DEVICE = lazy_pattern(r"\bsminfo [^\n]{0,40}?-C ?(?P<device>\w{2,20})")  # several are of several fabrics


def find_claims(text: str) -> Iterator[tuple[str, str, dict[str, str]]]:
    """What two have of which one alone may have it: the code, what it is, and by owner the words that state it.

    >>> line = "Unicast reply from 10.0.0.9 [B8:3F:D2:11:22:{}]  0.7ms\\n"
    >>> [(what, list(lines)) for _, what, lines in find_claims(line.format(33) + line.format(44))]
    [('10.0.0.9', ['b8:3f:d2:11:22:33', 'b8:3f:d2:11:22:44'])]
    >>> list(find_claims(line.format(33) * 2))
    []
    """
    for code, needle, pattern in _CLAIMED:
        owners: dict[str, dict[str, str]] = {}
        for match in pattern.finditer(text) if needle in text else ():
            owners.setdefault(match["what"], {}).setdefault(match["owner"].lower(), match[0])
        if code == "sm-second-master" and len(set(_ASKED_DEVICE.findall(text))) > 1:
            continue
        yield from ((code, what, lines) for what, lines in owners.items() if len(lines) > 1)


def list_compared(text: str) -> Iterator[ToolReport]:
    """Each such value, of the part that the sentence names.

    >>> [report[:2] for report in list_compared("On n7 GPU 5 shows PCIe width x8 (others x16), ECC is zero.")]
    [('below-width', 'n7 GPU 5')]
    >>> [report.detail for report in list_compared("GPU count: expected 8, found 7")]
    [(('what', 'expected 8, found 7'),)]
    >>> [report.detail for report in list_compared("Rate: 200 on mlx5_6, other cards 400")]
    [(('what', 'Rate: 200 on mlx5_6, other cards 400'),)]
    >>> list(list_compared("Is x8 instead of x16 normal for GPU 5?")), list(list_compared("We use 4 of 8 GPUs."))
    ([], [])
    """
    if len(text) > _LONGEST_TEXT:
        return
    yield from _list_fallen(text)
    for code, what, lines in find_claims(text):
        yield state_fault(code, None, f"{what}: {', '.join(lines)}", "; ".join(lines.values()))
    for sentence in _SENTENCE.split(text):
        if not 12 < len(sentence) < _LONGEST or _USUAL.search(sentence):
            continue
        subject = _name(sentence)
        found = set()
        for code, pattern in (*_PAIRS, *_BESIDE_OTHERS) if subject else ():
            if code not in found and (match := pattern.search(sentence)) and _is_below(code, match, sentence):
                found.add(code)
                yield _report(code, subject, match[0], sentence)
        counted = _OUT_OF.search(sentence)
        match = counted if counted and _states_presence(sentence, counted) else _EXPECTED.search(sentence)
        if not match and (since := _SINCE.search(sentence)):
            yield _report("below-count", subject, since[0], sentence)
        if match and _OF_DEVICES.search(sentence) and _is_below("below-count", match, sentence):
            yield _report("below-count", subject, match[0], sentence)


def _list_fallen(text: str) -> Iterator[ToolReport]:
    """Values of lines below "after ...:" that are less than those of the same lines below "before ...:".

    >>> text = "before the update:\\n mlx5_{} rate: {}\\nafter the update:\\n mlx5_0 rate: {}\\n"
    >>> [row.detail for row in _list_fallen(text.format(0, 400, 200))], list(_list_fallen(text.format(0, 200, 400)))
    ([(('what', 'rate: 200, before 400'),)], [])
    """
    time, first = None, dict[tuple[str, str], float]()
    for line in text.splitlines():
        if heading := _TIMES.fullmatch(line):
            time = "before" if heading["before"] else "after"
            continue
        for code, pattern in _LABELLED if time and len(line) < _LONGEST else ():
            if match := pattern.search(line):
                form = code, " ".join(f"{line[: match.start()]} {line[match.end() :]}".split())
                value = float(match["value"])
                if time == "before":
                    first.setdefault(form, value)
                elif value < _FAR * first.get(form, 0):
                    yield _report(code, _name(line), f"{match[0]}, before {first[form]:g}", line)


def _is_below(code: str, match: re.Match[str], sentence: str) -> bool:
    share = _FAR if code == "below-bandwidth" else 1
    return float(match["value"]) < share * float(match["want"]) and not is_denied(sentence, match.start())


def _states_presence(sentence: str, match: re.Match[str]) -> bool:
    """Whether words around a count state what is there, or is not."""
    before, after = sentence[max(match.start() - 60, 0) : match.start()], sentence[match.end() : match.end() + 30]
    return bool(match["lost"] or _LISTED.search(before) or _LEFT.search(after))


def _name(sentence: str) -> str | None:
    """The part of a sentence: an address or RDMA device, else its host and its part by their names."""
    if part := find_part(sentence, DEVICES):
        return part
    numbered = {f"{match['kind']} {match['number']}" for match in _PART.finditer(sentence) if match["number"]}
    named = {match["name"] for match in _PART.finditer(sentence) if match["name"]}
    if len(numbered) > 1 or len(named) > 1:
        return None
    return " ".join([*named, *numbered]) or None


def _report(code: str, subject: str | None, what: str, sentence: str) -> ToolReport:
    shown, what = " ".join(sentence.split()), " ".join(what.split())
    what += ")" * (what.count("(") - what.count(")"))
    return state_fault(code, subject, what, shown[:_SHOWN])
