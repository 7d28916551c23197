"""Expected nodes beside those that report: every form of the list, and the command."""

from __future__ import annotations

import contextlib
import json
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.cli.main import run
from agent.fleet.expected import BadNodeList, ExpectedNode, read_expected
from tests.agent.fleet.small import finding, report, take

pytest.importorskip("duckdb")
NOW = datetime.now(timezone.utc)


def kubernetes(name: str, ready: str = "True", **spec: Any) -> dict[str, Any]:
    """A node as the API has it."""
    status = {"conditions": [{"type": "MemoryPressure", "status": "False"}, {"type": "Ready", "status": ready}]}
    return {"kind": "Node", "metadata": {"name": name}, "spec": spec, "status": status}


KUBERNETES = {
    "kind": "List",
    "items": [kubernetes("n1"), kubernetes("n2", unschedulable=True), kubernetes("n3", "Unknown")],
}
NETBOX = {
    "count": 2,
    "results": [
        {"name": "n1", "status": {"value": "active", "label": "Active"}},
        {"name": "n2", "status": {"value": "decommissioning"}},
        {"name": None},
    ],
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# rack 1\nn[1-2]\nn3 # spare\n", [("n1", None, False), ("n2", None, False), ("n3", None, False)]),
        ("n1,n2 n3", [("n1", None, False), ("n2", None, False), ("n3", None, False)]),
        (
            "n1 idle none\nn2 drained* fan 3 is dead\nn3 mixed$ none\nn4 down~ none\nn5 IDLE+DRAIN x\n",
            [
                ("n1", "idle", False), ("n2", "drained*", True), ("n3", "mixed$", False), ("n4", "down~", True),
                ("n5", "IDLE+DRAIN", True),
            ],
        ),
        (json.dumps(KUBERNETES), [("n1", "ready", False), ("n2", "cordoned", True), ("n3", "not ready", False)]),
        (json.dumps(NETBOX), [("n1", "active", False), ("n2", "decommissioning", True)]),
        (json.dumps(NETBOX["results"]), [("n1", "active", False), ("n2", "decommissioning", True)]),
        ("\ufeffn1\r\nn1\r\n", [("n1", None, False)]),
        ("n1 drained x\nn1 idle none\n", [("n1", "idle", False)]),
    ],
    ids=["host lists", "one line", "sinfo", "kubectl", "NetBox", "NetBox's results", "Windows", "two partitions"],
)  # fmt: skip
def test_lists(text: str, expected: list[tuple[str, str | None, bool]]) -> None:
    result = [(node.name, node.state, node.out) for node in read_expected(text.encode())]
    assert expected == result


def test_the_reason_of_a_drained_node() -> None:
    (node,) = read_expected(b"n2 drained fan 3 is dead\n")
    assert ExpectedNode("n2", "drained", True, "fan 3 is dead") == node


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "it names no node"),
        ("# nothing\n", "it names no node"),
        ("n1\nn[1", "line 2: a bracket is not closed"),
        ('{"items": 7}', "its JSON is neither"),
        ('{"a": ', "damaged JSON"),
        ('{"items": [7, {"metadata": {"name": 3}}, {"metadata": []}]}', "it names no node"),
    ],
)
def test_what_is_no_list(text: str, said: str) -> None:
    with pytest.raises(BadNodeList, match=said):
        read_expected(text.encode())


WORDS = st.sampled_from(["items", "results", "metadata", "name", "status", "spec", "conditions", "kind"])
DOCUMENTS = st.recursive(
    st.none() | st.text() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(WORDS, inner)
)


@given(st.binary() | st.text().map(str.encode) | DOCUMENTS.map(lambda value: json.dumps(value).encode()))
def test_any_bytes_are_a_list_or_refused(data: bytes) -> None:
    with contextlib.suppress(BadNodeList):
        assert read_expected(data)


def seen(host: str, hours_ago: float, *findings: dict[str, Any]) -> bytes:
    """A report of a moment before now."""
    moment = (NOW - timedelta(hours=hours_ago)).isoformat()
    return report(host, observed_at=moment, generated_at=moment, findings=list(findings))


@pytest.fixture
def dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nodes 1 to 5 and a stranger."""
    lost, slow = finding("gpu-lost", severity="critical"), finding("pcie-slow", severity="error")
    take(
        tmp_path / "d",
        seen("n1.site.org", 1, lost, slow), seen("n2", 1, lost), seen("n3", 1, slow), seen("n4", 50), seen("x9", 1),
        seen("n5", 50),
    )  # fmt: skip
    monkeypatch.setenv("FABRICSCOPE_DATASET", str(tmp_path / "d"))
    sinfo = tmp_path / "sinfo"
    sinfo.write_text(
        "n1 idle none\nn2 drained* waits for a GPU\nn3 mixed none\nn4 idle none\nn5 down* off\nn[6-7] idle\n"
    )
    return sinfo


def test_who_is_missing(dataset: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == run(["fleet", "expected", str(dataset), "--format", "json"])
    rows = [(row["what"], row["node"]) for row in json.loads(capsys.readouterr().out)["rows"]]

    assert [
        ("drain", "n1"), ("out", "n2"), ("silent", "n4"), ("out", "n5"), ("never", "n6"), ("never", "n7"),
        ("unexpected", "x9"),
    ] == rows  # fmt: skip


def test_in_words(dataset: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == run(["fleet", "expected", str(dataset)])
    output = capsys.readouterr().out

    assert "3 of 7 expected nodes report" in output
    assert "Never reported: 2 nodes\n  n[6-7]" in output
    assert "n2: drained* (waits for a GPU) last report" in output
    assert "To drain: 1 node\n  n1: gpu-lost\n" in output


def test_commands_that_drain(dataset: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == run(["fleet", "expected", str(dataset), "--format", "slurm-drain"])
    assert 'scontrol update NodeName=n1 State=DRAIN Reason="fabricscope: gpu-lost"\n' == capsys.readouterr().out
    assert 0 == run(["fleet", "expected", str(dataset), "--format", "kubernetes-drain", "--drain-at", "error"])
    assert [
        "kubectl cordon n1  # fabricscope: gpu-lost pcie-slow", "kubectl cordon n3  # fabricscope: pcie-slow",
    ] == capsys.readouterr().out.splitlines()  # fmt: skip


def test_a_name_that_a_shell_would_run_gets_no_command(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "k").write_text(json.dumps({"items": [kubernetes("n1.$(reboot)"), kubernetes("n3")]}))

    assert 0 == run(["fleet", "expected", str(tmp_path / "k"), "--format", "slurm-drain"])
    assert ["# no command for a node of this name: 'n1.$(reboot)'"] == capsys.readouterr().out.splitlines()


def test_nothing_is_missing(dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "list").write_text("n3")
    assert 0 == run(["fleet", "expected", str(tmp_path / "list"), "--where", "nodes=n3"])
    assert "1 of 1 expected node reports\nno node is missing" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["{here}/none"], "none: No such file or directory"),
        (["{here}"], "Is a directory"),
        (["{here}/bad"], "bad: line 1: a bracket is not closed"),
        (["{here}/sinfo", "--stale-after", "x"], "'x': not a duration"),
    ],
)
def test_asked_the_wrong_way(
    arguments: list[str], said: str, dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad").write_text("n[1")
    assert 2 == run(["fleet", "expected", *(word.format(here=tmp_path) for word in arguments)])
    assert said in capsys.readouterr().err
