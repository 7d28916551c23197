"""Xids that a person or a program names by their number: "Xid 79 on 0000:4e:00.0", "GPU 6: XID 48 (3x)", a list of
them below the name of a GPU. Lines of the driver itself have a reader of their own (`probes/kernel`).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from probes.prose import is_denied
from probes.text import lazy_pattern
from probes.tool_reports.facts import ToolReport
from probes.tool_reports.sentences.parts import find_part

CODE = "stated-xid"
_OF_KERNEL = "Xid ("  # a line of the driver, which has its own reader
_LONGEST, _TEXT = 600, 400
_MOST_LINES, _MOST_REPORTS = 4000, 32
_BELOW = 12  # lines of a list below the one that names its GPU
_MOST_WITHOUT, _MOST_OF_PART = 3, 6  # numbers of one line: more are a list of what can happen
_OF_GPU = ("bdf", "number", "uuid", "node", "cuda")
_XID = lazy_pattern(
    r"(?<![\w(/-])[`'\"*]{0,3}(?i:xids?)(?:[ _-](?i:errors?|codes?|events?|number))?[`'\"*]{0,3}[ :=#]{1,3}"
    r"(?P<numbers>\d{1,3}(?![\w:.%]\w|\w)"
    r"(?: ?(?:[,/&+]|,? ?\band\b) ?\d{2,3}(?![\w:.%]\w|\w| ?(?:x\b|times|GPUs?|nodes?|others?|more|jobs?|hours?|min"
    r"|days?))){0,12})"
)
_NUMBER = lazy_pattern(r"\d{1,3}")
_MEANT = lazy_pattern(  # in front of one that is an example, or that is none
    r"(?i)(?:\be\.g\.|\bi\.e\.|\bsuch as|\blike|\bignor\w{1,4}|\bsuppress\w{0,4}|\bfilter\w{0,4}|\bwhether|\bif|\bor"
    r"|\bno|\bno such|\bnot|\bnever|\bwithout(?: any| an?)?|\binstead of|\bany|\bthan|\bexcept|\bother|\bmeans?)"
    r"(?: the| an?)?[ `'\"(]{1,4}$"
)
_ASKED = lazy_pattern(
    r"\?[\s\"'*_]*$|^[\W_]{0,12}(?i:if|when|whether|unless|why|how|what|which|to avoid|make sure|note that|please) "
    r"|(?i:\b(?:alert|watch|block|allow|ignore|deny|skip)[ -]?(?:list|rules?)\b|\bcatalog|\bdocument(?:ation|ed)\b)"
)
_SEEN = lazy_pattern(  # that it came, where no GPU is named; a line that begins with its number explains it
    r"(?i)^(?![\W_]{0,8}xids? ?\d{1,3} {0,2}[:=|-]).*?(?:\b(?:got|gets?|getting|saw|sees?|seeing|seen|had|hits?|logged"
    r"|logs|shows?|reports?|reported|throws?|crash\w*|died|dies|lost|after|since|again|times|now|keeps?|dmesg|journal\w*"
    r"|today|yesterday)\b|\d\d:\d\d)"
)


def list_stated_xids(text: str) -> list[ToolReport]:
    """Each Xid of each GPU once.

    >>> text = "Xid 119 on 0000:4e:00.0 at 02:13, then Xid 79 on 0000:bb:00.0"
    >>> [(report.subject, dict(report.detail)["xid"]) for report in list_stated_xids(text)]
    [('0000:4e:00.0', '119'), ('0000:bb:00.0', '79')]
    >>> [report.subject for report in list_stated_xids("On GPU 6 so far:\\n - XID 48 (3x)\\n - XID 63\\n")]
    ['NVIDIA 6', 'NVIDIA 6']
    >>> list_stated_xids("Alert list: Xid 48, 63, 79. There is no Xid 79 on GPU 3. Does Xid 31 need a reset?")
    []
    """
    reports: dict[tuple[str | None, str], ToolReport] = {}
    for part, number, line in islice(_find(text), _MOST_REPORTS):
        evidence = " ".join(line.split())[:_TEXT]
        reports.setdefault((part, number), ToolReport(CODE, part, evidence, (("xid", number),)))
    return list(reports.values())


def _find(text: str) -> Iterator[tuple[str | None, str, str]]:
    """The GPU, the number, the line."""
    above, below = None, 0  # the GPU of the line that a list is below
    for line in islice(text.splitlines(), _MOST_LINES):
        if len(line) > _LONGEST or _OF_KERNEL in line:
            continue
        named = find_part(line, _OF_GPU)
        matches = list(_XID.finditer(line)) if "id" in line or "ID" in line else []
        above, below = (named, _BELOW) if named else (above if below else None, max(below - 1, 0))
        if not matches or _ASKED.search(line):
            continue
        ends = [match.start() for match in matches[1:]] + [len(line)]
        leads = find_part(line[: matches[0].start()], _OF_GPU)  # "GPU 3: Xid 79, GPU 5: Xid 48"
        begin = 0
        for match, end in zip(matches, ends, strict=True):
            before, after = line[begin : match.start()], line[match.end() : end]
            leads = leads and (find_part(before, _OF_GPU) or leads)
            part = leads or find_part(after, _OF_GPU) or named or above
            begin = match.end()
            numbers = _NUMBER.findall(match["numbers"])
            most = _MOST_OF_PART if part else _MOST_WITHOUT
            is_seen = part is not None or _SEEN.search(line) is not None
            if not is_seen or len(numbers) > most or _MEANT.search(before) or is_denied(line, match.start()):
                continue
            yield from ((part, str(int(number)), line) for number in numbers)
