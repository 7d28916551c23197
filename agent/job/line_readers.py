"""What lines show besides failures: versions, settings, ranks, tables, progress, a regular end, errors."""

from __future__ import annotations

import re
from collections.abc import Callable

from agent.job.dumps.ras import JsonSnapshotReader, SnapshotReader
from agent.job.error_lines import ERROR_WORDS, has_lower_level, is_error, names_error
from agent.job.evidence import Evidence, ExitRow, LinkError
from agent.job.lines import LogLine
from agent.model.node import shorten_host

_FIELD_RANK = re.compile(r"(\d{1,7}) \(local_rank: (\d{1,5})\)")
_FIELD_EXIT = re.compile(r"(-?\d{1,4}) \(pid: (\d{1,9})\)")


class FileState:
    """What is known while one file is read."""

    def __init__(self, evidence: Evidence, name: str) -> None:
        self.evidence, self.name = evidence, name
        self.found: set[str] = set()  # what the file has: nccl, torch, hccl, table, kernel, launcher, ras
        self.setting: LogLine | None = None  # "name: NCCL_X" of the line before
        self.table: dict[str, str] = {}  # fields of a launcher's table of failures
        self.table_line: LogLine | None = None
        self.snapshot: SnapshotReader | JsonSnapshotReader | None = None  # of RAS, which is being read
        self.damaged_snapshots = 0
        self.ignores: int | None = None  # the line that announces an exception which is ignored
        self.place: re.Match[str] | None = None  # of a process that ended, in the box of Hydra
        self.stack: LogLine | None = None  # of MPICH: its first line, with the rank and host that it names

    def end_table(self) -> None:
        """Keep the row of a launcher's table that is complete."""
        table, self.table = self.table, {}
        exit_code = _FIELD_EXIT.match(table.get("exitcode", ""))
        if exit_code is None or self.table_line is None:
            return
        rank = _FIELD_RANK.match(table.get("rank", ""))
        host = table.get("host", "").strip().partition(".")[0] or None
        self.evidence.exits.append(
            ExitRow(int(rank[1]) if rank else None, host, int(exit_code[1]), int(exit_code[2]), self.table_line)
        )
        if rank is not None and host:
            self.evidence.ranks.host_of.setdefault(int(rank[1]), host)
            self.evidence.ranks.local_of.setdefault(int(rank[1]), int(rank[2]))


