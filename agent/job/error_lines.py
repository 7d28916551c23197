"""Which lines of a log are called an error, by the words of whatever library or program wrote them."""

from __future__ import annotations

import re

from agent.job.lines import strip_header
from agent.job.named_parts import read_words
from probes.text import lazy_pattern

ERROR_WORDS = tuple(  # one of them is in each
    b"rror ERROR FATAL atal xception raceback bort illed anic ailed ailure "
    b"nable annot can't ould imed imeout lost efused iving unhealthy nreachable respon down hung stuck".split()
)
_ERROR = lazy_pattern(
    r"\b(?:error|fatal|exception|traceback|aborted|abort|killed|panic|core dumped|segfault|failure|failed)\b|"
    r"^(?:\[rank\d{1,7}\]: )?[\w.]{1,120}(?:Error|Exception|Failure|Killed\w{0,12}|Timeout)(?::|$)",
    re.IGNORECASE,
)
# What is an error where the line names a part, or its level is one
_GIVES_UP = lazy_pattern(
    r"\b(?:unable to|cannot|can't|could ?n[o']t|timed out|timeout|lost|refused|giving up|unhealthy|unreachable|never|"
    r"not respond\w*|no response|went down|is down|hung|stuck|halted|denied|rejected)\b",
    re.IGNORECASE,
)
_ERROR_LEVEL = lazy_pattern(r"^[EF]\d{4} \d\d:\d\d:\d\d|^\[?(?:ERROR|CRITICAL|FATAL)\b")
_NONE = lazy_pattern(  # counted, and none ("rank 0 failed" is no count), or the value of a measure: "error 0.02"
    r"(?:^|[,;:(|.])\s{0,40}0 (?:(?:\w{1,12} ){0,2}(?:errors|failures|exceptions|timeouts)\b|"
    r"failed (?=\w{2,20}s\b)|\w{2,20}s (?:\w{1,12} and )?failed\b)|"
    r"\b(?:no|zero|without) (?:errors?|failures?|exceptions?)\b|"
    r"\b(?:errors?|failures?|failed|exceptions?|killed|aborted)\b[\w ()/.-]{0,40}[:=]\s{0,8}"
    r"(?:None|null|no|false|0)\s{0,8}(?=[,;)|]|$)|"
    r"\b(?:errors?|failed|failures)(?: counts?)? 0(?=[,;)\]|]|$)|"
    r"\berror(?:[ _]rate)?\s?[=:]?\s{0,4}\d{1,6}\.\d{1,9}(?:e[+-]?\d{1,3})?(?![.\w])",
    re.IGNORECASE,
)
# Not called an error, and still an end where it is among the last lines of a log
STATED_WORDS = tuple(b"died diverge xhausted nsufficient nsatisf rashed frozen xceed quota _LOST _FAILED".split())
_STATED = lazy_pattern(
    r"\b(?:died|diverg(?:ed|ence)|(?:memory|resources?|retries|attempts|pool|space|quota) (?:\w{2,4} )?exhausted|"
    r"insufficient|unsatisfiable|crashed|is frozen|cannot continue|"
    r"exceed(?:s|ed)\b.{0,60}\b(?:quota|limit|budget|capacity|memory)|quota\b.{0,60}\bexceeded|"
    r"[A-Z]{2,20}(?:_[A-Z]{2,20}){0,6}_(?:LOST|FAILED))\b",
    re.IGNORECASE,
)
# What Python ignores; a traceback that is not there; what a person announces; a quotation with its author; a heading or
# a label: "#  error handling: peer failure"; a counter: "RX Error Count : 0"
_NO_ERROR = lazy_pattern(
    r"(?:.{0,80}: ?)?Exception ignored in|\s{0,8}traceback {0,4}: To enable traceback see|"
    r"Root Cause \(first observed failure\)|(?=.{0,200}\b(?:I|[Ww]e|[Mm]y|[Oo]ur) [a-z]).{1,240}:\s{0,8}$|"
    r"[^\"]{0,60}\"[^\"=:]{1,160}\" {1,4}(?:\([\w .'-]{2,60}\)|-{1,2} ?[\w .'-]{2,60})\s{0,8}$|"
    r"[#\s]{0,40}error (?:handling|detection|correction|reporting|injection|recovery) {0,8}:|"
    r"[\w #()/.-]{0,60}(?:error|fail|abort|fatal)[\w ()/.-]{0,40}(?:count|lane|rate|total)\w{0,4}\s{0,40}"
    r"[:=]?\s{0,8}[\[\d]|"
    r"[\w #()/.-]{0,60}(?:error|fail|abort|fatal)[\w ()/.-]{0,40}[:=]\s{0,8}\[?(?:[0\s]{1,200}|N/?A)\]?\s{0,8}$",
    re.IGNORECASE,
)
_EMPTY_FIELD = lazy_pattern(r"(?i)\"\w{0,20}errors?\"\s?:\s?(?:\"\"|null|false|\[\]|\{\}|0(?![.\d]))")  # of JSON
# Of libfabric, UCX, UCC, NVSHMEM and oneCCL: what they do, not what failed
QUIET = (
    r"<(?:info|debug|trace)> |\b(?:UCX|UCC|[TC]L_\w{2,12}) {1,3}(?:INFO|DEBUG|TRACE|REQ|DATA|FUNC) |"
    r"NVSHMEM (?:INFO|DEBUG|TRACE)\b|\|CCL_(?:INFO|DEBUG|TRACE)\|"
)
# Of glog and logging below "error": "I1103 04:12:05.101 1 a.py:6] ", "2026-09-01 10:20:11.25: W a.cc:5] ", "INFO: "
_LEVEL = lazy_pattern(
    r"(?:^|\[|: )[IW]\d{3,4} \d\d:\d\d:\d\d|\d\d:\d\d:\d\d[.,]\d{1,9}: [IW] |^(?:INFO|WARNING)\b|"
    r"^(?:[\d/.:,TZ-]{6,40} {1,4}){0,2}(?:INFO|WARN) |"
    r"\[(?:INFO|WARN|WARNING|DEBUG)\]|(?:\| |- )(?:INFO|WARNING|DEBUG)(?: \||:| -)|\bUCX {1,3}WARN\b|" + QUIET
)
_FRAME = lazy_pattern(r"  File \"|frame #\d|#\d{1,3} ")
# What a line may show long before the end, at any level: no error yet
SIGN_WORDS = (
    b"o such file",
    b"not acquired",
    b"ead-only",
    b"o space",
    b"uota exc",
    b"not connected",
    *b"NaN nan ECC ecc Errno espond vict tall tuck DOWN down ncorrect orrupt runcat ismatch hrottl egraded enied kipp "
    b"stale Stale retry".split(),
)
_SIGN = lazy_pattern(
    r"\b(?:loss|grad\w{0,8}|norm|value|output|activation)s?\b[^|]{0,30}\bnan\b|"
    r"\bnan\b.{0,20}\b(?:loss|grad|norm|on rank)|\b(?:multi|double)[ -]?bit\b|\becc\b.{0,20}\berror|uncorrectable|"
    r"not respond|no response|unreachable|"
    r"\bevicted\b|\bstall(?:ed|s)\b|\bstuck\b|\bhung\b|corrupt|truncated|mismatch|throttl|degraded|unhealthy|"
    r"\blink\b.{0,30}\bdown\b|\bstatus\W{1,3}down\b|\[errno \d|no such file or directory|command not found|"
    r"stale file handle|input/output error|read-only file system|"
    r"no space left|quota exceeded|endpoint is not connected|"
    r"permission denied|\block\b.{0,30}\bnot acquired|"
    r"\bretry \d{1,4} ?(?:/|of) ?\d|"
    r"\bskipp(?:ed|ing) (?:\w{1,12} ){0,2}(?:batch|sample|shard|file|backward)|"
    r"\b(?:connection|heartbeat|lease|device|gpu|npu)\w{0,2} (?:was |is )?lost\b",
    re.IGNORECASE,
)
_COUNTED_AT = 12  # behind the name of what is counted
_LONGEST = 300  # characters that are looked at


