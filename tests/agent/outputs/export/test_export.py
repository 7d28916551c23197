"""What all forms promise: no report breaks one, the same report gives the same bytes, the command lists them all.
Ansible's local fact, and the elements and attributes of JUnit that readers take.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec
import pytest

from agent.cli.main import run
from agent.cli.plain import EXPORT_FORMATS
from agent.model.finding import Check, UnknownSubject
from agent.model.report import ProbeRun, Report
from agent.outputs.export import export_report
from agent.outputs.export.ansible import export as export_ansible
from agent.outputs.export.junit import export as export_junit
from agent.reports import encode_report
from tests.agent.outputs.export.given import H100, MACHINES, bare, hostile, with_gpu
from tests.conftest import ROOT
from tests.machines import scan_machine

FORMS = list(EXPORT_FORMATS)
PACKAGE = ROOT / "agent" / "outputs" / "export"
ANSIBLE = shutil.which("ansible")
MOST_BYTES = 32_768  # every play carries it
# Of junit-10.xsd of the Jenkins xUnit plugin, what we write: element -> (children, required and optional attributes)
SCHEMA = {
    "testsuites": ({"testsuite"}, set(), {"name"}),
    "testsuite": ({"testcase"}, {"name", "tests", "failures", "errors"}, {"skipped", "hostname", "timestamp"}),
    "testcase": ({"failure", "error", "skipped", "system-out"}, {"name"}, {"classname", "time"}),
    "failure": (set(), set(), {"type", "message"}),
    "error": (set(), set(), {"type", "message"}),
    "skipped": (set(), set(), {"type", "message"}),
    "system-out": (set(), set(), set()),
}


def test_the_command_offers_every_form():
    """Every module with an `export` is a format on the command line; a format without a module fails below."""
    modules = {
        path.stem for path in PACKAGE.glob("*.py") if re.search(r"^def export\(|as export$", path.read_text(), re.M)
    }

    assert {form.replace("-", "_") for form in FORMS} == modules


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("host", "fault"), MACHINES)
def test_every_machine_gives_the_same_bytes_twice(form: str, host: str, fault: str | None) -> None:
    """A form that ends with a line end, twice the same."""
    output = export_report(form, scan_machine(host, fault))

    assert output.endswith("\n")
    assert export_report(form, scan_machine(host, fault)) == output


@pytest.mark.parametrize("form", FORMS)
def test_a_report_of_nothing_is_written(form: str) -> None:
    """Nothing known is no error."""
    assert export_report(form, bare(scan_machine(H100)))


@pytest.mark.parametrize("names_only", [True, False])
@pytest.mark.parametrize("form", FORMS)
def test_hostile_texts_stay_in_their_place(form: str, names_only: bool) -> None:
    """No control character gets through, and no line is as long as what a firmware may say."""
    output = export_report(form, hostile(scan_machine(H100), names_only))

    assert not [c for c in output if c != "\n" and not c.isprintable()]
    assert "z" * 1000 not in output


@pytest.mark.parametrize("form", FORMS)
def test_the_command_writes_a_finished_report(form: str, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]):
    """`export FORMAT --report FILE`: to stdout, and whole to a file."""
    finished, written = tmp_path / "report.json", tmp_path / "out"
    finished.write_bytes(encode_report(scan_machine(H100)))

    assert 0 == run(["export", form, "--report", str(finished)])
    output = capsysbinary.readouterr().out
    assert 0 == run(["export", form, "--report", str(finished), "--output", str(written)])
    assert output.splitlines()[:1] == written.read_bytes().splitlines()[:1]
    assert written.read_bytes()


@pytest.mark.parametrize("form", ["pdf", "Prometheus", ""])
def test_what_is_not_offered_is_wrong_usage(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    """One line that names what there is."""
    assert 2 == run(["export", form])
    assert "'nccl-topo'" in capsys.readouterr().err


def facts(report: Report) -> Any:
    return json.loads(export_ansible(report))


@pytest.mark.parametrize(("host", "fault"), MACHINES)
def test_it_is_small_json(host: str, fault: str | None) -> None:
    """The verdict, counts of findings, GPUs and rails."""
    report = scan_machine(host, fault)
    output = facts(report)

    assert report.summary.verdict == output["verdict"]
    assert report.summary.counts == output["findings_count"]
    assert [g.id for g in report.topology.gpus] == [g["id"] for g in output["gpus"]]
    assert len(export_ansible(report)) < MOST_BYTES


def test_unknown_is_null():
    """Neither 0 nor an empty text."""
    output = facts(with_gpu(scan_machine(H100), links_known=False, links=[], name=None, numa_node=None))

    assert (None, None, None) == tuple(output["gpus"][0][name] for name in ("nvlinks_active", "name", "numa_node"))
    assert 18 == output["gpus"][1]["nvlinks_active"]
    assert (None, None, []) == tuple(
        facts(bare(scan_machine(H100)))[name] for name in ("product", "nvlink_domain", "rails")
    )


@pytest.mark.parametrize("names_only", [True, False])
def test_hostile_texts_are_texts(names_only: bool) -> None:
    """Names stay one line each."""
    output = facts(hostile(scan_machine(H100), names_only))

    assert 8 == len(output["gpus"])
    assert all("\n" not in gpu["name"] and len(gpu["name"]) <= 200 for gpu in output["gpus"])


@pytest.mark.slow
@pytest.mark.skipif(ANSIBLE is None, reason="ansible is not installed (Debian: ansible-core)")
@pytest.mark.parametrize("kind", ["good", "hostile"])
def test_ansible_loads_it(kind: str, tmp_path: Path, real_commands: None) -> None:
    """`setup` with this folder of facts has ours as ansible_local.fabricscope."""
    report = scan_machine(H100) if kind == "good" else hostile(scan_machine(H100), names_only=True)
    (tmp_path / "fabricscope.fact").write_text(export_ansible(report))
    (tmp_path / "fabricscope.fact").chmod(0o644)
    expected = f"filter=ansible_local fact_path={tmp_path}"
    done = subprocess.run(
        [str(ANSIBLE), "localhost", "-o", "-c", "local", "-m", "setup", "-a", expected],
        capture_output=True,
        timeout=100,
    )
    answer = json.loads(done.stdout.decode().partition("=> ")[2])

    assert facts(report) == answer["ansible_facts"]["ansible_local"]["fabricscope"]


def cases(report: Report, suite: str) -> dict[str, list[tuple[str, str]]]:
    """Name of a case -> its elements with their messages or texts."""
    root = ElementTree.fromstring(export_junit(report))
    (element,) = [element for element in root if element.get("name") == f"fabricscope.{suite}"]
    return {case.get("name", ""): [(e.tag, e.get("message") or e.text or "") for e in case] for case in element}


@pytest.mark.parametrize(("host", "fault"), [*MACHINES, ("hostile", None), ("evil ids", None)])
def test_the_file_is_of_the_schema_and_counts_agree(host: str, fault: str | None) -> None:
    """Every rule and every probe is a case; counts are those of the cases."""
    bad = host in ("hostile", "evil ids")
    report = scan_machine(H100 if bad else host, fault)
    root = ElementTree.fromstring(export_junit(hostile(report, host == "hostile") if bad else report))

    for element in root.iter():
        children, required, optional = SCHEMA[element.tag]
        assert {child.tag for child in element} <= children
        assert required <= set(element.keys()) <= required | optional
    for suite in root:
        for kind, plural in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
            assert int(suite.get(plural, "")) == len(suite.findall(f"testcase/{kind}"))
    assert [len(report.checks), len(report.probes)] == [len(suite) for suite in root]


@pytest.mark.parametrize(("host", "fault"), MACHINES)
def test_what_was_not_judged_does_not_pass(host: str, fault: str | None) -> None:
    """A case without failure, error or skipped is a rule that passed, or found what is only worth knowing."""
    report = scan_machine(host, fault)
    output = cases(report, "rules")
    serious = {f.rule for f in report.findings if f.severity != "info"}
    passed = {name for name, children in output.items() if not {kind for kind, _ in children} - {"system-out"}}
    infos = {f.rule for f in report.findings} - serious

    assert serious == {name for name, children in output.items() if children and children[0][0] == "failure"}
    assert passed == {c.rule for c in report.checks if c.state == "pass"} | infos


def test_a_fault_tells_its_evidence():
    """Message: what and where. Text: part, evidence, impact, fix."""
    root = ElementTree.fromstring(export_junit(scan_machine("", "gpu-width-x8")))
    (failure,) = root.iter("failure")

    assert ("error", "GPU2: PCIe link is x8; both ends support x16") == (
        failure.get("type"),
        failure.get("message"),
    )
    assert "current_link_width" in (failure.text or "")
    assert "fix: 1. Compare the firmware" in (failure.text or "")


def with_check(**fields: object) -> Report:
    """A report with one rule."""
    check = msgspec.convert({"rule": "r", "state": "pass", **fields}, Check)
    return msgspec.structs.replace(scan_machine("cpu-only-2s"), checks=[check], findings=[])


@pytest.mark.parametrize("state", ["unknown", "not_applicable", "disabled"])
def test_unknown_and_its_kin_are_skipped_with_the_reason(state: str) -> None:
    """The rule's reason, else that of its subjects."""
    case_by_name = cases(with_check(state=state, reason="no data"), "rules")["r"]
    subject = UnknownSubject(subject="gpu:0", reason="denied")
    of_subject = cases(with_check(state=state, unknown_subjects=[msgspec.to_builtins(subject)]), "rules")["r"]

    assert [("skipped", f"{state.replace('_', ' ')}: no data")] == case_by_name
    assert [("skipped", f"{state.replace('_', ' ')}: gpu:0: denied")] == of_subject


