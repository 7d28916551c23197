"""`fleet ingest` as people run it: one line of what was done, one line of what is wrong."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agent.cli.main import run
from agent.fleet.dataset import open_dataset
from tests.agent.fleet.small import files, named, report, rows, take
from tests.conftest import ROOT
from tests.texts import error_lines

COMMAND = [sys.executable, "-m", "fabricscope", "fleet", "ingest"]


def test_one_line_says_what_was_done(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "in").mkdir()
    for number in range(3):
        (tmp_path / "in" / f"{number}.json").write_bytes(report(f"gpu{number}"))
    (tmp_path / "in" / "x.json").write_text("{")

    assert run(["fleet", "ingest", str(tmp_path / "in"), "--dataset", str(tmp_path / "d")]) == 0
    output = capsys.readouterr()
    assert output.out == (
        f"4 reports: 3 new, 0 known, 1 in quarantine (quarantine/reasons.ndjson says why); 3 nodes in {tmp_path}/d\n"
    )
    assert output.err == ""
    assert run(["fleet", "ingest", str(tmp_path / "in"), "--dataset", str(tmp_path / "d"), "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("README.md", "# fabricscope\n\n1\n", "2 of 2 are not reports; .*/README.md:1: not JSON"),
        ("a.json", "{}", "1 of 1 are not reports; .*/a.json: not a report"),
        ("a.txt", "", "there is no report"),
    ],
)
def test_what_is_no_report_makes_no_dataset(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, text: str, why: str
) -> None:
    """Exit 1, so that a wrong path in a timer shows; of a dataset that is there nothing is lost."""
    wrong, good, dataset = tmp_path / name, tmp_path / "good.json", str(tmp_path / "d")
    wrong.write_text(text)
    good.write_bytes(report("gpu1"))

    assert run(["fleet", "ingest", str(wrong), "--dataset", dataset]) == 1
    assert re.search(f"^error: nothing was taken: {why}", capsys.readouterr().err)
    assert not (tmp_path / "d").exists()
    assert run(["fleet", "ingest", str(good), "--dataset", dataset]) == 0
    assert run(["fleet", "ingest", str(wrong), "--dataset", dataset]) == bool(text)
    assert run(["fleet", "ingest", str(good), "--dataset", dataset]) == 0
    assert "1 known; 1 node in" in capsys.readouterr().out


def test_a_folder_that_was_there_stays(tmp_path: Path) -> None:
    """Somebody may have made it for the dataset, with rights of its own."""
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "quarantine").mkdir()

    assert run(["fleet", "ingest", str(tmp_path / "d"), "--dataset", str(tmp_path / "d")]) == 1
    assert (tmp_path / "d" / "quarantine").is_dir()


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["{in}"], "--dataset is missing"),
        (["{in}/none", "--dataset", "{d}"], "none: No such file or directory"),
        (["{in}", "--dataset", "{in}"], r"in: not a dataset, and not empty: 'a\.json' is there"),
        (["{in}", "--dataset", "{in}/a.json"], r"a\.json: cannot be written"),
        (["{in}", "--dataset", "gopher://x/y"], "gopher://x/y: "),
        (["gopher://user:secret@x/y?key=secret", "--dataset", "{d}"], r"gopher://x/y: (?!.*secret)"),
        (["{in}", "--dataset", "{d}", "--cluster", "a/b"], "--cluster 'a/b': expected a name"),
        (["{in}", "--dataset", "{d}", "--jobs", "0"], "--jobs"),
        (["--dataset", "{d}"], "SOURCE"),
    ],
)
def test_what_cannot_be_done_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], why: str
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_bytes(report())
    filled = [argument.format(**{"in": tmp_path / "in", "d": tmp_path / "d"}) for argument in arguments]

    assert run(["fleet", "ingest", *filled]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert len(error_lines(output.err)) == 1
    assert re.search(why, output.err), output.err
    assert not (tmp_path / "d" / "manifest.json").exists()


def test_without_the_extra_it_says_how_to_install_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.cli.fleet.open_tables.find_spec", lambda name: None if name == "pyarrow" else object())

    assert run(["fleet", "ingest", str(tmp_path), "--dataset", str(tmp_path / "d")]) == 2
    assert "pip install '.[fleet]' (missing: pyarrow)" in capsys.readouterr().err


def test_a_dataset_that_another_ingest_holds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import fcntl

    take(tmp_path / "d", report())
    with (tmp_path / "d" / ".lock").open("r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        code = run(["fleet", "ingest", str(tmp_path / "d.ndjson"), "--dataset", str(tmp_path / "d"), "--wait", "0.2"])

    assert code == 2
    assert "another ingest holds it (waited 0.2 s: --wait)" in capsys.readouterr().err


def test_interrupted_it_leaves_the_dataset_as_it_was(tmp_path: Path, real_commands: None) -> None:
    take(tmp_path / "d", report(driver="before"))
    reader, writer = os.pipe()
    running = subprocess.Popen(
        [*COMMAND, "-", "--dataset", str(tmp_path / "d"), "--jobs", "2"],
        stdin=reader, stderr=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(ROOT)}, start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's background job ignores it
    )  # fmt: skip
    os.close(reader)
    with os.fdopen(writer, "wb") as stream:
        for number in range(200):  # enough for two processes, which wait for more
            stream.write(report(f"gpu{number}", 1, "after") + b"\n")
        stream.flush()
        until = time.monotonic() + 60
        while not (tmp_path / "d" / ".staging").exists() and time.monotonic() < until:
            time.sleep(0.05)
        time.sleep(0.5)  # both have begun
        os.killpg(running.pid, signal.SIGINT)
        _, errors = running.communicate(timeout=30)

    assert running.returncode == 130
    assert errors == b"error: interrupted\n"
    assert rows(tmp_path / "d", "host", "node, driver") == [("gpu1", "before")]
    assert files(tmp_path / "d") == named(tmp_path / "d")
    assert not (tmp_path / "d" / ".staging").exists()


@pytest.mark.parametrize("is_there", [True, False])
def test_no_module_of_the_current_folder_is_run(tmp_path: Path, real_commands: None, is_there: bool) -> None:
    """It may be another user's, and root's ingest be run in it; or be gone. Relative paths are of it all the same."""
    folder = tmp_path / "theirs"
    folder.mkdir()
    for name in ("multiprocessing", "pickle", "random", "selectors", "socket", "struct", "typing"):
        (folder / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'a').write('{name} ')\n")
    (tmp_path / "in").mkdir()
    for number in range(100):  # enough for two processes
        (tmp_path / "in" / f"{number}.json").write_bytes(report(f"gpu{number}", 1, "1"))
    paths = ["../in", "--dataset", "../d"] if is_there else [str(tmp_path / "in"), "--dataset", str(tmp_path / "d")]

    installed = f"import sys; sys.path[0] = {str(ROOT)!r}; import fabricscope; fabricscope.console()"
    shell = '"$0" -c "$@"' if is_there else 'rm -r "$PWD"; "$0" -c "$@"'
    command = ["sh", "-c", shell, sys.executable, installed, "fleet", "ingest", *paths, "--jobs", "2"]
    ended = subprocess.run(command, capture_output=True, check=False, cwd=folder)

    assert (0, b"") == (ended.returncode, ended.stderr)
    assert not (tmp_path / "ran").exists()
    assert 100 == len(rows(tmp_path / "d", "host", "node"))


def test_on_a_terminal_it_shows_how_far_it_is(tmp_path: Path, real_commands: None) -> None:
    (tmp_path / "r.json").write_bytes(report())
    ours, theirs = pty.openpty()
    running = subprocess.run(
        [*COMMAND, str(tmp_path / "r.json"), "--dataset", str(tmp_path / "d")],
        stdout=subprocess.PIPE, stderr=theirs, check=True, env={**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm"},
    )  # fmt: skip
    os.close(theirs)
    output = ""
    with contextlib.suppress(OSError):  # EIO: all is read
        while part := os.read(ours, 65536):
            output += part.decode(errors="replace")
    os.close(ours)

    assert running.stdout.startswith(b"1 report: 1 new")
    assert "reading" in output
    assert re.search(r"1 report\b", output)


def test_one_node_is_one_node(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.json").write_bytes(report())
    assert run(["fleet", "ingest", str(tmp_path / "a.json"), "--dataset", str(tmp_path / "d")]) == 0
    assert capsys.readouterr().out == f"1 report: 1 new, 0 known; 1 node in {tmp_path}/d\n"


@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.parametrize("place", ["state", "latest/host"])
@pytest.mark.parametrize(
    "damage", [b"", b"no Parquet at all", b"PAR1" + b"\0" * 90 + b"PAR1"], ids=["empty", "text", "no footer"]
)
def test_a_damaged_file_of_the_dataset_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], real_commands: None, place: str, jobs: str, damage: bytes
) -> None:
    dataset = tmp_path / "d"
    take(dataset, *(report(f"gpu{n}") for n in range(70)))
    (damaged,) = (dataset / place).rglob("*.parquet")
    damaged.write_bytes(damage)
    before = open_dataset(str(dataset)).manifest
    (tmp_path / "more.ndjson").write_bytes(b"".join(report(f"gpu{n}", 1) + b"\n" for n in range(60, 130)))

    assert run(["fleet", "ingest", str(tmp_path / "more.ndjson"), "--dataset", str(dataset), "--jobs", jobs]) == 2
    output = capsys.readouterr()
    assert (output.out, output.err.count("\n")) == ("", 1)
    assert output.err.startswith(f"error: {damaged}: cannot be read, or damaged: ")
    assert open_dataset(str(dataset)).manifest == before
    assert files(dataset) == named(dataset)


def test_a_manifest_without_a_format_is_damaged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "manifest.json").write_text("{}")
    (tmp_path / "a.json").write_bytes(report())
    for command in (["ingest", str(tmp_path / "a.json")], ["summary"]):
        assert run(["fleet", *command, "--dataset", str(tmp_path / "d")]) == 2
        assert capsys.readouterr().err == f"error: {tmp_path}/d/manifest.json: damaged: it has no format\n"


def test_a_dataset_whose_name_is_no_text(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "o\udcff.json").write_bytes(report())
    source, dataset = str(tmp_path / "o\udcff.json"), str(tmp_path / "d\udcff7")
    for command in (["ingest", source], ["summary"]):
        assert run(["fleet", *command, "--dataset", dataset]) == 2
        output = capfd.readouterr()
        assert (output.out, output.err.count("\n")) == ("", 1)
        assert "a dataset's name has to be UTF-8" in output.err
    assert not os.path.exists(dataset)
    assert run(["fleet", "ingest", source, "--dataset", str(tmp_path / "d")]) == 0


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_file_that_may_not_be_so_large(tmp_path: Path, real_commands: None, jobs: str) -> None:
    take(tmp_path / "d", report(driver="before"))
    before = open_dataset(str(tmp_path / "d")).manifest
    lines = b"".join(report(f"gpu{n}", 1, os.urandom(4000).hex()) + b"\n" for n in range(200))
    (tmp_path / "many.ndjson").write_bytes(lines)
    done = subprocess.run(
        [*COMMAND, str(tmp_path / "many.ndjson"), "--dataset", str(tmp_path / "d"), "--jobs", jobs],
        capture_output=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000)),
    )  # fmt: skip

    assert done.returncode == 2
    message = f"error: {tmp_path}/d: cannot be written: File too large; it is as it was\n"
    assert (done.stdout, done.stderr.decode()) == (b"", message)
    assert open_dataset(str(tmp_path / "d")).manifest == before


@pytest.mark.skipif(os.geteuid() != 0, reason="a small file system can be mounted by root only")
def test_a_full_disk_is_one_line_and_the_dataset_as_it_was(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], real_commands: None
) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(disk)], capture_output=True)
    if mounted.returncode:
        pytest.skip("no file system can be mounted here")
    try:
        take(disk / "d", report(driver="before"))
        before = open_dataset(str(disk / "d")).manifest
        lines = b"".join(report(f"gpu{n}", 1, os.urandom(4000).hex()) + b"\n" for n in range(200))
        (tmp_path / "many.ndjson").write_bytes(lines)
        for jobs in ("1", "2"):
            assert (
                run(["fleet", "ingest", str(tmp_path / "many.ndjson"), "--dataset", str(disk / "d"), "--jobs", jobs])
                == 2
            )
            output = capsys.readouterr()
            assert len(error_lines(output.err)) == 1
            message = f"error: {disk}/d: cannot be written: No space left on device; it is as it was"
            assert output.err.strip() == message
        (disk / "d.ndjson").unlink()
        assert open_dataset(str(disk / "d")).manifest == before
        assert files(disk / "d") == named(disk / "d")
    finally:
        subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="a file system can be made read-only by root only")
def test_a_dataset_that_cannot_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], real_commands: None
) -> None:
    take(tmp_path / "d", report())
    bind = ["mount", "--bind", str(tmp_path / "d"), str(tmp_path / "d")]
    if subprocess.run(bind, capture_output=True).returncode:
        pytest.skip("nothing can be mounted here")
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", str(tmp_path / "d")], check=True)
        assert run(["fleet", "ingest", str(tmp_path / "d.ndjson"), "--dataset", str(tmp_path / "d")]) == 2
        assert capsys.readouterr().err == f"error: {tmp_path}/d: cannot be written: Read-only file system\n"
    finally:
        subprocess.run(["umount", str(tmp_path / "d")], check=True)


def test_forget_names_no_secret_of_an_address(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same line as of `fleet ingest`, where a dataset cannot be written."""

    def refuse(_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("agent.fleet.ingest.forgetting.forget", refuse)

    assert 2 == run(["fleet", "forget", "gpu1", "--dataset", "s3://KEY:SECRET@bucket/prefix?token=SECRET"])
    assert (
        capsys.readouterr().err == "error: s3://bucket/prefix: cannot be written: Permission denied; it is as it was\n"
    )
