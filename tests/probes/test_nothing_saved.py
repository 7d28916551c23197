"""What a probe answers of saved outputs for others, as the catalogue states it, is what it would answer itself."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatch
from typing import Any

import pytest

from probes.catalogue import probe, probes
from probes.host.interface import Host
from probes.probe import Probe, Status, outcome_of
from probes.run import run_probes
from probes.sources.dump import SavedOutputs
from probes.sources.memory import MemoryFiles
from probes.sources.tree import NoOutputs, TreeHost

STATED = [one for one in probes() if one.nothing_saved is not None]
OF_SYSFS = [one for one in probes() if one.in_sysfs is not None]
BUS = "/sys/bus/pci/devices"
FUNCTION = f"{BUS}/0000:01:00.0"


def reason_of(stated: Probe, kind: str) -> str:
    """What the catalogue states, of a source of this kind."""
    assert stated.nothing_saved is not None
    return stated.nothing_saved.replace("{kind}", kind)


def saved(**files: bytes) -> TreeHost:
    """A dump of these files."""
    folder = MemoryFiles(dict(files))
    return TreeHost("dump", "x", folder, SavedOutputs(folder))


class Questions:
    """A dump of one output of an own kind, which keeps what it is asked for."""

    def __init__(self, answers: Sequence[tuple[str, tuple[str, ...]]] = ()) -> None:
        self.host = saved()
        self.asked: list[tuple[str, tuple[str, ...]]] = []
        self.answers = answers  # outputs that it has: has_output or saved_arguments, and of what

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.host, name)
        if not callable(value):
            return value

        def ask(*arguments: Any) -> Any:
            self.asked.append((name, arguments))
            if (name, arguments) in self.answers:
                return ["x"] if name == "saved_arguments" else True
            return value(*arguments)

        return ask


@pytest.mark.parametrize("stated", STATED, ids=lambda one: one.name)
def test_what_is_stated_is_what_it_answers(stated: Probe) -> None:
    """Of a source without files, and without an output for it."""
    host: Host = saved(**{"nothing.txt": b"x\n"})
    own = outcome_of(stated, host)

    assert (Status.ABSENT, reason_of(stated, "dump"), ()) == (own.status, own.reason, own.sources)
    assert own._replace(seconds=0.0) == run_probes([stated], host, 9.0).outcomes[0]._replace(seconds=0.0)


@pytest.mark.parametrize("stated", STATED, ids=lambda one: one.name)
def test_each_output_that_it_asks_for_is_its_evidence(stated: Probe) -> None:
    """One that its `evidence` left out would not be read where it is the only one; no folder is left out either."""
    host = Questions()
    outcome_of(stated, host)
    outputs = [(kind, argv) for kind, argv in host.asked if kind in ("has_output", "saved_arguments")]
    paths = [str(words[0]) for kind, words in host.asked if kind in ("read", "listdir", "attributes", "readlink")]

    for answer in outputs:
        assert stated.evidence is not None
        assert stated.evidence(Questions([answer])), answer
    for path in paths:
        assert saved_with(path).has_tree, path


def saved_with(path: str) -> SavedOutputs:
    """Of a dump that has this path of the machine beside an output."""
    files = MemoryFiles({"nothing.txt": b"x\n"})
    files.add(path, b"x\n")
    return SavedOutputs(files)


def sysfs(*paths: str) -> TreeHost:
    """A tree of /sys with one PCI function, and these files."""
    files = MemoryFiles({})
    for path in (f"{FUNCTION}/vendor", *paths):
        files.add(path, b"0x10de\n")
    return TreeHost("tree", "x", files, NoOutputs())


@pytest.mark.parametrize("stated", OF_SYSFS, ids=lambda one: one.name)
def test_of_a_tree_of_sys_alone_it_answers_what_is_stated(stated: Probe) -> None:
    """It has no file outside of /sys, and there none that the probe reads."""
    own, outcome = outcome_of(stated, sysfs()), run_probes([stated], sysfs(), 9.0).outcomes[0]

    assert (Status.ABSENT, reason_of(stated, "tree"), ()) == (own.status, own.reason, own.sources)
    assert own._replace(seconds=0.0) == outcome._replace(seconds=0.0)


@pytest.mark.parametrize("stated", OF_SYSFS, ids=lambda one: one.name)
def test_each_path_of_sys_that_it_asks_for_is_stated(stated: Probe) -> None:
    """One that were left out would not be read where it is the only one. How the bus is listed is no answer."""
    host = Questions()
    host.host = sysfs()
    outcome_of(stated, host)
    asked = [str(words[0]) for kind, words in host.asked if kind in ("read", "listdir", "attributes", "readlink")]
    below = {path for path in asked if path.startswith("/sys/") and path not in (BUS, FUNCTION)}

    assert stated.in_sysfs is not None
    for path in below:
        assert any(fnmatch(path, f"{one}*") for one in stated.in_sysfs), path


@pytest.mark.parametrize(
    ("name", "path"), [("netdev", f"{FUNCTION}/net/eth0/mtu"), ("rdma", f"{FUNCTION}/infiniband/mlx5_0/node_type"),
                       ("modules", "/sys/module/mlx5_core/version"), ("kernel", "/etc/hostname")],
)  # fmt: skip
def test_a_tree_with_one_of_its_files_is_read(name: str, path: str) -> None:
    """Then its answer is its own."""
    (outcome,) = run_probes([probe(name)], sysfs(path), 9.0).outcomes

    assert outcome.facts is not None


def test_a_folder_with_files_of_the_machine_is_read() -> None:
    """A dump may have both: then no probe's answer is stated for it."""
    files = MemoryFiles({"ibstat.txt": b"x\n"})
    files.add("/proc/sys/kernel/hostname", b"node7\n")
    host = TreeHost("dump", "x", files, SavedOutputs(files))
    (outcome,) = run_probes([probe("kernel")], host, 9.0).outcomes

    assert "node7" == outcome.facts.hostname
