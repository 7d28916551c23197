"""`ship` from outside: exit codes, what it says, the configuration file, and what it loads."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from agent.cli import ship as command
from agent.cli.main import run
from tests.agent.ship.servers import OK, reply, report, serving
from tests.texts import error_lines


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
