"""Every file that was given is accounted for: read as what, or why not; and what ends early is not whole."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path

import pytest

from agent.cli.main import run
from agent.diagnose import FILES_SHOWN
from agent.outputs.text.page import choose_next_step
from probes.sources.given import end_pasted_line, find_early_end
from tests.conftest import ROOT
from tests.machines import scan_files, scan_text
from tests.probes.switches.outputs import CONFIG, FEC

IBSTAT = (
    "CA 'mlx5_0'\n\tCA type: MT4129\n\tNumber of ports: 1\n\tNode GUID: 0xa088c20300ab0001\n\tPort 1:\n"
    "\t\tState: Active\n\t\tPhysical state: LinkUp\n\t\tRate: 400\n\t\tBase lid: 7\n\t\tLMC: 0\n\t\tSM lid: 1\n"
    "\t\tCapability mask: 0xa759e848\n\t\tPort GUID: 0xa088c20300ab0001\n\t\tLink layer: InfiniBand\n"
)
NCCL = "n7:1:1 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB\n"


def test_every_file_is_read_as_a_command_or_not_read_with_a_reason(tmp_path: Path) -> None:
    """Unread ones come first."""
    (tmp_path / "logs").mkdir()
    (tmp_path / "linked").symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / "pipe")
    report = scan_files(
        tmp_path,
        **{"ibstat.txt": IBSTAT, "notes.md": "Dear all,\n", "nccl.log": NCCL, "empty.txt": "", "ibstat.out": IBSTAT},
    )
    assert [
        ("empty.txt", None, "is empty"),
        ("ibstat.txt", None, "ibstat: ibstat.out is used"),
        ("linked", None, "is a link to no file of this folder"),
        ("logs", None, "is a folder"),
        ("nccl.log", None, "is the log of a job, which `fabricscope job` reads"),
        ("notes.md", None, "is not recognized as the output of a command"),
        ("pipe", None, "is a FIFO, which is not read"),
        ("ibstat.out", "ibstat", None),
    ] == [(file.name, file.read_as, file.reason) for file in report.source.files or []]
    assert ["nccl.log"] == [file.name for file in report.source.files or [] if file.read_by == "job"]


@pytest.mark.parametrize(
    ("lost", "log", "command"), [(False, False, "scan"), (False, True, "job"), (True, True, "explain")]
)
def test_the_next_step_of_a_text_with_the_log_of_a_job(tmp_path: Path, lost: bool, log: bool, command: str) -> None:
    """The log is read by another command; a finding comes first."""
    output = (
        "$ dmesg\n[7.1] NVRM: Xid (PCI:0000:19:00): 79, GPU has fallen off the bus.\n"
        if lost
        else f"$ ibstat\n{IBSTAT}"
    )
    report = scan_files(tmp_path, **{"issue.md": f"```\n{NCCL if log else ''}```\n```\n{output}```\n"})
    assert command == choose_next_step(report)[0].split()[1]


def test_many_files_are_counted(tmp_path: Path) -> None:
    """A report has the first ones."""
    report = scan_files(tmp_path, **{"ibstat.txt": IBSTAT, **{f"{n}.md": "x\n" for n in range(FILES_SHOWN + 9)}})
    assert (FILES_SHOWN, 10) == (len(report.source.files or []), report.source.files_more)


def test_what_is_not_read_is_named_on_stderr(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The first ones and a count."""
    for name in ("ibstat.txt", *(f"{n}.md" for n in range(12))):
        (tmp_path / name).write_text(IBSTAT if name == "ibstat.txt" else "x\n")
    assert 0 == run(["scan", "--source", str(tmp_path)])
    lines = capsys.readouterr().err.splitlines()
    assert "warning: not read: 0.md: is not recognized as the output of a command" == lines[0]
    assert "warning: and 4 more: `source.files` of the report (--format json) lists them" == lines[-1]


