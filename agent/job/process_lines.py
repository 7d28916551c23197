"""What launchers and error stacks show of single processes: their hosts, how they ended, whose a line is."""

from __future__ import annotations

from agent.job.evidence import STATES, ExitRow, FileState
from agent.job.lines import LogLine
from agent.model.node import shorten_host
from probes.text import lazy_pattern

_LAUNCHED = lazy_pattern(r"\bhost[ =:]{1,2}(?P<host>[A-Za-z][\w.-]{0,63}),? local[ _]rank[ =:]{1,2}(?P<local>\d{1,4})")
_POD = lazy_pattern(r"Name: {1,20}(?P<host>[a-z0-9][a-z0-9.-]{0,62})\s*$")  # of `kubectl describe pod`
_TABLE_FIELD = lazy_pattern(r"\s{1,8}(?P<name>host|rank|exitcode|time|traceback) {1,12}: (?P<value>.{0,200})")
_FIRST_FAILURE = "first observed failure"
_PROMPT = lazy_pattern(
    r"(?:\([\w.-]{1,40}\) )?(?:\[\w[\w.-]{0,31}@(?P<host>(?![0-9a-f]{12} )[A-Za-z][\w.-]{0,62}) [^\]]{1,100}\]|"
    r"\w[\w.-]{0,31}@(?P<host2>(?![0-9a-f]{12}:)[A-Za-z][\w.-]{0,62}):\S{0,200}) ?[#$%] (?P<command>\S.{0,400})"
)  # not the number that a container has as its name
_BARE_PROMPT = lazy_pattern(r"(?:\[[\w.@~ -]{1,80}\]|[\w.@:~/-]{0,80})\$ {1,4}[a-z./]\S")
_MOST_PROMPTS = 1000
_STARTS_ELSEWHERE = lazy_pattern(
    r"\b(?:srun|sbatch|salloc|mpirun|mpiexec|ssh|pdsh|clush|kubectl|docker|podman|deepspeed|horovodrun|ray|accelerate|"
    r"helm|hostfile|nnodes)\b"
)
# Commands whose output is of one other host or pod, and their options that have a value in the next word
_OF_ANOTHER = {"ssh": ("-o", "-p", "-i", "-l", "-J"), "logs": ("-n", "-c", "-l"), "exec": ("-n", "-c")}
_PLACE = lazy_pattern(r"(?:[\w-]{1,32}@|pods?/)?(?P<host>[A-Za-z0-9][\w.-]{1,120})")
_ON_HOST = lazy_pattern(r"# {0,4}(?:on|from|host) (?P<host>(?=[\w.-]{0,63}\d)[A-Za-z][\w.-]{0,62}):?\s*$")
_STATE = lazy_pattern(  # of a whole job, as its scheduler or operator lists it; a step of it has a dot
    r"^(?:sacct: |[\w -]{0,20}\b[Jj]ob )?\W{0,4}(?P<id>[\w-]{1,40}?) (?:[\w:.,-]{1,40} ){0,8}?"
    r"(?:[Ss]tate ?[=:] ?)?(?P<state>COMPLETED|SUCCEEDED|FAILED|TIMEOUT|NODE_FAIL|OUT_OF_MEMORY|CANCELLED)\b"
    r".{0,60}?\b(?P<code>\d{1,3})(?::\d{1,3})?\b"
)
_STACK = lazy_pattern(
    r"MPICH ERROR \[Rank (?P<rank>\d{1,7})\] \[job id [^\]]{1,40}\] \[[^\]]{1,40}\] \[(?P<host>[\w.-]{1,64})\]|"
    r"^Rank (?P<rank2>\d{1,7}) aborted with code|"
    r"^Abort\(\d{1,12}\) on node \d{1,7} \(rank (?P<rank3>\d{1,7}) in comm 0\)"
)
_OF_STACK = lazy_pattern(r"\w{3,60}\(\d{1,6}\)\.{0,60}:")
_STACK_LINES, _MOST_FRAMES = 40, 100
_TRACEBACK = "Traceback (most recent call last):"
_OF_TRACEBACK = lazy_pattern(r"[A-Za-z_][\w.]{0,120}(?:Error|Exception)\b")  # its last line
_RUNNING = lazy_pattern(r"= {1,5}(?:RANK (?P<rank>\d{1,7}) )?PID (?P<pid>\d{1,9}) RUNNING AT (?P<host>[\w.-]{1,64})")
_ENDED = lazy_pattern(r"= {1,5}(?:EXIT CODE: (?P<code>\d{1,3})|KILLED BY SIGNAL: (?P<signal>\d{1,2}))")
_SIGNALS = (6, 7, 9, 11, 15)  # what Hydra prints as a code


