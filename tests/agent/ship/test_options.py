"""The options of ship, a run of it, and the command from outside."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from agent.cli import ship as command
from agent.cli.main import run
from agent.ship.options import TargetOptions, check_options, open_target
from agent.ship.payload import Payload
from agent.ship.target import BadTarget, FolderTarget, SendResult, SendStatus
from tests.agent.ship.servers import (
    OK,
    Down,
    Run,
    Up,
    reply,
    report,
    serving,
)
from tests.texts import error_lines

# Addresses and secrets: what can be meant, and that nothing of a secret is repeated.


SECRET = "Tr0ub4dor&3"


@pytest.mark.parametrize(
    ("address", "part"),
    [
        (TargetOptions(""), "--to is empty"),
        (TargetOptions("ftp://host/x"), "ftp"),
        (TargetOptions("https:///x"), "names no host"),
        (TargetOptions("https://host:99999/"), "not a valid address"),
        (TargetOptions("https://host:0/"), "not a valid address"),
        (TargetOptions("https://[::1/"), "not a valid address"),
        (TargetOptions("https://host/a b"), "blank"),
        (TargetOptions("https://host/a\nb"), "control"),
        (TargetOptions("https://host/#x"), "'#'"),
        (TargetOptions(f"https://me:{SECRET}@host/"), "a user name or password"),
        (TargetOptions("file://elsewhere/dir"), "file:///"),
        (TargetOptions("file:dir"), "file:///"),
        (TargetOptions("s3://"), "bucket"),
        (TargetOptions("s3://b"), "bucket"),
        (TargetOptions("s3://bucket/../x"), "prefix"),
        (TargetOptions("s3://bucket/x?y=1"), "'?'"),
        (TargetOptions("https://h/", method="DELETE"), "--method"),
        (TargetOptions("https://h/", compress="lzma"), "--compress"),
        (TargetOptions("/dir", token_file="t"), "--token-file"),
        (TargetOptions("s3://bucket", token_file="t"), "--token-file"),
        (TargetOptions("https://h/", endpoint="https://x"), "--endpoint"),
        (TargetOptions("https://h/", credentials="x"), "--credentials"),
        (TargetOptions("https://h/", key="k"), "--key goes with --cert"),
        (TargetOptions("http://h/", ca="c"), "https"),
        (TargetOptions("http://h/", token_file="t"), "without TLS"),
        (TargetOptions("http://127.0.0.1.example/", token_file="t"), "without TLS"),
    ],
)
def test_what_cannot_be_meant(address: TargetOptions, part: str) -> None:
    """One line, before anything is read or sent."""
    with pytest.raises(BadTarget, match=part) as caught:
        check_options(address)

    assert SECRET not in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("to", "path"),
    [
        ("/srv/a%20b", "/srv/a%20b"),
        ("file:///srv/a%20b", "/srv/a b"),
        ("file://localhost/srv", "/srv"),
    ],
)
def test_folders(to: str, path: str) -> None:
    """A plain path is a path; an address is decoded."""
    target = open_target(TargetOptions(to), {})

    assert isinstance(target, FolderTarget)
    assert path == target.path


@pytest.mark.parametrize(
    ("content", "mode", "part"),
    [
        (b"", 0o600, "no token"),
        (b" \n", 0o600, "no token"),
        (f"{SECRET}\nmore\n".encode(), 0o600, "one word"),
        (f"{SECRET}\x00".encode(), 0o600, "one word"),
        (b"x" * 20_000, 0o600, "one word"),
        (SECRET.encode(), 0o644, "all users"),
    ],
)
def test_tokens_that_are_none(content: bytes, mode: int, part: str, tmp_path: Path) -> None:
    """And no word of them is told."""
    (tmp_path / "token").write_bytes(content)
    (tmp_path / "token").chmod(mode)

    with pytest.raises(BadTarget, match=part) as caught:
        open_target(TargetOptions("https://host/", token_file=str(tmp_path / "token")), {})
    assert SECRET not in str(caught.value)


def test_files_of_tls_are_named(tmp_path: Path) -> None:
    """The one that is missing, or holds no PEM."""
    (tmp_path / "ca").write_text("no PEM")

    with pytest.raises(BadTarget, match="no/such: No such file"):
        open_target(TargetOptions("https://host/", ca="/no/such"), {})
    with pytest.raises(BadTarget, match="ca: "):
        open_target(TargetOptions("https://host/", ca=str(tmp_path / "ca")), {})
    with pytest.raises(BadTarget, match="no/cert"):
        open_target(TargetOptions("https://host/", cert="/no/cert"), {})


# A run: what comes while it is under way, what it has no time for, and what is no report.


@pytest.mark.parametrize("up", [True, False])
def test_a_report_that_comes_while_we_run_is_taken_too(up: bool, run: Run) -> None:
    """A scan that ends while the service runs starts it no second time."""
    path = Path(run.file(report(0), "0.json"))

    class Meanwhile(Down):
        def hand_over(self, payload: Payload, until: float) -> SendResult:
            if len(self.payloads) < 2:
                path.with_suffix(".new").write_bytes(report(len(self.payloads) + 1))
                path.with_suffix(".new").replace(path)
            return super().hand_over(payload, until)

    target = Meanwhile(SendResult(SendStatus.ACCEPTED) if up else None)
    result = run.ship(target, report(0))

    assert ((3, 0) if up else (0, 2)) == (result.accepted, result.waiting)
    assert (3 if up else 1) == len(target.payloads)


def test_a_report_that_had_no_room_and_is_replaced_is_counted(run: Run) -> None:
    """It was seen, and it is gone: that is told."""
    small = run._replace(count=1)
    small.ship(Down(), report(5, "error"))
    path = Path(run.file(report(0), "0.json"))

    class Meanwhile(Down):
        def hand_over(self, payload: Payload, until: float) -> SendResult:
            path.write_bytes(report(9, "critical"))
            return super().hand_over(payload, until)

    result = small.ship(Meanwhile(), report(0))

    assert {"healthy": 1, "not_judged": 0, "with_findings": 1, "set_aside": 0} == result.dropped
    assert ["critical"] == [name.split("_")[1] for name in small.waiting]


def test_many_reports_and_little_time(run: Run) -> None:
    """What is not reached stands where it was named, and is told; nothing of it is counted as dropped."""
    result = run.ship(Down(), *[report(number) for number in range(20)], seconds=0)

    assert (1, 19, False) == (result.waiting, result.left, result.all_handed_over)
    assert 0 == sum(result.dropped.values())
    full = run._replace(count=1)
    result = full.ship(Up(), *[report(number) for number in range(30, 33)])
    assert (4, True) == (result.accepted, result.all_handed_over)


def test_no_target_keeps_everything(run: Run) -> None:
    """A secret that is missing today."""
    assert (0, 1) == run.ship(None, report())[:2]


def test_a_file_that_is_no_report_keeps_nothing_back(run: Run) -> None:
    """It is told; the others go."""
    result = run.ship(Up(), report(), b"{}", report(1))

    assert 2 == result.accepted
    assert ["its schema"] == [part for line in result.bad for part in ["its schema"] if part in line]


# `ship` from outside: exit codes, what it says, the configuration file, and what it loads.


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a report in it, where the command runs."""
    (tmp_path / "report.json").write_bytes(report(1, "error"))
    (tmp_path / "drop").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("STATE_DIRECTORY", raising=False)
    monkeypatch.setattr(command, "STATE", str(tmp_path / "state"))
    monkeypatch.setattr(command, "REPORT", str(tmp_path / "report.json"))
    return tmp_path


