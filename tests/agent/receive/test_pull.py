"""`fleet pull` with a program in place of ssh that behaves in every way: its arguments, and what it may cost."""

from __future__ import annotations

import gzip
import os
import pty
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agent.cli.main import run
from tests.agent.fleet.small import report
from tests.conftest import ROOT
from tests.texts import error_lines

pytestmark = pytest.mark.usefixtures("real_commands")
SSH = """#!/bin/bash
# Host and command are the last two arguments; behind "--" nothing is an option.
printf '%s\\n' "$*" >> {folder}/calls
while [ "$1" != -- ]; do shift; done
host=$2
echo $$ >> {folder}/pids
case $host in
  refused*) echo "ssh: connect to host $host port 22: Connection refused" >&2; exit 255;;
  denied*) echo "no: such command" >&2; echo >&2; exit 127;;
  silent*) sleep 300 & sleep 300;;
  closing*) exec >&- 2>&-; sleep 300;;
  endless*) yes "$host";;
  noisy*) yes error >&2 & cat {folder}/gpu1.json; kill %1;;
  wrong*) echo '{{"a": 1}}';;
  empty*) ;;
  greeting*) echo "Welcome to $host"; cat {folder}/gpu1.json;;
  packed*) gzip -c {folder}/gpu1.json;;
  alias*) cat {folder}/gpu1.json;;
  *) cat {folder}/$host.json;;
esac
"""


@pytest.fixture
def ssh(tmp_path: Path) -> str:
    """The program, and the reports that it prints."""
    for number in range(1, 6):
        (tmp_path / f"gpu{number}.json").write_bytes(report(f"gpu{number}"))
    program = tmp_path / "ssh"
    program.write_text(SSH.format(folder=tmp_path))
    program.chmod(0o755)
    return str(program)


def files(folder: Path) -> list[str]:
    """The hosts of the reports in a folder."""
    return sorted(path.name.split("_")[0] for path in folder.iterdir())


def alive(folder: Path) -> list[int]:
    """Of the programs that ran, those that still do."""
    pids = [int(line) for line in (folder / "pids").read_text().split()]
    return [
        pid for pid in pids if os.path.exists(f"/proc/{pid}") and " Z " not in Path(f"/proc/{pid}/stat").read_text()
    ]


