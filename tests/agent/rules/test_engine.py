"""The engine: what it counts, folds, sorts and fingerprints, and that nothing in a report can break it."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from agent.model.finding import Check
from agent.model.reasons import Reason
from agent.rules.catalogue import every_rule
from agent.rules.context import RuleContext, Settings
from agent.rules.engine import UNKNOWN_SUBJECTS_SHOWN, evaluate, judge, summarize
from agent.rules.fingerprints import fingerprint
from agent.rules.rule import Fail, NotApplicable, Pass, Result, Rule, Unknown
from tests.agent.rules.build import (
    changed_gpu,
    changed_netdev,
    changed_nic,
    changed_port,
    function,
    gpu_id,
    nic_id,
    probe,
    relinked,
    server,
    topology,
    virtual,
)
from tests.agent.rules.rows import link
from tests.matrix.rule_rows import row, rules


def fault(subject: str = "node", ids: tuple[str, ...] = (), **more) -> Fail:
    return Fail(
        subject=subject, label="x", summary="s", impact="1%", remedy="r", evidence=(), ids=frozenset(ids), **more
    )


def made(name: str, *answers: Result, severity: str = "error", **more) -> Rule:
    def check(context: RuleContext) -> Iterator[Result]:
        """A rule for the test."""
        yield from answers

    return Rule(name, severity, "", (), check=check, **more)


CASE = server(1)
WHY = Reason("undecided", detail="r")


@pytest.mark.parametrize(
    ("answers", "state"),
    [
        ([fault(), Unknown("a", WHY), Pass("b"), NotApplicable("c", WHY)], "fail"),
        ([Unknown("a", WHY), Pass("b"), NotApplicable("c", WHY)], "unknown"),
        ([Pass("b"), NotApplicable("c", WHY)], "pass"),
        ([NotApplicable("c", WHY)], "not_applicable"),
    ],
)
def test_the_gravest_answer_is_the_state_and_all_are_counted(answers: list[Result], state: str) -> None:
    """Unknown is never green."""
    (check,), _, _ = judge(CASE, [made("r", *answers)])

    assert state == check.state
    assert len(answers) == check.failed + check.unknown + check.passed + check.not_applicable


def test_a_rule_that_is_off_is_said_to_be() -> None:
    """Disabled, and not judged."""
    off = replace(CASE, settings=Settings(disabled=frozenset({"r"})))
    (check,), findings, _ = judge(off, [made("r", fault())])

    assert ("disabled", []) == (check.state, findings)


def test_silence_is_unknown_where_the_facts_are_missing() -> None:
    """The reason is the probe's; a need is met by either of its alternatives."""
    denied = probe(CASE, "services", "denied", "needs root")
    one, either, none = (
        judge(denied, [made("r", needs=needs)])[0][0] for needs in (("services",), ("services|pci",), ("services|dmi",))
    )

    assert ("unknown", "services: denied: needs root") == (one.state, one.reason)
    assert ("not_applicable", None) == (either.state, None)
    assert "unknown" == none.state


def test_a_subject_is_met_by_any_probe_about_it() -> None:
    """nvidia-smi stands in for NVML, and lspci for sysfs, but not where the attributes of sysfs are needed."""
    denied = probe(probe(CASE, "nvml", "denied", "needs root"), "pci", "absent", "no sysfs")

    assert probe(probe(denied, "nvidia_smi", "ok"), "lspci", "partial").why_probe_failed("gpu", "pci") is None
    assert "nvml: denied: needs root; nvidia_smi: absent: no tool" == (
        probe(denied, "nvidia_smi", "absent", "no tool").why_probe_failed("gpu")
    )
    assert "pci: absent: no sysfs" == denied.why_probe_failed("pci_sysfs")


def test_a_probe_that_never_ran_is_a_reason_too() -> None:
    """Nothing of it is clean."""
    assert "dmi: not run" == judge(CASE, [made("r", needs=("dmi",))])[0][0].reason


def test_the_list_of_unknown_subjects_is_bounded_and_the_count_is_whole() -> None:
    """A report stays small."""
    (check,), _, _ = judge(CASE, [made("r", *(Unknown(f"pci:{n:04}", WHY) for n in range(100)))])

    assert (100, UNKNOWN_SUBJECTS_SHOWN) == (check.unknown, len(check.unknown_subjects))


