"""A host made of files in memory, saved outputs and recorded netlink answers: it notes what it was asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from probes.catalogue import probe
from probes.host.interface import Absent, Completed, Host, ReadError
from probes.probe import Outcome, outcome_of
from probes.sources.archive import load
from probes.sources.memory import MemoryFiles, SymlinkNode


class Machine:
    """Files, outputs, refusals and netlink answers; `asked` is every path that was asked for, in order."""

    path: str | None = None
    observed_at: str | None = None

    def __init__(self, files: MemoryFiles | None = None, *, kind: str | None = None, live: bool = False) -> None:
        self.files = files or MemoryFiles()
        self.kind = kind or ("live" if live else "tree")
        self.live = live
        self.refused: dict[str, ReadError] = {}
        self.answers: dict[bytes, bytes | ReadError] = {}
        self.outputs: dict[tuple[str, ...], Completed | ReadError] = {}
        self.asked: list[str] = []

    def put(self, texts: Mapping[str, str | bytes | SymlinkNode]) -> Machine:
        """Add files and links."""
        for path, text in texts.items():
            self.files.add(path, text.encode() if isinstance(text, str) else text)
        return self

    def says(self, *argv: str, stdout: str, stderr: str = "", returncode: int = 0) -> Machine:
        """Add the output of a command."""
        self.outputs[argv] = Completed(argv, returncode, stdout, stderr, 0.0)
        return self

    def read(self, path: str, limit: int = 1 << 20) -> bytes:
        self._ask(path)
        return self.files.read(path, limit)

    def attributes(self, directory: str, names: Iterable[str]) -> Mapping[str, bytes | ReadError]:
        if directory in self.refused:
            raise self.refused[directory]
        paths = {name: f"{directory}/{name}" for name in names}
        self.asked += paths.values()
        refused = {name: self.refused[path] for name, path in paths.items() if path in self.refused}
        return {**self.files.attributes(directory, [name for name in paths if name not in refused]), **refused}

    def listdir(self, path: str) -> list[str]:
        self._ask(path)
        return self.files.listdir(path)

    def readlink(self, path: str) -> str:
        self._ask(path)
        return self.files.readlink(path)

    def resolve(self, path: str) -> str:
        self._ask(path)
        return self.files.resolve(path)

    def run(self, *argv: str) -> Completed:
        answer = self.outputs.get(argv, Absent(f"no saved output of {' '.join(argv)}"))
        if isinstance(answer, ReadError):
            raise answer
        return answer

    def has_output(self, *argv: str) -> bool:
        return not self.live and argv in self.outputs

    def saved_arguments(self, *argv: str) -> list[str]:
        return []

    def nvml(self, function: str, *arguments: Any) -> Any:
        raise Absent(f"no NVML answer to {function}{arguments}")

    def netlink(self, protocol: int, request: bytes) -> bytes:
        answer = self.answers.get(request, Absent(f"no netlink answer of protocol {protocol}"))
        if isinstance(answer, ReadError):
            raise answer
        return answer

    def ethtool(self, interface: str, request: bytes) -> bytes:
        raise Absent(f"{interface}: no ethtool here")

    def udev(self, path: str) -> Mapping[str, str]:
        raise Absent(f"no udev answer for {path}")

    def _ask(self, path: str) -> None:
        self.asked.append(path)
        if path in self.refused:
            raise self.refused[path]


def ask(name: str, host: Host) -> Outcome:
    """What a probe answers about a host."""
    return outcome_of(probe(name), host)


def read_facts(name: str, host: Host) -> Any:
    """Its facts."""
    return ask(name, host).facts


def recorded(corpus: Path, name: str) -> Machine:
    """A tree of the corpus, in memory."""
    files = load(str(corpus / "trees" / f"{name}.tar.xz"))
    assert files is not None
    return Machine(files)
