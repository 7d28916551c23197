"""Failures of RDMA that any program states by the names of libibverbs and librdmacm: calls that failed, and statuses of
completions by their constant, their words or their number.

Sources: linux-rdma/rdma-core libibverbs/verbs.h, verbs.c (ibv_wc_status_str), librdmacm/rdma_cma.h.
"""

from __future__ import annotations

from probes.tool_reports.sentences.sentence import ToolSentence, rows_of

FLUSHED = "completion-flushed"
_BY_NUMBER = (r"Failed (?P<what>status ", r"CQE error, wr_id=\d{1,20}, (?P<what>status=")
_STATUSES = (  # the code, the number, the constant, the words; what follows from another error is the last
    ("completion-memory", "4|6|8|10", "(?:LOC_PROT|MW_BIND|LOC_ACCESS|REM_ACCESS)_ERR",
     "local (?:protection|access) error|memory bind operation error|remote access error"),
    ("completion-request", "9|11", "REM_(?:INV_REQ|OP)_ERR", "remote (?:invalid request|operation) error"),
    ("completion-local", "[123]", "LOC_(?:LEN|QP_OP|EEC_OP)_ERR", "local (?:length|QP operation) error"),
    ("perftest-not-ready", "13", "RNR_RETRY_EXC_ERR", "RNR retry counter exceeded"),
    ("verbs-retries", "12", "RETRY_EXC_ERR", "[Tt]ransport retry count(?:er)? exceeded"),
    (FLUSHED, "5", "WR_FLUSH_ERR", "Work Request Flushed Error"),
)  # fmt: skip
_STATED = r"(?![ \t]{0,4}[:;)]|[^\n]{0,200}\?)"  # neither a line of source code nor a question
_FAILS = (
    r"(?:\([^()\n]{0,120}\))?[\"'`]?(?:[ \t]call)?(?::? (?:has |have |returned an? |with )?(?:[Ff]ail\w{0,4}|"
    r"FAIL\w{0,4}|error|ERROR)\b|: (?:Cannot|Connection|Invalid|No|Operation|Permission|Network|Device|Bad) |"
    r" (?:returned|returns|->|=>?) (?:NULL|null|-?[1-9]\d{0,2}\b))"
)
_TRIED = r"\b(?:[Ff]ailed|[Ff]ailure|[Uu]nable|[Cc]ould not|[Cc]ouldn't|[Cc]annot|[Cc]an't|[Ee]rror)[ :]{1,2}"
_CALLS = (  # the code, the call, the words in which programs write what it was for
    ("perftest-queue", r"ibv_(?:exp_)?(?:create_(?:qp|cq|srq|comp_channel)(?:_ex)?|alloc_pd)",
     r"(?:to )?(?:creat|allocat)\w{1,3} (?:\w{1,12} ){0,2}(?:QP|qp|CQ|cq|SRQ|srq|PD|[Qq]ueue [Pp]airs?)\b"),
    ("perftest-memory", r"ibv_(?:exp_)?reg_(?:dmabuf_)?mr(?:_iova2?)?",
     r"(?:to )?regist\w{2,5} (?:\w{1,12} ){0,2}(?:MR|mr|[Mm]emory [Rr]egions?)\b"),
    ("perftest-route", r"ibv_(?:exp_)?modify_qp",
     r"(?:to )?(?:modify|mov|chang|transition|bring)\w{0,3} (?:the )?(?:QP|qp|[Qq]ueue [Pp]air)s?\b[^\n]{0,24}? to "
     r"(?:the )?(?:RTR|RTS|INIT)\b"),
    ("rdma-address", r"rdma_(?:resolve_(?:addr|route)|bind_addr|getaddrinfo)", None),
    ("rdma-refused", r"rdma_(?:connect|accept)", None),
    ("verbs-not-passed", r"ibv_open_device", None),
)  # fmt: skip

STATUSES: tuple[tuple[str, str], ...] = tuple(  # of perftest: by their number
    (code, rf"{begin}(?:{number})\b(?: \([\w ]{{4,40}}\))?)")
    for code, number, _, _ in _STATUSES
    if code.startswith("completion-") and code != FLUSHED  # which perftest has at its end, too
    for begin in _BY_NUMBER
)
PROGRAMS: tuple[ToolSentence, ...] = rows_of(
    "verbs",
    *(
        (code, rf"(?<!case )(?<!== )(?P<what>IBV?_WC_{constant}|{words})\b{_STATED}")
        for code, _, constant, words in _STATUSES
    ),
    *((code, rf"\b(?P<what>{call}){_FAILS}(?![^\n]{{0,200}}\?)") for code, call, _ in _CALLS),
    *((code, rf"{_TRIED}(?P<what>{words}){_STATED}") for code, _, words in _CALLS if words),
)
