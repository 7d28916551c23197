"""Recording, writing, replaying: a capture answers every question as the host did, and is whole or not there."""

from __future__ import annotations

import errno
import json
import os
import pickle
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.capture import writer as capture
from probes.capture.writer import write_capture
from probes.host.interface import Absent, BadSource, Completed, Denied, Failed, Host, ReadError, Refusal, TimedOut
from probes.host.recording import Recording, RecordingHost
from probes.host.udev import record_of
from probes.sources.capture import CaptureHost
from probes.sources.dump import SavedOutputs
from probes.sources.memory import MemoryFiles, Node, SymlinkNode
from probes.sources.open_source import open_source
from probes.sources.tree import TreeHost
from tests.probes.overlay import Change, OverlayHost

FORMS = ["capture", "capture.tar", "capture.tar.gz", "capture.tar.zst"]
REQUEST = b"\x14\0\0\0\x12\0\x01\x03" + b"\x07\0\0\0\x09\0\0\0" + bytes(4)
DEVICE = "/sys/devices/pci0000:15/0000:19:00.0"
LINK = "/sys/bus/pci/devices/0000:19:00.0"

Question = tuple[Any, ...]


class Machine(OverlayHost):
    """A host with every kind of answer and of refusal."""

    def __init__(self) -> None:
        tree = TreeHost("live", "", MemoryFiles(), SavedOutputs(MemoryFiles()))
        files: dict[str, Change] = {
            LINK: SymlinkNode("../../../devices/pci0000:15/0000:19:00.0"),
            f"{DEVICE}/vendor": b"0x10de\n",
            f"{DEVICE}/config": bytes(64),
            f"{DEVICE}/current_link_speed": Failed("the driver says: Invalid argument", "EINVAL"),
            f"{DEVICE}/vpd": Denied("Permission denied", "EACCES"),
            f"{DEVICE}/power/control": b"on\n",
            "/sys/class/net/eth0/speed": TimedOut("/sys/class/net/eth0/speed: Connection timed out", "ETIMEDOUT"),
            "/proc/sys/kernel/hostname": b"gpu-7\n",
            "/proc/bin": b"\xff\0\xfe",
        }
        commands = {
            ("lsmod",): Completed(("lsmod",), 1, "a\ufffd\n", "oh", 0.25),
            ("ibstat",): TimedOut("ibstat: no end within its time", "ETIMEDOUT"),
        }
        nvml = {
            ("nvmlInit_v2",): None,
            ("nvmlDeviceGetName", 0): "NVIDIA H100",
            ("nvmlDeviceGetFieldValues", 0, ((11, 0),)): [{"id": 11, "scope": 0, "return": 0, "value": 1.5}],
            ("nvmlDeviceGetSerial", 0): Failed("Not Supported", "NOT_SUPPORTED"),
        }
        super().__init__(tree, files, commands, nvml)
        self.observed_at = "2026-11-20T10:00:00Z"

    def netlink(self, protocol: int, request: bytes) -> bytes:
        """One answer, and a refusal."""
        if protocol == 0:
            return b"\x10\0\0\0" + bytes(12)
        raise Denied("netlink protocol 16: Operation not permitted", "EPERM")

    def ethtool(self, interface: str, request: bytes) -> bytes:
        """One answer, and a refusal."""
        if interface == "eth0":
            return request + b"\x01"
        raise Failed("ethtool command 0x12 of eth1: Operation not supported", "EOPNOTSUPP")

    def udev(self, path: str) -> Mapping[str, str]:
        """One device that it knows."""
        record_of(path)
        if path == LINK:
            return {"ID_VENDOR_FROM_DATABASE": "NVIDIA = Corporation", "ID_MODEL": ""}
        raise Absent("/run/udev: no udev runs here", "ENOENT")