@pytest.mark.parametrize(
    ("severities", "essential_unknown", "verdict"),
    [
        ((), False, "ok"),
        (("info",), False, "ok"),
        ((), True, "unknown"),
        (("info",), True, "unknown"),
        (("warning",), True, "warning"),
        (("error", "warning"), False, "error"),
        (("warning", "critical", "error"), True, "critical"),
    ],
)
def test_the_verdict_is_the_worst_or_unknown_where_an_essential_rule_is(severities, essential_unknown, verdict) -> None:
    """A finding outranks unknown; info is no finding to act on."""
    rules = [made(f"r{n}", fault(), severity=s) for n, s in enumerate(severities)]
    rules.append(made("e", Unknown("node", WHY) if essential_unknown else Pass("node"), essential=True))
    rules.append(made("other", Unknown("node", WHY)))
    _, _, summary = judge(CASE, rules)

    assert verdict == summary.verdict
    assert ("other" in summary.unknown_rules, essential_unknown) == (True, "e" in summary.unknown_rules)


def test_an_essential_rule_that_failed_on_one_and_could_not_judge_another_is_listed() -> None:
    """Part of it is unknown."""
    check = Check(rule="e", state="fail", failed=1, unknown=1)

    assert ["e"] == summarize([check], [], {"e"}).unknown_rules
    assert 1 == summarize([check, Check(rule="a", state="unknown", unknown=1)], [], {"e"}).unknown_essential
    assert [] == summarize([check], [], set()).unknown_rules


def test_a_cause_stands_for_its_consequences_on_the_same_place() -> None:
    """And for what they in turn stand for; elsewhere they stand alone; both checks still say fail."""
    cause = made("cause", fault("pci:a", ("a",)), absorbs=("middle",))
    middle = made("middle", fault("gpu:a", ("a", "b")), fault("gpu:z", ("z",)), absorbs=("last",))
    last = made("last", fault("port:b/1", ("b",)))
    checks, findings, _ = judge(CASE, [last, middle, cause])

    assert {"fail"} == {check.state for check in checks}
    assert {("cause", ("last port:b/1", "middle gpu:a")), ("middle", ())} == {
        (finding.rule, tuple(finding.absorbs)) for finding in findings
    }
    assert ["gpu:z"] == [finding.subject for finding in findings if finding.rule == "middle"]


def test_a_cause_that_is_off_hides_nothing() -> None:
    """Its consequences are findings again."""
    cause = made("cause", fault("pci:a", ("a",)), absorbs=("last",))
    off = replace(CASE, settings=Settings(disabled=frozenset({"cause"})))

    assert ["last"] == [f.rule for f in judge(off, [cause, made("last", fault("gpu:a", ("a",)))])[1]]


def test_what_no_subject_names_is_listed() -> None:
    """Devices of a finding of the node, and of one that explains such a finding; places that are no device are none."""
    context = server(2)
    gpu, nic = gpu_id(0), nic_id(1)
    both = made("both", fault(ids=(gpu, f"{nic}/1", "count of GPUs", "node")))
    cause = made("cause", fault(f"gpu:{gpu}", (gpu,)), absorbs=("both",))

    def devices(*rules: Rule) -> list[list[str]]:
        return [finding.devices for finding in judge(context, list(rules))[1]]

    assert [sorted((gpu, nic))] == devices(both)
    assert [[]] == devices(cause)
    assert [sorted((gpu, nic))] == devices(cause, both)
    (finding,) = judge(context, [cause, both])[1]
    assert {gpu, nic} == finding.list_concerned()


def test_findings_come_worst_first() -> None:
    """Then by rule and subject."""
    rules = [
        made("b", fault("x"), fault("a")),
        made("a", fault(severity="critical")),
        made("c", fault(), severity="info"),
    ]

    assert [("a", "node"), ("b", "a"), ("b", "x"), ("c", "node")] == [
        (f.rule, f.subject) for f in judge(CASE, rules)[1]
    ]


