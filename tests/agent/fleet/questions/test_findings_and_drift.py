"""Findings grouped over nodes; what changed between two moments."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timezone

import pytest

from agent.fleet.cluster.from_dataset import Wiring, build_from_reports, read_wiring
from agent.fleet.engines.engine import Where, narrow
from agent.fleet.page.from_dataset import PageOptions, build_scene, read_dataset
from agent.fleet.page.scene import list_looks, sort_worst_first
from agent.fleet.questions.baseline import Baseline
from agent.fleet.questions.deviations import Deviation, PeerGroup, fold_deviations
from agent.fleet.questions.drift import DriftChange, _sort_changes, find_drift
from agent.fleet.questions.findings import find_findings
from agent.fleet.questions.options import Options
from agent.fleet.questions.outliers import find_outliers
from agent.fleet.questions.summary import build_summary
from agent.fleet.text.findings import sentences
from agent.fleet.text.outliers import sentence
from agent.fleet.text.summary import page as summary_page
from agent.outputs.text.lines import to_plain_text
from tests.agent.fleet.small import START, asked, finding, node

NOON = datetime(2026, 1, 15, 12)  # noqa: DTZ001  # UTC without a zone is what is asked for


def test_a_matter_of_the_class_is_named_so(tmp_path):
    def found(n):
        wrong = [finding("old-setting")] if n != 4 else []
        return wrong + ([finding("bad-link", f"GPU{n % 2}", "error")] if n in (2, 5) else [])

    with asked(tmp_path, *(node(f"n{n}", findings=found(n)) for n in range(8))) as tables:
        answer = find_findings(tables).findings
    assert [(item.rule, item.of_class, item.hosts, item.nodes) for item in answer] == [
        ("bad-link", False, "n[2,5]", 2),
        ("old-setting", True, "", 7),
    ]
    assert answer[0].labels == ["GPU0", "GPU1"]
    assert [(share.nodes, share.of, share.without) for share in answer[1].classes] == [(7, 8, "n4")]


def test_three_nodes_are_no_class_that_has_matters(tmp_path):
    with asked(tmp_path, *(node(f"n{n}", findings=[finding("x")]) for n in range(3))) as tables:
        assert [(finding.of_class, finding.hosts) for finding in find_findings(tables).findings] == [(False, "n[0-2]")]


def test_changes_are_folded_over_nodes(tmp_path):
    def software(version):
        return {"driver": {"version": version}}

    reports = [node(f"n{n}", software=software("1"), cmdline="ro") for n in range(6)]
    reports += [node(f"n{n}", 8, software=software("2"), cmdline="ro" if n else "ro quiet") for n in range(4)]
    with asked(tmp_path, *reports) as tables:
        answer = find_drift(tables, NOON)
    assert [(change.what, change.old, change.new, change.hosts) for change in answer.changes] == [
        ("driver", "1", "2", "n[0-3]"),
        ("cmdline", "(absent)", "quiet", "n0"),
    ]
    assert (answer.silent, answer.compared_nodes) == ("n[4-5]", 6)


def test_hosts_that_are_others_now(tmp_path):
    before = [node(f"n{n}") for n in range(3)]
    after = [node("n0", 8, machine_id="new"), node("n1", 8, machine_id="new2", serial="new2"), node("n2", 8)]
    with asked(tmp_path, *before, *after, node("n9", 8)) as tables:
        answer = find_drift(tables, NOON)
    assert (answer.reinstalled, answer.replaced, answer.added) == ("n0", "n1", "n9")
    assert {(change.what, change.hosts) for change in answer.changes} == {("machine_id", "n[0-1]"), ("serial", "n1")}


def test_devices_come_and_go_with_all_that_is_theirs(tmp_path):
    nics = [{"id": "0000:10:00.0", "label": "mlx5_0", "ports": [{"port": 1, "state": "ACTIVE"}]}]
    before = node("n1", gpus=["a", "b"], nics=nics)
    after = node("n1", 8, gpus=["x"], nics=[])
    with asked(tmp_path, before, after) as tables:
        answer = find_drift(tables, NOON)
    changes = {(change.subject, change.what, tuple(change.labels)) for change in answer.changes}
    assert changes == {("GPU", "gone", ("GPU1",)), ("GPU", "uuid", ("GPU0",)), ("NIC", "gone", ("mlx5_0",))}


def moved(place, before, after):
    """Subject, what, from, to and labels of each change; GPUs of nodes by their UUIDs."""
    reports = [node(name, hour, gpus=gpus) for hour, nodes in ((0, before), (8, after)) for name, gpus in nodes.items()]
    with asked(place, *reports) as tables:
        changes = find_drift(tables, NOON).changes
    return [(change.what, change.old, change.new, change.labels) for change in changes]


@pytest.mark.parametrize(
    ("before", "after", "changes"),
    [
        (
            {"a": ["p", "x"], "b": ["q", "y"]},
            {"a": ["p", "y"], "b": ["q", "x"]},
            [("moved", "a GPU1", "b GPU1 (before: y)", ["x"]), ("moved", "b GPU1", "a GPU1 (before: x)", ["y"])],
        ),
        (
            {"a": ["p", "x"], "b": ["q", "y"]},
            {"a": ["p", "spare"], "b": ["q", "x"]},
            [("moved", "a GPU1", "b GPU1 (before: y)", ["x"]), ("uuid", "x", "spare", ["GPU1"])],
        ),
        ({"a": ["p", "x"], "b": ["q"]}, {"a": ["p"], "b": ["q", "x"]}, [("moved", "a GPU1", "b GPU1", ["x"])]),
        (
            {"a": ["x", "p"]},
            {"a": ["p", "x"]},
            [("moved", "a GPU0", "a GPU1 (before: p)", ["x"]), ("moved", "a GPU1", "a GPU0 (before: x)", ["p"])],
        ),
        ({"a": ["p", "x"], "b": ["q"]}, {"a": ["p", "x"], "b": ["q", "x"]}, [("new", None, None, ["GPU1"])]),
        ({"a": ["x"], "b": ["x"]}, {"a": ["z"], "b": ["x"]}, [("uuid", "x", "z", ["GPU0"])]),
    ],
)
def test_a_device_that_moved_is_one_change(tmp_path, before, after, changes):
    assert sorted(moved(tmp_path, before, after), key=str) == sorted(changes, key=str)


def test_what_became_unknown_or_was_changed_back_is_no_change(tmp_path):
    reports = [node("n1", kernel="6.8", bios_version="1"), node("n1", 6, kernel="6.9", bios_version="1")]
    reports += [node("n1", 8, kernel="6.8", bios_version=None)]
    with asked(tmp_path, *reports) as tables:
        assert find_drift(tables, NOON).changes == []


def test_findings_that_came_and_went(tmp_path):
    reports = [node("n1", findings=[finding("a")]), node("n1", 8, findings=[finding("b"), finding("b", "GPU1")])]
    with asked(tmp_path, *reports) as tables:
        answer = find_drift(tables, NOON)
    assert [(change.what, change.labels, change.things) for change in answer.changes] == [
        ("gone", ["a"], 1),
        ("new", ["b"], 2),
    ]


@pytest.mark.parametrize("backwards", [False, True])
def test_changes_of_the_same_nodes_are_in_one_order(backwards):
    """Whatever order an engine gives rows in: two rules that are new on the same nodes."""
    found = [
        DriftChange(subject="finding", what="new", hosts="n1", nodes=1, things=1, labels=[rule]) for rule in ("a", "b")
    ]
    assert found == _sort_changes(found[::-1] if backwards else found)


def test_a_stale_node_that_was_bad_counts_as_bad(tmp_path):
    """All others without a recent report count as stale; each node once."""
    bad = {"verdict": "error", "counts": {"error": 1}, "unknown_rules": []}
    reports = [node("n0", 0), node("n1", 0, summary=bad), node("n2", 30), node("n3", 30, summary=bad)]
    with asked(tmp_path, *reports) as tables:
        answer = build_summary(tables)
        later = build_summary(tables, Options(stale_after_seconds=31 * 3600))
    assert (answer.verdicts, answer.stale, answer.stale_hosts) == ({"error": 2, "stale": 1, "ok": 1}, 2, "n[0-1]")
    assert (later.verdicts, later.stale) == ({"error": 2, "ok": 2}, 0)
    assert [(item.node, item.stale) for item in answer.worst] == [("n1", True), ("n3", False)]


def test_a_node_that_lost_a_gpu_is_not_only_ok(tmp_path):
    """Its own report has no baseline; not where it is bad anyway, came back, or is so for longer than a week."""
    bad = {"verdict": "error", "counts": {"error": 1}, "unknown_rules": []}
    reports = [
        node("n1", 0, gpus="abc"), node("n1", 1, gpus="ab"), node("n1", 2, gpus="ab"),
        node("n2", 0, gpus="def"), node("n2", 1, gpus="de"), node("n2", 2, gpus="def"),
        node("n3", 0, gpus="ghi"), node("n3", 1, gpus="gh", summary=bad),
    ]  # fmt: skip
    with asked(tmp_path, *reports) as tables:
        answer = build_summary(tables)
        scene = build_scene(tables, Wiring, PageOptions(), START)
    old = [node("o1", 0, gpus="jkl"), node("o1", 1, gpus="jk"), node("o1", 200, gpus="jk")]
    (tmp_path / "old").mkdir()
    with asked(tmp_path / "old", *old) as tables:
        assert [] == build_summary(tables).lost_gpus

    assert [("n1", 3, 2, "2026-01-15T09:00:00Z")] == [
        (lost.node, lost.before, lost.now, lost.since) for lost in answer.lost_gpus
    ]
    words = "1 node reports nothing wrong and had more GPUs within the last week: n1 (3 -> 2)"
    assert words in " ".join(to_plain_text(summary_page(answer)).split())
    assert [f"Counted as error: {words}."] == scene.notes
    assert {"error": 2, "ok": 1} == answer.verdicts == Counter(list_looks(scene.nodes))
    assert [("n3", []), ("n1", ["had 3 GPUs, now 2"])] == [(worst.node, worst.findings) for worst in answer.worst]
    assert {0: ("error", "had 3 GPUs, now 2")} == scene.nodes.lost_gpus
    assert "had 3 GPUs before 2026-01-15T09:00:00Z" == scene.nodes.lines[scene.nodes.line_codes[0]][0]


def test_gpus_that_a_hypervisor_took_are_unknown(tmp_path):
    """As in the rule that knows an earlier inventory; and so counted where the node is stale."""
    virtual = {"virtualization": "kvm"}
    reports = [node("v1", 0, gpus="abc", **virtual), node("v1", 1, gpus="ab", **virtual), node("n1", 100, gpus="d")]
    with asked(tmp_path, *reports) as tables:
        answer = build_summary(tables)

    assert {"unknown": 1, "ok": 1} == answer.verdicts


def test_the_worst_nodes_are_named_with_what_is_wrong(tmp_path):
    """As in a report: by severity, then cost, of critical ones by reach. No notes, and nothing that is silenced."""
    bad = {"verdict": "critical", "counts": {"critical": 1}, "unknown_rules": []}
    cost = {"collective": "all_reduce", "nodes": 4, "gbyte_s": 9.0, "percent": 50.0, "known_by": "model"}
    findings = [
        finding("b-port", "GPU1", severity="error"),
        finding("a-note", "GPU1", severity="info"),
        {**finding("c-port", "mlx5_0/1", severity="error"), "cost": cost},
        {**finding("c-port", "mlx5_1/1", severity="error"), "cost": cost},
        {**finding("a-link", "GPU3", severity="critical"), "subject": "link:GPU3/1", "cost": cost},
        finding("c-gpu", "GPU4", severity="critical"),
        {**finding("d-node", "node", severity="critical"), "subject": "node"},
        {**finding("e-known", "GPU2", severity="critical"), "silenced": {"reason": "ordered"}},
    ]
    with asked(tmp_path, node("n1", summary=bad, findings=findings)) as tables:
        (worst,) = build_summary(tables).worst

    assert ["d-node", "c-gpu GPU4", "a-link GPU3", "c-port mlx5_0/1 and 1 more", "b-port GPU1"] == worst.findings


def test_nodes_with_nothing_to_check_are_counted_apart(tmp_path):
    """Neither ok nor unknown: in the summary, on its page and on the map."""
    idle = {"verdict": "nothing_to_check", "counts": {}, "unknown_rules": []}
    with asked(tmp_path, node("n1"), node("n2", summary=idle), node("n3", summary=idle)) as tables:
        answer = build_summary(tables)
        page = read_dataset(tables, PageOptions(), Wiring)
    assert answer.verdicts == {"ok": 1, "nothing_to_check": 2}
    assert "1 ok  2 nothing to check" in to_plain_text(summary_page(answer))
    assert sorted(list_looks(page.nodes)) == ["nothing_to_check", "nothing_to_check", "ok"]
    assert sort_worst_first(page.nodes) == []


def test_a_stale_node_is_stale_also_where_it_alone_is_asked_about(tmp_path):
    with asked(tmp_path, node("n1", 0), node("n2", 30)) as tables:
        answer = build_summary(narrow(tables, Where(nodes=("n1",))))
        page = read_dataset(narrow(tables, Where(nodes=("n1",))), PageOptions(), Wiring)
    assert (answer.nodes, answer.stale, answer.verdicts) == (1, 1, {"stale": 1})
    assert (answer.newest, answer.oldest) == ("2026-01-16T14:00:00Z", "2026-01-15T08:00:00Z")
    assert (page.nodes.names, page.nodes.stale) == (["n1"], [True])
    result = to_plain_text(summary_page(answer))
    assert "1 stale" in result
    assert "every node is stale" in result


def test_coverage_is_of_nodes_that_are_not_stale(tmp_path):
    def checks(state):
        return [{"rule": "r", "state": state, "reason": "why"}]

    reports = [node("n0", 0, checks=checks("unknown")), node("n1", 0, checks=[])]
    reports += [node(f"n{n}", 30, checks=checks("unknown" if n < 4 else "pass")) for n in range(2, 6)]
    with asked(tmp_path, *reports) as tables:
        answer = build_summary(tables)
    (item,) = answer.coverage
    assert (item.unknown, item.passed, item.missing, item.stale) == (2, 2, 0, 1)
    assert "2 nodes (50%): why [r]" in to_plain_text(summary_page(answer))


def test_a_report_of_the_year_1_that_a_dataset_has(tmp_path, monkeypatch):
    monkeypatch.setattr("agent.fleet.reading.EARLIEST", datetime.min.replace(tzinfo=timezone.utc))
    early = node("n1").replace(b'"2026-01-15T08:00:00Z"', b'"0001-01-01T00:00:00Z"')
    assert early.count(b"0001-01-01") == 2
    with asked(tmp_path, early) as tables:
        assert build_summary(tables).stale == 0
        result = build_scene(tables, lambda: read_wiring(build_from_reports(tables)), PageOptions(), NOON)
    assert result.nodes.names == ["n1"]


def test_only_the_nodes_that_are_meant(tmp_path):
    reports = [node("a1", product="X1"), node("a2", product="Y2"), node("b1", product="Y2")]
    with asked(tmp_path, *reports, cluster="east") as tables:
        for where, nodes in (
            (Where(), 3),
            (Where(nodes=("east/a1", "east/a2")), 2),
            (Where(classes=("y2",)), 2),
            (Where(clusters=frozenset(("east",))), 3),
            (Where(clusters=frozenset(("west",))), 0),
            (Where(classes=("y2", "x1"), nodes=("east/a1",)), 1),
        ):
            assert build_summary(narrow(tables, where)).nodes == nodes


def test_a_nic_that_has_lost_its_gpu_is_no_news_of_its_own(tmp_path):
    def nic(role):
        return [{"id": "0000:10:00.0", "label": "mlx5_0", "role": role, "ports": [{"port": 1, "lid": 5}]}]

    before = [node(f"n{n}", nics=nic("rail")) for n in range(2)]
    after = [node("n0", 8, gpus=["n0-a"], nics=nic("unknown")), node("n1", 8, nics=nic("unknown"))]
    with asked(tmp_path, *before, *after) as tables:
        answer = find_drift(tables, NOON).changes
    assert [(item.subject, item.what, item.hosts) for item in answer] == [("GPU", "gone", "n0"), ("NIC", "role", "n1")]


def test_what_follows_from_what_follows_is_told_with_the_first():
    def odd(key, value, node="n1"):
        return Deviation(PeerGroup(key, key, "class", None, "node"), Baseline("8", 9, 10), value, "8", node, None)

    ((answer, _),) = fold_deviations([odd("nics", "9"), odd("rails", "7"), odd("gpus", "7")])
    assert (answer.attribute, sorted(answer.also)) == ("gpus", ["nics 9, usually 8", "rails 7, usually 8"])
    answers = [answer for answer, _ in fold_deviations([odd("nics", "9", "n2"), odd("rails", "7"), odd("gpus", "7")])]
    assert [(answer.attribute, answer.also) for answer in answers] == [
        ("gpus", ["rails 7, usually 8"]),
        ("nics", []),
    ]


def test_stale_nodes_are_marked_where_they_are_named(tmp_path):
    reports = [node(f"n{n}", 30, findings=[finding("a")] if n == 2 else [], kernel="new") for n in range(2, 9)]
    old = node("n1", 0, findings=[finding("a"), finding("b")], kernel="old")
    with asked(tmp_path, old, *reports, node("n9", 30, kernel="old")) as tables:
        (a, b), later = (
            find_findings(tables).findings,
            find_findings(tables, Options(stale_after_seconds=31 * 3600)).findings,
        )
        (kernel,) = find_outliers(tables, Options(majority=0.7)).outliers
        (now,) = find_findings(narrow(tables, Where(nodes=("n2",)))).findings
    assert [(item.rule, item.hosts, item.stale) for item in (a, b)] == [("a", "n[1-2]", "n1"), ("b", "n1", "n1")]
    assert [item.stale for item in (*later, now)] == ["", "", ""]
    assert (kernel.hosts, kernel.stale) == ("n[1,9]", "n1")
    assert sentences(a)[0].endswith("; no recent report from n1")
    assert sentence(kernel).endswith(". No recent report from n1")
