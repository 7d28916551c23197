"""Every machine x every output is a golden file: `make docs` writes them again, the diff is reviewed.

A golden is in golden form, so that a change shows as few lines as it has parts:

* JSON: the elements of a list of objects are one line each, keys in the order of the report.
* Of devices, what most rows of a list have is its first line, and a row is what it has beside: a fact that a device
  gets, and that these machines do not have, is a change of one line per machine.
* A number that only counts rules is a placeholder: a new rule adds a line to a report, and changes no page.
  The number is worked out from the checks of the same report, so a page with a wrong number still differs.
* `unknown_rules` repeats the checks: it is a placeholder where it is what the checks give (of a fault: how it differs
  from its machine without the fault), and written out where it is not.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agent.cli.job import JobOptions, answer_job
from agent.cli.plain import EXPORT_FORMATS
from agent.diff import diff
from agent.diff.page import fold_labels
from agent.model.report import Report, schema_text
from agent.outputs.check import NAMED_RULES, format_nagios
from agent.outputs.export import export_report
from agent.outputs.text.job import render_job
from agent.outputs.text.lines import to_plain_text
from agent.outputs.text.page import render_page
from agent.outputs.verdict import count_checks
from agent.reports import encode_report
from agent.rules.catalogue import every_rule
from bench.job_logs import CASES, Job
from fixtures.machine import base_of
from tests.agent.fleet.test_tables import describe_tables
from tests.agent.rules.peers.test_fields import describe_peer_fields
from tests.agent.rules.test_events import describe_log_sentences
from tests.conftest import ROOT
from tests.fixtures.test_build import describe_changes
from tests.machines import FAULTS, HOSTS, LIKE, scan_machine
from tests.probes.tool_reports.outputs_page import describe_outputs

EXPECTED = ROOT / "fixtures" / "expected"
EXPORTED = "8xh100-sxm-2s-8xcx7-ib-4nvsw"  # one machine in every form: the tests of each form try them all
# Of kinds whose whole reports are there of another machine: their pages alone.
PAGES_ONLY = {"16x910c-4s-atlas-a3", "8xmi210-2s-2xcx6-ib", "trn2-16xtrainium2"}
STATES = ("pass", "fail", "unknown", "not_applicable", "disabled")
USUAL = "most have"
FEW = 3  # rows of which nothing is usual
UNKNOWN_RULES = "as the checks, by name"
Golden = Callable[[str, str], None]

WORKED_JOBS = {  # title in docs/job.md: the case of the bench, and the folder that is given
    "A port that flapped": ("port flap", "run"),
    "One rank that did not come": ("clock skew", "run/logs"),
    "A setting behind a network error": ("wrong GID", "run"),
}


@pytest.fixture
def golden() -> Golden:
    """Compare with the committed file, or write it again where UPDATE_GOLDENS is set."""

    def compare(name: str, text: str) -> None:
        path: Path = EXPECTED / name
        if os.environ.get("UPDATE_GOLDENS"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        assert path.read_text() == text

    return compare


@pytest.mark.parametrize("shape", [shape for shape in HOSTS if shape not in LIKE])
def test_host(shape: str, golden: Golden) -> None:
    """A healthy machine: its report, its page at 80 and 200 columns."""
    report = scan_machine(shape)

    if shape not in PAGES_ONLY:
        whole = hide_unknown_rules(decode_indented(encode_report(report)), report)
        golden(f"{shape}/report.json", format_json({**whole, "topology": shorten(whole["topology"])}) + "\n")
    golden(f"{shape}/page-80.txt", hide_counts(to_plain_text(render_page(report, 80)), report))
    golden(f"{shape}/page-200.txt", hide_counts(to_plain_text(render_page(report, 200)), report))


@pytest.mark.parametrize("fault", FAULTS)
def test_fault(fault: str, golden: Golden) -> None:
    """A fault: findings, rules that it makes unknown, what it changes in report and capture, what `check` prints."""
    report, healthy = scan_machine("", fault), scan_machine(base_of(fault))
    document = msgspec.json.decode(msgspec.json.encode({"findings": report.findings, "summary": report.summary}))
    changes = [
        {"kind": change.kind, "what": change.what, "of": fold_labels([subject.label for subject in change.subjects])}
        for change in diff(healthy, report).changes
    ]
    effects = {"differences": changes, "capture": describe_changes(fault)}

    golden(
        f"faults/{fault}.json",
        format_json({**hide_unknown_rules(document, report, healthy), **effects}) + "\n",
    )
    golden(f"faults/{fault}.check.txt", hide_counts(format_nagios(report).text, report))


@pytest.mark.parametrize("form", EXPORT_FORMATS)
def test_export(form: str, golden: Golden) -> None:
    """One machine in every form that `export` writes."""
    report = scan_machine(EXPORTED)
    golden(f"{EXPORTED}/export.{form}.txt", hide_counts(export_report(form, report), report))


def test_schema(golden: Golden) -> None:
    """The JSON Schema of the report, one line per field, so that a new field adds one line."""
    data = schema_text().encode()
    schema = decode_indented(data)
    lines = [json.dumps({name: value for name, value in schema.items() if name != "$defs"})]
    for name, struct in schema["$defs"].items():
        fields = struct.pop("properties", {})
        lines.append(f"{name}: {json.dumps(struct, ensure_ascii=False)}")
        lines += [f"{name}.{field}: {json.dumps(form, ensure_ascii=False)}" for field, form in fields.items()]
    golden("report.schema.txt", "\n".join([*lines, ""]))


def test_picture_of_the_readme(golden: Golden) -> None:
    """The demo's machine with a fault that a picture shows."""
    golden("../../docs/machine.svg", export_report("svg", scan_machine(EXPORTED, "gpu-width-x8")))