QUESTIONS: list[Question] = [
    ("read", f"{LINK}/vendor"),
    ("read", f"{LINK}/config", 4096),
    ("read", f"{LINK}/config", 16),
    ("read", f"{LINK}/current_link_speed"),
    ("read", f"{DEVICE}/current_link_speed"),
    ("read", f"{LINK}/nothing"),
    ("read", LINK),
    ("read", "/proc/sys/kernel/hostname"),
    ("read", "/proc/bin"),
    ("read", "/proc/nothing/at/all"),
    ("read", "/sys/class/net/eth0/speed"),
    ("attributes", LINK, ("vendor", "vpd", "current_link_speed", "nothing", "power", "config")),
    ("attributes", "/sys/bus/pci/devices/0000:1a:00.0", ("vendor",)),
    ("attributes", "/sys/class/net/eth0", ("speed", "mtu")),
    ("listdir", "/sys/bus/pci/devices"),
    ("listdir", LINK),
    ("listdir", f"{LINK}/power"),
    ("listdir", "/sys/nothing"),
    ("readlink", LINK),
    ("readlink", f"{LINK}/vendor"),
    ("readlink", f"{LINK}/driver"),
    ("resolve", f"{LINK}/power"),
    ("resolve", LINK),
    ("resolve", "/sys/nothing"),
    ("run", "lsmod"),
    ("run", "ibstat"),
    ("run", "show_gids"),
    ("nvml", "nvmlInit_v2"),
    ("nvml", "nvmlDeviceGetName", 0),
    ("nvml", "nvmlDeviceGetFieldValues", 0, [[11, 0]]),
    ("nvml", "nvmlDeviceGetSerial", 0),
    ("nvml", "nvmlDeviceGetSerial", 1),
    ("netlink", 0, REQUEST),
    ("netlink", 16, REQUEST),
    ("ethtool", "eth0", b"\x12\0\0\0"),
    ("ethtool", "eth1", b"\x12\0\0\0"),
    ("ethtool", "eth2", b"\x12\0\0\0"),
    ("udev", LINK),
    ("udev", "/sys/class/net/eth0"),
    ("udev", "/nowhere"),
]


def answer(host: Host, question: Question) -> object:
    """What the host says, or how it refuses, in plain data."""
    try:
        result = getattr(host, question[0])(*question[1:])
    except ReadError as why:
        return why.status, why.reason, why.code
    if question[0] == "attributes":
        return {k: v if isinstance(v, bytes) else (v.status, v.reason, v.code) for k, v in result.items()}
    return result


def recorded(questions: list[Question] = QUESTIONS) -> Recording:
    host = RecordingHost(Machine())
    for question in questions:
        answer(host, question)
    return host.recording


@pytest.mark.parametrize("form", FORMS)
def test_a_replay_answers_as_the_host_did(form: str, tmp_path: Path) -> None:
    """Every question, every refusal: status, reason and code; in every form of a capture."""
    machine = Machine()
    write_capture(recorded(), str(tmp_path / form))

    replay = open_source(str(tmp_path / form))

    assert ("capture", False, "2026-11-20T10:00:00Z") == (replay.kind, replay.live, replay.observed_at)
    for question in QUESTIONS:
        expected = answer(machine, question)
        if question == ("run", "show_gids"):
            expected = ("absent", "show_gids: no saved output", None)
        assert expected == answer(replay, question), question


def test_a_tee_changes_no_answer() -> None:
    """Answers and errors pass through."""
    machine, tee = Machine(), RecordingHost(Machine())

    assert [answer(machine, q) for q in QUESTIONS] == [answer(tee, q) for q in QUESTIONS]
    assert (tee.kind, tee.path, tee.live) == (machine.kind, machine.path, machine.live)


def test_recordings_of_many_children_are_one(tmp_path: Path) -> None:
    """Each question asked in a child of its own, the recording sent through a pipe, merged: nothing is lost."""
    merged = Recording(observed_at="2026-11-20T10:00:00Z")
    for question in QUESTIONS:
        merged.merge(pickle.loads(pickle.dumps(recorded([question]))))
    write_capture(merged, str(tmp_path / "merged"))

    replay = open_source(str(tmp_path / "merged"))

    whole = RecordingHost(Machine())
    assert [answer(whole, q) for q in QUESTIONS] == [answer(replay, q) for q in QUESTIONS]


def test_what_was_not_asked_is_absent(tmp_path: Path) -> None:
    """No error, and no answer."""
    write_capture(recorded([]), str(tmp_path / "c"))
    replay = open_source(str(tmp_path / "c"))

    for question in QUESTIONS:
        assert "absent" == answer(replay, question)[0], question  # type: ignore[index]  # all of them are refusals
    assert not replay.has_output("lsmod")


@pytest.mark.parametrize("form", FORMS[1:])
def test_the_same_recording_gives_the_same_bytes(form: str, tmp_path: Path) -> None:
    """Whatever the order of the questions; nothing of the clock or the user is in it."""
    (tmp_path / "1").mkdir()
    (tmp_path / "2").mkdir()
    write_capture(recorded(), str(tmp_path / "1" / form))
    write_capture(recorded(QUESTIONS[::-1]), str(tmp_path / "2" / form))

    assert (tmp_path / "1" / form).read_bytes() == (tmp_path / "2" / form).read_bytes()


