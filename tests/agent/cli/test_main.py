"""The command line from outside: exit codes, one clear line for what cannot be done, whole files or none."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from agent.cli import request
from agent.cli.main import run
from fixtures.build import write_capture
from tests.conftest import ROOT
from tests.texts import error_lines

pytestmark = pytest.mark.usefixtures("real_commands")


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A machine with a narrow GPU link."""
    place = tmp_path_factory.mktemp("captures") / "faulty"
    write_capture(None, "gpu-width-x8", place)
    return place


def read_message(capsys: pytest.CaptureFixture[str]) -> str:
    """What stood on stderr: one line, and no traceback."""
    text = capsys.readouterr().err
    assert 1 == len(error_lines(text)), text
    assert "Traceback" not in text
    return text


def test_a_scan_exits_0_whatever_it_found(faulty: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    """stdout is the report and nothing else."""
    assert 0 == run(["scan", "--source", str(faulty), "--format", "json"])

    report = json.loads(capsysbinary.readouterr().out)
    assert "error" == report["summary"]["verdict"]
    assert "capture" == report["source"]["kind"]


def test_check_exits_as_the_contract_says(
    capture: Path, faulty: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """0 ok, 2 error, 3 for a bad source and wrong usage."""
    old = tmp_path / "report.json"
    assert 0 == run(["scan", "--source", str(capture), "-o", str(old)])

    assert 0 == run(["check", "--source", str(capture)])
    assert 2 == run(["check", "--source", str(faulty)])
    assert 0 == run(["check", "--source", str(faulty), "--fail-on", "critical"])
    assert 3 == run(["check", "--source", str(tmp_path / "none")])
    assert 3 == run(["check", "--no-such-option"])
    assert 0 == run(["check", "--report", str(old)])


@pytest.mark.parametrize(
    ("observed_at", "words"),
    [
        ("2020-01-01T00:00:00Z", "old, more than 60 s"),
        ("2999-01-01T00:00:00Z", "of 2999-01-01T00:00:00Z: a clock is, or was, wrong"),
        ("1970-01-01T00:01:40Z", "of 1970-01-01T00:01:40Z: a clock is, or was, wrong"),
    ],
)
def test_a_report_of_another_time_is_stale(
    observed_at: str, words: str, capture: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One that was written while the clock was ahead would stay fresh for as long, whatever became of the host."""
    path = tmp_path / "report.json"
    assert 0 == run(["scan", "--source", str(capture), "-o", str(path)])
    path.write_text(json.dumps(json.loads(path.read_text()) | {"observed_at": observed_at}))

    assert 3 == run(["check", "--report", str(path), "--max-age", "60"])
    assert words in capsys.readouterr().out


OTHER_TIMES = (
    ("--accept-inventory", "--state-dir"),
    ("--accept-inventory --state-dir x --report r.json", "--report"),
    ("--interval 5 --report r.json", "live host"),
    ("--interval 5 --source {capture}", "live host"),
    ("--interval 30 --timeout 30", "shorter than --timeout 30"),
    ("--interval 0.5", "0.5"),
    ("--interval nan", "nan"),
)


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("scan --source /no/such/place", "/no/such/place"),
        ("scan --report /no/such/report.json", "/no/such/report.json"),
        ("scan --source a --report b", "exclude each other"),
        ("scan a --source b", "PATH and --source exclude each other"),
        ("scan --only pic", "pic"),
        ("scan --config /no/such/config.toml", "/no/such/config.toml"),
        ("scan --format yaml", "yaml"),
        ("scan --output report.pdf", ".pdf"),
        ("scan --timeout soon", "'--timeout': 'soon' is not a number"),
        ("scan --timeout nan", "'--timeout': nan is not a number"),
        ("scan --timeout -1", "'--timeout': -1.0 is not in the range"),
        ("scan --timeout 0", "'--timeout': 0.0 is not in the range"),
        ("scan --brif", "did you mean --brief?"),
        ("scan --only pcii", "did you mean pci?"),
        ("scan --from dmesg.txt", "a file is read by `fabricscope scan PATH`"),
        ("./dmesg.txt", "a file is read by `fabricscope scan PATH`"),
        ("ship --report x", "ship --help shows how it is used"),
        ("scan /a /b", "diff OLD NEW"),
        ("export html /tmp", "--report FILE"),
        ("recommend /tmp", "--report FILE"),
        ("export", "choose from ansible, html"),
        ("explain pcie-width-downgarded", "no rule, prefix or family"),
        ("explain pcie-widht", "did you mean pcie-width-downgraded?"),
        ("explain /tmp", "scan PATH"),
        ("explain GPU2", "explain GPU2 --report FILE"),
        ("nothing", "nothing"),
        ("check --max-age 5", "--report"),
        ("watch --settle -1", "--settle"),
        ("watch --every 0", "--every"),
        ("watch --every nan", "nan is not a number"),
        ("watch --only pic", "pic"),
        ("watch --root /no/such/root", "/no/such/root"),
        ("watch --config /no/such/config.toml", "/no/such/config.toml"),
        ("watch --profile no-such-profile", "no-such-profile"),
        ("watch --format xml", "xml"),
        ("watch --source x", "--source"),
        (
            "install-units --with fleet --exec /bin/true",
            "no unit 'fleet'; there are forget, ingest, page, receive",
        ),
        ("install-units --exec true", "'true' is not allowed in ExecStart"),
        ("install-units --exec /bin/true --unit-dir /no/such/place", "/no/such/place: no such folder"),
        ("install-units --exec /bin/true --prefix /dev/null", "Not a directory"),
        *((f"{command} {options}", part) for command in ("scan", "check") for options, part in OTHER_TIMES),
    ],
)
def test_what_cannot_be_done_is_one_line(
    line: str, part: str, capture: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 2 (`check`: 3), nothing on stdout, and the line names what is wrong."""
    assert (3 if line.startswith("check") else 2) == run(line.format(capture=capture).split())

    output = capsys.readouterr()
    assert ("", 1) == (output.out, len(error_lines(output.err)))
    assert part in output.err


@pytest.mark.parametrize(("command", "code"), [("scan", 2), ("check", 3), ("capture", 2)])
def test_a_bug_is_one_line_and_no_result(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str, code: int
) -> None:
    """Exit code 1 is a warning of `check` and a change of `diff`: no bug may look like one."""

    def broken(*_: object) -> None:
        raise RuntimeError("first\n\x1b[31msecond")

    monkeypatch.setattr(request, "open_source", broken)
    arguments = [command, "--source", "/x", *(["--output", "/x.tar"] if command == "capture" else [])]

    assert code == run(arguments)
    assert "error: internal error (RuntimeError: first [31msecond); --debug shows where\n" == capsys.readouterr().err
    with pytest.raises(RuntimeError):
        run([*arguments, "--debug"])


def test_debug_shows_the_traceback() -> None:
    """For whoever mends us."""
    with pytest.raises(Exception, match="/no/such/place"):
        run(["--debug", "scan", "--source", "/no/such/place"])


def test_a_report_is_judged_again_from_its_file(faulty: Path, tmp_path: Path) -> None:
    """`--report` probes nothing and finds the same."""
    first, second = tmp_path / "a.json", tmp_path / "b.json"
    run(["scan", "--source", str(faulty), "-o", str(first)])
    run(["scan", "--report", str(first), "-o", str(second)])

    a, b = json.loads(first.read_text()), json.loads(second.read_text())
    assert a["findings"] == b["findings"]
    assert a["checks"] == b["checks"]


def test_a_rule_that_is_off_is_told(faulty: Path, tmp_path: Path) -> None:
    """The report says what the configuration changed; the rule is disabled, not passed."""
    config, out = tmp_path / "config.toml", tmp_path / "r.json"
    config.write_text('[rules]\noff = ["pcie-width-downgraded"]\n')
    run(["scan", "--source", str(faulty), "--config", str(config), "-o", str(out)])

    report = json.loads(out.read_text())
    assert ["rules.off: pcie-width-downgraded"] == report["config"]["changed"]
    assert ["disabled"] == [c["state"] for c in report["checks"] if c["rule"] == "pcie-width-downgraded"]


def test_an_output_that_cannot_be_written_leaves_nothing(capture: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line with the system's reason."""
    assert 2 == run(["scan", "--source", str(capture), "-o", "/proc/none/report.json"])

    assert "/proc/none/report.json" in read_message(capsys)


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (["scan"], 0),
        (["check"], 2),
        (["scan", "--format", "json"], 0),
        (["rules"], 0),
    ],
)
def test_a_closed_pipe_is_silent_and_no_error(command: list[str], code: int, tmp_path: Path) -> None:
    """`fabricscope scan | head`: no word on stderr, and the exit code that the command would have had."""
    write_capture(None, "gpu-width-x8", tmp_path / "host.tar.gz")
    source = [] if command == ["rules"] else ["--source", str(tmp_path / "host.tar.gz")]
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "fabricscope", *command, *source],
        stdout=writer, stderr=subprocess.PIPE, text=True, cwd=ROOT, check=False,
    )  # fmt: skip
    os.close(writer)

    assert (code, "") == (done.returncode, done.stderr)