@pytest.mark.parametrize(
    ("end", "why"),
    [
        ("ibpanic: [4711] main: can't open UMAD port\n", "it ends with `ibpanic: [4711] main: can't open UMAD port`"),
        ('Traceback (most recent call last):\n  File "x", line 1\nOSError: x\n', "it ends with a Traceback of Python"),
        ("Killed\n", "it ends with `Killed`"),
        ("Segmentation fault (core dumped)\n", "it ends with `Segmentation fault (core dumped)`"),
        ("bash: ibstat: command not found\n", "it ends with `bash: ibstat: command not found`"),
        ("./run.sh: line 7: 4711 Killed ibstat\n", "it ends with `./run.sh: line 7: 4711 Killed ibstat`"),
        ("CA 'mlx5_1'", "its last line has no end"),
    ],
)
def test_an_output_that_ends_with_an_error_or_within_a_line_is_not_whole(end: str, why: str, tmp_path: Path) -> None:
    """What may be in the rest is not known, whatever the tool and the parser."""
    assert why == find_early_end(IBSTAT + end)
    report = scan_files(tmp_path, **{"ibstat.txt": IBSTAT + end})
    assert [("ibstat.txt", "ibstat", why)] == [(f.name, f.read_as, f.reason) for f in report.source.files or []]
    (tools,) = [run for run in report.probes if run.name == "rdma_tools"]
    assert "partial" == tools.status


def test_a_cut_list_of_any_tool_is_partial(tmp_path: Path) -> None:
    """A tool whose parser knows nothing of it."""
    gpus = "".join(f"GPU {n}: NVIDIA H100 (UUID: GPU-0000000{n}-0000-0000-0000-000000000000)\n" for n in range(2))
    report = scan_files(tmp_path, **{"nvidia-smi_-L.txt": f"{gpus}Killed\n"})
    (listed,) = [run for run in report.probes if run.name == "nvidia_smi"]
    reason = "nvidia-smi -L may be cut: it ends with `Killed`"
    assert ("partial", "list-cut", reason) == (listed.status, listed.reason_code, listed.reason)