def test_a_fingerprint_holds_through_renames_and_moves() -> None:
    """Index, label and slot may change; the UUID, the GUID, the MAC and the cause may not."""
    context = server(2, ethernet=True)
    gpu, pci, port = fault(f"gpu:{gpu_id(0)}"), fault(f"pci:{gpu_id(0)}"), fault(f"port:{nic_id(0)}/1")
    interface = fault(f"netdev:{nic_id(0)}")
    renamed = changed_netdev(changed_nic(changed_gpu(context, 0, index=7, label="GPU7"), 0, label="ib0"), 0, label="x")

    for item in (gpu, pci, port, interface):
        assert fingerprint("r", item, context) == fingerprint("r", item, renamed)
        assert fingerprint("r", item, context) == fingerprint(
            "r", replace(item, summary="x9 of 10", evidence=()), context
        )
        assert fingerprint("r", item, context) != fingerprint("other", item, context)
        assert fingerprint("r", item, context) != fingerprint("r", replace(item, cause="c"), context)
    assert fingerprint("r", gpu, context) != fingerprint("r", gpu, changed_gpu(context, 0, uuid="GPU-other"))
    assert fingerprint("r", port, context) != fingerprint("r", port, changed_nic(context, 0, node_guid="other"))
    assert fingerprint("r", interface, context) != fingerprint("r", interface, changed_netdev(context, 0, mac="other"))
    assert fingerprint("r", gpu, context) != fingerprint("r", fault(f"gpu:{gpu_id(1)}"), context)
    assert fingerprint("r", port, context) != fingerprint("r", fault(f"port:{nic_id(0)}/2"), context)


def test_a_card_that_moves_keeps_its_fingerprint() -> None:
    """Another address, the same UUID."""
    context = server(2)
    there = fault(f"gpu:{gpu_id(1)}")
    moved = changed_gpu(changed_gpu(context, 0, uuid="GPU-away"), 1, uuid=context.topology.gpus[0].uuid)

    assert fingerprint("r", fault(f"gpu:{gpu_id(0)}"), context) == fingerprint("r", there, moved)


def test_a_pair_has_no_order() -> None:
    """Both ends by their own identity."""
    context = server(2)
    one, other = fault(f"pair:{gpu_id(0)}+{nic_id(0)}"), fault(f"pair:{nic_id(0)}+{gpu_id(0)}")

    assert fingerprint("r", one, context) == fingerprint("r", other, context)
    assert fingerprint("r", one, context) != fingerprint("r", one, changed_nic(context, 0, node_guid="other"))


def test_ports_of_one_switch_differ_though_they_have_one_serial() -> None:
    """All ports of a switch, and all functions of a card, repeat the serial number of the device."""
    context = server(1)
    for place in ("0000:11:00.0", "0000:12:00.0", "0000:12:01.0"):
        context = function(context, place, serial="00-0d-00-00-00-00-00-01")
    ids = ("0000:11:00.0", "0000:12:00.0", "0000:12:01.0")

    assert 3 == len({fingerprint("r", fault(f"pci:{place}"), context) for place in ids})


def _many_faults() -> RuleContext:
    context = relinked(relinked(server(8), gpu_id(1), link(width=8)), "0000:31:00.0", link(width=4))
    context = relinked(context, nic_id(4), link(speed=8.0))
    context = changed_gpu(context, 2, links=context.topology.gpus[2].links[:15])
    context = changed_port(changed_nic(context, 5, firmware="1"), 6, state="INIT")
    context = changed_gpu(context, 7, driver_state="not_open", mig=None)
    for n in (0, 3):
        context = function(context, gpu_id(n), numa_declared=False)
    return context


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_lists_changes_nothing(seed: int) -> None:
    """Checks, findings and verdict are those of the machine, not of how its report was written."""
    context = _many_faults()
    mixed = random.Random(seed)

    def shuffled(rows):
        return mixed.sample(rows, len(rows))

    parts = {name: shuffled(getattr(context.topology, name)) for name in ("pci", "gpus", "nics", "netdevs", "paths")}

    assert len(judge(context, every_rule())[1]) >= 7
    assert judge(context, every_rule()) == judge(topology(context, **parts), every_rule())


