"""Lines in which a person writes about a fault that is not there: that there is none, what if, what it would look
like, or that it is over.
"""

from __future__ import annotations

from probes.text import lazy_pattern

_LONGEST = 1000  # of a line that a person writes
_BEFORE = 200
_NOT_THERE = lazy_pattern(  # "there is no '", "if you see `": what follows is quoted
    r"(?:\b(?:[Tt]here (?:is|are|was|were)|has|have|had|shows?|showed|contains?|see|saw) no"
    r"|(?:\b[Nn]ever|\bnot|n't) (?:see|saw|seen|find|found|get|got|have|had|show|contain|print|printed|notice)"
    r"|\b[Ww]ithout|\b[Nn]o longer (?:see|get)|\b[Nn]o more|\bnot a single)(?: (?:any|a|an|the|such|more|lines?"
    r"|errors?|messages?|warnings?|entry|entries|of|like|with)){0,4} ?(?:[`'\"(]{1,3}[^`'\"]{0,80}|(?:NVRM: )?)$"
    r"|\b(?:[Ii]f (?:you|one|there|they|anyone|someone)\b[^.;:]{0,60}|[Ww]hen(?:ever)? (?:you|one) [^.;:]{0,40})"
    r" ?(?:[`'\"(]{1,3}[^`'\"]{0,80}|(?:NVRM: )?)$"
)
_SUPPOSED = lazy_pattern(  # "would look like", "the runbook has": what might be printed, and was not
    r"\b(?:would|might|may|could|typically|usually|normally) (?:then |also )?"
    r"(?:look|read|be logged|print|show|appear)s?\b[^.;\n]{0,100}$"
    r"|\b(?:[Rr]unbook|[Dd]ocumentation|[Dd]ocs|[Gg]uide|[Mm]anual|[Ww]iki|[Aa]rticle|[Cc]atalog(?:ue)?) "
    r"(?:\w{1,20} ){0,3}?(?:has|sa(?:ys|id)|lists|shows|mentions|describes|states|quotes)\b[^.;\n]{0,100}$"
)
_OVER = lazy_pattern(
    r"\b(?:was|were|is|are|been|got|now|since) (?:already |now |since )?(?:fixed|resolved|solved)\b"
    r"|[,(;.] ?(?:now |since |already |later )?(?:[Ff]ixed|[Rr]esolved|[Ss]olved)(?=[.,;) ]|$)|\bRMA(?:'d| done)\b"
)
_NOT_OVER = lazy_pattern(r"\b(?:(?:not|never)(?: yet| really)?|(?:until|unless|if|how) (?:it|this|that|these)) $")


def is_denied(line: str, start: int) -> bool:
    """Whether the sentence of a program that stands in a line from `start` on is quoted as one that was not printed,
    or as one whose cause is gone.

    >>> is_denied("there is no 'NVRM: Xid (PCI:0000:3b:00): 79' in dmesg", 13)
    True
    >>> is_denied("A lost GPU would look like [Mon Mar  3 10:11:12 2025] NVRM: Xid (PCI:0000:3b:00): 79", 60)
    True
    >>> line = "Failed to initialize NVML: Driver/library version mismatch"
    >>> is_denied(f"{line} was fixed by a reboot", 0), is_denied(line, 0), is_denied(f"{line}, can it be fixed?", 0)
    (True, False, False)
    """
    if len(line) > _LONGEST:
        return False
    before = line[max(start - _BEFORE, 0) : start]
    if _NOT_THERE.search(before) or _SUPPOSED.search(before):
        return True
    over = _OVER.search(line)
    return over is not None and "?" not in line[over.end() :] and not _NOT_OVER.search(line[: over.start()])
