"""Which saved outputs show the finding of each rule: the smallest sets, found by taking outputs away from machines.

`python -m tests.agent.fragments.output_sets RULE ..` prints them, `--write docs/output-sets.md` writes the page (of
these rules alone, if some are named). The tests hold every line of the page.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from agent.diagnose import ScanPlan, diagnose
from agent.model.finding import Summary
from agent.model.report import Generator, Report, Source
from agent.rules.catalogue import every_rule
from agent.rules.context import RuleContext
from probes.sources.dump import SavedOutputs
from probes.sources.memory import MemoryFiles
from probes.sources.tree import TreeHost
from tests.agent.contradictions.saved_outputs import render_outputs
from tests.conftest import ROOT
from tests.machines import FAULTS, scan_machine
from tests.matrix.rule_rows import machine_of, rows, tables

PAGE = ROOT / "docs" / "output-sets.md"
ROW = "row"  # the machine of the rule's own row in tests/matrix/rules, not a fixture
_OF_INTERFACE = re.compile(r"(ethtool(?:_-\S+?)?|mlnx_qos_-i)_[^_]+\.txt")
_INTERFACE = "INTERFACE"
_BLANK = re.compile(r"_(?=-|link|topo|nvlink|info|list|INTERFACE)")  # a file name has "_" for it
_HEAD = """# Which saved outputs show what

A source seldom holds every output. This page lists for each rule the smallest sets of saved outputs that are enough
for its finding, with the severity and the confidence that it then has: a finding that assumes what is missing has low
confidence, is a warning at most, and names what to save next. The more is saved, the surer the answer: `fabricscope
scan` prints the commands that settle most.

Each line is found by taking outputs away from a whole machine with that fault until the finding is gone, and a test
holds it. `INTERFACE` stands for the outputs of every interface; `machine` is a fault of `fixtures/faults`, or `row`:
the machine of the rule's row in `tests/matrix/rules`. Run
`python -m tests.agent.fragments.output_sets --write docs/output-sets.md` after a change.

| rule | outputs | severity | confidence | machine |
|---|---|---|---|---|
"""
_NONE = """
## Rules that no set of these outputs shows

