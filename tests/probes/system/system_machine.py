"""A host made of files in memory and of recorded netlink answers: it notes what it was asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from probes.host.interface import Absent, Completed, ReadError
from probes.sources.archive import load
from probes.sources.memory import MemoryFiles, SymlinkNode


class Machine:
    """Files, refusals and netlink answers; `asked` is every path that was asked for, in order."""

    path: str | None = None
    observed_at: str | None = None

    def __init__(self, files: MemoryFiles | None = None, *, live: bool = False) -> None:
        self.files = files or MemoryFiles()
        self.kind = "live" if live else "tree"
        self.live = live
        self.refused: dict[str, ReadError] = {}
        self.answers: dict[bytes, bytes | ReadError] = {}
        self.outputs: dict[tuple[str, ...], Completed] = {}
        self.asked: list[str] = []

    def put(self, texts: Mapping[str, str | SymlinkNode]) -> Machine:
        """Add files and links to a machine in memory."""
        for path, text in texts.items():
            self.files.add(path, text if isinstance(text, SymlinkNode) else text.encode())
        return self

    def read(self, path: str, limit: int = 1 << 20) -> bytes:
        self._ask(path)
        return self.files.read(path, limit)

    def attributes(self, directory: str, names: Iterable[str]) -> Mapping[str, bytes | ReadError]:
        answers = dict(self.files.attributes(directory, names))
        for name in answers:
            path = f"{directory}/{name}"
            self.asked.append(path)
            if path in self.refused:
                answers[name] = self.refused[path]
        return answers

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
        if argv not in self.outputs:
            raise Absent(f"no output of {' '.join(argv)}")
        return self.outputs[argv]

    def has_output(self, *argv: str) -> bool:
        return argv in self.outputs

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


def recorded(corpus: Path, name: str) -> Machine:
    """A tree of the corpus, in memory."""
    files = load(str(corpus / "trees" / f"{name}.tar.xz"))
    assert files is not None
    return Machine(files)
