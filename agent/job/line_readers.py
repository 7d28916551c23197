"""What lines show besides failures: versions, settings, ranks, tables, progress, a regular end, errors."""

from __future__ import annotations

from collections.abc import Callable

from agent.job.dumps.cpu_masks import WORDS as MASK_WORDS
from agent.job.dumps.cpu_masks import read_mask
from agent.job.dumps.ras import JsonSnapshotReader, SnapshotReader
from agent.job.dumps.stacks import WORDS as STACK_WORDS
from agent.job.error_lines import (
    ERROR_WORDS,
    SIGN_WORDS,
    STATED_WORDS,
    gives_sign,
    has_lower_level,
    is_error,
    names_error,
    states_end,
)
from agent.job.evidence import LAST_WORDS, FileState, LinkError
from agent.job.lines import LogLine
from agent.job.measured_tables import HEADING_WORDS, TableHead
from agent.job.process_lines import (
    read_failure_table,
    read_hydra,
    read_launched,
    read_pod,
    read_prompt,
    read_stack,
    read_state,
)
from probes.text import lazy_pattern

_MOST_TABLE_LINES, _NAMES_AT = 60_000, 400  # characters of a line above a table
_BANNER = lazy_pattern(r"(?P<library>NCCL|RCCL) version ?:? ?(?P<version>\d{1,2}\.\d{1,3}(?:\.\d{1,4})?)")
_SET = lazy_pattern(r"(?P<name>(?:NCCL|RCCL)_[A-Z0-9_]{1,60}) set (?:by (?:environment|user) )?to (?P<value>.{0,400})")
_HCCL_SET = lazy_pattern(
    r"\[HCCL_ENV\] ?(?P<name>HC\w{1,60}) set by (?P<how>default|environment) to \[(?P<value>[^\]]{0,200})\]"
)
_GIVEN = lazy_pattern(
    r"(?:(?<=\s)|(?<=^)|(?<=[\"';]))(?P<name>(?:TORCH_NCCL|NCCL|RCCL|HCCL|UCX|FI|HSA)_[A-Z][A-Z0-9_]{0,60})="
    r"(?P<value>\"[^\"]{0,300}\"|'[^']{0,300}'|[^\s\"';]{0,300})"
)
_NAME_LINE = lazy_pattern(r"-? ?name: [\"']?(?P<name>(?:TORCH_NCCL|NCCL|RCCL|HCCL|UCX|FI)_[A-Z0-9_]{1,60})[\"']?$")
_VALUE_LINE = lazy_pattern(r"value: [\"']?(?P<value>[^\"']{0,300})[\"']?$")
_MOST_LIMITS, _MOST_MASKS = 10_000, 50_000
_LIMIT = lazy_pattern(
    r"(?:max locked memory|locked-in-memory size)\s{0,30}\((?:kbytes, -l|kbytes)\)\s{1,10}(?P<kib>unlimited|\d{1,15})|"
    r"Max locked memory\s{2,20}(?P<bytes>unlimited|\d{1,18})\s"
)
# a snapshot, or its end alone
_RAS_BEGIN = lazy_pattern(
    r"Job summary|Communicators\.\.\.(?: \([\d.]{1,10}s\))?|#\d{1,5}-\d{1,5} \([0-9a-f]{1,40}\) [A-Z, ]{2,60}|"
    r"Communicator ranks have different \w{1,30} operation counts"
)
# Words by which lines matter besides the failures; without digits
_FRAMEWORKS = {
    b"torch": "PyTorch",
    b"ProcessGroup": "PyTorch",
    b"deepspeed": "DeepSpeed",
    b"DeepSpeed": "DeepSpeed",
    b"megatron": "Megatron-LM",
    b"nThread ": "nccl-tests",
    b"jaxlib": "JAX",
    b"tensorflow": "TensorFlow",
    b"mindspore": "MindSpore",
    b"vllm": "vLLM",
    b"vLLM": "vLLM",
    b"sglang": "SGLang",
    b"SGLang": "SGLang",
    b"TensorRT-LLM": "TensorRT-LLM",
    b"lightning": "Lightning",
    b"horovod": "Horovod",
    b"|CCL_": "oneCCL",
    b"- distributed.": "Dask",
}
_PROGRESS = (
    b"iteration",
    b"Iteration",
    b"it/s",
    b"step ",
    b"Step ",
    b"step:",
    b"step=",
    b"epoch",
    b"Epoch",
    b"loss",
    b"iter: ",
)
# A server came up, and what it does: requests that are answered, and how fast
_SERVES = (
    b"startup complete", b"Uvicorn running", b"fired up and ready", b": Success", b" 200 OK",
    b"generation throughput", b"gen throughput", b"Active Request Count",
)  # fmt: skip
_WELL = (
    b"Out of bounds values",
    b"Avg bus bandwidth",
    b"raining complete",
    b"raining finished",
    b"raining done",
    b"raining is ",
    b"train_runtime",
    b"stopped: `max_",
    b"successfully finished",
    b"Application shutdown complete",
    b" succeeded",
    b"ob completed",
    b"Destroy COMPLETE",
    b"Finished training",
    b"xit code",
    b"exits successfully",
    b"SUCCEEDED",
    b"finished successfully",
    b"completed successfully",
    b"xit status",
    b"xit Status",
    b"End of program",
    b"Finalising parallel run",
    b"Benchmark duration",
    b"exit 0",
    b"rc=0",
    b"return value 0",
    b"TESTS PASSED",
    b"tests passed",
    b" passed",
    b"uccessfully completed",
    b"Performance:",
    b"Total wall time:",
    b"imulation complete",
    b"imulation finished",
    b"residual checks",
    b"COMPLETED",
    b"FAILED",
    b"exit=0",
    b"All done",
    b"rain end",
    b"error=None",
    b"shutdown result: OK",
)
_WELL_FORM = lazy_pattern(
    r"# Out of bounds values : 0 OK|# Avg bus bandwidth|[Tt]raining (?:is )?(?:complete|finished|done)|[Jj]ob completed"
    r"(?: successfully)?|[Ee]xit(?:ed)? (?:with )?(?:exit )?(?:code|[Ss]tatus)?:? ?0\b|Destroy COMPLETE|"
    r"Finished training|"
    r"'train_runtime':|Trainer\.fit` stopped: `max_|worker group successfully finished|Application shutdown complete|"
    r"Job '[\w-]{1,80}' succeeded|Process \d{1,9} exits successfully|group finished \(SUCCEEDED\)|"
    r"task shutdown result: OK$|^# All done$|^Result\(.{0,400}, error=None\)$|"
    r"\b[Tt]rain(?:ing)? end(?:ed)?[.!]|\b(?:rc|exit)=0\b(?! .{0,80}=)|\(return value 0\)|"
    r"(?i:^\W{0,8}(?:all (?:\d{1,9} )?|100% )tests passed)|"
    r"^=+ \d{1,9} passed(?:, \d{1,9} (?!fail|error)\w{1,20})* in |"
    r"^Successfully completed\.|\bis successfully completed\b|^Performance:\s{1,12}[\d.]{1,20}\s|^Total wall time: \d|"
    r"[Ss]imulation (?:complete|finished)\b|"
    r"\b[1-9]\d{0,6} tests completed and passed residual checks|\] End of program\b|^Finalising parallel run|"
    r"^Benchmark duration \(s\):|"
    r"(?i:\b(?:training|fine-?tuning|pre-?training|job|run|workflow|benchmark)\b)[\w ]{0,30} "
    r"(?:finished|completed) successfully"
)
_TABLE_WORDS = (
    b" float",
    b" half",
    b" double",
    b" bfloat",
    b" int",
    b" uint",
    b" fp",
    b"Rank ",
    b"#bytes",
    b"# OSU ",
    b"Bandwidth (MB/s)",
    b"Device ",
    b"Running ",
    b"SUM ",
    b"redop",
    b"algbw",
    b"nThread",
)
_SETTING_WORDS = (b"NCCL_", b"RCCL_", b"HCCL_", b"UCX_", b" FI_", b"HSA_", b"value:")
_TLS = lazy_pattern(
    r"\|\s{0,8}(?P<peer>[\d.a-fA-F:]{3,45})\((?P<peer_rank>\d{1,7})\)\s{0,8}\|[^|]{0,30}\|\s{0,8}(?P<own>[\d.a-fA-F:]{3,45})"
    r"\((?P<own_rank>\d{1,7})\)\s{0,8}\|[^|]{0,30}\|[^|]{0,30}\|[^|]{0,30}\|\s{0,8}(?P<tls>\w{1,20})"
)
_KEY_INFO = lazy_pattern(
    r"\[LocalRank Key Info\]userRank\[(?P<rank>\d{1,7})\] hostIp\[(?P<host>[^\]]{1,60})\] "
    r"devicePhyId\[(?P<device>\d{1,4})\]"
    r" server\[[^\]]{0,80}\] deviceIp\[(?P<address>[^\]]{0,60})\]"
)
_ROOT_INFO = lazy_pattern(r"Inner:ranks\[(?P<ranks>\d{1,7})\], rank\[(?P<rank>\d{1,7})\]")
_PLOG = lazy_pattern(
    r"\[(?P<level>ERROR|WARNING|INFO|EVENT|DEBUG)\] ?(?:HCCL|HCCP|ROCE|RUNTIME|TDT|DRV)\((?P<pid>\d{1,9}),"
)


