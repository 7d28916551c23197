"""What a person gave: every file with the command that it is read as, or why it is not read; whether it is whole."""

from collections.abc import Sequence

from probes.named_tuple import NamedTuple
from probes.text import lazy_pattern

_TAIL_CHARACTERS = 4096
_LAST_LINES = 4
_CLOSED = ("}", "]", ">", "|", "+", "==", "--")  # ends of documents and boxes: whole without a line end, too
_TRACEBACK = "Traceback (most recent call last):\n"
_ERRORS = lazy_pattern(
    r"(?:ibpanic|[\w./-]{1,80}: (?:iberror|ibpanic)): [^\n]*"
    r"|(?:[\w./-]{1,80}: )?(?:line \d{1,6}: +\d{1,9} )?(?:Killed|Terminated|Aborted|Segmentation fault|Bus error)"
    r"(?: +\(core dumped\))?(?:[ \t]+[\w./-][^\n]{0,200})?|\^C|Connection to \S{1,80} closed\b[^\n]*"
    r"|client_loop: [^\n]*"
    r"|(?:[\w./-]{1,40}: ){1,2}(?:line \d{1,6}: )?(?:[\w./-]{1,80}: )?command not found"
)


_LOGS = {"service-log": "log of a service", "rotated-log": "earlier kernel log"}  # which no command printed
_OTHERS = {"bmc-log": "log of a BMC"}


JOB = "job"  # the command that reads logs of jobs


class GivenFile(NamedTuple):
    """One file, or one output in a text of several. Without `read_as` it is not read; with it, `reason` is why only
    a part of it counts."""

    name: str
    read_as: str | None
    reason: str | None = None
    read_by: str | None = None  # the other command of fabricscope that reads it: JOB


def is_log(read_as: str) -> bool:
    """Whether a command prints a log: of the kernel, or of a service."""
    return read_as.split(" ")[0] in ("dmesg", "journalctl", "systemctl", *_LOGS) or read_as in _LOGS.values()


def describe_command(argv: tuple[str, ...]) -> str:
    """The command that an output is read as; options of lspci only add to it.

    >>> describe_command(("lspci", "-D", "-nn", "-vvv")), describe_command(("nvidia-smi", "topo", "-m"))
    ('lspci', 'nvidia-smi topo -m')
    """
    return _LOGS.get(argv[0]) or _OTHERS.get(argv[0]) or (argv[0] if argv[0] == "lspci" else " ".join(argv))


def find_early_end(text: str) -> str | None:
    r"""Why an output is not whole, by how it ends; None where it ends as outputs do.

    >>> find_early_end("CA 'mlx5_0'\nibpanic: [4711] main: can't open UMAD port (mlx5_1:1)\n")
    "it ends with `ibpanic: [4711] main: can't open UMAD port (mlx5_1:1)`"
    >>> find_early_end("CA 'mlx5_0'\n\tCA type: MT41")
    'its last line has no end'
    >>> find_early_end("CA 'mlx5_0'\n\tCA type: MT4129\n"), find_early_end('{"a": 1}')
    (None, None)
    """
    return cut_early_end(text)[1]


def cut_early_end(text: str) -> tuple[str, str | None]:
    """The text without the error that it ends with, and why it is not whole."""
    tail = text[-_TAIL_CHARACTERS:]
    lines = tail.splitlines(keepends=True)
    filled = [number for number, line in enumerate(lines) if line.strip()]
    if (start := tail.find(_TRACEBACK)) >= 0 and (start == 0 or tail[start - 1] == "\n") and tail[:start].strip():
        return text[: len(text) - len(tail) + start], "it ends with a Traceback of Python"
    for number in filled[-_LAST_LINES:]:
        if _ERRORS.fullmatch(lines[number].strip()) and number > filled[0]:  # alone it is what the tool printed
            rest = sum(map(len, lines[number:]))
            return text[: len(text) - rest], f"it ends with `{lines[number].strip()[:100]}`"
    if len(filled) > 1 and not tail.endswith(("\n", "\r")) and not lines[-1].rstrip().endswith(_CLOSED):
        return text, "its last line has no end"
    return text, None


_LIKE_LINES = 64  # above the last one
_NUMBER = lazy_pattern(r"\d{1,40}")
_CELL_ENDS = lazy_pattern(r"[|,\t]| {2,40}")
_LONGEST_LINE = 1000
_OPEN_ENDS = ":=,;([{/-<"