def read_launched(state: FileState, line: LogLine) -> None:
    """A launcher names the host of a rank: "host gpu-a01, local rank 3"."""
    match = _LAUNCHED.search(line.text)
    if match is not None:
        state.evidence.ranks.file_hosts[line.file].setdefault(match["host"].partition(".")[0])


def read_pod(state: FileState, line: LogLine) -> None:
    """The name of a pod, which is the host name of its processes."""
    match = _POD.match(line.text)
    if match is not None:
        state.evidence.ranks.file_hosts[line.file].setdefault(match["host"])


def read_prompt(state: FileState, line: LogLine) -> None:
    """A shell's prompt, with a command that starts no process on other hosts: its host is that of the lines below it,
    where none of them names one."""
    state.asks_exit = line if line.text.rstrip().endswith("echo $?") else None
    match = _PROMPT.match(line.text)
    prompts = state.evidence.prompts[line.file]
    if (match is not None or _BARE_PROMPT.match(line.text)) and len(prompts) < _MOST_PROMPTS:
        prompts.append(line.number)
    is_prompt = match is not None or _BARE_PROMPT.match(line.text) is not None
    other = _ON_HOST.match(line.text)
    if is_prompt or other is not None:
        state.other_host = other["host"] if other is not None else _find_other_host(line.text)
    if match is not None and not _STARTS_ELSEWHERE.search(match["command"]):
        state.prompt_host = state.prompt_host or (match["host"] or match["host2"]).partition(".")[0]


def _find_other_host(command: str) -> str | None:
    """The host or pod whose output a command prints.

    >>> _find_other_host("$ kubectl -n ml logs train-2 --tail=9"), _find_other_host("$ ssh -p 22 gpu-a02 dmesg")
    ('train-2', 'gpu-a02')
    >>> _find_other_host("$ kubectl logs -l app=x"), _find_other_host("$ ssh gpu-a02")
    (None, None)
    """
    words = command.split()[:40]
    for place, name in enumerate(words):
        valued = _OF_ANOTHER.get(name)
        if valued is None or (name != "ssh" and "kubectl" not in words[:place]):
            continue
        rest = [w for at, w in enumerate(words) if at > place and not w.startswith("-") and words[at - 1] not in valued]
        match = _PLACE.fullmatch(rest[0]) if rest else None
        return shorten_host(match["host"]) if match is not None and (name != "ssh" or len(rest) > 1) else None
    return None


def read_failure_table(state: FileState, line: LogLine) -> None:
    """The table of torchrun: "host : ..", "rank : 3 (local_rank: 3)", "exitcode : -9 (pid: 4711)"; the process that
    ended first is below "Root Cause (first observed failure):"."""
    match = _TABLE_FIELD.match(line.text)
    if match is None:
        if _FIRST_FAILURE in line.text:
            state.end_table()
            state.is_first_failure, state.table_line = True, line
        return
    if match["name"] in state.table:
        state.end_table()
    state.table[match["name"]] = match["value"]
    if match["name"] == "exitcode":
        state.table_line = line
        state.found.add("launcher")
        state.end_table()


def read_state(state: FileState, line: LogLine) -> None:
    """The state of a job in a list of its scheduler: the last of a job counts, and all of a list have to be well."""
    match = _STATE.match(" ".join(line.text.split()))
    if match is not None:
        state.job_states[match["id"]] = match["state"] in ("COMPLETED", "SUCCEEDED") and match["code"] == "0"
        state.evidence.ended_well.pop(STATES, None)
        if all(state.job_states.values()):
            state.evidence.ended_well[STATES] = line
            state.evidence.note_end(line)


def read_hydra(state: FileState, line: LogLine) -> None:
    """The box of MPICH and Intel MPI: "=   RANK 3 PID 4711 RUNNING AT gpu-a07", then its exit code or signal."""
    place, how = _RUNNING.match(line.text), _ENDED.match(line.text)
    if place is not None:
        state.place = place
    elif how is not None and state.place is not None:
        place, state.place = state.place, None
        code = int(how["code"] or how["signal"])
        rank = int(place["rank"]) if place["rank"] else None
        number = -code if how["signal"] or code in _SIGNALS else code
        host, pid = shorten_host(place["host"]), int(place["pid"])
        state.evidence.exits.append(ExitRow(rank, host, number, pid, line))
        process = state.evidence.ranks.process(host, pid)
        process.rank = process.rank if process.rank is not None else rank
        state.found.add("launcher")


def read_stack(state: FileState, line: LogLine) -> None:
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
    if state.other_host is not None and line.host is None and line.address is None:
        line = line._replace(host=state.other_host)
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