def test_the_layout_is_that_of_the_format(tmp_path: Path) -> None:
    """Links are links, short reads are short files, refusals stand in the manifest."""
    write_capture(recorded(), str(tmp_path / "c"), version="1.2.3")
    manifest = json.loads((tmp_path / "c/manifest.json").read_text())

    assert "fabricscope.capture/1" == manifest["format"]
    assert {"name": "fabricscope", "version": "1.2.3"} == manifest["generator"]
    assert "gpu-7" == manifest["hostname"]
    assert ["0000:19:00.0"] == manifest["listings"]["/sys/bus/pci/devices"]
    assert "denied" == manifest["errors"][f"{DEVICE}/vpd"]["status"]
    assert "../../../devices/pci0000:15/0000:19:00.0" == os.readlink(tmp_path / f"c/files{LINK}")
    assert bytes(64) == (tmp_path / f"c/files{DEVICE}/config").read_bytes()
    assert ["lsmod"] == json.loads((tmp_path / "c/commands/001.json").read_text())["argv"]
    assert b"E:ID_VENDOR" in (tmp_path / "c/files/run/udev/data/+pci:0000:19:00.0").read_bytes()
    calls = json.loads((tmp_path / "c/nvml.json").read_text())
    assert {"function": "nvmlDeviceGetName", "arguments": [0], "answer": "NVIDIA H100"} in calls