def read_info(state: FileState, line: LogLine) -> None:
    """A record of NCCL."""
    if line.level is None and line.host is None:
        return
    state.found.add("nccl")
    if line.level == "INFO":
        state.evidence.ranks.read_info(line.text, line.host, line.pid)
        state.evidence.nccl.read_text(line.text)
    elif line.level == "WARN":
        state.evidence.nccl.warnings.setdefault(line.text[:300])


def _read_banner(state: FileState, line: LogLine) -> None:
    match = _BANNER.search(line.text)
    if match is None:
        return
    state.found.add("nccl")
    evidence = state.evidence

    if evidence.library is None or match["library"] == "RCCL":
        evidence.library = (match["library"], match["version"])
    if line.level is None:
        evidence.nccl.read_version(match["version"])


def _read_settings(state: FileState, line: LogLine) -> None:
    settings = state.evidence.settings
    if state.setting is not None and (match := _VALUE_LINE.search(line.text.rstrip())) is not None:
        settings[state.setting.text][match["value"].strip()]["job definition"] = state.setting
    state.setting = None
    if (match := _SET.search(line.text)) is not None:
        rank = state.evidence.ranks.rank_of(line.host, line.pid)
        place = f"{line.host or ''}:{line.pid or ''}" if rank is None else f"rank {rank}"
        places = settings[match["name"]][match["value"].strip().rstrip(".")]
        if len(places) < 10_000:
            places[place] = line
    elif (match := _HCCL_SET.search(line.text)) is not None:
        if match["how"] == "environment":
            settings[match["name"]][match["value"]][f"{line.host or ''}:{line.pid or ''}"] = line
    elif (match := _NAME_LINE.search(line.text.rstrip())) is not None:
        state.setting = line._replace(text=match["name"])
    elif line.level is None:  # a record of NCCL names settings that were not given
        for match in list(_GIVEN.finditer(line.text))[:64]:
            settings[match["name"]][match["value"].strip("\"'")]["launch command"] = line


