"""Lines in which a program or a person states that something failed, in words that no table of sentences has.

What such a line means is a matter of rules. Here it is collected where it names a part of the fabric, or where a
program wrote it as an error about RDMA or a GPU; the words of a failure are those of the kernel's lines, and some more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from probes.kernel.unexplained import FAILS, VARIABLE, is_harmless
from probes.prose import is_denied
from probes.text import lazy_pattern
from probes.tool_reports.facts import ToolReport, state_fault
from probes.tool_reports.sentences.parts import find_part, find_place, list_parts
from probes.tool_reports.sentences.xids import list_stated_xids

CODE = "unexplained-line"
_LONGEST, _SHOWN, _TEXT = 600, 160, 400  # characters of a line, of the words that are shown, of the evidence
_LONGEST_PROSE = 240
_PARTS, _FORMS = 16, 2  # parts of which lines are kept, and forms of lines of each
_MOST_LINES = 4000
_STATES = tuple(  # one of which a state of trouble beside known outputs has
    form
    for word in ("failed", "degraded", "unhealthy", "critical", "faulty", "offline", "abnormal")
    for form in (word, word.capitalize(), word.upper())
)

_LOGGED = lazy_pattern(  # how programs begin a line that states an error: a severity, or the place in their source
    r"[EF]\d{4} [\d:.]{8,16} |-E- |[ \t]{0,40}(?:[A-Z][a-z]{2} [ \d]\d [\d:]{8} [\w.-]{1,64} )?"
    r"(?:[\w./-]{1,60}(?:\[\d{1,10}\])?: ){0,2}"
    r"(?:error|fatal|panic)(?: in [\w ]{3,40})?: |"
    r".{0,120}?(?:\b(?:ERROR|FATAL|CRITICAL)\b|\blevel=(?:error|fatal)\b|"
    r"\b(?:ERR|CRIT|ALERT|EMERG) (?=(?:swss|syncd|pmon|teamd|bgp|lldp|gbsyncd)\d{0,2}#)|"  # of SONiC
    r"[\w/.-]{2,120}\.(?:c|cc|cpp|cu|go|rs|py):\d{1,6}\b)"
)
_THEME = lazy_pattern(
    r"\b(?:ib[ps]?\d{1,3}\w{0,8}|HCA|RDMA|RoCE|InfiniBand|GID|QP|uverbs\d{0,3}|umad\d{0,3}|VF \w{1,8}|SR-?IOV|peermem|"
    r"dma-?buf|GPUDirect|(?:pmon|syncd|swss)\d{0,2}#\w{1,40}|(?:ibv|rdma|uct|cxil?|sharp)_\w{2,40}|NVLink"
    r"|network device|MIG (?:config\w{0,10}|mode)|(?:slurmd|slurmctld)(?=[\[:])|spank-\w{2,8}|pyxis|enroot"
    r"|NVSwitch|IMEX|[Ff]abric ?[Mm]anager)\b"
)
_ALSO_FAILS = lazy_pattern(  # words that lines of drivers have where all is well, too
    r"\b(?:mis-?match\w*|unreachable|denied|not (?:ok|found|available|permitted|ready|detected|working|present)|no such"
    r"|missing|lost|degraded|expired|disconnected|unhealthy|offline|misconfigured|inconsistent|incompatible|illegal"
    r"|wrong|bad|exceed(?:s|ing)?|overheat\w{0,4}|over-?temperature|uncorrectable|poison\w{0,3}|crash(?:es|ed)?"
    r"|panic\w{0,3}|conflicts?|flapp\w{2,4}|dropped|too (?:hot|many|few|low|high|slow)|unplugged"
    r"|(?:go(?:es|ing)|went|drop(?:s|ping)?) (?:down|off(?:line)?) and (?:then )?(?:comes?|came|coming) back"
    r"|bounc(?:es|ing)|HW (?:Thermal |Power Brake )?Slowdown ?[:=] ?Active"
    r"|no (?:link|carrier|signal|response|answer|route)|loss of (?:signal|sync|lock)|shut ?down|unexpected(?:ly)?"
    r"|out of (?:memory|range|resources|space|sync|order)|dead|interrupted|never (?:came|comes|answer\w*|finish\w*)"
    r"|critical|storm|fell back|retired|slow(?:er|est)?|half (?:of|the)|keeps? (?:growing|rising|increasing)|below"
    r"|worse)\b|[\u00ab\u201c\u201e\u2018'] ?Polling ?[\u00bb\u201c\u201d\u2019']",  # words of tools in any language
    re.IGNORECASE,
)
_DOWN = lazy_pattern(
    r"\b(?<!count )(?<!scale )(?<!shut )(?<!slow )(?<!cool )(?<!power )(?<!step )(?<!break )down(?! (?:to|data)\b)\b",
    re.IGNORECASE,
)
_MOST_DOWN = 4  # parts; a longer list is one of what is not used
_COMPARES = lazy_pattern(  # what a value should be
    r"\b(?:expect(?:s|ed|ing)?|instead of|rather than|should|rated|nominal|supposed|(?:down|de)graded|only|limit|"
    r"while)\b",
    re.IGNORECASE,
)
_VALUE = lazy_pattern(
    r"(?<![\w.])(?:(?P<number>\d{1,6}(?:\.\d{1,3})?) ?(?P<unit>[GM](?:b(?:it)?/?(?:s(?:ec)?|ps)|B/s|T/s)|°?C|W)(?!\w)"
    r"|x(?P<width>\d{1,2})(?!\w)|(?i:gen) ?(?P<generation>\d)(?!\w))"
)
_LESS = 0.9  # a smaller part of another value
_FILTER = lazy_pattern(r"[ \t>]{0,8}(?:\[?[\w.@~: -]{1,80}\]?)?[$#] ?[a-z][^|\n]{1,200}\| ?[ef]?grep ")  # a command
_ASKED = lazy_pattern(
    r"(?<=[.!]) (?:Could|Can|Would|Should|Shall|Any|Please|Who)\b[^.!?\n]{4,120}\?[ \t]*$"
)  # behind what is stated
_NOT_STATED = lazy_pattern(  # a question, a condition, a command at its prompt, what is counted and is none
    r"^[\w.@:~\[\]-]{1,80}[$#>] ?\S|\$\([a-z]|`[a-z]{2,12} /"
    r"|^[ \t]{0,8}(?:pdsh|clush|ansible|pssh|salt|srun|ssh|for|while) |\?[\s\"'*_]*$"
    r"|^[\W_]{0,12}(?i:if|when|whether|unless|why|how|what|to avoid|make sure|note that|please) "
    r"|\b(?i:errors?|fail\w{0,4}|drop\w{0,4}|lost|discard\w{0,2}|time-?outs?|mismatch\w{0,2}|exceeded|violations?"
    r"|bad|missing|invalid|conflicts?|down)(?: (?:events?|counts?|checks?|tests?))?"
    r"[\"']?[^\w\n]{0,8}(?:0(?:\.0+)?(?![\d.x])|(?i:none|null|no|n/a|false|ok)\b"
    r"|\[\]|\"\")|\b(?i:corrected|deassert\w{0,2}|replaced|repaired|swapped|cleaned|resolved"
    r"|fixed(?!\])|previous state)\b"
    r"|<[A-Z0-9_,-]{2,200}> mtu \d"  # of ip link
    r"|\b(?i:disabled?[ \t|,;]{1,40}down)\b|^(?:cat|grep|head|tail): ['\"]?/(?:sys|proc)/"
    r"|^[\w./:-]{1,40}[ \t]{1,40}down[ \t]{1,20}down\b"  # of Junos: switched off, and therefore down
)


def list_unexplained(text: str, logged: bool = False) -> list[ToolReport]:
    """Such lines, those of one form and part once. `logged`: those alone that a program wrote as an error, and Xids of
    a GPU.

    >>> [(report.subject, dict(report.detail)["what"]) for report in list_unexplained("GPU 5: link 3 never came up")]
    [('NVIDIA 5', 'GPU 5: link 3 never came up')]
    """
    xids = [report for report in list_stated_xids(text) if report.subject or not logged]
    forms: dict[str | None, dict[str, ToolReport]] = {}
    down: dict[str | None, bool] = {}  # parts of which no line states more than that
    for raw, is_only_down in _find_lines(text, logged):
        line, part = " ".join(raw.split()), find_part(raw)
        if part not in forms and len(forms) >= _PARTS:
            continue
        of_part = forms.setdefault(part, {})
        form = VARIABLE.sub("#", line)
        down[part] = down.get(part, True) and is_only_down
        if form not in of_part and len(of_part) < _FORMS:
            of_part[form] = state_fault(CODE, part, line[:_SHOWN], line[:_TEXT])
    is_list = sum(down.values()) > _MOST_DOWN
    reports = [report for part, rows in forms.items() if not (is_list and down[part]) for report in rows.values()]
    of_xids = {report.text for report in xids}
    reports = [*xids, *(report for report in reports if report.text not in of_xids)]
    return [*reports, *_list_values(text, logged, {report.text for report in reports})]


def _list_values(text: str, logged: bool, known: set[str]) -> list[ToolReport]:
    """What labels, cells and rows state, of lines that are not known. `logged`: labels alone, and no part that is only
    down."""
    if logged:
        if not any(word in text for word in _STATES):
            return []
        from probes.tool_reports.sentences.values import STATE, list_values  # lazy: few outputs have no fault

        values = [value for value in list_values(text) if value.code == STATE and not value.is_down]
    else:
        from probes.tool_reports.tables.cells import list_all_values  # lazy: few texts are no known output

        values = list(list_all_values(text))
    rows = [(value.code, value.part, value.line[:_TEXT], value.what) for value in values]
    new = [row for row in rows if row[2] not in known][:_PARTS]
    return [state_fault(code, part, what, line) for code, part, line, what in new]


def find_unexplained(text: str) -> str | None:
    """The first such line.

    >>> find_unexplained("E0102 11:22:33.123456 77 context.cc:9] Failed to open mlx5_3: timed out")
    'E0102 11:22:33.123456 77 context.cc:9] Failed to open mlx5_3: timed out'
    >>> find_unexplained("RDMA failed on our cluster, what can we do?")
    """
    found = next((line.strip() for line, _ in _find_lines(text)), None)
    if found is None and (xids := list_stated_xids(text)):
        found = xids[0].text
    if found is None:
        from probes.tool_reports.tables.cells import list_all_values  # lazy: few texts are no known output

        found = next((value.line for value in list_all_values(text)), None)
    return found


def list_logged(text: str) -> list[str]:
    """Those that a program wrote as an error, as they stand in a text."""
    lines = [line for line, _ in islice(_find_lines(text, logged=True), _PARTS)]
    if any(form in text for form in _STATES) and "health" in text:
        from probes.tool_reports.sentences.values import STATE, list_values  # lazy, as above

        lines += [value.line for value in list_values(text) if value.code == STATE and "health" in value.what]
    return lines


def _find_lines(text: str, logged: bool = False) -> Iterator[tuple[str, bool]]:
    """Each with whether it states no more than that something is down."""
    for line in islice(text.splitlines(), _MOST_LINES):
        if len(line) >= _LONGEST or line.count('{"') > 1:  # of several objects each is looked at by itself
            continue
        line = _ASKED.sub("", "" if _FILTER.match(line) else line)
        is_logged = _LOGGED.match(line) is not None
        if not is_logged and (logged or len(line) > _LONGEST_PROSE):
            continue
        if not (list_parts(line) or (is_logged and _THEME.search(line))):
            continue
        fails = any(states(line) for states in (FAILS.search, _ALSO_FAILS.search, _is_less))
        if (fails or _DOWN.search(line)) and not _takes_back(line):
            yield line, not fails


def states_failure(line: str) -> bool:
    """Whether a line has words of a failure, whatever it is about."""
    return FAILS.search(line) is not None or _ALSO_FAILS.search(line) is not None


def _is_less(line: str) -> bool:
    """Whether it states two values of one unit that differ, and that one of them should be the other.

    >>> _is_less("rate 200 Gb/sec, expected 400 Gb/sec"), _is_less("expected 390 Gb/s, measured 392 Gb/s")
    (True, False)
    """
    if not _COMPARES.search(line):
        return False
    values: dict[str, list[float]] = {}
    for match in _VALUE.finditer(line):
        unit = match["unit"] or (match["width"] and "width") or "generation"
        values.setdefault(unit, []).append(float(match["number"] or match["width"] or match["generation"]))
    return any(min(found) < _LESS * max(found) for found in values.values())


def _takes_back(line: str) -> bool:
    return bool(is_harmless(line) or _NOT_STATED.search(line) or is_denied(line, find_place(line)))
