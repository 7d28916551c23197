"""What a capture holds beyond the probes' questions: a list that is held here, and never what must not be asked."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from agent.diagnose import ScanPlan, diagnose
from agent.reports import encode_report
from probes.capture import extras as extras
from probes.capture.extra_names import FORBIDDEN, GROUPS, ExtraFile, ExtraGroup
from probes.capture.extras import record_extras
from probes.capture.writer import write_capture
from probes.host import kmsg
from probes.host.interface import Denied, ReadError, TimedOut
from probes.host.recording import Recording
from probes.sources.dump import SavedOutputs
from probes.sources.memory import MemoryFiles, SymlinkNode
from probes.sources.open_source import open_source
from probes.sources.tree import TreeHost
from tests.machines import HOSTS, machine, still
from tests.probes.overlay import Change, OverlayHost

FUNCTION = "/sys/devices/pci0000:15/0000:19:00.0"
ROWS = [row for group in GROUPS for row in group.rows]


class Watched(OverlayHost):
    """A host that writes down what it was asked."""

    def __init__(self, files: Mapping[str, Change]) -> None:
        super().__init__(TreeHost("tree", "", MemoryFiles(), SavedOutputs(MemoryFiles())), dict(files))
        self.asked: list[str] = []

    def attributes(self, directory: str, names: Iterable[str]) -> Mapping[str, bytes | ReadError]:
        """See Host.attributes."""
        wanted = list(names)
        self.asked += [f"{self.resolve(directory)}/{name}" for name in wanted]
        return super().attributes(directory, wanted)


def host(status: Change = b"active", state: str = "D0") -> Watched:
    """One NIC with everything below it that could be asked."""
    files: dict[str, Change] = {
        "/sys/bus/pci/devices/0000:19:00.0": SymlinkNode("../../../devices/pci0000:15/0000:19:00.0"),
        "/sys/class/net/eth0": SymlinkNode(f"../../../{FUNCTION[1:]}/net/eth0"),
        "/sys/class/infiniband/mlx5_0": SymlinkNode(f"../../../{FUNCTION[1:]}/infiniband/mlx5_0"),
        f"{FUNCTION}/power/runtime_status": status,
        f"{FUNCTION}/power_state": state.encode(),
        f"{FUNCTION}/infiniband/mlx5_0/ports/1/counters/port_xmit_data": b"1",
        f"{FUNCTION}/net/eth0/statistics/rx_bytes": b"1",
        f"{FUNCTION}/net/eth0/queues/rx-0/rps_cpus": b"ff",
        "/etc/modprobe.d/mlx.conf": b"options mlx5_core prof_sel=3\n",
        "/etc/modprobe.d/notes.txt": b"private\n",
    }
    for name in ("resource0", "resource2_wc", "rom", "vpd", "sriov_numvfs", "remove", "reset_method", "ari_enabled"):
        files[f"{FUNCTION}/{name}"] = b"1\n"
    for name in ("speed", "dev_port"):
        files[f"{FUNCTION}/net/eth0/{name}"] = b"1\n"
    for name in ("hw_rev", "ports/1/cap_mask"):
        files[f"{FUNCTION}/infiniband/mlx5_0/{name}"] = b"1\n"
    return Watched(files)


def test_the_list_names_nothing_that_is_forbidden() -> None:
    """Neither a name, nor a pattern under which a forbidden name would fall, nor a folder of users."""
    names = [name for row in ROWS for name in row.names]

    assert [] == [name for name in names for bad in FORBIDDEN if fnmatchcase(name.rsplit("/", 1)[-1], bad)]
    assert [] == [
        row.folder for row in ROWS if "*" in row.names or row.folder.startswith(("/home", "/root", "/proc/[0-9]"))
    ]
    assert [] == [name for name in names if name.startswith("*") and not name.endswith(".conf")]
    assert [] == [
        row
        for row in ROWS
        if any(fnmatchcase(part, bad) for part in row.folder.split("/") if part.strip("*") for bad in FORBIDDEN)
    ]
    assert [] == [row for row in ROWS if not row.why]


def test_nothing_forbidden_is_ever_opened() -> None:
    """On a device that has it all."""
    watched = host()
    recording = Recording()
    record_extras(recording, watched, 10)

    assert {"ari_enabled", "reset_method", "speed", "hw_rev", "cap_mask", "rps_cpus"} <= {
        p.rsplit("/", 1)[-1] for p in watched.asked
    }
    assert [] == [path for path in watched.asked for bad in FORBIDDEN if fnmatchcase(path.rsplit("/", 1)[-1], bad)]
    assert [] == [
        path for path in recording.files for bad in FORBIDDEN for part in path.split("/") if fnmatchcase(part, bad)
    ]
    assert b"options mlx5_core prof_sel=3\n" == recording.files["/etc/modprobe.d/mlx.conf"]
    assert "/etc/modprobe.d/notes.txt" not in recording.files


@pytest.mark.parametrize(("status", "state"), [("suspended", "D3hot"), ("suspending", "D0"), ("active", "D3cold")])
def test_a_sleeping_device_is_asked_for_nothing_more(status: str, state: str) -> None:
    """Neither by its function nor by its interface or RDMA device."""
    watched = host(status.encode(), state)
    record_extras(Recording(), watched, 10)
    request = {path.removeprefix(f"{FUNCTION}/") for path in watched.asked if path.startswith(FUNCTION)}

    assert {"power/runtime_status", "power_state"} == request


def test_a_state_that_cannot_be_read_is_taken_for_sleep() -> None:
    """Better a file less than a device woken."""
    watched = host(Denied("no", "EACCES"))
    record_extras(Recording(), watched, 10)

    assert not [path for path in watched.asked if path.endswith("ari_enabled")]


def test_what_a_probe_was_answered_stays() -> None:
    """A file that was read, refused or listed before is not touched by the later pass: a replay must not change."""
    before = Recording(files={"/a": b"1"}, listings={"/l": ["x"]}, links={"/k": "y"})
    before.add(Recording(files={"/a": b"longer", "/b": b"2", "/k": b"3"}, listings={"/l": [], "/m": ["z"]}))

    assert {"/a": b"1", "/b": b"2"} == before.files
    assert {"/l": ["x"], "/m": ["z"]} == before.listings


@pytest.mark.parametrize("shape", HOSTS[::3])
def test_a_replay_with_the_extras_gives_the_same_report(shape: str, tmp_path: Path) -> None:
    """They are for later versions: this one is told nothing by them that it did not know."""
    result = machine(shape)
    report, recording = diagnose(result, ScanPlan(record=True))
    assert recording is not None
    before = len(recording.files)
    record_extras(recording, result, 30)
    write_capture(recording, str(tmp_path / "c.tar"))
    again, _ = diagnose(open_source(str(tmp_path / "c.tar"), None), ScanPlan())

    assert before < len(recording.files)
    assert encode_report(still(report)) == encode_report(still(again))


def test_bounds_are_said_aloud(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time, bytes and folders: what is left out is named, and nothing fails."""
    group = ExtraGroup(
        "pci files",
        (ExtraFile("/sys/bus/pci/devices/*", "ari_enabled", "x"), ExtraFile("/etc", "nccl.conf", "x")),
    )
    monkeypatch.setattr(extras, "LIMIT_BYTES", 0)
    too_much = extras.read_group(host(), group)
    monkeypatch.setattr(extras, "SECONDS", -1.0)
    too_long = extras.read_group(host(), group)
    monkeypatch.setattr(extras, "FOLDERS_LIMIT", 0)
    too_many = extras.read_group(host(), group)

    assert "/etc and what follows: more than 0 MiB" == too_much
    assert "/sys/bus/pci/devices/* and what follows: not read within -1 s" == too_long
    assert "/sys/bus/pci/devices/*: only 0 folders were read" == too_many