@pytest.mark.parametrize("place", ["nccl.log", "."])
def test_the_log_of_a_job_is_named_as_one(place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the command that reads it, and with its answer where a person reads it."""
    (tmp_path / "nccl.log").write_text(NCCL)
    source = str(tmp_path / place) if place != "." else str(tmp_path)
    assert 2 == run(["scan", "--source", source])
    output, error = capsys.readouterr()
    assert f"error: {source}: is the log of a job, not evidence of a host\n" in error
    assert f"hint: `fabricscope job {source}` reads it\n" in error
    assert 0 == run(["job", source])
    assert capsys.readouterr().out == output
    assert 2 == run(["scan", "--source", source, "--format", "json"])
    assert "" == capsys.readouterr().out


def test_the_log_of_a_job_by_stdin(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Its answer names stdin, not the copy of it."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(NCCL.encode())))
    assert 2 == run(["scan", "-"])
    output, error = capsys.readouterr()
    assert error.startswith("error: stdin: is the log of a job")
    assert "1 file read" in output
    assert "/stdin" not in output


@pytest.mark.usefixtures("real_commands")
def test_the_machine_of_the_demo_is_no_host(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Our own page, and a pasted screen; beside another output it is left as it was."""
    assert 2 == run(["scan", str(ROOT / "README.md")])
    assert "shows the machine of `fabricscope demo`, which is no host" in capsys.readouterr().err
    assert 0 == run(["demo"])
    screen = "".join(reversed(capsys.readouterr()))
    (tmp_path / "paste.txt").write_text(screen)
    assert 2 == run(["scan", str(tmp_path / "paste.txt")])
    (tmp_path / "paste.txt").write_text(f"{screen}\n$ nvidia-smi -L\nNo devices were found\n")
    assert 0 == run(["scan", str(tmp_path / "paste.txt")])


REPORT = '{"schema":"fabricscope.report/1","findings":[{"summary":"slower than the rails: 100 of 400 Gb/s"}]}\n'


@pytest.mark.parametrize("folder", ["", "landing"])
def test_finished_reports_are_no_outputs(folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What they state of their hosts is no fault of one; beside outputs they are left out."""
    (tmp_path / folder).mkdir(exist_ok=True)
    for name in ("n1.json", "n2.json"):
        (tmp_path / folder / name).write_text(REPORT)
    assert 2 == run(["scan", str(tmp_path)])
    error = capsys.readouterr().err
    assert f"error: {tmp_path}: holds 2 finished reports, and a source is one host\n" in error
    assert f"`fabricscope scan {tmp_path / folder / 'n1.json'}` shows one" in error

    (tmp_path / "more").mkdir()
    report = scan_files(tmp_path / "more", **{"n1.json": REPORT, "nvidia-smi_-L.txt": "No devices were found\n"})
    (file,) = [file for file in report.source.files or () if file.name == "n1.json"]
    assert (None, "is a finished report of fabricscope") == (file.read_as, file.reason)


@pytest.mark.parametrize("name", ["config_db.json", "fec.txt", "rows.jsonl", "."])
def test_an_output_of_a_switch_is_named_as_one(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the command that reads it; a date alone is nobody's."""
    of_switch = {
        "config_db.json": json.dumps(CONFIG),
        "fec.txt": FEC.replace(" 7 ", " 0 "),  # none that FEC could not correct
        "rows.jsonl": '{"switch": "leaf1", "port": "Ethernet1", "pfc": "00010000", "speed_gbit_s": 400}\n',
    }
    (tmp_path / "saved").mkdir()
    for file, text in of_switch.items() if name == "." else [(name, of_switch[name])]:
        (tmp_path / "saved" / file).write_text(text)
    source = tmp_path / "saved" / name
    assert run(["scan", str(source)]) == 2
    error = capsys.readouterr().err
    assert f"error: {source}: holds outputs of a switch, not of a host\n" in error
    assert f"hint: `fabricscope fleet lossless --switches {source}` reads them\n" in error

    (tmp_path / "date").write_text("2026-01-15T08:00:00Z\n")
    assert run(["scan", str(tmp_path / "date")]) == 2
    assert "of a switch" not in capsys.readouterr().err


def test_evidence_names_the_given_file(tmp_path: Path) -> None:
    """And the command that it was read as, not a file or command of a host that nobody looked at."""
    text = "[ 9120.551100] NVRM: Xid (PCI:0000:61:00): 79, pid=77, GPU has fallen off the bus.\n"
    report = scan_files(tmp_path, **{"my kernel log.txt": text})
    assert {"my kernel log.txt (dmesg)"} == {row.source for finding in report.findings for row in finding.evidence}


ECC = "index, ecc.errors.uncorrected.volatile.total\n0, 0\n1, 12"


@pytest.mark.parametrize(("name", "rules"), [("issue.md", {"gpu-ecc"}), ("nvidia-smi_--query-gpu.txt", set())])
def test_a_pasted_text_without_a_last_line_end_keeps_its_last_line(name: str, rules: set[str], tmp_path: Path) -> None:
    """Few people copy it. What a command saved has one, unless it was cut."""
    report = scan_text(tmp_path, ECC, name)
    assert rules == {finding.rule for finding in report.findings}


@pytest.mark.parametrize(
    ("text", "is_ended"),
    [
        ("Rate: 400\nRate: 40", False),  # of 400
        ("Rate: 100\nRate: 56", True),
        ("Rate: 100\nBase lid: 5", False),  # nothing to compare it with
        ("| a | b |\n| c", False),
        ("a, b, c\na, d", False),
        ("a  b  c\na  d  e", True),
        ("State: Active\nState:", False),
        ("one line", False),
        ("State: Active\nState: Down\n", False),  # it has one
    ],
)
def test_a_last_line_is_ended_where_its_form_is_whole(text: str, is_ended: bool) -> None:
    """A line above that begins alike shows it."""
    assert (f"{text}\n" if is_ended else text) == end_pasted_line(text)


@pytest.mark.parametrize(
    "text",
    [
        "RuntimeError: No CUDA GPUs are available\n",
        '> Traceback (most recent call last):\n>   File "a.py", line 2\n> torch.cuda.OutOfMemoryError: CUDA\n',
    ],
)
def test_an_error_of_a_program_is_left_to_job(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No host states it: the hint names the command that reads it."""
    (tmp_path / "error.txt").write_text(text)
    assert run(["scan", str(tmp_path / "error.txt")]) == 2
    assert f"hint: `fabricscope job {tmp_path / 'error.txt'}` reads it\n" in capsys.readouterr().err