def read_table_line(state: FileState, line: LogLine) -> None:
    """A line that may be of a measured table, or of the list of devices above it."""
    evidence = state.evidence
    if line.level is not None:
        return
    if evidence.ranks.read_table(line.text, line.file):
        state.found.add("table")
    lines = evidence.table_lines[line.file]
    if any(word.decode() in line.text for word in HEADING_WORDS):
        above = tuple(raw[:_NAMES_AT].decode("utf-8", "replace").rstrip() for raw in state.recent)
        evidence.table_heads[line.file].append(TableHead(len(lines), line, above))
        state.recent.clear()
    if len(lines) < _MOST_TABLE_LINES:
        lines.append(line.text)


def _read_well(state: FileState, line: LogLine) -> None:
    match = _WELL_FORM.search(line.text)
    if match is not None:
        state.found.add("other")
        state.evidence.ended_well[match[0].lower()[:40]] = line
        state.evidence.note_end(line)


# The last line of a log that has steps: that all is done; or less, where the steps came to the end of their plan
_ALL_DONE = lazy_pattern(
    r"(?i)^\W{0,8}(?:\[?(?:info|i)\b[\]:]? {0,4})?(?:[\w./-]{1,60}(?::\d{1,6})?[\]:] )?"
    r"(?:(?:all |everything )?(?:is )?done(?: in [\d.:hms ]{1,20})?[.!]?$|"
    r"(?:all )?done, \d{1,9} (?:steps|iter\w{0,8}|epochs)|all done\b)|[.,;:] all done[.!]?$|"
    r"\b(?:run|job|script|program|benchmark) (?:is )?(?:complete|completed|finished|done)\b[.!]?|"
    r"\bexiting (?:with )?(?:code |status )?0\b|\bexiting normally\b"
)
_SAVED = lazy_pattern(r"(?i)\b(?:saved|done|finished|complete|completed|written|bye|exiting)\b")
_PLAN = lazy_pattern(rb"(?<![\d/.])(\d{1,9}) ?(?:/|of) ?(\d{1,9})(?![\d/])")


