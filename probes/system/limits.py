"""What jobs may use: how much memory they may lock, and which device nodes there are.

This process's own limit reports nothing of a job's. A job has its limit from the service that starts it, so those are
asked: the running process first, else what its unit file would give it. Those of jobs are read by the probe that finds
jobs, `probes/nccl/probe.py`. Source: proc(5) (limits, status),
systemd.exec(5) (LimitMEMLOCK), limits.conf(5), capabilities(7).
"""

import re
from collections.abc import Iterable, Mapping

from probes.host.commands import LIMITS_SAVED
from probes.host.interface import Absent, Host
from probes.host_reader import HostReader
from probes.named_tuple import NamedTuple
from probes.probe import Reading
from probes.text import lazy_pattern

# Where units lie, the strongest first: systemd.unit(5).
UNIT_FOLDERS = (
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
    "/run/systemd/generator.late",
)
CGROUPS = (  # v2, hybrid, v1
    "/sys/fs/cgroup/system.slice",
    "/sys/fs/cgroup/unified/system.slice",
    "/sys/fs/cgroup/systemd/system.slice",
)

SHELL = "shell"  # the one that someone ran `ulimit` in
SERVICES = ("slurmd", "containerd", "docker", "crio", "kubelet", "k3s", "rke2-agent", "pbs_mom", "lsfd", "sshd", "ssh")
PAM_FILE, PAM_FOLDER = "/etc/security/limits.conf", "/etc/security/limits.d"
NODE_FOLDERS = ("", "infiniband/", "nvidia-caps/", "nvidia-caps-imex-channels/")
NODES_LIMIT = 512
PAM_FILES_LIMIT = 64
CAP_IPC_LOCK = 14
_NODE = lazy_pattern(r"(?:nvidia\S*|gdrdrv|kfd|infiniband/\S+|nvidia-caps\S*/\S+)\Z")
_ULIMIT_CHARACTERS = 8192
_ULIMIT_LINE = lazy_pattern(
    r"^(?:max locked memory|-l: locked-in-memory size|locked memory)[ \t]+\(k(?:ilo)?bytes(?:, -l)?\)[ \t]+"
    r"(unlimited|[0-9]{1,15})\s*?$",
    re.MULTILINE,
)
_ULIMIT_ALONE = lazy_pattern(r"\s*(unlimited|[0-9]{1,15})\s*")
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


class ResourceLimit(NamedTuple):
    """How many bytes one may lock. `exempt`: CAP_IPC_LOCK, so that the limit binds nothing; None: not known."""

    who: str  # "slurmd.service", "pid 4711 (python3)", "/etc/security/limits.conf:3 * soft"
    memlock: str  # bytes, or "unlimited"
    exempt: bool | None = None
    rdma: bool = False  # a process that has an RDMA device open


class LimitFacts(NamedTuple):
    """Limits by process and login. `device_nodes` None: /dev is not shown here. `shell`: of a saved `ulimit`."""

    services: tuple[ResourceLimit, ...] = ()
    users: tuple[ResourceLimit, ...] = ()  # lines of PAM's files
    device_nodes: tuple[str, ...] | None = None
    shell: ResourceLimit | None = None


def read(host: Host) -> Reading:
    """Limits and device nodes. Raises Absent where the source shows none of it."""
    reader = HostReader(host)
    facts = LimitFacts(_services(reader), _users(reader), _nodes(reader), _shell(reader))
    if facts == LimitFacts():
        raise Absent("neither limits of services, nor PAM's limits, nor /dev are in this source")
    return Reading(facts, reader.sources or ("/dev",), reader.missing)


def parse_limits(text: str) -> str | None:
    """The soft limit of locked memory in /proc/PID/limits, bytes or "unlimited".

    >>> parse_limits("Max locked memory         8388608              8388608              bytes     ")
    '8388608'
    """
    match = re.search(r"^Max locked memory +(unlimited|[0-9]{1,20}) ", text, re.MULTILINE)
    return match[1] if match else None


def parse_ulimit(text: str) -> str | None:
    r"""The locked memory of a shell's `ulimit -a` (bash, dash, zsh) or `ulimit -l`, bytes or "unlimited".

    >>> parse_ulimit("max locked memory           (kbytes, -l) 64\n"), parse_ulimit("unlimited\n"), parse_ulimit("64\n")
    ('65536', 'unlimited', '65536')
    """
    match = _ULIMIT_LINE.search(text[:_ULIMIT_CHARACTERS]) or _ULIMIT_ALONE.fullmatch(text[:_ULIMIT_CHARACTERS])
    if match is None:
        return None
    return "unlimited" if match[1] == "unlimited" else str(int(match[1]) << 10)


def parse_exempt(status: str) -> bool | None:
    r"""Whether a process holds CAP_IPC_LOCK; None: the text does not show it.

    >>> parse_exempt("CapEff:\t000001ffffffffff\n"), parse_exempt("CapEff:\t00000000a80425fb\n")
    (True, False)
    """
    match = re.search(r"^CapEff:\s*([0-9a-fA-F]{1,16})$", status, re.MULTILINE)
    return bool(int(match[1], 16) >> CAP_IPC_LOCK & 1) if match else None


