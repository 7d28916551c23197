"""Reports on disk: written whole or not at all, read back from anything."""

from __future__ import annotations

import contextlib
import gzip
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from threading import Thread

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent import diagnose, reports
from agent.cli.main import run
from agent.config import Configuration
from agent.diagnose import evaluate_report
from agent.model.finding import Summary
from agent.model.gpu import Gpu, NvSwitch
from agent.model.nic import Nic
from agent.model.node import Node
from agent.model.pci import PciFunction
from agent.model.report import Generator, Report, Source
from agent.model.topology import Topology
from agent.reports import PRIVATE, PUBLIC, ReportError, encode_report, read_report, write_atomically
from probes.run import ProbeResults
from tests.conftest import ROOT
from tests.machines import scan_machine

REPORT = Report(
    generated_at="2026-11-20T00:00:00Z",
    generator=Generator(name="fabricscope", version="0"),
    source=Source(kind="live"),
    node=Node(hostname="gpu-1"),
    topology=Topology(),
    summary=Summary(verdict="ok", counts={"warning": 0, "info": 0}),
)


def test_a_report_reads_back_as_it_was(tmp_path: Path) -> None:
    """Plain and gzip alike."""
    plain, packed = tmp_path / "r.json", tmp_path / "r.json.gz"
    write_atomically(str(plain), encode_report(REPORT))
    packed.write_bytes(gzip.compress(encode_report(REPORT), mtime=0))

    assert read_report(str(plain)) == REPORT
    assert read_report(str(packed)) == REPORT