@pytest.mark.parametrize("form", FORMS)
def test_a_full_disk_leaves_nothing(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No half capture, no temporary file, and what stood there before stays."""
    (tmp_path / form).write_text("before")

    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(capture.os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_capture(recorded(), str(tmp_path / form))

    assert [form] == os.listdir(tmp_path)
    assert "before" == (tmp_path / form).read_text()


def test_an_interrupt_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C between writing and renaming."""
    monkeypatch.setattr(capture.os, "replace", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        write_capture(recorded(), str(tmp_path / "c.tar.gz"))

    assert [] == os.listdir(tmp_path)


def test_a_folder_that_is_in_use_is_not_written_over(tmp_path: Path) -> None:
    """A capture never goes into a folder that holds something else."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/work").write_text("x")

    with pytest.raises(OSError, match="not empty"):
        write_capture(recorded(), str(tmp_path / "mine"))
    assert ["mine"] == os.listdir(tmp_path)


def test_other_archives_are_no_form_of_a_capture(tmp_path: Path) -> None:
    """Said before anything is written."""
    with pytest.raises(OSError, match="a folder or one of"):
        write_capture(recorded(), str(tmp_path / "c.tar.xz"))

    assert [] == os.listdir(tmp_path)


def test_a_host_that_changed_meanwhile_can_be_written(tmp_path: Path) -> None:
    """A file that became a folder: what cannot stand together is left out, the rest is there."""
    recording = Recording(files={"/a": b"1", "/a/b": b"2", "/c/d": b"3"}, links={"/c/e": "d"}, directories={"/c/e/f"})
    write_capture(recording, str(tmp_path / "c.tar"))

    replay = open_source(str(tmp_path / "c.tar"))

    assert (b"1", b"3", b"3") == (replay.read("/a"), replay.read("/c/d"), replay.read("/c/e"))


def test_probes_that_gave_no_answer_are_remembered(tmp_path: Path) -> None:
    """A hang is evidence too: the replay says it again."""
    recording = Recording(lost={"nvml": Refusal("timed_out", "no answer within 10 s: pid 7, state D")})
    write_capture(recording, str(tmp_path / "c"))

    replay = open_source(str(tmp_path / "c"))

    assert isinstance(replay, CaptureHost)
    assert recording.lost == replay.lost


DAMAGES = [
    ("manifest.json", b"{", "manifest.json is not JSON"),
    ("manifest.json", b"[" * 100_000, "manifest.json is not JSON"),
    ("manifest.json", b"[]", "another format"),
    ("manifest.json", b'{"format": "fabricscope.capture/2"}', "another format"),
    ("manifest.json", b'{"format": "fabricscope.capture/1", "captured_at": 7}', "captured_at"),
    (
        "manifest.json",
        b'{"format": "fabricscope.capture/1", "errors": {"/a": {"status": "fine", "reason": ""}}}',
        "errors",
    ),
    ("manifest.json", b'{"format": "fabricscope.capture/1", "errors": [1]}', "errors"),
    ("manifest.json", b'{"format": "fabricscope.capture/1", "listings": {"/a": [1]}}', "listings"),
    ("commands/000.json", b'{"argv": "lsmod"', "commands/000.json is not JSON"),
    ("commands/000.json", b'{"argv": ["lsmod"], "returncode": "x"}', "commands/000.json"),
    ("commands/000.json", b"7", "commands/000.json"),
    ("nvml.json", b'{"function": 1}', "nvml.json"),
    ("nvml.json", b'[{"function": "nvmlInit_v2", "arguments": []}]', "nvml.json"),
    ("nvml.json", b'[{"function": "nvmlDeviceGetFieldValues", "arguments": [], "answer": []}]', "nvml.json"),
    ("commands/000.json", b'{"argv": ["lsmod"], "returncode": 1e999, "seconds": 0}', "commands/000.json"),
    ("netlink/000.json", b'{"protocol": 0, "request": "!!", "reply": ""}', "netlink/000.json"),
]


@pytest.mark.parametrize(("name", "content", "why"), DAMAGES)
def test_a_damaged_capture_is_one_clear_line(name: str, content: bytes, why: str, tmp_path: Path) -> None:
    """Which names the capture and the document in it."""
    write_capture(recorded(), str(tmp_path / "c"))
    (tmp_path / "c" / name).write_bytes(content)

    with pytest.raises(BadSource) as caught:
        open_source(str(tmp_path / "c"))

    assert str(caught.value).startswith(f"{tmp_path}/c: ")
    assert why in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", ["folder", "fifo", "device", "loop", "dangling"])
@pytest.mark.parametrize("name", ["manifest.json", "nvml.json", "commands/000.json", "netlink/000.json", "files"])
def test_a_document_that_is_no_file_is_one_clear_line(name: str, kind: str, tmp_path: Path) -> None:
    """Or the source is none of ours: never another error, never a wait, and no evidence that is quietly left out."""
    write_capture(recorded(), str(tmp_path / "c"))
    place = tmp_path / "c" / name
    shutil.rmtree(place) if place.is_dir() else place.unlink()
    if kind == "folder":
        place.mkdir()
    elif kind == "fifo":
        os.mkfifo(place)
    else:
        place.symlink_to({"device": "/dev/zero", "loop": place.name, "dangling": "gone"}[kind])

    if (name, kind) == ("files", "folder"):
        assert open_source(str(tmp_path / "c")).kind == "capture", "it may hold no file"
        return
    with pytest.raises(BadSource) as caught:
        open_source(str(tmp_path / "c"))
    assert str(caught.value).startswith(f"{tmp_path}/c: ")
    assert "\n" not in str(caught.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["argv", "error", "returncode", "stdout", "request", "errors", "listings", "/a", "status"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)


@given(JSON, JSON, JSON)
def test_no_document_raises_anything_else(manifest: object, command: object, call: object) -> None:
    """Any JSON in the place of the right one: a host, or BadSource."""
    if isinstance(manifest, dict):
        manifest["format"] = "fabricscope.capture/1"
    documents: dict[str, Node] = {
        "manifest.json": json.dumps(manifest).encode(),
        "nvml.json": json.dumps([call]).encode(),
        "commands": {"000.json": json.dumps(command).encode()},
        "netlink": {"000.json": json.dumps(command).encode()},
    }

    try:
        host = CaptureHost("x", MemoryFiles(documents), MemoryFiles())
    except BadSource:
        return

    assert "capture" == host.kind


def test_a_file_of_the_process_itself_is_kept_for_every_child() -> None:
    """/proc/self leads each child to another place; the recordings of all become one capture."""
    recording = Recording()
    for process, name in (("101", "cgroup"), ("202", "mounts")):
        tree = TreeHost("live", "", MemoryFiles(), SavedOutputs(MemoryFiles()))
        changes: dict[str, Change] = {"/proc/self": SymlinkNode(process), f"/proc/{process}/{name}": name.encode()}
        tee = RecordingHost(OverlayHost(tree, changes, {}, {}))
        assert name.encode() == tee.read(f"/proc/self/{name}")
        recording.merge(tee.recording)

    assert {"/proc/self/cgroup": b"cgroup", "/proc/self/mounts": b"mounts"} == recording.files
