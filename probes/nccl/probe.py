"""NCCL on this node: its files, what running jobs set, which libraries there are, which files settings name.

Only names and lines of NCCL and its kin are ever seen here: `probes/host/filter_secrets.py` drops everything else
where it is read. What was looked at is reported beside what was found, so that a missing setting differs from an
unread one.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping

from probes.host.commands import NCCL_SETTINGS
from probes.host.filter_secrets import SYSTEM_FILE
from probes.host.interface import Absent, Host, ReadError
from probes.host_reader import HostReader
from probes.named_tuple import NamedTuple
from probes.nccl.jobs import (
    Jobs,
    NcclJob,
    NcclVariable,
    find_jobs,
    is_nccl,
    is_plugin,
    parse_conf,
    parse_stated,
    version_of,
)
from probes.probe import Reading
from probes.system.limits import ResourceLimit, of_process
from probes.text import lazy_pattern

HOMES_LIMIT = 128
SETTINGS_LIMIT = 1024
LIMITS_LIMIT = 64
FOLDERS = (
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/usr/local/lib",
    "/usr/local/lib64",
    "/usr/local/cuda/lib64",
    "/opt/amazon/ofi-nccl/lib",
    "/opt/amazon/ofi-nccl/lib/x86_64-linux-gnu",
    "/opt/aws-ofi-nccl/lib",
    "/opt/hpcx/nccl_rdma_sharp_plugin/lib",
    "/usr/local/gib/lib64",
)
NAMES = (
    "libnccl.so.2",
    "libnccl-net.so",
    "libnccl-net-ofi.so",
    "libnccl-net-aws-ofi.so",
    "libgdrapi.so.2",
    "libcufile.so.0",
    "libnvshmem_host.so.3",
)
# A server may be gone: reading there can wait without end.
LOCAL = frozenset({"ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "tmpfs", "overlay", "f2fs", "bcachefs"})
SHARED_MEMORY = "/dev/shm"  # noqa: S108 - the mount point, not a file of ours
NAMED_FILES = ("NCCL_TOPO_FILE", "NCCL_GRAPH_FILE")
# Folders in which only root writes: what a job names anywhere else may be a link to another's file.
_SAFE = lazy_pattern(r"/(?:etc|opt|usr|(?:var/)?run/nvidia-topologyd)/(?!(?:[^\0]*/)?\.\./)[^\0]{1,500}\.xml\Z")
_PCI = lazy_pattern(r"<pci\s[^<>]{1,800}")
_BUS_ID = lazy_pattern(r'\sbusid="([0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7])"')
_CLASS = lazy_pattern(r'\sclass="(0x[0-9a-f]{4,6})')


class NcclLibraryFile(NamedTuple):
    """One library, and how many of the jobs have it mapped."""

    path: str
    version: str | None = None
    used_by: int = 0


class NcclFacts(NamedTuple):
    """See the model's Nccl."""

    settings: tuple[NcclVariable, ...] = ()
    not_settings: tuple[NcclVariable, ...] = ()
    libraries: tuple[NcclLibraryFile, ...] = ()
    plugins: tuple[NcclLibraryFile, ...] = ()
    others: tuple[NcclLibraryFile, ...] = ()  # gdrapi, cufile, NVSHMEM, libfabric
    searched: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    jobs: int | None = None
    jobs_hidden: str | None = None
    jobs_unread: int | None = None
    files: tuple[str, ...] = ()
    devices: Mapping[str, tuple[str, ...]] = {}  # of topology files: "class busid" of GPUs and NICs
    limits: tuple[ResourceLimit, ...] = ()  # of jobs
    shared_memory: str | None = None  # size of /dev/shm: a number of KiB, or "default", half of the memory


class _ConfReader:
    """One look at the node: everything that is found on the way."""

    def __init__(self, host: Host) -> None:
        self.host_reader = HostReader(host)
        self.host = host
        self.settings: list[NcclVariable] = []
        self.not_settings: list[NcclVariable] = []
        self.searched: list[str] = []
        self.unread: list[str] = []

    def file(self, path: str, scope: str) -> None:
        """One file of settings; one that is not there states it."""
        try:
            content = self.host.read(path)
        except Absent as why:
            if self.host.live or self.host.kind == "capture" or why.code != "ENOENT":
                self.searched.append(path)
            else:
                self.unread.append(f"{path}: the source does not hold it, and need not")
            return
        except ReadError as why:
            self.unread.append(why.reason)
            return
        self.searched.append(path)
        self.host_reader.answered(path)
        settings, others = parse_conf(content.decode("utf-8", "replace"), path, scope)
        self.settings += settings
        self.not_settings += others