Counters need two samples, or values that only a fault reaches
([decision](decisions/0025-fragments-are-judged-by-assumption.md)); some rules need an earlier run, a profile, or the
setting of a job; others read what only a live host, a capture or a sosreport has. The table of `hl-smi` shows no port
and no reset; `npu-smi info -t hccs`, `-t sio-info` and `-t topo` are not among the outputs that are tried here; they
are read ([sources](sources.md)). The
rules are: """


class OutputSet(NamedTuple):
    """One line of the page."""

    rule: str
    outputs: tuple[str, ...]
    severity: str
    confidence: str
    machine: str  # a fault of fixtures/faults, or ROW


def report_of(context: RuleContext) -> Report:
    """A report of the machine of a row, without findings."""
    return Report(
        generated_at="",
        observed_at=context.observed_at,
        generator=Generator(name="tests", version="1"),
        source=Source(kind="dump", path="row"),
        node=context.node,
        platform=context.platform,
        probes=list(context.probes.values()),
        software=context.software,
        events=list(context.events),
        topology=context.topology,
        summary=Summary(verdict="unknown", counts={}),
    )


@cache
def outputs_of(rule: str, name: str) -> Mapping[str, dict[str, str]]:
    """The outputs of a machine by command: name of the file -> text."""
    report = scan_machine("", name) if name != ROW else report_of(machine_of(tables()[rule], rows(rule)["fires"]))
    by_command: dict[str, dict[str, str]] = defaultdict(dict)
    for file, text in render_outputs(report).items():
        by_command[describe_command(file)][file] = text
    return by_command


def describe_command(file: str) -> str:
    """The command of a file.

    >>> describe_command("lspci_-D_-nn_-vvv.txt"), describe_command("ethtool_-a_ens1f0np0.txt")
    ('lspci -D -nn -vvv', 'ethtool -a INTERFACE')
    """
    if of_interface := _OF_INTERFACE.fullmatch(file):
        return _BLANK.sub(" ", f"{of_interface[1]}_{_INTERFACE}")
    return _BLANK.sub(" ", file.removesuffix(".txt")).replace("cat_proc_cmdline", "cat /proc/cmdline")


class _OfOneHost(SavedOutputs):
    """Outputs that are known to be of one host: not each is read alone first, which costs most of a scan."""

    may_be_of_several = False


def scan_files(files: Mapping[str, str]) -> Report:
    """The report of these outputs of one host."""
    saved = _OfOneHost(MemoryFiles({name: text.encode() for name, text in files.items()}))
    host = TreeHost("dump", "outputs", MemoryFiles(), saved)
    return diagnose(host, ScanPlan())[0]


def find_with(rule: str, name: str, commands: Iterable[str]) -> tuple[str, str] | None:
    """Severity and confidence of the finding of a rule with these outputs alone, or of one that explains it; None where
    there is none."""
    by_command = outputs_of(rule, name)
    files = {file: text for command in commands for file, text in by_command[command].items()}
    for finding in scan_files(files).findings if files else ():
        if rule in (finding.rule, *(line.partition(" ")[0] for line in finding.absorbs)):
            return finding.severity, finding.confidence
    return None


def find_sets(rule: str, name: str) -> Iterator[OutputSet]:
    """Every output that is enough alone; of the others what is left of all once what is not needed is gone, and of two
    also each with another partner."""
    commands = sorted(outputs_of(rule, name), key=_usefulness)
    if not find_with(rule, name, commands):
        return
    alone = {command: found for command in commands if (found := find_with(rule, name, [command]))}
    yield from (OutputSet(rule, (command,), *found, name) for command, found in alone.items())
    others = [command for command in commands if command not in alone]
    needed, together = others, find_with(rule, name, others)
    if not together:
        return
    tried = 0
    while tried != len(needed):  # what was needed beside another output may not be without it
        tried = len(needed)
        for command in needed[::-1]:
            fewer = [other for other in needed if other != command]
            if found := find_with(rule, name, fewer):
                needed, together = fewer, found
    yield OutputSet(rule, tuple(needed), *together, name)
    for one in needed if len(needed) == len(("one", "other")) else ():
        for partner in others:
            pair = tuple(sorted((one, partner), key=_usefulness))
            if partner not in needed and (found := find_with(rule, name, pair)):
                yield OutputSet(rule, pair, *found, name)


_FIRST = ("lspci", "nvidia-smi -q", "nvidia-smi", "dmesg", "ibstat", "rdma link", "ip -d link", "ethtool")


def _usefulness(command: str) -> int:
    """What most people save comes first, and is left out last."""
    return next((place for place, begin in enumerate(_FIRST) if command.startswith(begin)), len(_FIRST))


def list_machines(rule: str) -> list[str]:
    """Machines with the fault of a rule: fixtures first, then that of its row."""
    faults = [fault for fault in FAULTS if any(f.rule == rule for f in scan_machine("", fault).findings)]
    return [*faults, *([ROW] if rule in tables() and tables()[rule].finds else [])]


def needs_outputs_alone(rule: str, name: str) -> bool:
    """Whether neither an earlier sample nor an earlier run is a part of the machine."""
    if name != ROW:
        return True
    context = machine_of(tables()[rule], rows(rule)["fires"])
    of_npus = context.topology.ascend is not None  # their rows have a window for rules that count
    return of_npus or (context.window is None and context.history is None)


def measure(rule: str) -> list[OutputSet]:
    """The smallest sets on the first machine on which there are any."""
    for name in list_machines(rule):
        if needs_outputs_alone(rule, name) and (found := list(find_sets(rule, name))):
            return found
    return []


def format_row(row: OutputSet) -> str:
    """A line of the page."""
    outputs = ", ".join(f"`{command}`" for command in row.outputs)
    return f"| `{row.rule}` | {outputs} | {row.severity} | {row.confidence} | {row.machine} |\n"


_ROW = re.compile(r"\| `([\w-]+)` \| (`.+`) \| (\w+) \| (\w+) \| (\S+) \|")


def read_page(text: str) -> list[OutputSet]:
    """The lines of the page."""
    found = (_ROW.fullmatch(line) for line in text.splitlines())
    return [OutputSet(m[1], tuple(m[2].strip("`").split("`, `")), m[3], m[4], m[5]) for m in found if m]


def list_unseen(text: str) -> list[str]:
    """Rules that the page lists as seen by no set."""
    return re.findall(r"`([\w-]+)`", text.partition(_NONE)[2])


def write_page(path: Path, asked: Sequence[str] = ()) -> None:
    """Measure every rule, and write the page: minutes. `asked`: these alone, and what the page has of the others."""
    names = [rule.name for rule in every_rule()]
    known = read_page(path.read_text()) if asked else []
    sets = {
        name: [row for row in known if row.rule == name] if asked and name not in asked else measure(name)
        for name in names
    }
    lines = "".join(format_row(row) for name in names for row in sets[name])
    unseen = ", ".join(f"`{name}`" for name in names if not sets[name])
    path.write_text(f"{_HEAD}{lines}{_NONE}{unseen}.\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--write"]:
        write_page(Path(sys.argv[2]), sys.argv[3:])
    for asked in sys.argv[1:] if sys.argv[1:2] != ["--write"] else ():
        sys.stdout.write("".join(map(format_row, measure(asked))))