WRITTEN = {
    "report": "write_atomically(place, b'x')",
    "capture": "write_capture(Recording(), place + '.tar.gz')",
    "capture, a folder": "write_capture(Recording(), place)",
}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
@pytest.mark.parametrize(
    ("what", "moment"),
    [
        ("report", "os.fdopen"),
        ("report", "os.fsync"),
        ("report", "os.replace"),
        ("capture", "os.fsync"),
        ("capture, a folder", "os.fsync"),
    ],
)
@pytest.mark.usefixtures("real_commands")
def test_a_signal_while_it_is_written_leaves_nothing(
    tmp_path: Path, number: signal.Signals, what: str, moment: str
) -> None:
    """The process ends by that signal, as it would have; to be asked to end a second time changes nothing."""
    program = f"""
import os
from agent.reports import write_atomically
from probes.capture.writer import write_capture
from probes.host.recording import Recording
true, true_unlink = {moment}, os.unlink
def stopped(*given):
    os.kill(os.getpid(), {int(number)})
    return true(*given)
def unlinked(*given, **more):
    if {number != signal.SIGINT}:
        os.kill(os.getpid(), {int(signal.SIGTERM)})
    return true_unlink(*given, **more)
{moment}, os.unlink = stopped, unlinked
place = {str(tmp_path / "r")!r}
{WRITTEN[what]}
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True)

    assert -number == done.returncode
    assert [] == os.listdir(tmp_path)


def test_where_the_program_heeds_a_signal_itself_it_is_left_to_it(tmp_path: Path) -> None:
    """`watch` finishes what it writes."""
    came: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: came.append(number))
    try:
        with reports.open_atomically(str(tmp_path / "r.json")) as file:
            signal.raise_signal(signal.SIGTERM)
            file.write(b"x")
    finally:
        signal.signal(signal.SIGTERM, before)

    assert [signal.SIGTERM] == came
    assert b"x" == (tmp_path / "r.json").read_bytes()


def test_keys_stand_in_the_order_of_the_schema_and_maps_are_sorted() -> None:
    """Same evidence, same bytes: the order is no accident of this run."""
    text = encode_report(REPORT).decode()

    keys = [name for name in Report.__struct_encode_fields__ if name != "left_out"]  # only where something was
    assert list(msgspec.json.decode(text)) == keys
    assert text.index('"info"') < text.index('"warning"')


def test_a_report_of_an_earlier_minor_version_is_read(tmp_path: Path) -> None:
    """What was added since then has its default."""
    earlier = msgspec.json.decode(encode_report(REPORT))
    earlier["schema_minor"] = 0
    earlier["summary"].pop("devices_unread")
    for probe in earlier["probes"]:
        probe.pop("observed_at", None)
    place = tmp_path / "r.json"
    place.write_bytes(msgspec.json.encode(earlier))
    read = read_report(str(place))

    assert 0 == read.schema_minor
    assert read.summary.devices_unread is None
    assert REPORT.findings == read.findings


def test_fields_of_a_later_minor_version_are_ignored(tmp_path: Path) -> None:
    """An older program reads a newer report of the same schema."""
    later = msgspec.json.decode(encode_report(REPORT))
    later["schema_minor"] = 7
    later["new_field"] = {"a": 1}
    place = tmp_path / "r.json"
    place.write_bytes(msgspec.json.encode(later))

    assert read_report(str(place)).schema_minor == 7


@pytest.mark.parametrize(
    ("data", "part"),
    [
        (b"", "it is empty"),
        (b" \n", "it is empty"),
        (b"{}", "no schema field"),
        (b'{"schema": "fabricscope.report/2"}', "fabricscope.report/2"),
        (b'{"schema": "fabricscope.report/1"}', "damaged"),
        (b"[" * 100_000, "not a report"),
        (encode_report(REPORT)[:-40], "not a report"),
        (gzip.compress(encode_report(REPORT), mtime=0)[:-12], "truncated gzip"),
        (b"\x1f\x8b garbage", "damaged gzip"),
        (gzip.compress(b" " * (64 << 20), mtime=0), "larger"),
    ],
)
def test_anything_else_is_refused_with_its_name(tmp_path: Path, data: bytes, part: str) -> None:
    """Never a traceback, never part of a report presented as the whole."""
    place = tmp_path / "r.json"
    place.write_bytes(data)

    with pytest.raises(ReportError, match=r"r\.json") as refused:
        read_report(str(place))
    assert part in str(refused.value)


@given(st.integers(0, len(encode_report(REPORT)) - 1), st.binary(min_size=1, max_size=8))
def test_any_mutation_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, index: int, junk: bytes) -> None:
    """A damaged file raises ReportError and nothing else."""
    data = encode_report(REPORT)
    place = tmp_path_factory.getbasetemp() / "mutated.json"
    place.write_bytes(data[:index] + junk + data[index + len(junk) :])

    with contextlib.suppress(ReportError):
        assert isinstance(read_report(str(place)), Report)


def test_a_failed_write_leaves_nothing_behind(tmp_path: Path) -> None:
    """No half file under the final name, no temporary beside it."""
    target = tmp_path / "folder"
    target.mkdir()

    with pytest.raises(OSError, match="directory"):
        write_atomically(str(target), b"x")
    assert os.listdir(tmp_path) == ["folder"]


@pytest.mark.parametrize("kind", ["pci", "gpus", "nics", "nvswitches"])
def test_a_report_with_two_rows_of_one_id_is_damaged(tmp_path: Path, kind: str) -> None:
    """Paths, ports and findings refer to rows by id: two of one name make a page of neither."""
    rows = {"pci": PciFunction(id="0000:00:00.0"), "gpus": Gpu(id="GPU0", label="GPU0"), "nics": Nic(id="m", label="m")}
    row = rows.get(kind, NvSwitch(id="0000:00:00.0", pci="0000:00:00.0"))
    place = tmp_path / "r.json"
    place.write_bytes(encode_report(msgspec.structs.replace(REPORT, topology=Topology(**{kind: [row, row]}))))

    with pytest.raises(ReportError, match="twice"):
        read_report(str(place))


def of_size(functions: int) -> Report:
    """A machine with so many functions."""
    rows = [PciFunction(id=f"0000:{n >> 8:02x}:{n & 255:02x}.0") for n in range(functions)]
    return msgspec.structs.replace(REPORT, topology=Topology(pci=rows))


def test_every_report_that_is_written_can_be_read(tmp_path: Path) -> None:
    """Beyond the limit it stands on one line; a report that is larger still is refused, never cut."""
    place = tmp_path / "r.json"
    place.write_bytes(data := encode_report(of_size(4500)))

    assert 1 == data.count(b"\n")
    assert 4500 == len(read_report(str(place)).topology.pci)
    with pytest.raises(ReportError, match="at most"):
        encode_report(of_size(20_000))


def test_damaged_json_is_reported_with_its_line(tmp_path: Path) -> None:
    """A field of the wrong kind with its name."""
    place = tmp_path / "r.json"
    text = encode_report(REPORT).decode()

    place.write_text('{\n "schema": "fabricscope.report/1",\n "node": }')
    with pytest.raises(ReportError, match=r"r\.json: not a report: JSON is malformed: invalid character \(line 3\)"):
        read_report(str(place))
    place.write_text(text.replace('"kind": "live"', '"kind": 5'))
    with pytest.raises(ReportError, match=r"a damaged report: Expected `str`, got `int` - at `source\.kind`"):
        read_report(str(place))


@pytest.mark.parametrize(("mode", "made"), [(PUBLIC, 0o644), (PRIVATE, 0o640)])
def test_a_new_file_has_its_mode_and_one_that_is_there_keeps_its_own(tmp_path: Path, mode: int, made: int) -> None:
    """Never wider than before."""
    umask = os.umask(0o022)
    try:
        write_atomically(str(tmp_path / "new"), b"x", mode)
        (tmp_path / "old").write_bytes(b"")
        (tmp_path / "old").chmod(0o600)
        write_atomically(str(tmp_path / "old"), b"x", mode)
    finally:
        os.umask(umask)

    assert (made, 0o600) == tuple((tmp_path / name).stat().st_mode & 0o777 for name in ("new", "old"))


def test_a_file_keeps_its_owner_or_loses_its_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the group cannot be kept, ours may not read it."""
    target, request = tmp_path / "report.json", []
    target.write_bytes(b"")
    target.chmod(0o664)
    theirs = _owned(os.lstat(target), 4711, 4712)
    monkeypatch.setattr(reports, "_stat_file", lambda path: theirs)
    monkeypatch.setattr(os, "fchown", lambda descriptor, *ids: request.append(ids))
    write_atomically(str(target), b"x")
    assert ([(4711, 4712)], 0o664) == (request, target.stat().st_mode & 0o777)

    def refuse(descriptor: int, *ids: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "fchown", refuse)
    write_atomically(str(target), b"x")
    assert 0o604 == target.stat().st_mode & 0o777