def read(host: Host) -> Reading:
    """Everything of NCCL that can be seen. Raises Absent where the source has neither files nor processes."""
    reader = _ConfReader(host)
    jobs = find_jobs(host)
    reader.file(SYSTEM_FILE, "system")
    mounts = reader.host_reader.text("/proc/self/mounts", 1 << 20)
    _users(reader, mounts or "")
    _environments(reader, jobs)
    _stated(reader)
    libraries = _libraries(reader, jobs)
    whole = host.live or host.kind == "capture"
    if not whole and not reader.settings and not reader.not_settings and not libraries:
        raise Absent(f"neither {SYSTEM_FILE} nor processes nor libraries of NCCL are in this source")
    files, devices = _named_files(reader, jobs)
    if jobs.hidden:
        reader.unread.append(f"jobs: {jobs.hidden}")
    facts = NcclFacts(
        settings=tuple(reader.settings[:SETTINGS_LIMIT]),
        not_settings=tuple(reader.not_settings[:SETTINGS_LIMIT]),
        libraries=tuple(library for library in libraries if is_nccl(library.path)),
        plugins=tuple(library for library in libraries if is_plugin(library.path)),
        others=tuple(library for library in libraries if not is_nccl(library.path) and not is_plugin(library.path)),
        searched=tuple(dict.fromkeys(reader.searched)),
        unread=tuple(dict.fromkeys(reader.unread)),
        jobs=None if jobs.hidden else len(jobs.jobs),
        jobs_hidden=jobs.hidden,
        jobs_unread=None if jobs.hidden else sum(job.settings is None for job in jobs.jobs),
        files=files,
        devices=devices,
        limits=tuple(limit for job in jobs.jobs[:LIMITS_LIMIT] if (limit := _limit(reader, job))),
        shared_memory=parse_shared_memory(mounts) if mounts else None,
    )
    return Reading(facts, reader.host_reader.sources or ("/proc",), reader.host_reader.missing)


