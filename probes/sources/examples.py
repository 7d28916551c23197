"""Lines of a kernel log that a text shows as an example of what could be printed: no host printed them.

A manual, a runbook and an answer of a chat introduce them: "An Xid is logged when this happens, for example:". Who
reports what was seen writes so, too ("We see errors on two nodes, for example:"): words of the writer, or of a time,
make them evidence.
"""

from __future__ import annotations

from collections.abc import Iterator

from probes.text import lazy_pattern

_MARKS = (b"ample", b"nstance", b"e.g.", b"look", b"read", b"print", b"logged", b"appear", b"report")
_LONGEST = 600  # of a line that introduces
_WHAT = r"(?: (?:of|for|log|output|message|line|entry|entries|error)s?\b[^:.\n]{0,60})?"
_INTRODUCES = lazy_pattern(
    r"(?:(?:^|[ .;(#>*_-])(?:[Ff]or (?:example|instance)|[Ee]\.g\."
    rf"|(?:[Aa]n? |[Tt]ypical )?(?:[Ss]ample )?[Ee]xamples?{_WHAT}|[Ss]ample{_WHAT})"
    r"|\b(?:would|might|may|could|typically|usually|normally) (?:then |also |be )?"
    r"(?:look|read|print|show|appear|logged|printed|reported|shown)s?\b[^.;:\n]{0,60})"
    r"[ *_]{0,4}:[ *_\\]{0,4}$"
)
_REPORTS = lazy_pattern(  # of what was seen
    r"\b(?:I|[Ww]e|[Mm]y|[Oo]ur|us|[Tt]hey|[Yy]ou(?:r)?|seeing|saw|seen|got|getting|found|noticed|happened|happening"
    r"|today|yesterday|tonight|ago|since|last|again|keeps?|still|failing|failed"
    r"|[Tt]his (?:node|host|server|machine|box))\b"
)
_FENCE = lazy_pattern(r"[ \t>]{0,40}(?:`{3,}|~{3,})")
_LOOKED_BACK = 3  # lines of prose


def may_hold_examples(content: bytes) -> bool:
    """Whether a text has a word that introduces an example."""
    return any(mark in content for mark in _MARKS)


def blank_examples(text: str) -> str:
    """The text with empty lines in the place of those of a kernel log that it shows as an example.

    >>> blank_examples("For example:\\n\\n[ 1.5] NVRM: Xid\\n\\nSo much for it.\\n")
    'For example:\\n\\n\\n\\nSo much for it.\\n'
    >>> blank_examples("Since today we see, for example:\\n[ 1.5] NVRM: Xid\\n")
    'Since today we see, for example:\\n[ 1.5] NVRM: Xid\\n'
    """
    from probes.kernel.log_lines import has_kernel_line  # lazy: some thirty patterns

    lines = text.splitlines(keepends=True)
    for first, after in list(_find_examples(lines)):
        if has_kernel_line("".join(lines[first:after])):
            lines[first:after] = ["\n"] * (after - first)
    return "".join(lines)


def _find_examples(lines: list[str]) -> Iterator[tuple[int, int]]:
    """The first line of each example, and the one behind its last."""
    prose: list[str] = []
    at = 0
    while at < len(lines):
        line = lines[at].strip()
        at += 1
        if not line or len(line) > _LONGEST:
            continue
        prose = [*prose[-_LOOKED_BACK + 1 :], line]
        if line.endswith((":", "*", "_", "\\")) and _INTRODUCES.search(line) and not any(map(_REPORTS.search, prose)):
            first, after = _find_block(lines, at)
            yield first, after
            at, prose = after, []


def _find_block(lines: list[str], at: int) -> tuple[int, int]:
    """What stands below a line: up to the end of its fence, or up to an empty line."""
    while at < len(lines) and not lines[at].strip():
        at += 1
    is_fenced = at < len(lines) and _FENCE.match(lines[at]) is not None
    after = at + is_fenced
    while after < len(lines) and (not _FENCE.match(lines[after]) if is_fenced else lines[after].strip()):
        after += 1
    return at, min(after + is_fenced, len(lines))
