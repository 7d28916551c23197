"""GPUs from nvidia-smi, where NVML cannot be asked: saved outputs, and live hosts without the library or its binding.

Any of its commands may be there; each gives what it holds, and they are joined by UUID, address and index. Any of them
may print the sentences by which nvidia-smi states that a GPU or the driver cannot be had.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from probes.gpu import nvidia_smi_nvlink as nvlink_text
from probes.gpu import nvidia_smi_query, nvidia_smi_table, nvidia_smi_topo
from probes.gpu.facts import (
    Gpu,
    GpuFacts,
    NvLink,
    PairCell,
    normal_address,
    with_known_remotes,
)
from probes.gpu.query_guard import find_missing_driver, require_driver
from probes.host.commands import NVIDIA_SMI_SAVED, NVIDIA_SMI_TABLE
from probes.host.interface import Absent, Denied, Failed, Host, ReadError, TimedOut
from probes.probe import Reading
from probes.text import ParseError, check_length, first_line, lazy_pattern

_LIMIT_CHARACTERS = 1 << 20
_LIMIT_LINE = 400
_GPU = lazy_pattern(r"GPU (\d{1,4}): (.{1,200}) \(UUID: (GPU-[0-9A-Fa-f-]{1,60})\)", re.ASCII)
_MIG = lazy_pattern(r"MIG .{1,60}: \(UUID: (MIG-[0-9A-Za-z/-]{1,80})\)", re.ASCII)
_ADDRESS = r"[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[01][0-9A-Fa-f]\.[0-7]"
_DAMAGED = r"[0-9A-Fa-f]{1,8}:[0-9A-Fa-f]{2}[:.]"  # an address that someone typed, no index
_LOST = lazy_pattern(
    r"Unable to determine the device handle for GPU ?"
    rf"(?:({_ADDRESS}): ?|(?={_DAMAGED})|(\d{{1,3}}): ?(?:({_ADDRESS}): ?)?)(.{{1,100}})",
    re.ASCII | re.IGNORECASE,
)
# whole sentences of nvidia-smi where no command of it works
_REFUSALS = (
    "NVIDIA-SMI has failed because",
    "Failed to initialize NVML",
    "No devices were found",
    "couldn't find libnvidia-ml",
    "couldn't communicate with the NVIDIA driver",
)


def parse_list(text: str) -> tuple[Gpu, ...]:
    r"""GPUs with index, name, UUID and MIG instances. Raises ParseError.

    >>> gpus = parse_list("GPU 0: NVIDIA H200 (UUID: GPU-6f3b5fe1-0000-0000-0000-000000000000)\n"
    ...                   "  MIG 1g.18gb     Device  3: (UUID: MIG-6b8c26a5-286a-f440-4f76-3af4cf4108f1)\n")
    >>> gpus[0].index, gpus[0].name, gpus[0].mig_instances
    (0, 'NVIDIA H200', ('MIG-6b8c26a5-286a-f440-4f76-3af4cf4108f1',))
    """
    check_length(text, _LIMIT_CHARACTERS)
    gpus: list[tuple[int, str, str, list[str]]] = []
    for line in map(str.strip, text.splitlines()):
        if len(line) > _LIMIT_LINE:
            continue
        if gpu := _GPU.fullmatch(line):
            gpus.append((int(gpu[1]), gpu[2], gpu[3], []))
        elif gpus and (mig := _MIG.fullmatch(line)):
            gpus[-1][3].append(mig[1])
    if not gpus:
        raise ParseError(f"no GPU; it begins with: {first_line(text)}")
    return tuple(Gpu(index=index, name=name, uuid=uuid, mig_instances=tuple(migs)) for index, name, uuid, migs in gpus)


def lost_gpus(text: str) -> tuple[Gpu, ...]:
    """GPUs that the driver lists and could not open, each with nvidia-smi's words as its error.

    >>> lost = lost_gpus("Unable to determine the device handle for GPU0000:CB:00.0: Unknown Error")[0]
    >>> lost.index, lost.address, lost.error
    (None, '0000:cb:00.0', 'Unknown Error')
    """
    lost = []
    for line in text[:_LIMIT_CHARACTERS].splitlines():
        match = _LOST.search(line[:_LIMIT_LINE])
        if match:
            index, address = int(match[2]) if match[2] else None, match[1] or match[3]
            lost.append(Gpu(index, normal_address(address) if address else None, error=match[4].strip(" \t`*\"'")))
    return tuple(dict.fromkeys(lost))


def refusal(text: str) -> str | None:
    """The sentence by which nvidia-smi states that it cannot work at all.

    >>> refusal("Failed to initialize NVML: Driver/library version mismatch\\n")
    'Failed to initialize NVML: Driver/library version mismatch'
    """
    lines = (line.strip() for line in text[:_LIMIT_CHARACTERS].splitlines())
    return next((line[:200] for line in lines if any(words in line for words in _REFUSALS)), None)


_XML: tuple[str, ...] = ("nvidia-smi", "-q", "-x")
_TEXT: tuple[str, ...] = ("nvidia-smi", "-q")
(_CSV,) = NVIDIA_SMI_SAVED
(_TABLE,) = NVIDIA_SMI_TABLE
_LIST = ("nvidia-smi", "-L")
_TOPO = ("nvidia-smi", "topo", "-m")
_P2P: Mapping[str, tuple[str, ...]] = {
    "read": ("nvidia-smi", "topo", "-p2p", "r"),
    "write": ("nvidia-smi", "topo", "-p2p", "w"),
    "nvlink": ("nvidia-smi", "topo", "-p2p", "n"),
}
_NVLINK: Mapping[tuple[str, ...], Callable[[str], nvlink_text.NvLinks]] = {
    ("nvidia-smi", "nvlink", "-s"): nvlink_text.parse_status,
    ("nvidia-smi", "nvlink", "-e"): nvlink_text.parse_errors,
    ("nvidia-smi", "nvlink", "-R"): nvlink_text.parse_remotes,
    ("nvidia-smi", "nvlink", "-c"): nvlink_text.parse_capabilities,
}
COMMANDS: tuple[tuple[str, ...], ...] = (_XML, _TEXT, _CSV, _TABLE, _LIST, _TOPO, *_P2P.values(), *_NVLINK)


def read(host: Host) -> Reading:
    """All that nvidia-smi shows of GPUs. Raises the reason of the gate on a live host; Absent where there is no
    output; Failed where there is one, and none of it is about a GPU: then the reason is nvidia-smi's own sentence."""
    if not any(host.has_output(*argv) for argv in COMMANDS):
        require_driver(host)
        missing = find_missing_driver(host) if host.kind == "capture" else None  # what stopped it on the live host, too
        if missing:
            raise Absent(missing)
    outputs = _Outputs(host)
    for argv, parse in (
        (_XML, nvidia_smi_query.parse_xml),
        (_TEXT, nvidia_smi_query.parse_text),
        (_CSV, nvidia_smi_query.parse_csv),
    ):
        if not outputs.queried and (argv is not _CSV or host.has_output(*argv)):
            outputs.ask(argv, parse, outputs.take_facts)
    if host.has_output(*_TABLE):  # saved ones only
        outputs.ask(_TABLE, nvidia_smi_table.parse_table, outputs.take_table)
    outputs.ask(_LIST, _gpus, outputs.take_gpus)
    outputs.ask(_TOPO, _matrix, outputs.take_matrix)
    for name, argv in _P2P.items():
        outputs.ask(argv, nvidia_smi_topo.parse_p2p, partial(outputs.take_p2p, name))
    for argv, links in _NVLINK.items():
        outputs.ask(argv, partial(_links, links), outputs.take_gpus)
    return outputs.reading()