class Log:
    """/dev/kmsg as the kernel gives it: a record a read, or an error."""

    def __init__(self, *answers: bytes | OSError) -> None:
        self.answers = list(answers)

    def read(self, _descriptor: int, _size: int) -> bytes:
        """The next one."""
        answer = self.answers.pop(0) if self.answers else BlockingIOError(errno.EAGAIN, "")
        if isinstance(answer, OSError):
            raise answer
        return answer


def opened(monkeypatch: pytest.MonkeyPatch, log: Log) -> None:
    """Let the log be this one."""
    monkeypatch.setattr(os, "open", lambda *_: 99)
    monkeypatch.setattr(os, "close", lambda _: None)
    monkeypatch.setattr(os, "read", log.read)


def test_the_tail_of_the_kernel_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest records that fit; a record that was overwritten meanwhile is no error."""
    monkeypatch.setattr(kmsg, "TAIL_BYTES", 8)
    opened(monkeypatch, Log(b"6,1;aa\n", BrokenPipeError(errno.EPIPE, ""), b"6,3;b\n"))

    assert b"6,3;b\n" == kmsg.tail()


def test_a_log_that_does_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody writes faster than it is read."""
    monkeypatch.setattr(kmsg, "SECONDS", 0.01)
    opened(monkeypatch, Log(*[b"6,1;a\n"] * 1_000_000))

    with pytest.raises(TimedOut):
        kmsg.tail()


def test_a_log_without_privilege_is_missing_and_said_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """A later version finds the same reason."""

    def refuse(path: str, limit: int = 0) -> bytes:
        raise Denied(f"{path}: Operation not permitted", "EPERM")

    monkeypatch.setattr(extras, "GROUPS", ())
    recording = Recording()
    live = host()
    monkeypatch.setattr(live, "read", refuse)
    monkeypatch.setattr(extras, "run_probes", in_this_process)
    live.live, live.path = True, None
    record_extras(recording, live, 5)

    assert ["kernel log: /dev/kmsg: Operation not permitted"] == recording.missing
    assert "denied" == recording.refusals["/dev/kmsg"].status


def in_this_process(passes: object, made: Watched, seconds: float, **options: object) -> object:
    """`run_probes` without children: what is patched here is patched there."""
    from probes.run import run_probes

    made.live = False
    return run_probes(passes, made, seconds, **options)  # type: ignore[arg-type]  # handed on as they came