def parse_unit(texts: Iterable[str]) -> str | None:
    r"""LimitMEMLOCK of a unit and its drop-ins, in their order: the last one counts, the soft value of a pair.

    >>> parse_unit(["[Service]\nLimitMEMLOCK=64K\n", "[Service]\nLimitMEMLOCK=infinity\n"]), parse_unit(["[Unit]\n"])
    ('unlimited', None)
    """
    limit = None
    for text in texts:
        for value in re.findall(r"^LimitMEMLOCK[ \t]*=[ \t]*(\S*)[ \t]*$", text, re.MULTILINE):
            limit = value.partition(":")[0]
    return bytes_of(limit) if limit else None


def bytes_of(value: str) -> str | None:
    """A limit as systemd writes it, in bytes.

    >>> bytes_of("infinity"), bytes_of("8M"), bytes_of("65536"), bytes_of("lots")
    ('unlimited', '8388608', '65536', None)
    """
    if value in ("infinity", "unlimited"):
        return "unlimited"
    match = re.fullmatch(r"([0-9]{1,15})([KMGT]?)", value)
    return str(int(match[1]) * _UNITS[match[2].lower()]) if match else None


def parse_pam(text: str, path: str) -> list[ResourceLimit]:
    r"""Lines of limits.conf about locked memory; PAM counts in KiB.

    >>> parse_pam("# x\n*  soft memlock unlimited\n@hpc - memlock 64\n", "limits.conf")[1][:2]
    ('limits.conf:3 @hpc -', '65536')
    """
    rows = []
    for number, line in enumerate(text.split("\n")[:2048], start=1):
        words = line.partition("#")[0].split()
        if len(words) == 4 and words[2] == "memlock":
            value = None
            if words[3] in ("unlimited", "infinity", "-1"):
                value = "unlimited"
            elif words[3].isdecimal() and len(words[3]) < 19:
                value = str(int(words[3]) << 10)
            if value:
                rows.append(ResourceLimit(f"{path}:{number} {words[0][:64]} {words[1][:8]}", value[:24]))
    return rows


def _services(reader: HostReader) -> tuple[ResourceLimit, ...]:
    """Of each service that runs, its first process's limit; of one that does not, its unit's, where that states one."""
    folder = next((cgroup for cgroup in CGROUPS if reader.names(cgroup)), CGROUPS[0])
    services = []
    for name in SERVICES:
        pid = (reader.text(f"{folder}/{name}.service/cgroup.procs") or "").split()[:1]
        limits = of_process(reader, pid[0], f"{name}.service") if pid and pid[0].isdecimal() else None
        unit = None if limits else parse_unit(_unit_texts(reader, f"{name}.service"))
        if limits or unit:
            services.append(limits or ResourceLimit(f"{name}.service", unit or ""))
    return tuple(services)


def of_process(reader: HostReader, pid: str, who: str, rdma: bool = False) -> ResourceLimit | None:
    """What one process may lock; None: not known."""
    memlock = parse_limits(reader.text(f"/proc/{pid}/limits", source="/proc/*/limits") or "")
    exempt = parse_exempt(reader.text(f"/proc/{pid}/status", source="/proc/*/status") or "")
    return ResourceLimit(who, memlock, exempt, rdma) if memlock else None


def _unit_texts(reader: HostReader, unit: str) -> list[str]:
    """A unit and its drop-ins, by systemd's order: the strongest folder's unit, then all drop-ins by name."""
    texts = [text for folder in UNIT_FOLDERS if (text := reader.text(f"{folder}/{unit}", 1 << 16)) is not None][:1]
    drops: dict[str, str] = {}
    for folder in UNIT_FOLDERS:
        for name in reader.names(f"{folder}/{unit}.d") or ():
            if name.endswith(".conf"):
                drops.setdefault(name, f"{folder}/{unit}.d/{name}")
    return texts + [reader.text(drops[name], 1 << 16) or "" for name in sorted(drops)[:PAM_FILES_LIMIT]]


def _shell(reader: HostReader) -> ResourceLimit | None:
    """The limit that a saved `ulimit` prints: what the shell of that person may lock."""
    for argv in LIMITS_SAVED if not reader.host.live else ():
        if reader.host.has_output(*argv) and (limit := parse_ulimit(reader.output(*argv) or "")):
            return ResourceLimit(SHELL, limit)
    return None


def _users(reader: HostReader) -> tuple[ResourceLimit, ...]:
    names = [f"{PAM_FOLDER}/{name}" for name in reader.names(PAM_FOLDER) or () if name.endswith(".conf")]
    paths = [PAM_FILE, *names[:PAM_FILES_LIMIT]]
    texts: Mapping[str, str] = {path: reader.text(path, 1 << 16) or "" for path in paths}
    return tuple(limit for path, text in texts.items() for limit in parse_pam(text, path))


def _nodes(reader: HostReader) -> tuple[str, ...] | None:
    """Device nodes of GPUs and RDMA; None where /dev is not this machine's, or not all of it was looked at."""
    host = reader.host
    names = reader.names("/dev") if host.live or host.kind == "capture" else None
    if names is None:
        return None
    nodes = []
    for folder in NODE_FOLDERS:
        if folder and folder.rstrip("/") not in names:
            continue
        listed = reader.names(f"/dev/{folder}".rstrip("/"))
        if listed is None:
            return None
        nodes += [folder + name for name in listed if _NODE.match(folder + name)]
    reader.answered("/dev")
    return tuple(nodes[:NODES_LIMIT])