@pytest.mark.parametrize(("command", "code"), [("scan", 2), ("check", 3)])
def test_a_message_that_cannot_be_written_changes_no_exit_code(command: str, code: int) -> None:
    """A full disk behind stderr: `check` would be a warning with the code of Python's own failure."""
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "fabricscope", command, "--report", "/none"],
            stdout=subprocess.PIPE, stderr=full, cwd=ROOT, check=False,
        )  # fmt: skip

    assert (code, b"") == (done.returncode, done.stdout)


def test_a_limit_of_memory_is_named_before_the_loader_ends_the_process(tmp_path: Path) -> None:
    """DuckDB's libraries end it with a line of their own."""
    limit = 300 << 20
    done = subprocess.run(
        [sys.executable, "-m", "fabricscope", "fleet", "summary", "--dataset", str(tmp_path)],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
        capture_output=True, text=True, cwd=ROOT, check=False,
    )  # fmt: skip

    assert 2 == done.returncode
    assert "limited to 300 MiB" in done.stderr


def test_a_stranger_in_our_place_is_one_line(tmp_path: Path) -> None:
    """Another package named `agent` before ours: the command refuses in one line."""
    (tmp_path / "agent").mkdir()
    (tmp_path / "agent" / "__init__.py").write_text("raise SystemExit('stranger')")
    (tmp_path / "start.py").write_text("import fabricscope, sys\nsys.exit(fabricscope.main())\n")
    done = subprocess.run(
        [sys.executable, str(tmp_path / "start.py"), "scan"],
        capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}"},
    )  # fmt: skip

    assert 2 == done.returncode
    assert "is hidden by" in done.stderr
    assert 1 == len(done.stderr.splitlines())


