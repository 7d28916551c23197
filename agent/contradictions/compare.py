"""Where outputs contradict each other, and which of them belong together."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

from agent.contradictions.statements import Statement
from agent.model.node import shorten_host
from agent.model.report import SourceHost

_FACTS_SHOWN = 4  # of one host
_PROMPT = "host name in the prompt"
_DEVICES = "RDMA devices"
_LISTS_ALL = ("nvidia-smi topo -m", "ibstat", "ibstatus", "ibv_devinfo -v", "rdma link", "ibdev2netdev")
# What two machines of one make have alike: it can set outputs apart, and ties none together
_COMMON = frozenset({
    "part", "vendor of", "device at", "model of", "address of", "interface of", "link layer of", "LID of",
    "maker of the accelerators", "number of GPUs that the driver lists", "kernel", "NVIDIA driver", "firmware of",
})  # fmt: skip


class StatedOutput(NamedTuple):
    """One output: its name in `source.files`, the command, what it states, and whether it is the one in use."""

    name: str
    read_as: str
    prompt_host: str | None
    statements: Sequence[Statement]
    text: str = ""
    is_used: bool = True
    rdma_devices: frozenset[str] = frozenset()


class Contradiction(NamedTuple):
    """One key with different values: what, and which outputs state which value."""

    kind: str
    key: str
    values: Mapping[str, tuple[str, ...]]  # value -> names of outputs


def find_contradictions(outputs: Sequence[StatedOutput]) -> list[Contradiction]:
    """Every key for which two outputs, or one output, state different values. Of an output that is not used only what
    lasts counts: the same host at another time is no other host."""
    stated: dict[tuple[str, str], dict[str, list[str]]] = {}
    for output in outputs:
        for statement in _list_all(output):
            if output.is_used or statement.lasting:
                values = stated.setdefault((statement.kind, statement.key), {})
                values.setdefault(statement.value, []).append(output.name)
    differing = [
        Contradiction(kind, key, {value: tuple(names) for value, names in values.items()})
        for (kind, key), values in stated.items()
        if len(values) > 1
    ]
    return [*differing, *_find_other_devices(outputs), *_find_copies(outputs)]


def _list_all(output: StatedOutput) -> Iterable[Statement]:
    yield from output.statements
    if output.prompt_host:
        yield Statement(_PROMPT, "", shorten_host(output.prompt_host.lower()))


def _find_other_devices(outputs: Sequence[StatedOutput]) -> list[Contradiction]:
    """Outputs that name RDMA devices, and none in common with another one (each lists those of its host, or a part), or
    that list all of their host, and each some that the other does not have. Devices that one output lists together are
    of one host."""
    naming = [output for output in outputs if output.rdma_devices and output.is_used]
    for output in naming:
        parts = [other for other in naming if other.rdma_devices <= output.rdma_devices and other is not output]
        naming = [other for other in naming if other not in parts] if len(parts) > 1 else naming
    if not any(_name_others(a, b) for a, b in combinations(naming, 2)):
        return []
    values: dict[str, list[str]] = {}
    for output in naming:
        if any(_name_others(output, other) for other in naming):
            values.setdefault(_join_names(output.rdma_devices), []).append(output.name)
    return [Contradiction(_DEVICES, "", {value: tuple(names) for value, names in values.items()})]


def _name_others(a: StatedOutput, b: StatedOutput) -> bool:
    names, others = a.rdma_devices, b.rdma_devices
    if not names & others:
        return True
    lists_all = all(output.read_as in _LISTS_ALL and len(output.rdma_devices) > 1 for output in (a, b))
    return lists_all and bool(names - others) and bool(others - names)


def _join_names(names: frozenset[str]) -> str:
    shown = sorted(names)[:_FACTS_SHOWN]
    return ", ".join(shown) + f" and {len(names) - len(shown)} more" * (len(names) > len(shown))


def _find_copies(outputs: Sequence[StatedOutput]) -> list[Contradiction]:
    """Two files of one command that nothing shows to be of one host, nor of other devices: of two hosts or times."""
    found = []
    for copy in outputs:
        if copy.is_used or ", line " in copy.name:  # a thread goes on: an earlier output of it is used
            continue
        used = next((other for other in outputs if other.is_used and other.read_as == copy.read_as), None)
        if used is None or used.text.strip() == copy.text.strip() or (used.statements and copy.statements):
            continue
        values = {"another text": (copy.name,), "the one that is used": (used.name,)}
        found.append(Contradiction("output of", copy.read_as, values))
    return found


def group_hosts(outputs: Sequence[StatedOutput], contradictions: Sequence[Contradiction]) -> list[SourceHost]:
    """The outputs that contradict another one, each with those that state the same lasting identity; the order is
    that of their names. An output that states none is of no known host, and is left out."""
    against = {name for contradiction in contradictions for names in contradiction.values.values() for name in names}
    groups: list[list[StatedOutput]] = []
    for output in sorted(outputs, key=lambda output: output.name not in against):
        ties = _ties(output)
        home = next(
            (group for group in groups if any(ties & _ties(other) for other in group) and not _differ(group, output)),
            None,
        )
        if home is not None:
            home.append(output)
        elif output.name in against:
            groups.append([output])
    differing = {(contradiction.kind, contradiction.key) for contradiction in contradictions}
    return sorted((_describe(group, differing) for group in groups), key=lambda host: host.files)


def _ties(output: StatedOutput) -> set[Statement]:
    return {statement for statement in _list_all(output) if statement.lasting and statement.kind not in _COMMON}


def _differ(group: Sequence[StatedOutput], output: StatedOutput) -> bool:
    return bool(find_contradictions([*(member._replace(is_used=True) for member in group), output]))


def _describe(group: Sequence[StatedOutput], differing: set[tuple[str, str]]) -> SourceHost:
    stated = list(dict.fromkeys(statement for output in group for statement in _list_all(output)))
    own = [statement for statement in stated if (statement.kind, statement.key) in differing]
    own.sort(key=lambda statement: (statement.kind not in ("host name", _PROMPT), not statement.lasting))
    names = {kind: [s.value for s in stated if s.kind == kind] for kind in ("host name", _PROMPT)}
    by = next((kind for kind in ("host name", _PROMPT) if len(names[kind]) == 1), None)
    facts = [str(statement) for statement in own[:_FACTS_SHOWN]]
    devices = frozenset().union(*(output.rdma_devices for output in group))
    if devices and (_DEVICES, "") in differing:
        facts.insert(0, f"{_DEVICES}: {_join_names(devices)}")
    if len(own) > _FACTS_SHOWN:
        facts.append(f"and {len(own) - _FACTS_SHOWN} more")
    return SourceHost(
        name=names[by][0] if by else None,
        named_by={"host name": "output", _PROMPT: "prompt", None: None}[by],
        files=sorted(output.name for output in group),
        facts=facts or [f"another output of {group[0].read_as}"],
    )


def describe(contradiction: Contradiction) -> str:
    """A contradiction for people, with the outputs that state it.

    >>> describe(Contradiction("part", "0000:61:00.0", {"a GPU": ("dmesg.txt",), "an NVMe drive": ("lspci.txt",)}))
    '0000:61:00.0 is a GPU (dmesg.txt), an NVMe drive (lspci.txt)'
    """
    parts = [f"{value} ({', '.join(names[:3])})" for value, names in contradiction.values.items()]
    what = f"{contradiction.key} is" if contradiction.kind == "part" else f"{contradiction.kind} {contradiction.key}"
    return f"{what.strip()} {', '.join(parts[:4])}"