def test_all_handed_over_is_0(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The default report, into a folder; one line on stdout."""
    assert 0 == run(["ship", "--to", "drop"])

    output = capsys.readouterr()
    assert ("", f"handed over 1 report to {place}/drop\n") == (output.err, output.out)
    (file,) = (place / "drop").iterdir()
    assert report(1, "error") == gzip.decompress(file.read_bytes())
    assert 0 == run(["ship", "--to", f"file://{place}/drop", "-q"])
    assert ("", "") == capsys.readouterr()


def test_what_waits_needs_no_report(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where no scan has left the default one; with nothing to send at all it is missed."""
    assert 1 == run(["ship", "--to", "none"])
    (place / "report.json").unlink()
    capsys.readouterr()
    assert 0 == run(["ship", "--to", "drop"])
    assert ("", f"handed over 1 report to {place}/drop\n") == capsys.readouterr()[::-1]
    assert 2 == run(["ship", "--to", "drop"])
    assert f"error: {place}/report.json: No such file or directory\n" == capsys.readouterr().err


def test_some_that_wait_is_1(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line that says how many, where, and why."""
    assert 1 == run(["ship", "--to", "none"])

    output = capsys.readouterr()
    assert "" == output.out
    assert f"warning: 1 report waits in {place}/state/spool: {place}/none: No such file or directory\n" == output.err


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["ship"], "--to is missing"),
        (["ship", "--to", "ftp://x"], "ftp"),
        (["ship", "--to", "drop", "--timeout", "nan"], "nan"),
        (["ship", "--to", "drop", "--timeout", "inf"], "timeout"),
        (["ship", "--to", "drop", "--spool-limit", "-1"], "-1"),
        (["ship", "--to", "drop", "--spool-limit", "much"], "much"),
        (["ship", "--to", "drop", "--config", "none.toml"], "none.toml"),
        (["ship", "--to", "drop", "--spool", "report.json"], "report.json"),
        (["ship", "--to", "drop", "missing.json"], "missing.json: No such file"),
        (["ship", "--to", "drop", "--token", "x"], "--token"),
    ],
)
def test_wrong_usage_is_2_and_one_line(
    arguments: list[str], part: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It names what is wrong."""
    assert 2 == run(arguments)

    output = capsys.readouterr().err
    assert 1 == len(error_lines(output)), output
    assert part in output


def test_a_file_that_is_no_report_keeps_the_others_from_nothing(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They go; the exit code tells of it."""
    (place / "bad.json").write_text("{}")

    assert 2 == run(["ship", "bad.json", "report.json", "--to", "drop"])
    assert "bad.json: not a report" in capsys.readouterr().err
    assert 1 == len(list((place / "drop").iterdir()))


def test_a_secret_that_is_missing_keeps_the_report(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """2, and the report waits for the day on which it is there."""
    assert 2 == run(["ship", "--to", "https://inventory.example/", "--token-file", "token"])

    output = capsys.readouterr().err
    assert f"error: token: No such file or directory; 1 report waits in {place}/state/spool\n" == output
    assert 0 == run(["ship", "--to", "drop", "--spool", "state/spool"])
    assert 1 == len(list((place / "drop").iterdir()))


def test_what_was_dropped_is_told(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By kind, with the bound, and since when: exit 1, as it was not handed over."""
    (place / "ok.json").write_bytes(report(0))

    assert 1 == run(["ship", "ok.json", "report.json", "--to", "none", "--spool-count", "1", "--state-dir", "s"])
    first = capsys.readouterr().err.splitlines()[0]
    assert "dropped 1 report (1 healthy), 1 since 20" in first
    assert f"Z: no room in {place}/s/spool (--spool-limit 67108864, --spool-count 1)" in first


def test_the_configuration_file(place: Path) -> None:
    """Paths in it are beside it; the command line wins."""
    etc = place / "etc"
    etc.mkdir()
    (etc / "token").write_text("abc\n")
    (etc / "token").chmod(0o600)
    with serving(reply(201), OK) as server:
        (etc / "ship.toml").write_text(
            f'[ship]\nto = "{server.url}/in"\nmethod = "PUT"\ntoken_file = "token"\ncompress = "zstd"\n'
            'spool = "spool"\nspool_limit = 1000000\ntimeout = 20\n[rules]\noff = []\n'
        )
        assert 0 == run(["ship", "--config", "etc/ship.toml"])
        assert 0 == run(["ship", "--config", "etc/ship.toml", "--method", "post"])

    assert ["PUT", "POST"] == [request.method for request in server.requests]
    assert {"Bearer abc"} == {request.headers["authorization"] for request in server.requests}
    assert server.requests[0].path.endswith(".json.zst")
    assert (etc / "spool" / "state.json").exists()


@pytest.mark.parametrize("text", ['[ship]\ntoken = "x"\n', "[ship]\nspool_limit = -5\n", '[ship]\ntimeout = "long"\n'])
def test_a_configuration_that_is_wrong(text: str, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An unknown key, a number that is none."""
    (place / "c.toml").write_text(text)

    assert 2 == run(["ship", "--to", "drop", "--config", "c.toml"])
    assert 1 == len(capsys.readouterr().err.splitlines())


def test_the_state_directory_of_systemd(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first, where it names several."""
    monkeypatch.setenv("STATE_DIRECTORY", f"{place}/one:{place}/two")

    assert 0 == run(["ship", "--to", "drop"])
    assert json.loads((place / "one" / "spool" / "state.json").read_text())["handed_over"] == 1