def _owned(found: os.stat_result, uid: int, gid: int) -> os.stat_result:
    fields = list(found)
    fields[4:6] = uid, gid
    return os.stat_result(fields)


@pytest.mark.parametrize("kind", ["link", "file", "folder"])
@pytest.mark.parametrize(("mode", "owner", "refused"), [(0o1777, 4711, True), (0o777, 4711, False), (0o1777, 0, False)])
def test_what_another_user_put_into_a_shared_folder_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, mode: int, owner: int, refused: bool
) -> None:
    """The kernel's rule for links and files in folders like /tmp. `owner` 0: ours; "folder": a link on the way."""
    shared, target = tmp_path / "shared", tmp_path / "target"
    shared.mkdir()
    target.mkdir() if kind == "folder" else target.write_bytes(b"before")
    planted = shared / "report.json"
    planted.write_bytes(b"before") if kind == "file" else planted.symlink_to(target)
    path = planted / "x" / ".." / "x.json" if kind == "folder" else planted
    if kind == "folder":
        (target / "x").mkdir()
        path.write_bytes(b"before")
    shared.chmod(mode)
    real = os.lstat
    theirs = owner or os.geteuid()
    monkeypatch.setattr(
        os, "lstat", lambda path: _owned(real(path), theirs, theirs) if str(path) == str(planted) else real(path)
    )
    if refused:
        with pytest.raises(OSError, match="another user"):
            write_atomically(str(path), b"after")
    else:
        monkeypatch.setattr(os, "fchown", lambda descriptor, *ids: None)
        write_atomically(str(path), b"after")
    assert (b"before" if refused else b"after") == path.read_bytes()
    assert planted.is_symlink() == (kind != "file")


def test_links_in_a_circle_end(tmp_path: Path) -> None:
    """As the kernel ends them."""
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OSError, match="symbolic links"):
        write_atomically(str(tmp_path / "a"), b"x")


