"""What a kind of line may mean: lines that differ in digits only are of one kind."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

from agent.job.catalogue import Pattern, find_patterns, find_tokens, load_words
from agent.job.error_lines import QUIET, SIGN_WORDS, STATED_WORDS
from agent.job.evidence import FileState
from agent.job.line_readers import (
    COUNTED,
    READERS,
    read_info,
    read_progress,
    read_rank_values,
    read_table_line,
)
from agent.job.lines import LogLine
from agent.job.pace import PaceForm, find_form
from agent.job.rank_values import lists_rank

# What is looked for within tokens: settings, names of errors, and the words of rows that are so
_ANYWHERE_WORDS = (
    b" FI_",
    b"$ ",
    *STATED_WORDS,
    *SIGN_WORDS,
    *b"CCL_ UCX_ HSA_ Error Exception error ERROR ailed ailure nvmlInit nvmlDevice nvmlShutdown NCCL ProcessGroup "
    b"torch it/s s/it /sec /s HCCL HCCP".split(),
)


class Kind:
    """What a kind of line may mean, and how many such lines the file that is read has."""

    __slots__ = (
        "count", "file", "forms", "info", "is_formed", "is_heading", "is_read", "likely", "pace", "patterns", "plain",
        "readers",
    )  # fmt: skip

    def __init__(
        self,
        patterns: tuple[Pattern, ...],
        readers: tuple[Callable[[FileState, LogLine], None], ...],
        info: bool,
        pace: PaceForm | None,
        is_blank: bool = False,
    ) -> None:
        self.patterns, self.readers, self.pace = patterns, readers, pace
        self.is_read = bool(patterns or readers or pace)
        self.is_formed = not is_blank and read_table_line not in readers  # its forms are compared between processes
        self.info = info  # only a message of NCCL at level INFO
        self.plain = not info and not patterns and set(readers) <= COUNTED  # after a while only its number matters
        self.likely = _UNREAD  # the reader of NCCL's facts that takes it
        self.count = 0
        self.is_heading = False  # it ends with a colon
        self.file, self.forms = -1, 0  # lines of that file that were given to the forms


_UNREAD = -2
_LATE = ("cuda-error", "cuda-error-text", "crash")  # rows that are left out where certain others match
_TOKENS = frozenset(
    b"version float half double bfloat int uint fp Rank bytes Device Running SUM redop algbw nThread bounds bandwidth "
    b"raining Training training Job job code COMPLETE Finished iteration Iteration step Step epoch Epoch loss "
    b"deepspeed elapsed throughput Throughput Bandwidth OSU step_time train_step_timing "
    b"train_runtime Train All Active Result stopped finished shutdown succeeded sglang SGLang vLLM "
    b"DeepSpeed megatron jaxlib tensorflow mindspore vllm lightning horovod local_rank local host rank exitcode value "
    b"observed "
    b"compiled summary locked nccl_version Name "
    b"MISMATCH INCOMPLETE Communicator Communicators "
    b"Success OK distributed "
    b"COMPLETED FAILED TIMEOUT CANCELLED "
    b"startup Uvicorn fired RUNNING EXIT SIGNAL TensorRT "
    b"iter took data_time "
    b"python torchrun exits SUCCEEDED successfully "
    b"unable cannot can could couldn timed timeout lost refused giving unhealthy unreachable respond down hung stuck "
    b"echo passed Benchmark program run exit Exit rc status return TESTS tests Performance Total completed simulation "
    b"Simulation ignored "
    b"MainThread recent Process MPI mask bound affinity Rnk "
    b"RUNTIME ROCE INFO WARN fatal FATAL Fatal Traceback aborted Aborted Killed killed panic".split()
)


@cache
def _known_tokens() -> frozenset[bytes]:
    """Tokens without which a line means nothing."""
    return _TOKENS | load_words().by_token.keys()


def _is_anywhere(raw: bytes) -> bool:
    return any(word in raw for word in _ANYWHERE_WORDS) or any(word in raw for word, _ in load_words().anywhere)


_is_quiet = re.compile(QUIET.encode()).search


_BLANK = b" .\t\r\n"
_RULE = b"#-=*"  # of which separators are made


def make_kind(key: bytes, raw: bytes) -> Kind:
    """What lines like this one may mean. `key`: the line without digits."""
    is_blank = not key.strip(_BLANK + _RULE)
    tokens = set(find_tokens(raw))
    of_rank = lists_rank(raw)
    if not of_rank and tokens.isdisjoint(_known_tokens()) and not _is_anywhere(raw) and key.strip(_BLANK):
        return Kind((), (), False, None, is_blank)
    patterns = tuple(
        sorted(find_patterns(raw, tokens), key=lambda pattern: (pattern.row.plain, pattern.row.id in _LATE))
    )
    if patterns and _is_quiet(raw):
        patterns = ()
    if b"NCCL INFO " in raw:  # what is normal there needs no second look
        patterns = tuple(
            pattern
            for pattern in patterns
            if "noise" not in (pattern.row.role, pattern.row.info) and not pattern.row.plain
        )
    readers = [reader for words, reader in READERS if any(word in raw for word in words)]
    if b"NCCL INFO " in raw and read_table_line in readers:
        readers.remove(read_table_line)  # "using internal implementation"
    if not key.strip(_BLANK) and key.strip():
        readers.append(read_table_line)
    if of_rank:
        readers.append(read_rank_values)
    info = raw.count(b"NCCL INFO ") == 1 and not patterns and readers == [read_info] and b"\r" not in raw
    pace = None if b"NCCL " in raw else find_form(raw, key, read_progress in readers)
    return Kind(patterns, tuple(readers), info, pace, is_blank)