def read_last_words(state: FileState, line: LogLine) -> None:
    """The last line of a log with steps, where it shows a regular end that no line of a known program states."""
    counts = [(int(match[1]), int(match[2])) for match in _PLAN.finditer(state.last_step)]
    is_at_end = any(of > 1 for _, of in counts) and all(done == of for done, of in counts)
    form = _SAVED if is_at_end else _ALL_DONE
    if form.search(line.text) is not None and not names_error(line.text) and not gives_sign(line.text):
        state.evidence.ended_well[LAST_WORDS] = line
        state.evidence.note_end(line)


def read_rank_values(state: FileState, line: LogLine) -> None:
    """A value that is listed for a rank, or a row of a table of ranks."""
    values = state.evidence.rank_values
    count = len(values.blocks) + len(values.extremes)
    values.read_line(line.text, line.file, line.number, line.rank)
    if len(values.blocks) + len(values.extremes) > count:
        state.found.add("other")


def read_progress(state: FileState, line: LogLine) -> None:
    """A step, an epoch, a loss, a request; the heading of perftest counts iterations, too."""
    if "#bytes" in line.text:
        return
    state.evidence.serves |= any(word.decode() in line.text for word in _SERVES)
    state.evidence.progress += 1
    state.found.add("other")
    if not names_error(line.text):
        state.evidence.last_steps[line.file].append(line.number)


def _read_framework(state: FileState, line: LogLine) -> None:
    text = line.whole.replace("/tensorflow.CoordinationService", "")  # which JAX uses
    for word, name in _FRAMEWORKS.items():
        if word.decode() in text:
            state.evidence.framework[name] += 1
            state.found.add("torch" if name == "PyTorch" else "other")


def _read_ras(state: FileState, line: LogLine) -> None:
    """A snapshot of RAS begins, in a file of its own or in a log."""
    if '"nccl_version"' in line.text:
        state.snapshot = JsonSnapshotReader(state.name)
        state.found.add("ras")
    elif _RAS_BEGIN.fullmatch(line.text.strip()):
        state.snapshot = SnapshotReader(state.name)
        state.evidence.snapshots.append(state.snapshot.snapshot)
        state.found.add("ras")


def _read_limit(state: FileState, line: LogLine) -> None:
    """`ulimit -a` of the job, or limits of its process in /proc."""
    match = _LIMIT.search(line.text)
    if match is not None and len(state.evidence.memlock) < _MOST_LIMITS:
        value, unit = match["kib"] or match["bytes"], 1 if match["kib"] else 1024
        kib = None if value == "unlimited" else int(value) // unit
        state.evidence.memlock.append((kib, line))
        state.found.add("other")


def _read_ignored(state: FileState, line: LogLine) -> None:
    """Python reports an exception that it ignores: the one below is no failure."""
    state.ignores = line.number


def _read_error(state: FileState, line: LogLine) -> None:
    """A line that is called an error, of a library that no row is for."""
    if line.level is not None or not is_error(line.text) or _WELL_FORM.search(line.text):
        return
    state.found.add("other")
    if "Traceback" in line.text or not has_lower_level(line.whole):
        state.evidence.add_error(line)
        state.open_error = line.number if line.text.endswith(":") and "Traceback" not in line.text else None


def _read_sign(state: FileState, line: LogLine) -> None:
    """A line that shows something unusual, at any level; of a host's output it shows nothing of the job."""
    if line.level != "INFO" and gives_sign(line.text):
        state.evidence.add_sign(line)