def test_table_of_the_kernel_log(golden: Golden) -> None:
    """Every sentence of the kernel log that is read: one row per sentence."""
    golden("../../docs/log-sentences.md", describe_log_sentences())


def test_table_of_the_outputs(golden: Golden) -> None:
    golden("../../docs/outputs.md", describe_outputs())


def test_tables_of_a_dataset(golden: Golden) -> None:
    golden("../../agent/fleet/tables.md", describe_tables())


def test_table_of_peer_fields(golden: Golden) -> None:
    """Every field of every part, and how it compares among peers."""
    golden("../../docs/peer-fields.md", describe_peer_fields())


@pytest.mark.parametrize("title", WORKED_JOBS)
def test_worked_cases_of_the_page_of_jobs(title: str, golden: Golden, tmp_path: Path) -> None:
    """What is printed of made jobs, whole."""
    case, path = WORKED_JOBS[title]
    CASES[case](Job(tmp_path / "run", 64, 1))
    lines = to_plain_text(render_job(answer_job([str(tmp_path / path)], JobOptions([])), 92)).splitlines()
    printed = "\n".join(["```", f"$ fabricscope job {path}/", *(line.rstrip() for line in lines)]).rstrip() + "\n```"
    page = (ROOT / "docs" / "job.md").read_text()
    head, heading, rest = page.partition(f"\n## {title}\n")
    before, _, rest = rest.partition("```\n")
    after = rest.partition("\n```")[2]

    assert heading
    golden("../../docs/job.md", head + heading + before + printed + after)


def test_golden_form_hides_nothing_that_checks_do_not_repeat() -> None:
    """JSON reads back as it was; a number that is not the report's own stays, and so does a wrong list of rules."""
    report = scan_machine(EXPORTED)
    document = decode_indented(encode_report(report))
    wrong = {**document, "summary": {**document["summary"], "unknown_rules": document["summary"]["unknown_rules"][1:]}}

    assert document == json.loads(format_json(document))
    assert UNKNOWN_RULES == hide_unknown_rules(document, report)["summary"]["unknown_rules"]
    assert wrong == hide_unknown_rules(wrong, report)
    assert "; <checks> |" in hide_counts(format_nagios(report).text, report)
    for text in ("1 check ran; 2 could not run", "mlx5_0 and 1 more", "gpu-missing and 9 more"):
        assert text == hide_counts(text, report)


@pytest.mark.parametrize("shape", [EXPORTED, "2xl40s-2s-4xcxl", "cpu-only-2s"])
def test_rows_of_devices_are_whole_with_what_most_have(shape: str) -> None:
    topology = decode_indented(encode_report(scan_machine(shape)))["topology"]
    short = shorten(topology)

    assert topology == {name: restore(rows) for name, rows in short.items()}
    assert len(json.dumps(short)) < 0.6 * len(json.dumps(topology))


def test_a_fact_that_the_machines_do_not_have_changes_one_line_per_machine() -> None:
    topology = decode_indented(encode_report(scan_machine(EXPORTED)))["topology"]
    with_fact = {**topology, "pci": [{**row, "new": None} for row in topology["pci"]]}
    before, after = (format_json(shorten(rows)).splitlines() for rows in (topology, with_fact))

    assert len(before) == len(after)
    assert 1 == sum(one != other for one, other in zip(before, after, strict=True))


def decode_indented(data: bytes) -> Any:
    """The value of JSON, which is asserted to be indented by 2."""
    value = json.loads(data)
    assert json.dumps(value, indent=2, ensure_ascii=False) + "\n" == data.decode()
    return value


def format_json(value: Any, indent: str = "") -> str:
    """JSON with one line per element of a list of objects; a value that holds no such list is one line itself."""
    if not _holds_objects(value):
        return json.dumps(value, ensure_ascii=False)
    deeper = indent + "  "
    if isinstance(value, list):
        lines = [deeper + json.dumps(element, ensure_ascii=False) for element in value]
        return "[\n" + ",\n".join(lines) + f"\n{indent}]"
    lines = [f"{deeper}{json.dumps(key)}: {format_json(part, deeper)}" for key, part in value.items()]
    return "{\n" + ",\n".join(lines) + f"\n{indent}}}"