def test_a_consequence_names_its_cause():
    """A rule that failed without a finding of its own was absorbed."""
    report = scan_machine("", "gpu-width-x8")
    (fault,) = [f for f in report.findings if f.severity == "error"]
    cause = msgspec.structs.replace(fault, absorbs=["other-rule pair:x+y"])
    checks = [*report.checks, Check(rule="other-rule", state="fail", failed=1)]
    case_by_name = cases(msgspec.structs.replace(report, findings=[cause], checks=checks), "rules")["other-rule"]

    assert [("skipped", "explained by pcie-width-downgraded")] == case_by_name


@pytest.mark.parametrize(
    ("status", "kind"),
    [("failed", "error"), ("timed_out", "error"), ("absent", "skipped"), ("denied", "skipped"), ("skipped", "skipped")],
)
def test_probes_that_gave_nothing(status: str, kind: str) -> None:
    """Failed and timed out are errors of the run; the others had nothing to read."""
    run = ProbeRun(name="nvml", status=status, reason="why")
    ((result, message),) = cases(msgspec.structs.replace(scan_machine("cpu-only-2s"), probes=[run]), "probes")["nvml"]

    assert kind == result
    assert message.endswith("why")


def test_a_partial_probe_passes_and_says_what_is_missing():
    """What it read counts; the gap is told."""
    run = ProbeRun(name="nvml", status="partial", reason="no NVLinks")
    case_by_name = cases(msgspec.structs.replace(scan_machine("cpu-only-2s"), probes=[run]), "probes")["nvml"]

    assert [("system-out", "partial: no NVLinks")] == case_by_name
