"""Reads the log of a job that ran with NCCL_DEBUG=INFO: graphs, channels, transports, choices, settings.

Its lines: NVIDIA/nccl v2.18 to v2.30, `src/init.cc`, `src/graph/search.cc`, `src/transport/*.cc`, `src/enqueue.cc`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from agent.model.recommend_answers import Graph, NcclChoice, NcclLog
from probes.text import lazy_pattern

_MOST = 40  # entries of a list
_PATTERNS = {"1": "tree", "2": "tree", "3": "tree", "4": "ring", "5": "nvls", "6": "collnet"}
_ALGORITHMS = ("tree", "ring", "collnet", "collnet", "nvls", "nvls-tree", "pat")
_PROTOCOLS = ("LL", "LL128", "Simple")
_NAMES = {
    "AllReduce": "all_reduce", "AllGather": "all_gather", "ReduceScatter": "reduce_scatter", "Broadcast": "broadcast",
    "Reduce": "reduce",
}  # fmt: skip
_WORDS = {"TREE": "tree", "RING": "ring", "NVLS": "nvls", "NVLSTREE": "nvls-tree", "PAT": "pat"}

_COMM = lazy_pattern(r"comm 0x[0-9a-f]{1,16} rank \d{1,7} nRanks (\d{1,7}) nNodes (\d{1,6}) localRanks (\d{1,4})")
_GRAPH = lazy_pattern(
    r"Pattern (\d), crossNic \d, nChannels (\d{1,3}), bw (\d{1,5}\.\d{1,9})/(\d{1,5}\.\d{1,9}), type (\w{1,5}/\w{1,5})"
)
_WAY = lazy_pattern(r"\S{1,100}(?: \w{1,30}/\S{1,60})?")  # "NET/AWS Libfabric/4/GDRDMA"
_CHANNEL = lazy_pattern(r"Channel \d{1,3}(?:/\d{1,3})? : \d{1,7}\[\w{1,16}\] -> \d{1,7}\[\w{1,16}\] ")
_RING = lazy_pattern(r"Channel \d{1,3}/\d{1,3} : (\d{1,7}(?: \d{1,7}){0,1023}) ?$")
_CONNECTED = lazy_pattern(r"Connected all rings, use ring PXN \d GDR (\d)")
_COUNTS = lazy_pattern(r"(\d{1,3}) coll channels, (?:\d{1,3} collnet channels, )?(\d{1,3}) nvls channels")
_SETTING = lazy_pattern(r"((?:NCCL|RCCL)_[A-Z0-9_]{1,60}) set (?:by (?:environment|user) )?to (\S{1,200})")
_DEVICE = lazy_pattern(r"\[\d{1,3}\](?:\{\d{1,3}\} )?([\w.-]{1,60}:\d{1,3}/\w{1,10})")
_OFF = lazy_pattern(r"NET/\w{1,30} : GPU Direct RDMA Disabled for (HCA .{1,120})")
_FAR = lazy_pattern(r"GPU Direct RDMA Disabled for (GPU .{1,120})")
_AFFINITY = lazy_pattern(r"ncclTopoGetCpuAffinity: Affinity for GPU (\d{1,4}) is empty")
_OLD_CHOICE = lazy_pattern(r"(\d{1,15}) Bytes -> Algo (\d) proto (\d) time")
_CHOICE = lazy_pattern(r"(\w{1,20}): (\d{1,15}) Bytes -> Algo (\w{1,20}) proto (\w{1,10})")


class NcclLogReader:
    """Collects what the lines of all ranks show."""

    def __init__(self) -> None:
        self.facts: dict[str, object] = {}
        self.devices: dict[str, None] = {}
        self.off: dict[str, None] = {}
        self.far: dict[str, None] = {}
        self.transports: Counter[str] = Counter()
        self.graphs: dict[str, Graph] = {}
        self.rings: dict[str, None] = {}
        self.choices: dict[tuple[str, int], NcclChoice] = {}
        self.settings: dict[str, str] = {}
        self.affinity: set[int] = set()
        self.warnings: dict[str, None] = {}
        self.lines = 0

    def read_text(self, text: str, likely: int = -1) -> int:
        """A message at level INFO; the number of the reader that took it, which takes most of its kind; -1: none."""
        self.lines += 1
        if likely >= 0 and _READERS[likely](self, text):
            return likely
        for number, reader in enumerate(_READERS):
            if reader(self, text):
                return number
        return -1

    def read_version(self, version: str) -> None:
        """Of a banner, which may be on a line of its own."""
        self.facts["version"] = version[:20]

    def result(self) -> NcclLog:
        """All of it."""
        return NcclLog(
            lines=self.lines,
            devices=list(self.devices),
            gpudirect_off=list(self.off)[:_MOST],
            too_far=list(self.far)[:_MOST],
            transports=dict(self.transports.most_common(_MOST)),
            graphs=list(self.graphs.values()),
            rings=list(self.rings)[:_MOST],
            choices=list(self.choices.values())[:_MOST],
            settings=self.settings,
            no_affinity=sorted(self.affinity)[:_MOST],
            warnings=list(self.warnings)[:_MOST],
            **self.facts,  # type: ignore[arg-type]  # fields of NcclLog, which checks them
        )


def _read_simple(reader: NcclLogReader, text: str) -> bool:
    """Lines that are a few fixed words."""
    if text.startswith("NCCL version "):
        reader.read_version(text.removeprefix("NCCL version ").partition("+")[0])
    elif text.startswith("Using network "):
        reader.facts["network"] = text.removeprefix("Using network ").strip()[:60]
    elif text.startswith("NET/IB : No device found"):
        reader.facts["no_rdma_device"] = True
    elif text.startswith("NVLS multicast support is "):
        available = text.startswith("NVLS multicast support is available")
        reader.facts["nvls"] = available and reader.facts.get("nvls", True)
    elif text.startswith("DMA-BUF is available"):
        reader.facts["dmabuf"] = True
    elif text.startswith("NET/IB : Using"):
        for name in _DEVICE.findall(text)[:64]:
            reader.devices.setdefault(name)
    else:
        return False
    return True


def _read_communicator(reader: NcclLogReader, text: str) -> bool:
    match = _COMM.match(text)
    if match is None:
        return False
    ranks, nodes, local = (int(number) for number in match.groups())
    if ranks >= int(str(reader.facts.get("ranks", 0))):  # the largest communicator is the job's
        reader.facts |= {"ranks": ranks, "nodes": nodes, "local_ranks": local}
    return True


def _read_graph(reader: NcclLogReader, text: str) -> bool:
    match = _GRAPH.match(text)
    if match is None:
        return False
    name = _PATTERNS.get(match[1])
    if name and name not in reader.graphs and int(match[2]):
        graph = Graph(
            algorithm=name, channels=int(match[2]), intra_gbyte_s=float(match[3]), inter_gbyte_s=float(match[4]),
            paths=match[5],
        )  # fmt: skip
        reader.graphs[name] = graph
    return True


def _read_channel(reader: NcclLogReader, text: str) -> bool:
    match = _CHANNEL.match(text)
    if match is None:
        return False
    _, separator, way = text[match.end() :].partition("via ")
    if separator:
        match = _WAY.match(way)
        parts = match[0].split("/") if match is not None else []
        numbers = [part for part in parts if not part.partition("(")[0].isdecimal()]  # without the NIC's number
        reader.transports["/".join(numbers)[:60]] += 1
    return True


def _read_ring(reader: NcclLogReader, text: str) -> bool:
    match = _RING.match(text)
    if match is not None:
        reader.rings.setdefault(match[1].strip()[:200])
    elif (match := _CONNECTED.match(text)) is not None:
        reader.facts["gpudirect"] = match[1] == "1" and reader.facts.get("gpudirect") is not False
    return match is not None


def _read_counts(reader: NcclLogReader, text: str) -> bool:
    match = _COUNTS.match(text)
    if match is not None:
        reader.facts |= {"collective_channels": int(match[1]), "nvls_channels": int(match[2])}
    return match is not None


def _read_setting(reader: NcclLogReader, text: str) -> bool:
    match = _SETTING.match(text)
    if match is not None and len(reader.settings) < _MOST:
        reader.settings[match[1]] = match[2].rstrip(".")
    return match is not None


def _read_gpudirect(reader: NcclLogReader, text: str) -> bool:
    if (match := _OFF.match(text)) is not None:
        reader.off.setdefault(match[1].strip())
    elif (match := _FAR.match(text)) is not None:
        reader.far.setdefault(match[1].strip())
    return match is not None


def _read_affinity(reader: NcclLogReader, text: str) -> bool:
    match = _AFFINITY.match(text)
    if match is not None:
        reader.affinity.add(int(match[1]))
    return match is not None


def _read_choice(reader: NcclLogReader, text: str) -> bool:
    match = _CHOICE.match(text)
    if match is not None and match[1] in _NAMES:
        algorithm = _WORDS.get(match[3].upper().replace("_", ""), match[3].lower())
        protocol = {"SIMPLE": "Simple"}.get(match[4].upper(), match[4].upper())
        choice = NcclChoice(
            collective=_NAMES[match[1]], size_bytes=int(match[2]), algorithm=algorithm, protocol=protocol
        )
    elif (match := _OLD_CHOICE.match(text)) is not None and int(match[2]) < 7 and int(match[3]) < 3:
        choice = NcclChoice(
            collective="unknown", size_bytes=int(match[1]), algorithm=_ALGORITHMS[int(match[2])],
            protocol=_PROTOCOLS[int(match[3])],
        )  # fmt: skip
    else:
        return False
    reader.choices[choice.collective, choice.size_bytes] = choice
    return True


_READERS: tuple[Callable[[NcclLogReader, str], bool], ...] = (
    _read_channel, _read_ring, _read_simple, _read_setting, _read_communicator, _read_graph, _read_counts,
    _read_gpudirect, _read_affinity, _read_choice,
)  # fmt: skip