def end_pasted_line(text: str) -> str:
    r"""A pasted text with an end of its last line, which few people copy, where its form shows that nothing of it is
    cut: it has as many cells as the line above that begins alike, no such line goes on behind what it has, and none
    has a longer number that begins so. A number with no line to compare it with may be cut.

    >>> end_pasted_line("0, 16\n1, 8"), end_pasted_line("0, 16\n1, 1"), end_pasted_line("0, 16\n1")
    ('0, 16\n1, 8\n', '0, 16\n1, 1', '0, 16\n1')
    >>> end_pasted_line("Speed: 400\nState: Down"), end_pasted_line("Link 0: 50 GB/s\nLink 1: 50 GB")
    ('Speed: 400\nState: Down\n', 'Link 0: 50 GB/s\nLink 1: 50 GB')
    """
    if text.endswith(("\n", "\r")):
        return text
    lines = text[-_TAIL_CHARACTERS:].splitlines()[-_LIKE_LINES:]
    if len(lines) < 2 or len(lines[-1]) > _LONGEST_LINE:
        return text
    last = lines.pop().strip()
    above = [line.strip() for line in reversed(lines) if len(line) <= _LONGEST_LINE]
    return f"{text}\n" if _is_whole_line(last, above) else text


def drop_cut_number(text: str) -> str:
    """The text without a number that it ends with: some of its digits may be cut.

    >>> drop_cut_number("LnkSta: Width x1"), drop_cut_number("LnkSta: Width x16\\n")
    ('LnkSta: Width x', 'LnkSta: Width x16\\n')
    """
    return text[: len(text) - len(_find_last_number(text))]


def _is_whole_line(line: str, above: Sequence[str]) -> bool:
    form = _NUMBER.sub("0", line)
    first = form.partition(" ")[0]
    alike = [other for other in above if _NUMBER.sub("0", other).partition(" ")[0] == first]
    number = _find_last_number(line)
    if not alike:
        return bool(line) and not number and line[-1] not in _OPEN_ENDS
    if any(len(other := _NUMBER.sub("0", row)) > len(form) and other.startswith(form) for row in alike):
        return False
    if number and any(other != number and other.startswith(number) for other in map(_find_last_number, alike)):
        return False
    return len(_CELL_ENDS.split(line)) >= len(_CELL_ENDS.split(alike[0]))


def _find_last_number(line: str) -> str:
    return line[len(line.rstrip("0123456789.")) :]


_LOG_OF_JOB = lazy_pattern(
    r"\bNCCL (?:INFO|WARN|TRACE) |\[rank\d{1,6}\]:|\bProcessGroup(?:NCCL|HCCL|Gloo)\b|torch\.distributed"
    r"|\bsrun: error: "
    r"|\b(?:NRT|NMGR|TDRV|ENC):[a-z]\w{2,60} {2,80}\S"  # of the Neuron runtime
    r"|\bnrt_\w{3,20} status=\d"
    r"|\[FUNC:\w{3,60}\]\[FILE:|\bE[EHIJKLZ]\d{4}\)?: (?:\[PID: |\d{4}-\d\d-\d\d-)"  # of CANN
    r"|\bUCX +(?:FATAL|ERROR|WARN|DIAG) |\bib_mlx5_log\.c:\d|\bNET/OFI |\bNET/IB ?: |\blibfabric:\d{1,9}:"
    r"|\b(?:rdma_endpoint|rdma_context|rdma_transport|worker_pool|transfer_engine\w{0,20})\.cpp:\d"  # of Mooncake
    r"|\bslurmstepd: error: |\btorchrun\b|mpirun (?:noticed|detected)|\[[A-Z]{4,7}\] [A-Z]{2,12}\(\d{1,9},"
)


def find_job_line(text: str, outputs: Sequence[str]) -> int | None:
    """The first line of a job's log in a text that is in none of its outputs; None where there is none.

    >>> find_job_line("Hi,\\nn1:7:9 [0] NCCL INFO Bootstrap : Using eth0\\n$ lsmod\\nModule\\n", ["Module\\n"])
    2
    """
    match = _LOG_OF_JOB.search(text)
    if match is None:
        return None
    first = text.rfind("\n", 0, match.start()) + 1
    line = text[first:].partition("\n")[0].strip()
    return None if any(line in output for output in outputs) else text.count("\n", 0, match.start()) + 1


def is_log_of_job(text: str) -> bool:
    """Whether a text is what a job of many ranks left behind: `fabricscope job` reads it."""
    return _LOG_OF_JOB.search(text) is not None
