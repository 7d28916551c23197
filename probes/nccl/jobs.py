"""Running processes that use a GPU or NCCL: what they have mapped, what their environment sets, what their files state.

The kernel's threads are left out by one file; what others own is not to be looked into without privilege, and then the
number of jobs is not known. Parsers are as literal as NCCL itself (`src/misc/param.cc`): a line of a file is a setting
where it holds a "=": what is before it is the name, what follows the value, with every blank and quote; "#" begins a
remark in the first column only.
"""

import re
import time

from probes.host.filter_secrets import LIBRARIES
from probes.host.interface import OUTPUT_LIMIT_BYTES, Absent, Host, ReadError
from probes.host_reader import as_text
from probes.named_tuple import NamedTuple
from probes.text import lazy_pattern

VALUE_CHARACTERS = 1023  # as much as NCCL takes of a name, and of a value
LINES_LIMIT = 512
# Of an environment: what is a setting, not where a rank stands or whom it calls.
WANTED = lazy_pattern(
    r"(?:NCCL|HCCL|UCX|FI|NVSHMEM)_\w{1,100}\Z|OMPI_MCA_(?:btl|pml|mtl|coll|osc)\w{0,80}\Z|(?:ROCR|HIP)_VISIBLE_DEVICES\Z"
)
# Processes that hold a GPU open and are no job.
DAEMONS = frozenset(
    {"nv-hostengine", "dcgm-exporter", "nv-fabricmanage", "nvidia-persiste", "nvidia-imex", "Xorg", "nvidia-smi"}
    | {"nvidia-device-p", "fabricscope", "nvsm_core", "nv-nvlsm", "nvtop", "gpud"}
)
_LIBRARY = lazy_pattern(LIBRARIES)
_VERSION = lazy_pattern(r"\.so\.(\d{1,4}(?:\.\d{1,4}){1,3})\Z")


class NcclVariable(NamedTuple):
    """One variable, literally. A line that sets nothing has the key "" and its text as value."""

    key: str
    value: str
    source: str  # "/etc/nccl.conf:3", "environment of pid 4711 (python3)"
    scope: str  # system | user | job
    line: str | None = None


class Mapped(NamedTuple):
    """What a process has mapped: libraries of interest by path, and device nodes."""

    libraries: tuple[str, ...] = ()
    gpu: bool = False
    rdma: bool = False