def names_error(text: str) -> bool:
    """Whether a line has a word for an error."""
    return _ERROR.search(text[:_LONGEST]) is not None


def is_error(text: str) -> bool:
    """Whether a line is called an error, or gives up a part that it names; no frame of a stack, heading or counter.

    >>> is_error("E: load failed"), is_error("mlx5_3: timed out"), is_error("request 7 timed out")
    (True, True, False)
    >>> is_error("RX Error Count : 0"), is_error("done: 0 errors, 0 failed ranks"), is_error("rank 0 failed: no memory")
    (False, False, True)
    """
    head = _NONE.sub("", text[:_LONGEST])
    if _FRAME.match(head) or not (names_error(head) or _gives_up(head)):
        return False
    if '":' in head and not names_error(_EMPTY_FIELD.sub("", head)):
        return False
    return _NO_ERROR.match(head) is None


def counts_none(text: str) -> bool:
    """Whether a text begins with a count of errors that is 0.

    >>> counts_none("HIP error count 0]  [MPI_ERR count 0]"), counts_none("HIP error: launch failure")
    (True, False)
    """
    count = _NONE.search(text[:_LONGEST])
    return count is not None and count.start() < _COUNTED_AT


def states_end(text: str) -> bool:
    """Whether a line states a failure without a word for an error.

    >>> states_end("rank 3: loss diverged, stopping"), states_end("quota: 3 of 9 used")
    (True, False)
    """
    return _STATED.search(_NONE.sub("", text[:_LONGEST])) is not None


def gives_sign(text: str) -> bool:
    """Whether a line shows that something was not well, whatever its level is.

    >>> gives_sign("WARNING dataset: shard 7 read failed ([Errno 108])"), gives_sign("grad norm: nan | loss: 2.1")
    (True, True)
    >>> gives_sign("number of nan iterations:   0 |"), gives_sign("ECC errors: 0")
    (False, False)
    """
    head = _NONE.sub("", text[:_LONGEST])
    return (_SIGN.search(head) is not None or is_error(text)) and not (_FRAME.match(head) or _NO_ERROR.match(head))


def has_lower_level(line: str) -> bool:
    """Whether a line is below the level of an error, as its library writes that."""
    return _LEVEL.search(line[:200]) is not None


def _gives_up(text: str) -> bool:
    return _GIVES_UP.search(text) is not None and (
        _ERROR_LEVEL.match(text) is not None or bool(read_words(strip_header(text)).parts)
    )