def _read_statement(state: FileState, line: LogLine) -> None:
    """A line that states an end in other words than those of errors."""
    if line.level is None and states_end(line.text) and not has_lower_level(line.whole):
        state.found.add("other")
        state.evidence.last_words[line.file] = line


def _read_hccl(state: FileState, line: LogLine) -> None:
    """Ranks, hosts and NPUs of a line of HCCL."""
    evidence = state.evidence
    form = _PLOG.search(line.text)
    if form is None:
        return
    state.found.add("hccl")
    evidence.library = evidence.library or ("HCCL", None)
    pid = int(form["pid"])
    if (match := _KEY_INFO.search(line.text)) is not None:
        rank, host = int(match["rank"]), match["host"]
        process = evidence.ranks.process(host, pid)
        process.rank, process.cuda, process.world = rank, int(match["device"]), evidence.ranks.world
        evidence.ranks.host_of[rank], evidence.ranks.local_of[rank] = host, int(match["device"])
        evidence.ranks.device_addresses[match["address"]] = rank
        evidence.ranks.seen.add(rank)
    elif (match := _ROOT_INFO.search(line.text)) is not None:
        evidence.ranks.world = max(evidence.ranks.world, int(match["ranks"]))
    elif (match := _TLS.search(line.text)) is not None:
        own, peer = int(match["own_rank"]), int(match["peer_rank"])
        if len(evidence.links) < 50_000:
            evidence.links.append(LinkError(own, peer, match["tls"].upper(), line))
        evidence.ranks.device_addresses.setdefault(match["own"], own)
        evidence.ranks.device_addresses.setdefault(match["peer"], peer)


def _read_cpus(state: FileState, line: LogLine) -> None:
    """The CPUs of a rank."""
    masks = state.evidence.cpu_masks
    if len(masks) < _MOST_MASKS and (mask := read_mask(line)) is not None:
        state.found.add("other")
        masks.append(mask)


def _read_thread(state: FileState, line: LogLine) -> None:
    """The head of a process or thread, whose stack is below it."""
    state.threads.read_head(line)
    if state.threads.is_open:
        state.found.add("other")


READERS: tuple[tuple[tuple[bytes, ...], Callable[[FileState, LogLine], None]], ...] = (
    ((b"NCCL INFO", b"NCCL WARN", b"] INFO ", b"] WARN "), read_info),
    ((b"CCL version",), _read_banner),
    (_SETTING_WORDS, _read_settings),
    ((b"HCCL(", b"HCCP(", b"RUNTIME(", b"ROCE("), _read_hccl),
    (_TABLE_WORDS, read_table_line),
    (_WELL, _read_well),
    ((b"COMPLETED", b"SUCCEEDED", b"FAILED", b"TIMEOUT", b"CANCELLED"), read_state),
    ((*_PROGRESS, *_SERVES), read_progress),
    (tuple(_FRAMEWORKS), _read_framework),
    ((b"Job summary", b'"nccl_version"', b"Communicator", b" MISMATCH", b" INCOMPLETE"), _read_ras),
    ((b"locked memory", b"locked-in-memory"), _read_limit),
    ((b"local rank", b"local_rank"), read_launched),
    ((b"Name: ",), read_pod),
    ((b"$ ", b"# "), read_prompt),
    ((b"  host ", b"  rank ", b"  exitcode", b"first observed failure"), read_failure_table),
    ((b"Exception ignored in",), _read_ignored),
    ((b" RUNNING AT ", b" EXIT CODE: ", b"KILLED BY SIGNAL: "), read_hydra),
    ((b"MPICH ERROR [", b"aborted with code", b"Abort(", b"Traceback (most"), read_stack),
    (STACK_WORDS, _read_thread),
    (MASK_WORDS, _read_cpus),
    ((b"/Rnk: ",), read_rank_values),
    (ERROR_WORDS, _read_error),
    (STATED_WORDS, _read_statement),
    ((*ERROR_WORDS, *SIGN_WORDS), _read_sign),
)

COUNTED = frozenset(
    (read_progress, read_rank_values, _read_error, _read_sign, _read_statement, _read_framework)
)  # of many such lines only the number matters