def test_a_pipe_gets_no_colour_and_text_has_no_escape(capture: Path) -> None:
    """stdout that is no terminal is plain."""
    done = subprocess.run(
        [sys.executable, "-m", "fabricscope", "scan", "--source", str(capture)],
        capture_output=True, text=True, cwd=ROOT, check=True,
    )  # fmt: skip

    assert "\x1b" not in done.stdout
    assert "" == done.stderr


@pytest.mark.parametrize("setting", [{"PYTHONIOENCODING": "latin-1"}, {"LC_ALL": "C"}])
def test_a_terminal_of_another_time_gets_ascii(capture: Path, setting: dict[str, str]) -> None:
    """Lines of the tree are drawn with what it can show."""
    done = subprocess.run(
        [sys.executable, "-m", "fabricscope", "scan", "--source", str(capture)],
        env={**os.environ, **setting}, capture_output=True, cwd=ROOT,
    )  # fmt: skip

    assert done.stdout.isascii()
    assert b"`- " in done.stdout


@pytest.mark.parametrize("name", ["x\x1b[31m.json", "x\nerror: forged.json"])
def test_no_name_writes_escapes_to_stderr(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line, whatever the file is called."""
    assert 2 == run(["scan", "--report", str(tmp_path / name)])
    assert 2 == run(["scan", "--source", str(tmp_path / name)])

    lines = capsys.readouterr().err.splitlines()
    assert [True, True] == [line.startswith("error: ") and line.isprintable() for line in lines]


def test_a_path_is_the_same_as_a_source(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And a finished report is a source."""
    (tmp_path / "ibstat.txt").write_text("CA 'mlx5_0'\n\tCA type: MT4129\n\tNumber of ports: 0\n")
    report = tmp_path / "report.json"

    assert 0 == run(["scan", str(tmp_path), "--output", str(report)])
    capsys.readouterr()
    assert 0 == run(["scan", str(report), "--format", "json"])
    judged = json.loads(capsys.readouterr().out)
    assert ("dump", str(tmp_path)) == (judged["source"]["kind"], judged["source"]["path"])


@pytest.mark.parametrize(
    ("line", "part"),
    [
        (["scan", ""], "'PATH': it is empty"),
        (["scan", "--source", ""], "'--source': it is empty"),
        (["scan", "  "], "'PATH': it is empty"),
        (["job", " "], "'PATH...': it is empty"),
        (["check", "--source", ""], "'--source': it is empty"),
        (["check", "--report", ""], "'--report': it is empty"),
        (["check", ""], "Too many arguments: ''"),
        (["diff", "", "x"], "'OLD': it is empty"),
        (["job", "-", ""], "it is empty"),
        (["explain", ""], "it is empty"),
    ],
)
def test_a_variable_that_is_not_set_is_no_source(
    line: list[str], part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A check of "" would else be one of this host, and OK."""
    assert (3 if line[0] == "check" else 2) == run(line)

    assert part in read_message(capsys)