def test_a_list_of_hosts(ssh: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each report is a file as `ship` writes it, and with --dataset a node."""
    pytest.importorskip("pyarrow")
    drop = tmp_path / "drop"
    arguments = ["fleet", "pull", "--nodes", "gpu[1-5]", "--to", str(drop), "--ssh", f"{ssh} -F 'my config'"]

    assert 0 == run([*arguments, "--dataset", str(tmp_path / "d"), "--jobs", "2"])
    output = capsys.readouterr()
    assert "" == output.err
    assert f"5 of 5 hosts fetched into {drop}\n" in output.out
    assert "5 reports: 5 new" in output.out
    assert ["gpu1", "gpu2", "gpu3", "gpu4", "gpu5"] == files(drop)
    (first,) = drop.glob("gpu1_*")
    assert report("gpu1") == gzip.decompress(first.read_bytes())
    assert 0 == stat.S_IMODE(first.stat().st_mode) & 0o007
    calls = sorted((tmp_path / "calls").read_text().splitlines())
    wanted = "-F my config -T -o BatchMode=yes -o ConnectTimeout=30 -- gpu1 fabricscope scan --quiet --format ndjson"
    assert f'{wanted} --state-dir "$HOME/.fabricscope"' == calls[0]


def test_a_dataset_alone(ssh: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The reports stay nowhere else."""
    pytest.importorskip("pyarrow")
    arguments = ["fleet", "pull", "--nodes", "gpu[1-3],refused1", "--ssh", ssh, "--dataset", str(tmp_path / "d")]
    assert 1 == run(arguments)
    text = capsys.readouterr().out
    assert "3 reports: 3 new" in text
    (folder,) = (line.rpartition(" ")[2] for line in text.splitlines() if "fetched into" in line)
    assert not Path(folder).exists()


def test_each_failure_is_one_line_and_costs_no_other_host(
    ssh: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 1; nothing of them is written, and nothing still runs."""
    began = time.monotonic()
    nodes = "gpu1,refused1,denied1,silent1,closing1,endless1,noisy1,wrong1,empty1,greeting1,packed1,alias1"
    code = run(["fleet", "pull", "--nodes", nodes, "--to", str(tmp_path / "drop"), "--ssh", ssh, "--timeout", "4"])

    assert 1 == code
    assert 25 > time.monotonic() - began
    output = capsys.readouterr()
    lines = dict(line.removeprefix("warning: ").split(": ", 1) for line in output.err.splitlines())
    assert lines == {
        "refused1": "exit 255: ssh: connect to host refused1 port 22: Connection refused",
        "denied1": "exit 127: no: such command",
        "silent1": "no answer within 4 s",
        "closing1": "no answer within 4 s",
        "endless1": "more than a report can have (4194304 bytes)",
        "noisy1": "its report is of 'gpu1'",
        "wrong1": "not a report: its schema is ''",
        "empty1": "nothing was printed",
        "greeting1": "not a report: its first line is 'Welcome to greeting1'",
        "packed1": "its report is of 'gpu1'",
        "alias1": "its report is of 'gpu1'",
    }
    assert "4 of 12 hosts fetched" in output.out
    assert ["gpu1"] == files(tmp_path / "drop")  # the same report four times is one file
    assert [] == alive(tmp_path)


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ([], "--nodes is missing"),
        (["--nodes", "gpu1"], "--to or --dataset is missing"),
        (["--nodes", "-oProxyCommand=touch${IFS}x", "--to", "drop"], "no host name"),
        (["--nodes", "gpu1;touch x", "--to", "drop"], "no host name"),
        (["--nodes", "$(touch x)", "--to", "drop"], "no host name"),
        (["--nodes", "root@gpu1", "--to", "drop"], "root@gpu1"),
        (["--nodes", "gpu[1-", "--to", "drop"], "bracket"),
        (["--nodes", " ", "--to", "drop"], "it is empty"),
        (["--nodes", "gpu1", "--to", "drop", "--ssh", "'"], "--ssh: "),
        (["--nodes", "gpu1", "--to", "drop", "--ssh", ""], "it is empty"),
        (["--nodes", "gpu1", "--to", "drop", "--ssh", "./none"], "./none: No such file"),
        (["--nodes", "gpu1", "--to", "file/x"], "file/x: Not a directory"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_one_line(
    options: list[str], part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 2, before any program is started with such a name."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FABRICSCOPE_DATASET", raising=False)
    (tmp_path / "file").touch()

    assert 2 == run(["fleet", "pull", *options])
    error = capsys.readouterr().err
    assert part in error
    assert 1 == len(error_lines(error))
    assert not (tmp_path / "x").exists()


def test_a_terminal_gets_a_bar_and_an_interrupt_ends_all(ssh: str, tmp_path: Path) -> None:
    """The bar is on stderr only; Ctrl-C leaves no ssh behind, and no file that is half written."""
    command = [sys.executable, "-m", "fabricscope", "fleet", "pull", "--nodes", "gpu[1-2],silent[1-3]", "--ssh", ssh]
    main, other = pty.openpty()
    process = subprocess.Popen(
        [*command, "--to", str(tmp_path / "drop")], stdout=subprocess.PIPE, stderr=other,
        env=os.environ | {"PYTHONPATH": str(ROOT)}, start_new_session=True,
    )  # fmt: skip
    os.close(other)
    output = b""
    while b"2 of 5 hosts" not in output:
        output += os.read(main, 4096)
    process.send_signal(2)
    assert 130 == process.wait(30)
    os.close(main)
    assert b"[############" in output
    assert process.stdout
    assert b"" == process.stdout.read()
    process.stdout.close()
    assert ["gpu1", "gpu2"] == files(tmp_path / "drop")
    assert [] == alive(tmp_path)