def test_parents_in_a_circle_end() -> None:
    """A hostile report: every bridge is its own ancestor."""
    context = relinked(server(2), gpu_id(0), link(width=8))
    context = function(context, "0000:10:01.0", parent="0000:12:00.0")
    context = function(context, "0000:20:01.0", parent="0000:20:01.0", state="gone")

    assert judge(context, every_rule())[2].verdict in ("error", "critical")


NOTHING = st.one_of(
    st.none(), st.text(max_size=8), st.sampled_from(["gone", "asleep", "0000:12:00.0", "node", "+", "/"])
)


@given(data=st.data())
@settings(max_examples=60)
def test_no_report_breaks_a_rule(data: st.DataObject) -> None:
    """Any field of any row may be null, empty or nonsense of its type."""
    context = _many_faults() if data.draw(st.booleans()) else server(2, ethernet=True)
    for _ in range(data.draw(st.integers(1, 12))):
        part = data.draw(st.sampled_from(["pci", "gpus", "nics", "netdevs", "paths"]))
        rows = list(getattr(context.topology, part))
        if not rows:
            continue
        which = data.draw(st.integers(0, len(rows) - 1))
        field = data.draw(st.sampled_from(rows[which].__struct_fields__))
        rows[which] = replace(rows[which], **{field: _nonsense(data, getattr(rows[which], field), field)})
        context = topology(context, **{part: rows})
    checks, findings, _ = judge(context if data.draw(st.booleans()) else virtual(context), every_rule())

    assert len(every_rule()) == len(checks)
    assert all(finding.fingerprint and finding.impact and finding.remedy for finding in findings)


def _nonsense(data: st.DataObject, value: object, field: str) -> object:
    """Another value that the schema of the report would let through."""
    if isinstance(value, list):
        return data.draw(st.sampled_from([[], value[:1], value + value]))
    if isinstance(value, bool) or value is None:
        return data.draw(st.sampled_from([value, None])) if value is None else not value
    if isinstance(value, int | float):
        return data.draw(st.sampled_from([0, -1, 63, 1 << 40, value]))
    if isinstance(value, str):
        drawn = data.draw(NOTHING)
        required = field in ("id", "label", "a", "b", "state", "driver_state", "role")
        return (drawn or "") if required else drawn
    return data.draw(st.sampled_from([None, value])) if field != "quality" else value


def test_probes_that_lack_the_same_share_one_reason() -> None:
    """It is read by people: one sentence once."""
    asleep = probe(probe(server(), "nvml", "skipped", "a GPU sleeps"), "nvidia_smi", "skipped", "a GPU sleeps")

    assert "nvml, nvidia_smi: skipped: a GPU sleeps" == asleep.why_probe_failed("gpu")
    absent = probe(asleep, "nvml", "absent", "no driver")
    assert "nvml: absent: no driver; nvidia_smi: skipped: a GPU sleeps" == absent.why_probe_failed("gpu")


def test_a_fault_that_only_an_earlier_boot_shows_is_told_so() -> None:
    """People reboot before they collect. A fault of this boot needs no older one."""
    context, _ = row("gpu-xid", "fires")
    gpu_xid = rules()["gpu-xid"]
    before = replace(context, events=(), earlier_events=context.events)
    again = replace(context, earlier_events=context.events)

    (old,) = [fault for _, fault in evaluate(before, [gpu_xid])[1]]
    (new,) = [fault for _, fault in evaluate(again, [gpu_xid])[1]]

    assert ("before the last boot: Xid 79: the GPU fell off the bus", "medium", "error") == (
        old.summary, old.confidence, old.severity,
    )  # fmt: skip
    assert ("high", "critical") == (new.confidence, new.severity)
    assert (True, False) == (old.is_before_boot, new.is_before_boot)


def test_no_rule_about_the_log_passes_where_a_log_was_not_read() -> None:
    """What is unread may hold the fault."""
    context, _ = row("gpu-xid", "fires")
    runs = {name: replace(run, status="partial", reason_code="log-unread") if name == "kernel_log" else run
            for name, run in context.probes.items()}  # fmt: skip
    (check,) = evaluate(replace(context, events=(), probes=runs), [rules()["gpu-xid"]])[0]

    assert ("unknown", 0) == (check.state, check.passed)