def parse_conf(text: str, path: str, scope: str) -> tuple[list[NcclVariable], list[NcclVariable]]:
    r"""Settings of a file, and lines that set nothing though they are no remark.

    >>> parse_conf("# x\nNCCL_IB_TC = 106\n\nNCCL_DEBUG\n", "/etc/nccl.conf", "system")[0][0][:3]
    ('NCCL_IB_TC ', ' 106', '/etc/nccl.conf:2')
    >>> [setting.value for setting in parse_conf("# x\n\nNCCL_DEBUG\n", "/etc/nccl.conf", "system")[1]]
    ['NCCL_DEBUG']
    """
    settings, others = [], []
    for number, line in enumerate(text.split("\n")[:LINES_LIMIT], start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        source = f"{path}:{number}"
        key, equals, value = line.partition("=")
        if equals:
            cut = value[:VALUE_CHARACTERS]
            settings.append(NcclVariable(key[:VALUE_CHARACTERS], cut, source, scope, line[:VALUE_CHARACTERS]))
        else:
            others.append(NcclVariable("", line[:VALUE_CHARACTERS], source, scope, line[:VALUE_CHARACTERS]))
    return settings, others


_LONGEST_LINE = 2000  # that a person writes
_STATED = lazy_pattern(
    r"^[^\n]{0,200}?\b(?P<key>NCCL_[A-Z0-9_]{2,60}) set by environment to (?P<value>\S{1,200}?)\.?[ \t\r]*$",
    re.MULTILINE,
)
_GIVEN = lazy_pattern(  # by the command of a job
    r"(?:^|[ \t])(?:-x|-e|--env|export|env)[ =]{1,2}(?P<key>NCCL_[A-Z0-9_]{2,60})="
    r"(?P<value>[^\s\"'$=]{1,200})(?=[ \t\r]|$)"
)


def list_setting_lines(text: str) -> list[str]:
    """Lines in which NCCL states what its environment sets; else those of commands that set it."""
    stated = [match[0] for match in _STATED.finditer(text)]
    return stated or [line for line in text.splitlines() if len(line) < _LONGEST_LINE and _GIVEN.search(line)]


def parse_stated(text: str) -> list[NcclVariable]:
    """What NCCL states that its environment sets (`src/misc/param.cc`), or a command sets; of a variable with several
    values nothing: these are several runs.

    >>> text = "[0] NCCL INFO NCCL_P2P_LEVEL set by environment to LOC\\nNCCL_IB_TC set by environment to 106.\\n"
    >>> [(setting.key, setting.value) for setting in parse_stated(text)]
    [('NCCL_P2P_LEVEL', 'LOC'), ('NCCL_IB_TC', '106')]
    >>> line = "$ mpirun -np 16 -x NCCL_IB_GID_INDEX=3 -x NCCL_DEBUG=INFO ./all_reduce_perf"
    >>> [(setting.key, setting.value) for setting in parse_stated(line)]
    [('NCCL_IB_GID_INDEX', '3'), ('NCCL_DEBUG', 'INFO')]
    """
    values: dict[str, dict[str, str]] = {}
    for line in list_setting_lines(text):
        for match in _STATED.finditer(line):
            values.setdefault(match["key"], {}).setdefault(match["value"], line[match.start("key") :])
        for match in _GIVEN.finditer(line):
            values.setdefault(match["key"], {}).setdefault(match["value"], line)
    return [
        NcclVariable(key, value, "environment of the job", "job", line[:VALUE_CHARACTERS])
        for key, of_key in values.items()
        if len(of_key) == 1
        for value, line in of_key.items()
    ]


def parse_environ(content: bytes) -> tuple[tuple[str, str], ...]:
    r"""Variables of interest of a process's environment, sorted.

    >>> parse_environ(b"NCCL_IB_TC=106\0HOME=/root\0FI_PROVIDER=efa\0OMPI_COMM_WORLD_RANK=3\0")
    (('FI_PROVIDER', 'efa'), ('NCCL_IB_TC', '106'))
    """
    pairs = (part.decode("utf-8", "replace").partition("=") for part in content.split(b"\0"))
    return tuple(
        sorted({(key, value[:VALUE_CHARACTERS]) for key, equals, value in pairs if equals and WANTED.match(key)})
    )


def parse_maps(text: str) -> Mapped:
    r"""What /proc/PID/maps holds of NCCL's world.

    >>> parse_maps("0-0 r-xp 00000000 08:02 1 /usr/lib/libnccl.so.2.21.5\n0-0 rw-s 0 00:06 9 /dev/nvidia0\n")
    Mapped(libraries=('/usr/lib/libnccl.so.2.21.5',), gpu=True, rdma=False)
    """
    lines = text.split("\n")
    paths = (fields[5].strip().removesuffix(" (deleted)") for line in lines if len(fields := line.split(None, 5)) == 6)
    return Mapped(
        libraries=tuple(sorted({path[:VALUE_CHARACTERS] for path in paths if _is_library(path)})),
        gpu=any(re.search(r" /dev/(?:(?:nvidia|davinci)\d|kfd\Z)", line) for line in lines),
        rdma=any(" /dev/infiniband/uverbs" in line for line in lines),
    )


def _is_library(path: str) -> bool:
    folder, _, name = path.rpartition("/")
    return folder.startswith("/") and _LIBRARY.match(name) is not None


def version_of(path: str) -> str | None:
    """The version in a library's name.

    >>> version_of("/usr/lib/libnccl.so.2.21.5"), version_of("/usr/lib/libnccl.so.2")
    ('2.21.5', None)
    """
    match = _VERSION.search(path)
    return match[1] if match else None


def is_nccl(path: str) -> bool:
    """Whether a library is NCCL itself.

    >>> is_nccl("/usr/lib/libnccl.so.2"), is_nccl("/usr/lib/libnccl-net.so")
    (True, False)
    """
    return path.rpartition("/")[2].startswith("libnccl.so")


def is_plugin(path: str) -> bool:
    """Whether a library is a network plugin of NCCL, or one of those that state what a job uses besides."""
    return not is_nccl(path) and path.rpartition("/")[2].startswith("libnccl-")


SECONDS = 4.0
PROCESSES_LIMIT = 8192
ENVIRONMENTS_LIMIT = 64
KERNEL_THREADS = "/proc/2/task/2/children"
# How modules are called of which one drives the devices of a job: of accelerators, of a virtual one, of RDMA
_DRIVERS = ("nvidia", "amdgpu", "habanalabs", "neuron", "drv_", "dxgkrnl", "ib_core")


class NcclJob(NamedTuple):
    """One process. `settings` None: its environment may not be read."""

    pid: str
    name: str
    mapped: Mapped
    settings: tuple[tuple[str, str], ...] | None
    apart: bool | None  # it sees other files than this process (a container); None: not known

    @property
    def label(self) -> str:
        """For people."""
        return f"pid {self.pid} ({self.name})"


class Jobs(NamedTuple):
    """Those that were found. `hidden`: why there may be more; None: these are all."""

    jobs: tuple[NcclJob, ...] = ()
    hidden: str | None = None


def find_jobs(host: Host) -> Jobs:
    """Processes that have a GPU or NCCL mapped, by number. Bounded in number and time."""
    try:
        pids = sorted((name for name in host.listdir("/proc") if name.isdecimal()), key=int)
    except ReadError as why:
        return Jobs(hidden=why.reason)
    if not pids or not (host.live or host.kind == "capture"):
        return Jobs(hidden="the source holds no processes")
    if not _has_driver(host):
        return Jobs()
    kernel = frozenset((_text(host, KERNEL_THREADS) or "").split()) | {"2"}
    until, denied, jobs = time.monotonic() + SECONDS, False, list[NcclJob]()
    for number, pid in enumerate(pid for pid in pids if pid not in kernel):
        if number == PROCESSES_LIMIT or time.monotonic() > until:
            return Jobs(tuple(jobs), f"not all of {len(pids)} processes were looked at")
        try:
            mapped = parse_maps(as_text(host.read(f"/proc/{pid}/maps", OUTPUT_LIMIT_BYTES)))
        except Absent:
            continue  # it ended
        except ReadError:
            denied = True
            continue
        job = _job(host, pid, mapped, len(jobs) < ENVIRONMENTS_LIMIT)
        if job:
            jobs.append(job)
    hidden = "some processes may be looked into by root only, with CAP_SYS_PTRACE"
    return Jobs(tuple(jobs), hidden if denied else None)


def _has_driver(host: Host) -> bool:
    """Whether jobs may have devices here: else maps of all processes would be read for nothing, a tenth of a scan."""
    try:
        return any(name.startswith(_DRIVERS) for name in host.listdir("/sys/module"))
    except ReadError:
        return True


def _job(host: Host, pid: str, mapped: Mapped, ask: bool) -> NcclJob | None:
    if not mapped.gpu and not any("/libnccl" in path or "/libnvshmem" in path for path in mapped.libraries):
        return None
    name = (_text(host, f"/proc/{pid}/comm") or "?")[:15]
    if name in DAEMONS:
        return None
    settings = None
    if ask:
        try:
            settings = parse_environ(host.read(f"/proc/{pid}/environ"))
        except ReadError:
            settings = None
    return NcclJob(pid, name, mapped, settings, _has_own_mounts(host, pid))


def _has_own_mounts(host: Host, pid: str) -> bool | None:
    try:
        return host.readlink(f"/proc/{pid}/ns/mnt") != host.readlink("/proc/self/ns/mnt")
    except ReadError:
        return None


def _text(host: Host, path: str) -> str | None:
    try:
        return as_text(host.read(path, 1 << 18))
    except ReadError:
        return None