def _holds_objects(value: Any) -> bool:
    if isinstance(value, list):
        return any(isinstance(element, dict) for element in value)
    return isinstance(value, dict) and any(_holds_objects(part) for part in value.values())


def shorten(topology: dict[str, Any]) -> dict[str, Any]:
    """Each list of devices as what most rows have, and what differs from it per row. A short list stays as it is."""
    return {
        name: [{USUAL: usual}, *(_differences(row, usual) for row in rows)]
        if isinstance(rows, list) and isinstance(usual := _find_usual(rows), dict)
        else rows
        for name, rows in topology.items()
    }


def restore(rows: Any) -> Any:
    """The rows that `shorten` was given."""
    if not (isinstance(rows, list) and rows and USUAL in rows[0]):
        return rows
    return [_add_usual(row, rows[0][USUAL]) for row in rows[1:]]


def _find_usual(values: list[Any]) -> Any:
    """What most of them are: by key for objects of one kind, of all elements for lists of these; None: nothing is."""
    present = [value for value in values if value is not None]
    if len(values) < FEW or not present:
        return None
    if all(isinstance(value, dict) for value in present):
        if any(value.keys() != present[0].keys() for value in present):
            return None
        usual = {key: _find_usual([value[key] for value in present]) for key in present[0]}
        return {key: value for key, value in usual.items() if value is not None or _is_null_usual(present, key)}
    if all(isinstance(value, list) for value in present) and any(_holds_objects(value) for value in present):
        usual = _find_usual([element for value in present for element in value])
        return [usual] if isinstance(usual, dict) else None
    text, count = Counter(json.dumps(value) for value in values).most_common(1)[0]
    return json.loads(text) if count > 1 else None


def _is_null_usual(values: list[Any], key: str) -> bool:
    return 2 * sum(value[key] is None for value in values) > len(values)


def _differences(value: Any, usual: Any) -> Any:
    if isinstance(value, dict) and isinstance(usual, dict):
        return {
            key: _differences(part, usual.get(key))
            for key, part in value.items()
            if key not in usual or part != usual[key]
        }
    if isinstance(value, list) and _holds_objects(usual):
        return [_differences(element, usual[0]) for element in value]
    return value


def _add_usual(value: Any, usual: Any) -> Any:
    if isinstance(value, dict) and isinstance(usual, dict):
        return {**usual, **{key: _add_usual(part, usual.get(key)) for key, part in value.items()}}
    if isinstance(value, list) and _holds_objects(usual):
        return [_add_usual(element, usual[0]) for element in value]
    return value


def hide_unknown_rules(document: dict[str, Any], report: Report, healthy: Report | None = None) -> dict[str, Any]:
    """The document without `unknown_rules` that are what the checks give; of a fault, the change to a healthy twin."""
    unknown = document["summary"]["unknown_rules"]
    if unknown != _unknown_rules(report):
        return document
    output: Any = UNKNOWN_RULES
    if healthy is not None:
        before = _unknown_rules(healthy)
        output = {
            "added": [rule for rule in unknown if rule not in before],
            "gone": [rule for rule in before if rule not in unknown],
        }
    return {**document, "summary": {**document["summary"], "unknown_rules": output}}


def _unknown_rules(report: Report) -> list[str]:
    """Rules whose check is unknown, or of an essential rule unknown for a subject: essential ones first, by name."""
    essential = {rule.name for rule in every_rule() if rule.essential}
    unknown = [c.rule for c in report.checks if c.state == "unknown" or (c.unknown and c.rule in essential)]
    return sorted(unknown, key=lambda name: (name not in essential, name))


def hide_counts(text: str, report: Report) -> str:
    """The text, each number of rules in a state replaced by a placeholder where it is the report's own."""
    states = Counter(check.state for check in report.checks)
    rules, judged = states.total(), states["pass"] + states["fail"]
    counted = r"\s+".join(map(re.escape, count_checks(report).split()))
    text = re.sub(counted, "<checks>", text)
    for exact, placeholder in (
        (f'.rules" tests="{rules}"', '.rules" tests="<rules>"'),
        (f'skipped="{rules - judged}" hostname', 'skipped="<not judged>" hostname'),
        *((f'rules{{state="{state}"}} {states[state]}\n', f'rules{{state="{state}"}} <{state}>\n') for state in STATES),
    ):
        text = text.replace(exact, placeholder)
    return _hide_rests(text, report)


def _hide_rests(text: str, report: Report) -> str:
    """`RULE and 31 more` without the number, where 31 are left of all unknown rules or of those of one reason."""
    reasons = Counter(
        reason
        for check in report.checks
        if check.unknown
        for reason in {subject.reason for subject in check.unknown_subjects} or {check.reason}
    )
    rests = {size - NAMED_RULES for size in (*reasons.values(), len(report.summary.unknown_rules))}
    names = "|".join(check.rule for check in report.checks)

    def hide(match: re.Match[str]) -> str:
        return f"{match[1]} and <rest> more" if int(match[2]) in rests else match[0]

    return re.sub(rf"\b({names}) and (\d+) more", hide, text)
