"""A host made of files in memory and saved outputs: it notes every question, and can refuse single files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from probes.host.archive import load
from probes.host.door import Absent, Completed, Unanswered
from probes.host.memory import Link, MemoryFiles

CLASS = "/sys/class/infiniband"
COUNTERS = ("counters/", "hw_counters/")


class Machine:
    """Files, outputs and refusals; `asked` is every path that was read or listed, in order."""

    path: str | None = None
    observed_at: str | None = None

    def __init__(self, files: MemoryFiles | None = None, *, kind: str = "tree", live: bool = False) -> None:
        self.files = files or MemoryFiles()
        self.kind = kind
        self.live = live
        self.refused: dict[str, Unanswered] = {}
        self.outputs: dict[tuple[str, ...], Completed | Unanswered] = {}
        self.asked: list[str] = []

    def put(self, texts: Mapping[str, str | Link]) -> Machine:
        for path, text in texts.items():
            self.files.add(path, text if isinstance(text, Link) else text.encode())
        return self

    def says(self, *argv: str, stdout: str, stderr: str = "", returncode: int = 0) -> Machine:
        self.outputs[argv] = Completed(argv, returncode, stdout, stderr, 0.0)
        return self

    def read(self, path: str, limit: int = 1 << 20) -> bytes:
        self.asked.append(path)
        if path in self.refused:
            raise self.refused[path]
        return self.files.read(path, limit)

    def attributes(self, directory: str, names: Iterable[str]) -> Mapping[str, bytes | Unanswered]:
        if directory in self.refused:
            raise self.refused[directory]
        wanted = list(names)
        self.asked += [f"{directory}/{name}" for name in wanted]
        refused = {
            name: self.refused[f"{directory}/{name}"] for name in wanted if f"{directory}/{name}" in self.refused
        }
        return {**self.files.attributes(directory, [name for name in wanted if name not in refused]), **refused}

    def listdir(self, path: str) -> list[str]:
        self.asked.append(path)
        if path in self.refused:
            raise self.refused[path]
        return self.files.listdir(path)

    def readlink(self, path: str) -> str:
        return self.files.readlink(path)

    def resolve(self, path: str) -> str:
        return self.files.resolve(path)

    def run(self, *argv: str) -> Completed:
        answer = self.outputs.get(argv, Absent(f"no saved output of {' '.join(argv)}"))
        if isinstance(answer, Unanswered):
            raise answer
        return answer

    def has_output(self, *argv: str) -> bool:
        return argv in self.outputs and not self.live

    def nvml(self, function: str, *arguments: Any) -> Any:
        raise Absent(f"{function}: not here")

    def netlink(self, protocol: int, request: bytes) -> bytes:
        raise Absent("netlink: not here")

    def udev(self, path: str) -> Mapping[str, str]:
        raise Absent(f"{path}: no udev here")


def unpacked(archive: str, below: str = "") -> Machine:
    """The machine of a tree in an archive; `below`: where the archive's root belongs."""
    files = load(archive)
    assert files is not None, archive
    if below:
        whole = MemoryFiles()
        whole.add(below, files.root)
        files = whole
    return Machine(files)


def pci_device(name: str, address: str, **attributes: str) -> dict[str, str | Link]:
    """The files of one RDMA device on a PCI function: path -> text. A key with a slash lies below the device, any
    other below its function; "__" stands for the slash."""
    function = f"/sys/devices/pci0000:00/{address}"
    device = f"{function}/infiniband/{name}"
    paths: dict[str, str | Link] = {
        f"{CLASS}/{name}": Link(f"../../devices/pci0000:00/{address}/infiniband/{name}"),
        f"{device}/device": Link(f"../../../{address}"),
        f"/sys/bus/pci/devices/{address}": Link(f"../../../devices/pci0000:00/{address}"),
    }
    return paths | {f"{function}/{key.replace('__', '/')}": text for key, text in attributes.items()}