_MOST_TABLE_LINES = 60_000
_BANNER = re.compile(r"(?P<library>NCCL|RCCL) version ?:? ?(?P<version>\d{1,2}\.\d{1,3}(?:\.\d{1,4})?)")
_SET = re.compile(r"(?P<name>(?:NCCL|RCCL)_[A-Z0-9_]{1,60}) set (?:by (?:environment|user) )?to (?P<value>.{0,400})")
_HCCL_SET = re.compile(
    r"\[HCCL_ENV\] ?(?P<name>HC\w{1,60}) set by (?P<how>default|environment) to \[(?P<value>[^\]]{0,200})\]"
)
_GIVEN = re.compile(
    r"(?:(?<=\s)|(?<=^)|(?<=[\"';]))(?P<name>(?:TORCH_NCCL|NCCL|RCCL|HCCL|UCX|FI|HSA)_[A-Z][A-Z0-9_]{0,60})="
    r"(?P<value>\"[^\"]{0,300}\"|'[^']{0,300}'|[^\s\"';]{0,300})"
)
_NAME_LINE = re.compile(r"-? ?name: [\"']?(?P<name>(?:TORCH_NCCL|NCCL|RCCL|HCCL|UCX|FI)_[A-Z0-9_]{1,60})[\"']?$")
_VALUE_LINE = re.compile(r"value: [\"']?(?P<value>[^\"']{0,300})[\"']?$")
_MOST_LIMITS = 10_000
_LIMIT = re.compile(
    r"(?:max locked memory|locked-in-memory size)\s{0,30}\((?:kbytes, -l|kbytes)\)\s{1,10}(?P<kib>unlimited|\d{1,15})|"
    r"Max locked memory\s{2,20}(?P<bytes>unlimited|\d{1,18})\s"
)
_LAUNCHED = re.compile(r"\bhost[ =:]{1,2}(?P<host>[A-Za-z][\w.-]{0,63}),? local[ _]rank[ =:]{1,2}(?P<local>\d{1,4})")
_POD = re.compile(r"Name: {1,20}(?P<host>[a-z0-9][a-z0-9.-]{0,62})\s*$")  # of `kubectl describe pod`
_TABLE_FIELD = re.compile(r"\s{1,8}(?P<name>host|rank|exitcode|time|traceback) {1,12}: (?P<value>.{0,200})")
# a snapshot, or its end alone
_RAS_BEGIN = re.compile(
    r"Job summary|Communicators\.\.\.(?: \([\d.]{1,10}s\))?|#\d{1,5}-\d{1,5} \([0-9a-f]{1,40}\) [A-Z, ]{2,60}|"
    r"Communicator ranks have different \w{1,30} operation counts"
)
_STACK = re.compile(
    r"MPICH ERROR \[Rank (?P<rank>\d{1,7})\] \[job id [^\]]{1,40}\] \[[^\]]{1,40}\] \[(?P<host>[\w.-]{1,64})\]|"
    r"^Rank (?P<rank2>\d{1,7}) aborted with code|"
    r"^Abort\(\d{1,12}\) on node \d{1,7} \(rank (?P<rank3>\d{1,7}) in comm 0\)"
)
_OF_STACK = re.compile(r"\w{3,60}\(\d{1,6}\)\.{0,60}:")
_STACK_LINES, _MOST_FRAMES = 40, 100
_TRACEBACK = "Traceback (most recent call last):"
_OF_TRACEBACK = re.compile(r"[A-Za-z_][\w.]{0,120}(?:Error|Exception)\b")  # its last line
_RUNNING = re.compile(r"= {1,5}(?:RANK (?P<rank>\d{1,7}) )?PID (?P<pid>\d{1,9}) RUNNING AT (?P<host>[\w.-]{1,64})")
_ENDED = re.compile(r"= {1,5}(?:EXIT CODE: (?P<code>\d{1,3})|KILLED BY SIGNAL: (?P<signal>\d{1,2}))")
_SIGNALS = (6, 7, 9, 11, 15)  # what Hydra prints as a code
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
}
_PROGRESS = (b"iteration", b"Iteration", b"it/s", b"step ", b"Step ", b"step:", b"step=", b"epoch", b"Epoch", b"loss")
_SERVES = (b"startup complete", b"Uvicorn running", b"fired up and ready")  # a server came up
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
    b"exited with exit code",
    b"Destroy COMPLETE",
    b"Finished training",
    b"exit code",
)
_WELL_FORM = re.compile(
    r"# Out of bounds values : 0 OK|# Avg bus bandwidth|[Tt]raining (?:is )?(?:complete|finished|done)|[Jj]ob completed"
    r"(?: successfully)?|exit(?:ed)? (?:with )?(?:exit )?code:? 0\b|Destroy COMPLETE|Finished training|"
    r"'train_runtime':|Trainer\.fit` stopped: `max_|worker group successfully finished|Application shutdown complete|"
    r"Job '[\w-]{1,80}' succeeded"
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
_TLS = re.compile(
    r"\|\s{0,8}(?P<peer>[\d.a-fA-F:]{3,45})\((?P<peer_rank>\d{1,7})\)\s{0,8}\|[^|]{0,30}\|\s{0,8}(?P<own>[\d.a-fA-F:]{3,45})"
    r"\((?P<own_rank>\d{1,7})\)\s{0,8}\|[^|]{0,30}\|[^|]{0,30}\|[^|]{0,30}\|\s{0,8}(?P<tls>\w{1,20})"
)
_KEY_INFO = re.compile(
    r"\[LocalRank Key Info\]userRank\[(?P<rank>\d{1,7})\] hostIp\[(?P<host>[^\]]{1,60})\] "
    r"devicePhyId\[(?P<device>\d{1,4})\]"
    r" server\[[^\]]{0,80}\] deviceIp\[(?P<address>[^\]]{0,60})\]"
)
_ROOT_INFO = re.compile(r"Inner:ranks\[(?P<ranks>\d{1,7})\], rank\[(?P<rank>\d{1,7})\]")
_PLOG = re.compile(
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
    if len(lines) < _MOST_TABLE_LINES:
        lines.append(line.text)


def _read_well(state: FileState, line: LogLine) -> None:
    match = _WELL_FORM.search(line.text)
    if match is not None:
        state.evidence.ended_well[match[0].lower()[:40]] = line
        state.evidence.note_end(line)


def read_rank_values(state: FileState, line: LogLine) -> None:
    """A value that is listed for a rank, or a row of a table of ranks."""
    values, count = state.evidence.rank_values, len(state.evidence.rank_values.blocks)
    values.read_line(line.text, line.file, line.number, line.rank)
    if len(values.blocks) > count:
        state.found.add("other")


def read_progress(state: FileState, line: LogLine) -> None:
    """A step, an epoch, a loss; the heading of perftest counts iterations, too."""
    if "#bytes" in line.text:
        return
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


def _read_launched(state: FileState, line: LogLine) -> None:
    match = _LAUNCHED.search(line.text)
    if match is not None:
        state.evidence.ranks.file_hosts[line.file].setdefault(match["host"].partition(".")[0])


def _read_pod(state: FileState, line: LogLine) -> None:
    match = _POD.match(line.text)
    if match is not None:
        state.evidence.ranks.file_hosts[line.file].setdefault(match["host"])


def _read_failure_table(state: FileState, line: LogLine) -> None:
    """The table of torchrun: "host : ..", "rank : 3 (local_rank: 3)", "exitcode : -9 (pid: 4711)"."""
    match = _TABLE_FIELD.match(line.text)
    if match is None:
        return
    if match["name"] in state.table:
        state.end_table()
    state.table[match["name"]] = match["value"]
    if match["name"] == "exitcode":
        state.table_line = line
        state.found.add("launcher")
        state.end_table()


def _read_ignored(state: FileState, line: LogLine) -> None:
    """Python reports an exception that it ignores: the one below is no failure."""
    state.ignores = line.number


def _read_hydra(state: FileState, line: LogLine) -> None:
    """The box of MPICH and Intel MPI: "=   RANK 3 PID 4711 RUNNING AT gpu-a07", then its exit code or signal."""
    place, how = _RUNNING.match(line.text), _ENDED.match(line.text)
    if place is not None:
        state.place = place
    elif how is not None and state.place is not None:
        place, state.place = state.place, None
        code = int(how["code"] or how["signal"])
        rank = int(place["rank"]) if place["rank"] else None
        number = -code if how["signal"] or code in _SIGNALS else code
        state.evidence.exits.append(ExitRow(rank, shorten_host(place["host"]), number, int(place["pid"]), line))
        state.found.add("launcher")


def _read_stack(state: FileState, line: LogLine) -> None:
    """An error of MPICH: the lines below it, which name nothing, are of the same process."""
    if _TRACEBACK in line.text:
        is_known = line.rank is not None or line.task is not None or line.pid is not None
        is_open = state.stack is not None and _TRACEBACK in state.stack.text  # of another process, perhaps
        state.stack = line if is_known and not is_open else None
    elif (match := _STACK.search(line.text)) is not None:
        rank = match["rank"] or match["rank2"] or match["rank3"]
        state.stack = line._replace(rank=int(rank), host=shorten_host(match["host"]) if match["host"] else line.host)


def place_in_stack(state: FileState, line: LogLine) -> LogLine:
    """A line with the process of the error stack that it is in."""
    stack = state.stack
    if stack is not None and _TRACEBACK in stack.text:
        return _place_in_traceback(state, stack, line)
    if stack is None or line.rank is not None or line.number - stack.number > _STACK_LINES:
        return line
    if line.number != stack.number and not _OF_STACK.match(line.text):
        return line
    return line._replace(rank=stack.rank, host=line.host or stack.host)


def _place_in_traceback(state: FileState, head: LogLine, line: LogLine) -> LogLine:
    """The last line of a traceback, of which only the first has the prefix of its process."""
    is_own = line.rank is None and line.task is None and line.pid is None
    if not is_own or line.number == head.number or _OF_TRACEBACK.match(line.text) is None:
        return line
    state.stack = None
    if line.number - head.number > _MOST_FRAMES:
        return line
    return line._replace(rank=head.rank, task=head.task, pid=head.pid, host=head.host, at=line.at or head.at)


def _read_error(state: FileState, line: LogLine) -> None:
    """A line that is called an error, of a library that no row is for."""
    if line.level is not None or not is_error(line.text):
        return
    state.found.add("other")
    if "Traceback" in line.text or not has_lower_level(line.whole):
        state.evidence.add_error(line)


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


READERS: tuple[tuple[tuple[bytes, ...], Callable[[FileState, LogLine], None]], ...] = (
    ((b"NCCL INFO", b"NCCL WARN", b"] INFO ", b"] WARN "), read_info),
    ((b"CCL version",), _read_banner),
    (_SETTING_WORDS, _read_settings),
    ((b"HCCL(", b"HCCP(", b"RUNTIME(", b"ROCE("), _read_hccl),
    (_TABLE_WORDS, read_table_line),
    (_WELL, _read_well),
    ((*_PROGRESS, *_SERVES), read_progress),
    (tuple(_FRAMEWORKS), _read_framework),
    ((b"Job summary", b'"nccl_version"', b"Communicator", b" MISMATCH", b" INCOMPLETE"), _read_ras),
    ((b"locked memory", b"locked-in-memory"), _read_limit),
    ((b"local rank", b"local_rank"), _read_launched),
    ((b"Name: ",), _read_pod),
    ((b"  host ", b"  rank ", b"  exitcode"), _read_failure_table),
    ((b"Exception ignored in",), _read_ignored),
    ((b" RUNNING AT ", b" EXIT CODE: ", b"KILLED BY SIGNAL: "), _read_hydra),
    ((b"MPICH ERROR [", b"aborted with code", b"Abort(", b"Traceback (most"), _read_stack),
    (ERROR_WORDS, _read_error),
)

COUNTED = frozenset(
    (read_progress, read_rank_values, _read_error, _read_framework)
)  # of many such lines only the number matters