def parse_shared_memory(mounts: str) -> str | None:
    r"""The size of /dev/shm in KiB; "default": no limit is given, so half of the memory (tmpfs(5)); None: not mounted.

    >>> parse_shared_memory("shm /dev/shm tmpfs rw,nosuid,size=65536k,inode64 0 0\n")
    '65536'
    >>> parse_shared_memory("tmpfs /dev/shm tmpfs rw,nosuid,nodev 0 0\n"), parse_shared_memory("")
    ('default', None)
    """
    rows = [line.split() for line in mounts.split("\n")]
    options = [row[3].split(",") for row in rows if len(row) > 3 and row[1:3] == [SHARED_MEMORY, "tmpfs"]]
    if not options:
        return None
    sizes = (re.fullmatch(r"size=([0-9]{1,15})([kmg]?)", option) for option in options[-1])  # the last one is on top
    size = next((size for size in sizes if size), None)
    if size is None:
        return "default"
    return str(int(size[1]) * {"": 1, "k": 1024, "m": 1 << 20, "g": 1 << 30}[size[2]] // 1024)


def _limit(reader: _ConfReader, job: NcclJob) -> ResourceLimit | None:
    return of_process(reader.host_reader, job.pid, job.label, job.mapped.rdma)


def _users(reader: _ConfReader, mounts: str) -> None:
    """Files of users: /root, and homes that no server holds. A link is not followed: it may lead to another's file."""
    for home in ("/root", *_homes(reader, mounts)):
        path = f"{home}/.nccl.conf"
        try:
            reader.host.readlink(path)
        except ReadError as why:
            if why.code == "EINVAL":  # it is there, and no link
                reader.file(path, "user")
            elif not isinstance(why, Absent):
                reader.unread.append(why.reason)
            continue
        reader.unread.append(f"{path}: a link, which is not followed")


def _homes(reader: _ConfReader, mounts: str) -> list[str]:
    kinds = [words[2] for line in mounts.split("\n") if len(words := line.split()) > 2 and words[1].startswith("/home")]
    if any(kind not in LOCAL for kind in kinds):
        reader.unread.append("/home: on a server or of a kind that may wait, not looked into")
        return []
    try:
        reader.host.readlink("/home")
    except ReadError:
        names = [] if reader.host.kind not in ("live", "capture") else reader.host_reader.names("/home") or []
        if len(names) > HOMES_LIMIT:
            reader.unread.append(f"/home: {len(names)} homes, the first {HOMES_LIMIT} were read")
        return [f"/home/{name}" for name in names[:HOMES_LIMIT]]
    reader.unread.append("/home: a link, which is not followed")
    return []


def _stated(reader: _ConfReader) -> None:
    """Settings that NCCL states in a job's log, of which lines stand beside outputs of its host."""
    if reader.host.live or not reader.host.has_output(*NCCL_SETTINGS):
        return
    name = " ".join(NCCL_SETTINGS)
    reader.settings += parse_stated(reader.host.run(*NCCL_SETTINGS).stdout)
    reader.host_reader.answered(name)
    reader.searched.append(name)


def _environments(reader: _ConfReader, found_jobs: Jobs) -> None:
    """Jobs that set the same are one row: ranks of one program."""
    alike: dict[tuple[str, tuple[tuple[str, str], ...]], list[NcclJob]] = {}
    for job in found_jobs.jobs:
        if job.settings is None:
            reader.unread.append(f"environment of {job.label}")
        else:
            alike.setdefault((job.name, job.settings), []).append(job)
    for (_, settings), jobs in alike.items():
        more = f" and {len(jobs) - 1} more" if len(jobs) > 1 else ""
        source = f"environment of {jobs[0].label}{more}"
        reader.searched.append(source)
        reader.settings += [NcclVariable(key, value, source, "job") for key, value in settings]
        path = dict(settings).get("NCCL_CONF_FILE")
        if path and path not in reader.searched:
            _file_of_job(reader, path, jobs[0])


def _file_of_job(reader: _ConfReader, path: str, job: NcclJob) -> None:
    """A file that a job names instead of ~/.nccl.conf: read where its name states what it is, for a user named it."""
    if job.apart is not False:
        reader.unread.append(f"{path}: of a container ({job.label})")
    elif re.fullmatch(r"/(?:[^/\0]+/)*[^/]*nccl[^/]*\.conf", path):
        reader.file(path, "job")
    else:
        reader.unread.append(f"{path}: named by {job.label}, and not called *nccl*.conf")


def _libraries(reader: _ConfReader, jobs: Jobs) -> list[NcclLibraryFile]:
    """Installed ones, by the link of their name; mapped ones, by the file's own name."""
    used = Counter(path for job in jobs.jobs for path in job.mapped.libraries)
    versions: dict[str, str | None] = {}
    for folder in FOLDERS:
        for name in NAMES:
            path = f"{folder}/{name}"
            try:
                target = reader.host.readlink(path)
            except ReadError as why:
                if why.code == "EINVAL":
                    versions[path] = version_of(path)
                continue
            real = target if target.startswith("/") else f"{folder}/{target}"
            versions[real] = version_of(real)
    for path in used:
        if "/libibverbs" not in path:
            versions.setdefault(path, version_of(path))
    return [NcclLibraryFile(path, versions[path], used[path]) for path in sorted(versions)]


def _named_files(reader: _ConfReader, jobs: Jobs) -> tuple[tuple[str, ...], dict[str, tuple[str, ...]]]:
    """Which of the files that settings name are there, and the devices of topologies that root wrote."""
    apart = {f"environment of {job.label}" for job in jobs.jobs if job.apart is not False}
    there, devices = list[str](), dict[str, tuple[str, ...]]()
    for setting in reader.settings:
        path = setting.value
        unseen = any(setting.source.startswith(label) for label in apart)
        if setting.key not in NAMED_FILES or not path.startswith("/") or path in reader.searched or unseen:
            continue
        try:
            reader.host.resolve(path)
        except Absent:
            if reader.host.live or reader.host.kind == "capture":
                reader.searched.append(path)
            continue
        except ReadError as why:
            reader.unread.append(why.reason)
            continue
        reader.searched.append(path)
        there.append(path)
        if _SAFE.match(path) and (text := reader.host_reader.text(path, 1 << 20)):
            devices[path] = tuple(sorted(set(_devices(text))))
    return tuple(there), devices


def _devices(text: str) -> Iterator[str]:
    """GPUs and NICs of a topology, as "class busid".

    >>> list(_devices('<pci busid="0001:00:00.0" class="0x030200" link_speed="32.0 GT/s PCIe"/>'))
    ['0x0302 0001:00:00.0']
    """
    for element in _PCI.findall(text):
        address, kind = _BUS_ID.search(element), _CLASS.search(element)
        if address and kind and kind[1][:6] in ("0x0302", "0x0300", "0x0207", "0x0200"):
            yield f"{kind[1][:6]} {address[1].lower()}"
