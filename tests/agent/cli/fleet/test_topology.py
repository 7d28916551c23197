"""`fleet topology` and `fleet cables` from outside: every form, every wrong way to ask, and what they import."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree.ElementTree import fromstring

import msgspec
import pytest
import yaml

from agent.cli.main import run
from agent.fleet.cluster.answer import TopologyAnswer
from agent.fleet.cluster.cabling_plan import Cables

SWITCH = """
switchguid=0x{guid}({guid})
Switch	40 "S-{guid}"		# "MF0;{name}:MQM8700/U1" enhanced port 0 lid 1 lmc 0
{ports}
"""
HOST = '[{port}]	"H-{guid}"[1]({guid}) 		# "n{node:02d} mlx5_{rail}" lid 2 4xHDR'
LINK = '[{port}]	"S-{guid}"[{far}]		# "MF0;{name}:MQM8700/U1" lid 1 4xHDR'


def file_of(*missing: tuple[int, int]) -> str:
    """ibnetdiscover of four leaves, four spines and six nodes; `missing`: leaf and number of its cable upwards."""
    text = "#\n# Topology file: generated on Thu Jan 15 08:00:00 2026\n#\n"
    up: dict[int, list[str]] = {spine: [] for spine in range(4)}
    for rail in range(4):
        lines = [HOST.format(port=node, guid=f"{rail:08x}{node:08x}", node=node, rail=rail) for node in range(1, 7)]
        for spine in range(4):
            if (rail, spine) not in missing:
                far = {"port": 33 + spine, "guid": f"b{spine:015x}", "far": rail + 1, "name": f"spine{spine + 1}"}
                near = {"port": rail + 1, "guid": f"a{rail:015x}", "far": 33 + spine, "name": f"leaf{rail + 1}"}
                lines.append(LINK.format(**far))
                up[spine].append(LINK.format(**near))
        text += SWITCH.format(guid=f"a{rail:015x}", name=f"leaf{rail + 1}", ports="\n".join(lines))
    for spine, lines in up.items():
        text += SWITCH.format(guid=f"b{spine:015x}", name=f"spine{spine + 1}", ports="\n".join(lines))
    for rail in range(4):
        for node in range(1, 7):
            guid = f"{rail:08x}{node:08x}"
            text += f'\ncaguid=0x{guid}\nCa	1 "H-{guid}"		# "n{node:02d} mlx5_{rail}"\n'
            text += (
                f'[1]({guid}) 	"S-a{rail:015x}"[{node}]		# lid 2 lmc 0 "MF0;leaf{rail + 1}:X/U1" lid 1 4xHDR\n'
            )
    return text


@pytest.fixture
def broken(tmp_path: Path) -> str:
    """The file of a fabric with a cable less."""
    path = tmp_path / "fabric.txt"
    path.write_text(file_of((2, 1)))
    return str(path)


def test_in_words(broken: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What it is, its rows and units, what breaks it."""
    assert 0 == run(["fleet", "topology", "--fabric", broken])

    output = capsys.readouterr().out
    assert "Fabric: rail-optimized, 2 levels of switches, 1.5:1\n" in output
    assert "ibnetdiscover, Thu Jan 15 08:00:00 2026" in " ".join(output.split())
    assert "4  leaf[1-4]" in output
    assert "leaf3 has 3 of 4 cables up: 0 of 1 to spine2 (expected port 34)" in output
    assert all(len(line) <= 100 for line in output.splitlines())


def test_a_healthy_one_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No break."""
    (tmp_path / "f").write_text(file_of())

    assert 0 == run(["fleet", "topology", "--fabric", str(tmp_path / "f")])

    assert "No deviation from its peers." in capsys.readouterr().out


def test_as_data(broken: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The suffix chooses; it reads back into its own types."""
    out = tmp_path / "answer.json"

    assert 0 == run(["fleet", "topology", "--fabric", broken, "-o", str(out)])

    answer = msgspec.json.decode(out.read_bytes(), type=TopologyAnswer)
    assert "fabricscope.topology/1" == answer.format
    assert {"mlx5_0": "leaf1", "mlx5_1": "leaf2", "mlx5_2": "leaf3", "mlx5_3": "leaf4"} == answer.fabrics[0].units[
        0
    ].rails
    assert [{"leaf3/34": "spine2/3"}] == [fault.should for fault in answer.breaks]
    assert ("", f"wrote {out}\n") == capsys.readouterr()


def test_a_picture(broken: str, tmp_path: Path) -> None:
    """SVG by its suffix."""
    out = tmp_path / "cluster.svg"

    assert 0 == run(["fleet", "topology", "--fabric", broken, "-o", str(out)])

    assert fromstring(out.read_text()).tag.endswith("svg")


