"""Which rank is which process, host, GPU and NIC, by whatever lines tie them."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable

from agent.model.job_answer import RankGpu
from probes.text import lazy_pattern

_COMMUNICATOR = lazy_pattern(
    r"(?:(?P<function>ncclComm\w{1,40}) )?comm 0x\w{1,16} rank (?P<rank>\d{1,7}) n[rR]anks (?P<ranks>\d{1,7}) "
    r"cudaDev (?P<cuda>\d{1,4})(?: nvmlDev (?P<nvml>\d{1,4}))?(?: busId (?P<bus>[0-9a-f]{1,16}))?"
    r"(?: commId (?P<id>0x\w{1,16}))? {0,2}- {0,2}(?P<what>Init START|Init COMPLETE|Destroy COMPLETE|Abort COMPLETE|"
    r"Abort START|Revoke \w{1,20})"
)
_USING = lazy_pattern(
    r"(?:Bootstrap ?: Using|NET : Using interface) (?P<interface>\S{1,40}?):(?P<address>[^\s<]{1,60})<"
)
_OOB = lazy_pattern(r"OOB \S{1,40}?:([^\s<]{1,60})<")
_DEVICES = lazy_pattern(r"\[(\d{1,3})\](?:\{\d{1,3}\} )?([\w.-]{1,60}):(\d{1,3})/(\w{1,10})")
_CHANNEL = lazy_pattern(
    r"(?:Channel|Ring) \d{1,3}(?:/\d{1,3})? : (?P<first>\d{1,7})(?:\[\w{1,16}\])? -> (?P<second>\d{1,7})"
    r"(?:\[\w{1,16}\])? \[(?P<way>send|receive)\] via NET/IB\w{0,8}/(?P<nic>\d{1,3})"
)
_TABLE = lazy_pattern(
    r"#?\s{0,8}Rank\s{1,8}(?P<rank>\d{1,7})\s{1,8}(?:Group\s{1,8}\d{1,5}\s{1,8})?Pid\s{1,8}(?P<pid>\d{1,9})\s{1,8}on\s{1,8}"
    r"(?P<host>\S{1,100})\s{1,8}device\s{1,8}(?P<device>\d{1,4})(?: \[(?P<bus>[0-9a-fx:.]{1,16})\])?"
)
_MOST_COMMUNICATORS = 100_000
_HOST_LINES = (
    re.compile(
        r"rank[ =:]{1,3}(?P<rank>\d{1,7})[ ,;]{1,3}(?:host|node)(?:name)?[ "
        r"=:]{1,3}(?P<host>[A-Za-z0-9][\w.-]{0,63})\s*$"
    ),
    re.compile(
        r"\A(?P<host>[A-Za-z0-9][\w.-]{0,63})\s{1,8}(?:slots|gpus)\s{0,3}=\s{0,3}(?P<slots>\d{1,4})(?:\s.{0,80})?$"
    ),
    re.compile(r"(?P<host>[A-Za-z][\w.-]{0,63}):(?P<slots>\d{1,4})\s*$"),
)


class Process:
    """One process of the job."""

    __slots__ = (
        "bus", "cuda", "destroyed", "first_lines", "host", "init_done", "init_started", "nvml", "pid", "rank",
        "world",
    )  # fmt: skip

    def __init__(self, host: str, pid: int) -> None:
        self.host, self.pid = host, pid
        self.rank: int | None = None
        self.world = 0  # ranks of the largest communicator it is in
        self.cuda: int | None = None
        self.nvml: int | None = None
        self.bus: str | None = None

        self.first_lines: dict[int, int] = {}  # by file: the number of the first line that it wrote
        self.init_started = self.init_done = self.destroyed = False


class RankMap:
    """Collects what lines show of ranks, and answers once all files are read."""

    def __init__(self) -> None:
        self.processes: dict[tuple[str, int], Process] = {}
        self.communicators: dict[str, dict[tuple[str, int], None]] = {}  # by commId: processes
        self.addresses: dict[str, str] = {}  # of the bootstrap network, to hosts
        self.interfaces: dict[str, dict[str, str]] = defaultdict(dict)  # address of the bootstrap network: host: name
        self.devices: dict[str, dict[int, tuple[str, int, str]]] = defaultdict(
            dict
        )  # host: number: name, port, link layer
        self.host_of: dict[int, str] = {}  # by a list of hosts, or a launcher
        self.local_of: dict[int, int] = {}  # the rank's number on its host
        self.seen: set[int] = set()  # ranks that wrote a line
        self.torch_files: dict[int, int] = {}  # rank: the file that has its lines
        self.rank_files: dict[int, dict[int, None]] = defaultdict(dict)  # rank of a whole job: files that have it
        self.file_hosts: dict[int, dict[str, None]] = defaultdict(dict)
        self.world = 0
        self.pids: dict[tuple[int, int], int] = {}  # file and process: its rank, where no line has the host
        self.device_addresses: dict[str, int] = {}  # of NPUs, to ranks
        self._nics: dict[int, dict[int, None]] = defaultdict(dict)
        self._by_rank: dict[int, Process] | None = None  # kept once all files are read, as the next two
        self._hosts: dict[str, None] | None = None
        self._listed: dict[str, list[int]] | None = None
        self._places: dict[tuple[str, int | None], int] | None = None
        self._pids: dict[int, set[str]] | None = None
        self.table: dict[int, tuple[str, int, str | None]] = {}  # of nccl-tests: host, device, bus

    def process(self, host: str, pid: int) -> Process:
        """The process by its host and PID."""
        key = host, pid
        process = self.processes.get(key)
        if process is None:
            process = self.processes[key] = Process(host, pid)
        return process

    def read_info(self, text: str, host: str | None, pid: int | None) -> bool:
        """A message of NCCL that ties a rank to something."""
        if text.startswith(("Channel ", "Ring ")):
            match = _CHANNEL.match(text)
            if match is not None:
                rank = int(match["first"] if match["way"] == "send" else match["second"])
                self._nics[rank].setdefault(int(match["nic"]))
            return match is not None
        if " - " in text or "- Init" in text:
            match = _COMMUNICATOR.match(text)
            if match is not None:
                self._read_communicator(match, host, pid)
                return True
        if text.startswith(("Bootstrap", "NET : Using")) and host is not None:
            match = _USING.match(text)
            if match is not None:
                self.addresses.setdefault(match["address"], host)
                self.interfaces[match["address"]].setdefault(host, match["interface"])
                return True
        if text.startswith("NET/IB") and " Using" in text[:14]:
            oob = _OOB.search(text)
            if oob is not None and host is not None:
                self.addresses.setdefault(oob[1], host)
            for number, name, port, layer in _DEVICES.findall(text)[:64]:
                self.devices[host or ""].setdefault(int(number), (name, int(port), layer))
            return True
        return False

    def _read_communicator(self, match: re.Match[str], host: str | None, pid: int | None) -> None:
        rank, ranks = int(match["rank"]), int(match["ranks"])
        if rank >= ranks:
            return
        self.world = max(self.world, ranks)
        self.seen.add(rank) if ranks >= self.world else None
        if host is None or pid is None:
            return
        process = self.process(host, pid)
        if match["id"] and (match["id"] in self.communicators or len(self.communicators) < _MOST_COMMUNICATORS):
            self.communicators.setdefault(match["id"], {}).setdefault((host, pid))
        split = "Split" in (match["function"] or "")
        if ranks > process.world or (ranks == process.world and not split and process.rank is None):
            process.rank, process.world = rank, ranks
            process.init_started = process.init_done = process.destroyed = False
        if ranks < process.world:
            return
        process.cuda = int(match["cuda"])
        process.nvml = int(match["nvml"]) if match["nvml"] else process.nvml
        process.bus = to_pci_address(match["bus"]) if match["bus"] else process.bus
        process.init_started |= match["what"].startswith("Init")
        process.init_done |= match["what"] == "Init COMPLETE"
        process.destroyed |= match["what"] == "Destroy COMPLETE"

    def read_table(self, line: str, file: int) -> bool:
        """A line of the list of devices that nccl-tests prints."""
        match = _TABLE.match(line)
        if match is None:
            return False
        rank, bus = int(match["rank"]), match["bus"]
        parts = bus.split(":") if bus and ":" in bus else []
        pci = f"{parts[0]}:{parts[1]}:{parts[2] if len(parts) > 2 else '00.0'}" if len(parts) > 1 else None
        self.table[rank] = (match["host"].partition(".")[0], int(match["device"]), pci)
        self.world = max(self.world, rank + 1)
        process = self.process(match["host"].partition(".")[0], int(match["pid"]))
        self.rank_files[rank].setdefault(file)
        self.file_hosts[file].setdefault(process.host)
        if process.rank is None and sum(row[0] == process.host for row in self.table.values()) <= 1024:
            process.rank = rank
        return True

    def read_hosts(self, lines: Iterable[str]) -> bool:
        """A file that lists hosts: "rank 3 host gpu-a01", or "gpu-a01 slots=8" in the order of ranks."""
        rows = [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]
        matches = [next((m for form in _HOST_LINES if (m := form.match(row))), None) for row in rows]
        if not rows or None in matches:
            return False
        first = 0
        for match in matches:
            assert match is not None, "looked at above"
            groups = match.groupdict()
            host = groups["host"].partition(".")[0]
            if groups.get("rank") is not None:
                self.host_of.setdefault(int(groups["rank"]), host)
                continue
            for local in range(min(int(groups["slots"]), 4096)):
                self.host_of.setdefault(first + local, host)
                self.local_of.setdefault(first + local, local)
            first += int(groups["slots"])
        return True

    def rank_of(self, host: str | None, pid: int | None) -> int | None:
        """The rank of a process."""
        process = self.processes.get((host, pid)) if host is not None and pid is not None else None
        return process.rank if process is not None else None

    def find_process_host(self, pid: int | None) -> str | None:
        """The host of a process that is known by its number alone, where it is the only one of that number."""
        if pid is None:
            return None
        if self._pids is None:
            self._pids = defaultdict(set)
            for host, number in self.processes:
                self._pids[number].add(host)
        hosts = self._pids.get(pid, set())
        return next(iter(hosts)) if len(hosts) == 1 else None

    def find_named_host(self, path: str) -> str | None:
        """The host of the job whose name a folder of the path has, or begins the file's name."""
        names = {host.lower(): host for host in self.hosts()}
        for part in [*os.path.dirname(path).split(os.sep), os.path.basename(path).partition(".")[0]]:
            if part.lower() in names:
                return names[part.lower()]
        return None

    def _ranked(self) -> dict[int, Process]:
        if self._by_rank is None:
            self._by_rank = {}
            for process in self.processes.values():
                if process.rank is not None and process.world >= min(self.world, process.world or self.world):
                    self._by_rank.setdefault(process.rank, process)
        return self._by_rank

    def find(self, rank: int) -> Process | None:
        """The process of a rank."""
        return self._ranked().get(rank)

    def host(self, rank: int) -> str | None:
        """The host of a rank."""
        process = self.find(rank)
        if process is not None:
            return process.host
        if rank in self.table:
            return self.table[rank][0]
        if rank in self.host_of:
            return self.host_of[rank]
        hosts = self.file_hosts.get(self.torch_files.get(rank, -1), {})
        return next(iter(hosts)) if len(hosts) == 1 else None

    def local(self, rank: int) -> int | None:
        """The number of a rank on its host: by its process, its list, or its place among the ranks of the host."""
        process = self.find(rank)
        if process is not None and process.cuda is not None:
            return process.cuda
        if rank in self.table:
            return self.table[rank][1]
        if rank in self.local_of:
            return self.local_of[rank]
        host = self.host(rank)
        if self._listed is None:
            self._listed = defaultdict(list)
            for number in sorted(self.host_of):
                self._listed[self.host_of[number]].append(number)
        on_host = self._listed.get(host or "", [])
        if rank not in on_host:
            return None
        place = on_host.index(rank)
        before = range(on_host[place - 1] + 1 if place else 0, rank)  # of them, one may be of this host
        return place if all(number in self.host_of for number in before) else None

    def find_rank(self, host: str, local: int | None) -> int | None:
        """The rank of a host that has this number on it."""
        if self._places is None:
            self._places = {(place, self.local(rank)): rank for rank in self.ranks() if (place := self.host(rank))}
        return self._places.get((host, local))

    def gpu(self, rank: int) -> RankGpu | None:
        """The GPU of a rank."""
        process, local = self.find(rank), self.local(rank)
        pci = process.bus if process is not None else self.table[rank][2] if rank in self.table else None
        index = process.nvml if process is not None and process.nvml is not None else local
        return RankGpu(index=index, pci=pci) if index is not None or pci is not None else None

    def nics(self, rank: int) -> list[str]:
        """The NICs by which a rank sends and receives."""
        devices = self.devices.get(self.host(rank) or "") or {}
        names = [devices[number][0] for number in sorted(self._nics.get(rank, {})) if number in devices]
        return list(dict.fromkeys(names))[:8]

    def find_host(self, peer: str) -> str | None:
        """The host of "10.1.0.4<4000>", "gpu-b07<4000>" or an address."""
        name = peer.partition("<")[0].strip("[]")
        if name in self.addresses:
            return self.addresses[name] if len(self.interfaces.get(name, ())) < 2 else None
        short = name.partition(".")[0]
        return short if short and not short.isdecimal() and short in self.hosts() else None

    def hosts(self) -> dict[str, None]:
        """All hosts of the job, in the order of ranks."""
        if self._hosts is None:
            ranked = {host: None for rank in self.ranks() if (host := self.host(rank)) is not None}
            others = (*(row[0] for row in self.table.values()), *self.host_of.values())
            self._hosts = ranked | dict.fromkeys(others) | dict.fromkeys(host for host, _ in self.processes)
        return self._hosts

    def ranks(self) -> list[int]:
        """All ranks that are known."""
        known = {*self._ranked(), *self.table, *self.host_of, *self.seen}
        return sorted(rank for rank in known if not self.world or rank < self.world)


def to_pci_address(number: str) -> str:
    """The address in NCCL's busId.

    >>> to_pci_address("c1000"), to_pci_address("1801000")
    ('0000:c1:00.0', '0018:01:00.0')
    """
    value = int(number, 16)
    return f"{value >> 20:04x}:{value >> 12 & 0xFF:02x}:{value >> 4 & 0xFF:02x}.{value & 0xF:x}"
