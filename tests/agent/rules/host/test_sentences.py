"""What services and drivers state, on fragments: a manager without a switch, a board whose switches are hidden, error
802; an error that no sentence explains is a note with the line; which of it explains other findings, and numbers by
their names. When it fires: tests/matrix/rules/host.toml.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from agent.model.finding import SEVERITIES, Finding
from agent.model.node import Event
from agent.model.report import Report
from agent.rules.host.error_numbers import explain_number
from agent.rules.host.meaning import read_meanings
from agent.rules.host.service_sentences import CONTEXT, SERVICE_MEANINGS
from agent.rules.host.stated_failures import driver_reports_failure, service_reports_failure
from agent.rules.pages import read_sections
from agent.rules.rule import Fail, Rule
from probes.services.logs import FAILED
from probes.services.sentences import SERVICE_SENTENCES
from tests.machines import scan_files
from tests.matrix.rule_rows import row, rules
from tests.probes.services.test_logs import HEALTHY, HEALTHY_JOURNALS, HEALTHY_LOG, JOURNAL, STATUS

HOST = "Mar 04 07:00:01 node9"
NO_SWITCH = (
    f"{HOST} nvidia-fabricmanager-start.sh[71]: request to query NVSwitch device information from NVSwitch driver "
    "failed with error:WARNING Nothing to do [NV_WARN_NOTHING_TO_DO]\n"
    f"{HOST} systemd[1]: nvidia-fabricmanager.service: Control process exited, code=exited, status=1/FAILURE\n"
)
PRE_NVL5 = f"{HOST} nvidia-fabricmanager-start.sh[70]: Detected Pre-NVL5 system\n"
LSMOD = (
    "Module                  Size  Used by\nnvidia_uvm           1900544  0\n"
    "nvidia              11571200  1 nvidia_uvm\n"
)
WITH_UMAD = f"{LSMOD}ib_umad                40960  0\nib_core               442368  1 ib_umad\n"


_DEPENDS = {  # codes whose severity, or whether they count, hangs on more: rows of tests/matrix/rules/host.toml
    "tool-reports-fault": r"bmc-(?!corrected|unreachable).*|.*-xid|modules-nouveau|cmdline-iommu|numa-none|dimm-slow",
    "driver-reports-failure": "inaccessible|reset-unanswered|firmware-missing|iommu-fault|bar-unassigned|queue-stalled",
    "service-reports-failure": "umad-missing|sm-port-removed|cuda-802|failed",
}


@pytest.mark.parametrize("rule", _DEPENDS)
def test_each_sentence_is_a_finding_as_its_row_states(rule: str) -> None:
    """Of the firing machine, on which the device that it names does not work."""
    found, expected = {}, {}
    context, _ = row(rule, "fires")
    event = next(event for event in context.events if event.code)
    assert {meaning.severity for meaning in read_meanings(rule).values()} <= {*SEVERITIES}
    for code, meaning in read_meanings(rule).items():
        if not re.fullmatch(_DEPENDS[rule], code):
            given = replace(context, events=(replace(event, code=code),))
            faults = [fault for fault in rules()[rule].check(given) if isinstance(fault, Fail)]
            found[code] = [(fault.severity, fault.confidence) for fault in faults]
            expected[code] = [(meaning.severity, meaning.confidence)]
    assert expected == found


def smi(name: str, count: int = 8, state: str | None = "In Progress") -> str:
    """An `nvidia-smi -q` of GPUs of one model, with their fabric state."""
    fabric = f"    Fabric\n        State                             : {state}\n        Status          : N/A\n"
    gpus = "".join(
        f"GPU 00000000:{16 + 16 * number:02X}:00.0\n"
        f"    Product Name                          : {name}\n"
        f"    GPU UUID                              : GPU-00000000-0000-4000-8000-00000000000{number}\n"
        f"{fabric if state else ''}"
        for number in range(count)
    )
    head = "==============NVSMI LOG==============\n\nDriver Version                            : 580.95.05\n"
    head += f"CUDA Version          : 13.0\n\nAttached GPUs                             : {count}\n"
    return head + gpus


def findings_of(report: Report, *, info: bool = False) -> list[Finding]:
    return [finding for finding in report.findings if info or finding.severity != "info"]


def test_every_sentence_has_a_meaning_or_is_context() -> None:
    codes = {row.code for row in SERVICE_SENTENCES} | {FAILED}
    assert codes == SERVICE_MEANINGS.keys() | CONTEXT
    steps = read_sections("service-reports-failure")["How to fix"]
    assert [] == [code for code in SERVICE_MEANINGS if code != FAILED and code not in steps]


def test_a_board_with_hidden_switches_whose_modules_are_not_loaded(tmp_path: Path) -> None:
    """The cause is the modules; the fabric of all GPUs and the manager are its consequences, and one finding."""
    report = scan_files(tmp_path, journal=PRE_NVL5 + NO_SWITCH, lsmod=LSMOD, q=smi("NVIDIA B200"))
    (finding,) = findings_of(report)

    assert ("service-reports-failure", "critical", "high") == (finding.rule, finding.severity, finding.confidence)
    assert "one from before NVLink 5" in finding.summary
    assert "(mlx5_ib, ib_umad are not loaded)" in finding.summary
    assert {"fabric-incomplete node", "fabric-manager-down node"} <= set(finding.absorbs)
    assert "modprobe -a mlx5_ib ib_umad" in finding.steps[0].do
    assert any(row.what == "NVLink fabric state of GPU0-7" and row.value == "in progress" for row in finding.evidence)
    assert not any("reset" in step.do for step in finding.steps)


def test_the_module_that_is_loaded_is_not_named(tmp_path: Path) -> None:
    loaded = scan_files(tmp_path, journal=PRE_NVL5 + NO_SWITCH, lsmod=WITH_UMAD, q=smi("NVIDIA B200"))
    assert "(mlx5_ib is not loaded)" in findings_of(loaded)[0].summary


def test_which_modules_are_loaded_may_be_unknown(tmp_path: Path) -> None:
    (finding,) = findings_of(scan_files(tmp_path, journal=PRE_NVL5 + NO_SWITCH, q=smi("NVIDIA B200")))
    assert finding.summary.endswith("of the NVLink switches")


def test_a_manager_that_saw_the_board_and_no_switch(tmp_path: Path) -> None:
    """Without the sentence about the generation nothing states that modules are the cause."""
    (finding,) = findings_of(scan_files(tmp_path, journal=NO_SWITCH, q=smi("NVIDIA B200")))
    assert ("critical", "its log states: it found no NVSwitch and ended") == (finding.severity, finding.summary)


@pytest.mark.parametrize("name", ["NVIDIA A40", "NVIDIA GeForce RTX 4090", "NVIDIA H100 PCIe", "NVIDIA GB200"])
def test_a_manager_is_not_needed_without_switches(name: str, tmp_path: Path) -> None:
    report = scan_files(tmp_path, journal=PRE_NVL5 + NO_SWITCH, q=smi(name, 2, None))

    assert [] == findings_of(report)
    (finding,) = (finding for finding in findings_of(report, info=True) if finding.rule == "service-reports-failure")
    assert "it failed, and is not needed here: its GPUs are on no NVSwitch of this node" == finding.summary
    assert "systemctl disable nvidia-fabricmanager" in finding.steps[0].do


@pytest.mark.parametrize(
    ("texts", "severity", "confidence"),
    [
        ({}, "warning", "low"),
        ({"q": smi("NVIDIA H100 80GB HBM3", 8, None)}, "error", "medium"),
        ({"q": smi("NVIDIA H100 80G...", 8, None)}, "warning", "low"),
    ],
    ids=["nothing is known of the GPUs", "a board, and the bus was not read", "a name that the table cuts"],
)
def test_without_the_bus_it_depends_on_the_gpus(
    texts: dict[str, str], severity: str, confidence: str, tmp_path: Path
) -> None:
    (finding,) = findings_of(scan_files(tmp_path, journal=NO_SWITCH, **texts))

    assert (severity, confidence) == (finding.severity, finding.confidence)
    assert finding.impact.startswith("What it means depends on the GPUs")


def test_the_fabric_without_the_module_is_critical_without_a_journal(tmp_path: Path) -> None:
    (finding,) = findings_of(scan_files(tmp_path, lsmod=LSMOD, q=smi("NVIDIA B300 SXM6 AC")))

    assert ("fabric-incomplete", "node", "critical") == (finding.rule, finding.subject, finding.severity)
    assert "registration with the NVLink fabric: in progress; ib_umad is not loaded: GPU0-7" == finding.summary
    assert "modprobe" in finding.steps[0].do


@pytest.mark.parametrize(
    "texts",
    [
        pytest.param({"lsmod": WITH_UMAD, "q": smi("NVIDIA B200")}, id="the module is loaded"),
        pytest.param({"q": smi("NVIDIA B200")}, id="modules are not known"),
        pytest.param({"lsmod": LSMOD, "q": smi("NVIDIA H100 80GB HBM3")}, id="a board of another generation"),
    ],
)
def test_a_registration_that_goes_on_on_a_board_is_a_warning_that_depends_on_the_uptime(
    texts: dict[str, str], tmp_path: Path
) -> None:
    """Of low confidence: minutes after the start of the host it is usual."""
    (finding,) = (f for f in findings_of(scan_files(tmp_path, **texts)) if f.rule == "fabric-incomplete")

    assert ("node", "warning", "low") == (finding.subject, finding.severity, finding.confidence)
    assert "uptime" in finding.steps[0].do


@pytest.mark.parametrize(
    "texts",
    [
        pytest.param({"lsmod": LSMOD, "q": smi("NVIDIA B200", 4)}, id="half a board"),
        pytest.param({"lsmod": LSMOD, "q": smi("NVIDIA GB200", 8)}, id="a tray: its switches are elsewhere"),
        pytest.param({"lsmod": LSMOD, "q": smi("NVIDIA B200", 8, "Completed")}, id="registered"),
    ],
)
def test_a_registration_that_goes_on_elsewhere_is_no_finding_by_itself(texts: dict[str, str], tmp_path: Path) -> None:
    assert [] == [f for f in findings_of(scan_files(tmp_path, **texts)) if f.rule == "fabric-incomplete"]


def test_a_manager_that_does_not_run_ends_no_registration(tmp_path: Path) -> None:
    """The uptime is unknown, and waiting does not help: the fabric is not set up."""
    report = scan_files(tmp_path, lsmod=WITH_UMAD, q=smi("NVIDIA B200"), status=STATUS)
    (finding,) = findings_of(report)

    assert "fm-config" in finding.steps[0].do or "Correct the named item" in finding.steps[0].do
    assert "BIND_INTERFACE_IP" in finding.summary
    assert "fabric-incomplete node" in finding.absorbs


@pytest.mark.parametrize("text", [HEALTHY, HEALTHY_JOURNALS, HEALTHY_LOG], ids=["status", "journals", "log"])
def test_a_healthy_text_gives_no_finding(text: str, tmp_path: Path) -> None:
    report = scan_files(tmp_path, log=text)

    assert [] == report.findings
    assert [("log.txt", "log of a service")] == [(file.name, file.read_as) for file in report.source.files or []]


def test_error_802_in_a_paste_asks_for_the_state_of_the_fabric(tmp_path: Path) -> None:
    text = (
        "It ends with\n\nRuntimeError: Unexpected error. Error 802: system not yet initialized (Triggered at x.cpp)\n"
    )
    (finding,) = findings_of(scan_files(tmp_path, issue=text))

    assert ("CUDA", "error", "medium") == (finding.label, finding.severity, finding.confidence)
    assert "systemctl status nvidia-fabricmanager" in finding.steps[0].do


def test_error_802_is_explained_by_the_log_of_the_manager(tmp_path: Path) -> None:
    text = f"```\n{JOURNAL}```\n\nand\n\n```\nError 802: system not yet initialized\n```\n"
    finding = findings_of(scan_files(tmp_path, issue=text))[0]
    assert ("nvidia-fabricmanager", "critical") == (finding.label, finding.severity)


def test_a_paste_with_prompts_is_read_like_files(tmp_path: Path) -> None:
    text = (
        f"Hello\n\nroot@gpu7:~# systemctl status nvidia-fabricmanager\n{STATUS}\nroot@gpu7:~# journalctl -u "
        f"nvidia-fabricmanager --no-pager | tail -5\n{JOURNAL}\nWhat is it?\n"
    )
    report = scan_files(tmp_path, issue=text)
    (finding,) = findings_of(report)

    assert "fabric manager 570.124.06, driver 570.86.15" in finding.summary
    assert ["systemctl status nvidia-fabricmanager", "journalctl -u nvidia-fabricmanager --no-pager"] == [
        file.read_as for file in report.source.files or [] if file.read_as
    ]


def test_a_line_without_a_number_has_no_name_of_one() -> None:
    context, _ = row("service-reports-failure", "another kind of line")
    event = Event(kind="service", code="unexplained", text="x failed", source="a log", subject="nvidia-imex", count=2)
    (note,) = (
        answer
        for answer in service_reports_failure.check(replace(context, events=(event,)))
        if isinstance(answer, Fail)
    )

    assert "its log has errors that no check explains (2 lines): x failed" == note.summary
    assert (("UNIT", "nvidia-imex"),) == note.values


def find_faults(*events: Event) -> list[Fail]:
    """What the rule finds in a log with these events."""
    context, _ = row("service-reports-failure", "another kind of line")
    answers = service_reports_failure.check(replace(context, events=events))
    return [answer for answer in answers if isinstance(answer, Fail)]


def test_a_service_that_failed_quotes_the_error_before_it() -> None:
    """A log with an unexplained error does state why, to whoever reads it."""
    error = Event(kind="service", code="unexplained", text="cannot train link 4", source="a log", subject="nvidia-imex")
    failed = Event(kind="service", code="failed", text="Failed with result", source="a log", subject="nvidia-imex")

    (alone,), (explained,) = find_faults(failed), find_faults(error, failed)
    assert alone.summary == "its log states: it failed, and its log does not state why"
    assert explained.summary == (
        "its log states: it failed; an error before that, which no check explains: cannot train link 4"
    )


def test_ports_that_leave_the_subnet_together_are_those_of_a_restart() -> None:
    removed = [
        Event(
            kind="service",
            code="sm-port-removed",
            text="Removed port",
            source="a log",
            subject="opensm",
            count=2,
            detail={"node": f"{node} mlx5_{port}"},
        )
        for node, port in (("n7", 0), ("n7", 1), ("n8", 0))
    ]
    assert not find_faults(*removed[:2])
    assert ["opensm"] == [fault.label for fault in find_faults(removed[0], removed[2])]


@pytest.mark.parametrize(
    ("rule", "name", "explains_ids"),
    [
        (driver_reports_failure, "the first cause of one device counts", None),
        (driver_reports_failure, "held by nouveau", frozenset()),
        (service_reports_failure, "the versions that it names", frozenset({"nvlink-fabric"})),
        (service_reports_failure, "a manager on a node without NVSwitches", frozenset()),
    ],
    ids=lambda item: item.name if isinstance(item, Rule) else "",
)
def test_only_what_is_sure_explains_others(rule: Rule, name: str, explains_ids: frozenset[str] | None) -> None:
    context, _ = row(rule.name, name)
    assert [explains_ids] == [answer.explains_ids for answer in rule.check(context) if isinstance(answer, Fail)]


@pytest.mark.parametrize(
    ("driver", "text", "expected"),
    [
        ("mlx5_core", "x failed, err(-12)", "-12 is ENOMEM: out of memory"),
        ("bnxt_en", "probe failed with error -110", "-110 is ETIMEDOUT: timed out"),
        ("nvidia-uvm", "x returned: -5", "-5 is EIO: input or output error"),
        ("ice", "x failed: -16", "-16 is EBUSY: device or resource busy"),
        ("mlx5_core", "x failed, err(-999)", None),
        ("NVRM", "could not do it, status 0x62", "0x62 is NV_ERR_RESET_REQUIRED"),
        ("NVRM", "failed with status 0x0000000f for fn 78", "0xf is NV_ERR_GPU_IS_LOST"),
        ("NVRM", "failed with status 0x7123", None),
        ("NVRM", "failed: Timeout [NV_ERR_TIMEOUT] (0x00000065), status 0x65", None),
        ("mlx5_core", "failed, status 0x62", None),
        ("mlx5_core", "at -12 of a table", None),
    ],
)
def test_a_number_has_its_name(driver: str, text: str, expected: str | None) -> None:
    assert expected == explain_number(driver, text)