def _gpus(text: str) -> tuple[tuple[Gpu, ...], str | None]:
    return parse_list(text), None


def _matrix(text: str) -> tuple[nvidia_smi_topo.Matrix, str | None]:
    matrix = nvidia_smi_topo.parse_matrix(text)
    return matrix, matrix.missing


def _links(parse: Callable[[str], nvlink_text.NvLinks], text: str) -> tuple[tuple[Gpu, ...], str | None]:
    links = parse(text)
    return links.gpus, links.missing


class _Outputs:
    """What the commands reported so far."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.facts = GpuFacts(gpus=())
        self.queried = False
        self.gpus: list[Gpu] = []
        self.pairs: tuple[PairCell, ...] = ()
        self.nic_names: Mapping[str, str] | None = None
        self.p2p: dict[tuple[int, int], dict[str, str]] = {}
        self.sources: list[str] = []
        self.notes: list[str] = []
        self.unplaced: list[str] = []  # GPUs by number that could be any of those without one
        self.failure: ReadError | None = None  # the first answer that was none
        self.refused = False  # nvidia-smi reported that no command of it can work

    def ask(
        self, argv: tuple[str, ...], parse: Callable[[str], tuple[Any, str | None]], take: Callable[[Any], None]
    ) -> None:
        """Run one command and take what it states; where it reports nothing, note why."""
        if self.refused and self.host.live:
            return
        command = " ".join(argv)
        try:
            output = self.host.run(*argv)
        except Absent:
            return
        except (Denied, TimedOut, Failed) as why:
            self._fail(f"{command}: {why.reason}", why)
            return
        words = f"{output.stdout}\n{output.stderr}"
        lost = lost_gpus(words)
        self._merge(lost)
        if lost:
            self.sources.append(command)
        try:
            facts, missing = parse(output.stdout)
        except ParseError as why:
            sentence = refusal(words)
            if lost and argv == _TABLE and sentence is None:
                return  # it stops at the first GPU that it cannot open
            self.refused = self.refused or sentence is not None
            self._fail(f"{command}: {sentence or output.stderr.strip()[:200] or why}")
            return
        if not lost:
            self.sources.append(command)
        take(facts)
        if missing:
            self.notes.append(f"{command}: {missing}")
        elif output.returncode:
            self.notes.append(f"{command}: exit {output.returncode}")

    def take_facts(self, facts: GpuFacts) -> None:
        """The GPUs of a query: they come first, so that what follows is joined to them."""
        self.facts, self.queried = facts, True
        lost, self.gpus = self.gpus, []
        self._merge((*facts.gpus, *lost))

    def take_table(self, facts: GpuFacts) -> None:
        """The GPUs of the table, or more about those of a query."""
        if not self.queried:
            self.take_facts(facts)
            return
        self._merge(facts.gpus)
        self.facts = self.facts._replace(
            driver_version=self.facts.driver_version or facts.driver_version,
            cuda_version=self.facts.cuda_version or facts.cuda_version,
        )

    def take_gpus(self, gpus: tuple[Gpu, ...]) -> None:
        """GPUs, or more about GPUs; not what is about GPUs of another host, or of another time."""
        known = {gpu.uuid: gpu.index for gpu in self.gpus if gpu.uuid}
        strange = [gpu for gpu in gpus if gpu.uuid and gpu.uuid not in known and gpu.index in known.values()]
        for gpu in strange[:1]:
            self.notes.append(f"GPU{gpu.index} has two UUIDs: outputs of two hosts, or of two times; one is ignored")
        self._merge(gpu for gpu in gpus if gpu not in strange)

    def take_matrix(self, matrix: nvidia_smi_topo.Matrix) -> None:
        """Affinity and NUMA nodes, and the pairs."""
        self._merge(matrix.gpus)
        self.pairs, self.nic_names = matrix.pairs, matrix.nic_names

    def take_p2p(self, name: str, words: Mapping[tuple[int, int], str]) -> None:
        """One capability of all pairs; the GPUs where nothing else names them."""
        self._merge(Gpu(index=index) for index in sorted({index for pair in words for index in pair}))
        for pair, word in words.items():
            self.p2p.setdefault(pair, {})[name] = word

    def reading(self) -> Reading:
        """All of it, or the reason why there is nothing."""
        if not self.gpus and not self.sources:
            raise self.failure or Absent("no output of nvidia-smi")
        facts = self.facts._replace(
            gpus=tuple(with_known_remotes(self.gpus)),
            pairs=self.pairs,
            nic_names=self.nic_names,
            p2p=self.p2p or None,
        )
        notes = [f"{gpu.address or f'GPU{gpu.index}'}: {gpu.error}" for gpu in self.gpus if gpu.error]
        if self.unplaced:
            notes.append(f"which GPU is {', '.join(dict.fromkeys(self.unplaced))} is not in it (nvidia-smi -L has it)")
        return Reading(facts, tuple(self.sources), "; ".join(dict.fromkeys(notes + self.notes)) or None)

    def _fail(self, note: str, why: ReadError | None = None) -> None:
        self.notes.append(note)
        self.failure = self.failure or (type(why)(note, why.code) if why else Failed(note))

    def _merge(self, gpus: Iterable[Gpu]) -> None:
        for gpu in gpus:
            at = _place(self.gpus, gpu)
            if at is not None:
                self.gpus[at] = _join(self.gpus[at], gpu)
            elif _only_numbered(gpu) and any(known.index is None for known in self.gpus):
                self.unplaced.append(f"GPU{gpu.index}")
            else:
                self.gpus.append(gpu)


def _place(gpus: list[Gpu], gpu: Gpu) -> int | None:
    """Which of the known GPUs this is: the one with its UUID, its address, or its index, in this order."""
    for name in ("uuid", "address", "index"):
        value = getattr(gpu, name)
        same = [at for at, known in enumerate(gpus) if value is not None and getattr(known, name) == value]
        if len(same) == 1 and not _differ(gpus[same[0]], gpu):
            return same[0]
    return None


def _only_numbered(gpu: Gpu) -> bool:
    """It may be one of those whose index is not known: counting it again would invent a GPU."""
    return gpu.uuid is None and gpu.address is None


def _differ(known: Gpu, gpu: Gpu) -> bool:
    """Masked captures give every GPU one UUID, and indexes move: two that are known to differ are two."""
    values = ((getattr(known, name), getattr(gpu, name)) for name in ("address", "index"))
    return any(a is not None and b is not None and a != b for a, b in values)


def _join(known: Gpu, more: Gpu) -> Gpu:
    """What was known stays; what was not is added. NVLinks are joined by number."""
    new = {}
    for name in Gpu._fields:
        old, added = getattr(known, name), getattr(more, name)
        if old in (None, ()) and added not in (None, ()):
            new[name] = added
    if known.nvlinks and more.nvlinks:
        new["nvlinks"] = _joined_links(known.nvlinks, more.nvlinks)
    if more.mig_instances and any("/" in name for name in known.mig_instances):
        new["mig_instances"] = more.mig_instances  # UUIDs of their own
    joined = known._replace(**new)
    return joined._replace(nvlink_reason=None) if joined.nvlinks else joined


def _joined_links(known: tuple[NvLink, ...], more: tuple[NvLink, ...]) -> tuple[NvLink, ...]:
    links = {link.link: link for link in known}
    for link in more:
        old = links.get(link.link)
        if old is None:
            links[link.link] = link
            continue
        new = {name: getattr(link, name) for name in NvLink._fields if getattr(old, name) is None}
        state = link.state if old.state == "unknown" else old.state
        links[link.link] = old._replace(**new, state=state)
    return tuple(links[number] for number in sorted(links))