@pytest.mark.timeout(20)
def test_a_pipe_that_nobody_reads_is_not_waited_for(tmp_path: Path) -> None:
    """One that somebody reads is written to."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="No such device"):
        write_atomically(str(pipe), b"x")
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_atomically(str(pipe), b"whole")
        assert b"whole" == os.read(reader, 10)
    finally:
        os.close(reader)


def _tree_of_gpus(sys: Path, gpus: int) -> None:
    """A PCI tree as sysfs has it: each GPU and each of 8 NICs below a root port of its own."""
    listed = sys / "bus/pci/devices"
    listed.mkdir(parents=True)
    link = {"link_speed": "32.0 GT/s PCIe", "link_width": "16"}
    for number in range(gpus + 8):
        domain, place = divmod(number, 200)
        port, card = f"{domain:04x}:00:{place // 8:02x}.{place % 8}", f"{domain:04x}:{place + 16:02x}:00.0"
        below = sys / f"devices/pci{domain:04x}:00" / port
        ids = ("0x10de", "0x2330", "0x030200") if number < gpus else ("0x15b3", "0x1021", "0x020700")
        for folder, (vendor, device, kind) in (below, ("0x8086", "0x352a", "0x060400")), (below / card, ids):
            folder.mkdir(parents=True)
            files = {"vendor": vendor, "device": device, "class": kind, "numa_node": "0", "enable": "1"}
            files |= {f"{which}_{name}": value for which in ("current", "max") for name, value in link.items()}
            for name, value in files.items():
                (folder / name).write_text(f"{value}\n")
            (listed / folder.name).symlink_to(os.path.relpath(folder, listed))


@pytest.mark.parametrize("gpus", [200, 256])
def test_a_tree_of_very_many_gpus_has_a_report_without_their_pairs(gpus: int, tmp_path: Path) -> None:
    """It says so, and is not judged again: a rule about pairs would find none."""
    _tree_of_gpus(tmp_path / "tree/sys", gpus)
    output = tmp_path / "report.json"
    assert 0 == run(["scan", str(tmp_path / "tree"), "--output", str(output)])
    report = read_report(str(output))
    again = evaluate_report(report, Configuration())

    assert gpus == len(report.topology.gpus)
    assert 8 * gpus == len(report.topology.paths)
    assert [f"topology.paths: {gpus * (gpus - 1) // 2} pairs of GPUs"] == report.left_out
    assert (report.checks, report.findings, report.summary) == (again.checks, again.findings, again.summary)


@pytest.mark.parametrize("gpus", [257, 1000])
def test_a_tree_of_more_gpus_is_refused(
    gpus: int, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line, within a second of a core: of a long bus, where it takes about 0.1 s, before it is probed."""
    if gpus == 1000:
        monkeypatch.setattr(diagnose, "run_probes", pytest.fail)
    _tree_of_gpus(tmp_path / "tree/sys", gpus)

    spent = []
    for _ in range(3):
        began = time.process_time()
        assert 2 == run(["scan", str(tmp_path / "tree")])
        spent.append(time.process_time() - began)
    refused = f"error: {tmp_path}/tree: lists more than 256 GPUs: more than one host can have\n"
    assert 3 * refused == capsys.readouterr().err
    assert min(spent) < 1


def test_the_count_of_gpus_is_of_physical_ones_and_in_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Virtual functions are the same GPUs again; and a bus of very many functions is counted within --timeout."""
    _tree_of_gpus(tmp_path / "tree/sys", 257)
    monkeypatch.setattr(diagnose, "_LONG_BUS", 256)
    listed = tmp_path / "tree/sys/bus/pci/devices"
    (listed / "0001:10:00.0/physfn").symlink_to("../../0001:00:00.0")
    monkeypatch.setattr(diagnose, "run_probes", lambda *_arguments, **_options: ProbeResults([], None))
    assert 0 == run(["scan", str(tmp_path / "tree")])
    monkeypatch.setattr("probes.pci.sysfs.list_models", lambda *_: iter(lambda: ("0x8086", None, None), None))
    assert 0 == run(["scan", str(tmp_path / "tree"), "--timeout", "0.2"])


def test_pairs_that_have_no_room_make_no_finding() -> None:
    """Of machines whose rules compare each pair with what it should be."""
    whole = scan_machine("8xmi300x-2s-8xcx7-roce")
    report = reports._without_gpu_pairs(whole)

    assert len(whole.topology.paths) - 28 == len(report.topology.paths)
    assert whole.findings == evaluate_report(report, Configuration()).findings
    assert reports._without_gpu_pairs(report) is report


@pytest.mark.timeout(20)
def test_a_report_from_a_pipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In pieces; one that has no writer is not waited for without end."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    data = encode_report(REPORT)
    writer = Thread(target=lambda: _write_slowly(pipe, [data[:100], data[100:]]))
    writer.start()
    read = read_report(str(pipe))
    writer.join()
    monkeypatch.setattr(reports, "PIPE_SECONDS", 0.05)

    assert data == encode_report(read)
    with pytest.raises(ReportError, match=r"pipe: a pipe to which nothing is written for 0\.05 s"):
        read_report(str(pipe))


def _write_slowly(path: Path, pieces: list[bytes]) -> None:
    with open(path, "wb", buffering=0) as file:
        for piece in pieces:
            time.sleep(0.02)
            file.write(piece)


def test_a_page_is_no_damaged_report(tmp_path: Path) -> None:
    """The JSON of the same scan is what is meant."""
    page = tmp_path / "r.html"
    page.write_bytes(b"\n<!DOCTYPE html>\n<html><title>h - fabricscope</title>")

    with pytest.raises(ReportError, match=r"r\.html: a page, not a report: use the JSON"):
        read_report(str(page))