def test_slurms_files(broken: str, tmp_path: Path) -> None:
    """topology.conf by its suffix, topology.yaml by its name, both with --nodes."""
    conf, result = tmp_path / "topology.conf", tmp_path / "topology.yaml"

    assert 0 == run(["fleet", "topology", "--fabric", broken, "-o", str(conf), "--nodes", "n[01-03],x1"])
    assert 0 == run(["fleet", "topology", "--fabric", broken, "-o", str(result)])

    assert "Nodes=n[01-03]" in conf.read_text()
    switches = yaml.safe_load(result.read_text())[0]["tree"]["switches"]
    assert ["n[01-06]"] == [switch["nodes"] for switch in switches if "nodes" in switch]


@pytest.mark.parametrize(("form", "expected"), [("topograph", "blocks:"), ("nfd", "fabric-tier-1=leaf1")])
def test_for_kubernetes(broken: str, form: str, expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    """topograph's model, and labels a node a line."""
    assert 0 == run(["fleet", "topology", "--fabric", broken, "--format", form])

    assert expected in capsys.readouterr().out


def test_all_files_of_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As if each were named; an empty one is an error that names it."""
    folder, empty = tmp_path / "fabrics", tmp_path / "empty"
    folder.mkdir()
    empty.mkdir()
    (folder / "a.txt").write_text(file_of())
    (folder / ".hidden").write_text("no fabric")
    (folder / "link").symlink_to("/etc/hostname")
    assert 0 == run(["fleet", "topology", "--fabric", str(folder / "a.txt")])
    one = capsys.readouterr().out
    assert 0 == run(["fleet", "topology", "--fabric", str(folder)])
    assert one == capsys.readouterr().out

    assert 2 == run(["fleet", "topology", "--fabric", str(empty)])
    assert f"error: {empty}: the folder has no file\n" == capsys.readouterr().err


def test_packed_and_from_stdin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """gzip by its content, - for stdin."""
    packed = tmp_path / "f"
    packed.write_bytes(gzip.compress(file_of().encode()))
    assert 0 == run(["fleet", "topology", "--fabric", str(packed)])
    first = capsys.readouterr().out

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(file_of().encode())))
    assert 0 == run(["fleet", "topology", "--fabric", "-"])

    assert first.replace(str(packed), "stdin").split() == capsys.readouterr().out.split()


def test_cables(broken: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Words, data, CSV."""
    assert 0 == run(["fleet", "cables", "--fabric", broken])
    output = capsys.readouterr().out
    assert "39 of 40 cables match the pattern that most cables follow." in output
    assert "leaf3/34 leads nowhere that is known, and should lead to spine2/3" in output

    assert 0 == run(["fleet", "cables", "--fabric", broken, "--format", "json"])
    assert [("leaf3/34", "missing")] == [
        (cable.end, cable.state) for cable in msgspec.json.decode(capsys.readouterr().out, type=Cables).wrong
    ]

    assert 0 == run(["fleet", "cables", "--fabric", broken, "--format", "csv"])
    (row,) = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert ("leaf3/34", "missing", "spine2/3") == (row["end"], row["state"], row["should"])


def test_a_file_without_its_tabs(broken: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As a chat or a table leaves it: the same fabric."""
    whole = Path(broken).read_text()
    assert "\t" in whole
    bare = tmp_path / "bare.txt"
    bare.write_text(whole.replace("\t", ""))
    answers = []
    for path in (broken, str(bare)):
        assert 0 == run(["fleet", "topology", "--fabric", path, "--format", "json"])
        answers.append(json.loads(capsys.readouterr().out))

    assert answers[0]["fabrics"] == answers[1]["fabrics"]
    assert answers[0]["breaks"] == answers[1]["breaks"]


def test_a_file_that_is_mostly_not_understood(broken: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is one line first, and no topology of what little was read."""
    spoiled = tmp_path / "spoiled.txt"
    spoiled.write_text(Path(broken).read_text().replace("[1]", "<1>"))

    assert 2 == run(["fleet", "topology", "--fabric", str(spoiled)])
    output = capsys.readouterr()
    assert "" == output.out
    assert "lines are not understood as ibnetdiscover, too many for a topology; the first: line " in output.err


def test_cables_of_a_file_that_is_cut(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Said in words and in data: how much of the fabric was seen matters."""
    text = file_of()
    cut = tmp_path / "cut.txt"
    cut.write_text(text[: len(text) // 2])
    assert 0 == run(["fleet", "cables", "--fabric", str(cut)])
    assert "note: ibnetdiscover: a file is cut" in " ".join(capsys.readouterr().out.split())

    assert 0 == run(["fleet", "cables", "--fabric", str(cut), "--format", "json"])
    assert any("a file is cut" in note for note in msgspec.json.decode(capsys.readouterr().out, type=Cables).notes)


def test_cables_by_a_plan(broken: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The plan counts, not the pattern."""
    plan = tmp_path / "plan.csv"
    plan.write_text("﻿node,rail,switch,port\nn01,mlx5_0,LEAF1,1\nn02,1,leaf2,3\n=n9,0,leaf1,9\n", encoding="utf-8")

    assert 0 == run(["fleet", "cables", "--fabric", broken, "--plan", str(plan), "--format", "csv"])

    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert {("n02 1", "missing"), ("'=n9 0", "missing")} <= {(row["end"], row["state"]) for row in rows}
    assert ("n01 mlx5_1", "unplanned") in {(row["end"], row["state"]) for row in rows}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["topology"], "--fabric FILE"),
        (["cables"], "--fabric FILE"),
        (["topology", "--fabric", "/nowhere"], "/nowhere: No such file or directory"),
        (["topology", "--fabric", "{here}"], "cut.gz: "),
        (["topology", "--fabric", "{here}/junk"], "is not recognized"),
        (["topology", "--fabric", "{here}/empty"], "is not recognized"),
        (["topology", "--fabric", "{here}/cut.gz"], "cut.gz: "),
        (["topology", "--fabric", "{here}/ok", "--nodes", "n[1"], "--nodes: a bracket is not closed"),
        (["topology", "--fabric", "{here}/ok", "--nodes", "other", "--format", "slurm-conf"], "no host is known"),
        (["topology", "--fabric", "{here}/ok", "-o", "{here}/x.png"], "which format? --format text, json"),
        (["topology", "--fabric", "{here}/ok", "-o", "{here}/no/x.json"], "No such file or directory"),
        (["topology", "--dataset", "{here}/none"], "none"),
        (["cables", "--fabric", "{here}/ok", "-o", "{here}/x.svg"], "unknown suffix .svg"),
        (["cables", "--fabric", "{here}/ok", "--plan", "/nowhere.csv"], "/nowhere.csv: No such file"),
        (["cables", "--fabric", "{here}/ok", "--plan", "{here}/empty"], "empty: expected lines"),
        (
            ["cables", "--fabric", "{here}/ok", "--plan", "{here}/junk"],
            "line 1: node, rail, switch and port are needed",
        ),
    ],
)
def test_asked_the_wrong_way(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit 2 and one line that says what is wrong; nothing on stdout."""
    monkeypatch.delenv("FABRICSCOPE_DATASET", raising=False)
    (tmp_path / "ok").write_text(file_of())
    (tmp_path / "junk").write_text("hello\n")
    (tmp_path / "empty").write_text("")
    (tmp_path / "cut.gz").write_bytes(gzip.compress(file_of().encode())[:200])

    assert 2 == run(["fleet", *(word.replace("{here}", str(tmp_path)) for word in words)])

    output = capsys.readouterr()
    assert "" == output.out
    assert 1 == len(output.err.strip().splitlines())
    assert message in output.err


def test_the_same_file_gives_the_same_bytes(broken: str, real_commands: None) -> None:
    """Whatever order the sets of this run have."""
    for form in ("json", "svg"):
        items = set()
        for seed in ("1", "2"):
            arguments = ["fleet", "topology", "--fabric", broken, "--format", form]
            code = f"from agent.cli.main import run; run({arguments!r})"
            done = subprocess.run(
                [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True,
                timeout=100, check=True,
            )  # fmt: skip
            items.add(done.stdout)
        assert 1 == len(items)


def test_fabric_files_need_no_library_of_the_fleet(broken: str, real_commands: None) -> None:
    """No engine is imported for a file; and none of this for `--version`."""
    arguments = ["fleet", "topology", "--fabric", broken]
    code = f"import sys; from agent.cli.main import run; run({arguments!r}); "
    code += "print({'pyarrow', 'duckdb', 'sqlglot', 'pandas'} & set(sys.modules))"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100, check=True)

    assert "set()" == done.stdout.splitlines()[-1]
    code = "import sys; from agent.cli.main import run; run(['--version']); "
    code += "print([name for name in sys.modules if 'cluster' in name])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100, check=True)
    assert "[]" == done.stdout.splitlines()[-1]


@pytest.mark.parametrize("option", ["--plan", "--fabric"])
def test_a_sparse_file_is_refused_before_it_is_read(
    option: str, broken: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A single line of a terabyte would be read into memory."""
    sparse = tmp_path / "sparse"
    with sparse.open("wb") as file:
        file.truncate(1 << 40)
    fabric = [] if option == "--fabric" else ["--fabric", broken]
    assert 2 == run(["fleet", "cables", *fabric, option, str(sparse)])
    assert f"error: {sparse}: larger than {1024 if option == '--fabric' else 128} MiB\n" == capsys.readouterr().err
