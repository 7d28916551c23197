"""Lines of drivers that no sentence explains: a note where nothing else is known of the part."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from agent.model.node import Event
from agent.rules.context import RuleContext
from agent.rules.host.stated_failures import driver_reports_failure
from agent.rules.rule import Fail
from tests.matrix.rule_rows import row, row_ids

NIC = "0000:ff:1f.3"
TEXT = f"mlx5_core {NIC}: mlx5_xyz:812:(pid 1): failed to read a table, err(-12)"
NAME = "driver-reports-failure"


def line(text: str = TEXT, subject: str | None = NIC, **fields: Any) -> Event:
    driver = text.split(" ")[0].rstrip(":")
    return Event(
        **{"kind": "unexplained", "source": "dmesg", "text": text, "subject": subject, "code": driver} | fields
    )


def xid(**fields: Any) -> Event:
    return Event(**{"kind": "xid", "source": "dmesg", "text": "NVRM: Xid (PCI:0000:1b:00): 79", "code": "79"} | fields)


def fragment() -> RuleContext:
    """A log alone: nothing lists devices."""
    name = next(name for of, name in row_ids() if of == NAME and name.startswith("DMA faults and sleep states where"))
    return replace(row(NAME, name)[0], events=())


def machine() -> RuleContext:
    """A whole host, one GPU of which does not open."""
    return replace(row(NAME, "another kind of line")[0], events=())


def judge(context: RuleContext, *events: Event) -> list[Fail]:
    answers = driver_reports_failure.check(replace(context, events=events))
    return [answer for answer in answers if isinstance(answer, Fail) and answer.situation == "unexplained"]


def test_a_line_alone_is_a_note_of_low_confidence() -> None:
    (note,) = judge(fragment(), line(count=3, at="2026-01-15T08:00:00Z", first_at="2026-01-15T07:00:00Z"))

    assert (f"pci:{NIC}", "info", "low") == (note.subject, note.severity, note.confidence)
    assert "3 lines, 2026-01-15T07:00:00Z to 2026-01-15T08:00:00Z" in note.summary
    assert "failed to read a table" in note.summary
    assert "-12 is ENOMEM" in note.summary
    assert TEXT == note.evidence[0].value
    assert frozenset() == note.explains_ids


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("NVRM: GPU3 x: Assertion failed: GPU lost [NV_ERR_GPU_IS_LOST] (0x0000000f) returned from y", "needs a reset"),
        ("NVRM: GPU3 x: Assertion failed: ECC error [NV_ERR_ECC_ERROR] returned from y", "has an error"),
        ("NVRM: GPU3 x: could not read the state of NVLink 3", "a link between devices"),
        ("NVRM: GPU3 x: Call timed out [NV_ERR_TIMEOUT] (0x00000065) returned from y", "did not answer in time"),
        ("NVRM: GPU3 x: failed to parse the VBIOS", "versions do not fit"),
        ("NVRM: GPU3 x: failed to allocate a table", "memory or another resource"),
        ("NVRM: GPU3 x: Invalid handle given", "a program asked"),
        ("NVRM: GPU3 x: failed", ""),
    ],
)
def test_the_words_of_a_line_tell_what_failed(text: str, words: str) -> None:
    (note,) = judge(fragment(), line(text, None, code="NVRM"))

    assert words in note.impact
    assert bool(words) == ("By its words" in note.impact)


def test_a_log_without_dates_has_its_own_times() -> None:
    (note,) = judge(fragment(), line(count=2, logged="+9.000 s", detail={"first": "+8.000 s", "more": "4"}))
    assert "6 lines, +8.000 s to +9.000 s" in note.summary

    (note,) = judge(fragment(), line())
    assert "(1 line):" in note.summary


def test_one_note_per_driver() -> None:
    parts = [line(TEXT.replace("ff", f"{number:02x}"), f"0000:{number:02x}:1f.3") for number in range(8)]
    (note,) = judge(fragment(), *parts)
    assert ("node", "mlx5") == (note.subject, note.label)
    assert "8 devices" in note.summary
    assert len(note.evidence) == 4

    both = judge(fragment(), line(), line("bnxt_en 0000:ff:1f.4 ens1: failed", "0000:ff:1f.4"))
    assert 2 == len(both)


def test_gpus_by_the_count_of_the_driver() -> None:
    (note,) = judge(fragment(), line("NVRM: GPU0 x: failed", None, code="NVRM", detail={"unit": "GPU0"}))
    assert "GPU0 by the driver's own count" in note.summary


@pytest.mark.parametrize(
    ("other", "is_note"),
    [
        (xid(subject=NIC), False),
        (xid(subject="0000:ff:1f.0"), False),  # another function of the card
        (xid(subject="0000:fe:1f.0"), True),
        (xid(subject=NIC, kind="link_down"), True),
        (xid(subject=NIC, kind="mlx5", code="started"), True),
        (xid(subject=NIC, at="2026-01-15T07:05:00Z"), False),
        (xid(subject=NIC, at="2026-01-15T08:00:00Z"), True),
        (xid(subject=NIC, at="2026-01-15T06:00:00Z"), True),
        (xid(subject=NIC, first_at="2026-01-15T06:00:00Z", at="2026-01-15T08:00:00Z"), False),
    ],
)
def test_beside_a_failure_that_is_explained_it_is_none(other: Event, is_note: bool) -> None:
    """Of the same part, within some minutes."""
    assert is_note is bool(judge(fragment(), line(at="2026-01-15T07:00:00Z"), other))


@pytest.mark.parametrize(("logged", "is_note"), [("+690.000 s", False), ("+800.000 s", True), (None, False)])
def test_times_since_boot(logged: str | None, is_note: bool) -> None:
    assert is_note is bool(judge(fragment(), line(logged="+100.000 s"), xid(subject=NIC, logged=logged)))


@pytest.mark.parametrize(
    ("text", "is_note"), [("NVRM: Xid (PCI:0000:1b:00): 79", False), ("mlx5_core 0000:3b:00.0: x", True)]
)
def test_a_line_without_a_part_is_of_its_driver(text: str, is_note: bool) -> None:
    other = xid(subject="0000:1b:00.0", text=text)
    assert is_note is bool(judge(fragment(), line("NVRM: x failed", None, code="NVRM"), other))


def test_on_a_whole_host_only_of_parts_that_do_not_work() -> None:
    context = machine()
    gpu, *_ = context.topology.gpus
    nic = context.rails[0]
    of_gpu = line(f"NVRM: GPU {gpu.pci}: x failed", gpu.pci, code="NVRM")
    of_nic = line(f"mlx5_core {nic.pci}: x failed", nic.pci)

    def change(state: str, rdma_device: str | None) -> RuleContext:
        gpus = [replace(one, driver_state=state) for one in context.topology.gpus]
        ports = [replace(port, netdevs=[]) for port in nic.ports]
        nics = [
            replace(one, rdma_device=rdma_device, ports=ports) if one.id == nic.id else one
            for one in context.topology.nics
        ]
        return replace(context, topology=replace(context.topology, gpus=gpus, nics=nics))

    works, broken = change("open", "mlx5_1"), change("not_open", None)
    assert [] == judge(works, of_gpu, of_nic)
    assert [f"gpu:{gpu.id}", f"pci:{nic.pci}"] == [note.subject for note in judge(broken, of_gpu, of_nic)]
    assert [] == judge(broken, line(), line("NVRM: x failed", None, code="NVRM"))


def test_nothing_else_is_lost() -> None:
    """With a finding beside it, and alone it is no pass."""
    answers = list(driver_reports_failure.check(replace(fragment(), events=(line(),))))
    assert 1 == len(answers)


def test_the_first_lines_of_the_note() -> None:
    (note,) = judge(fragment(), line())
    assert f"device {NIC}" == note.label
    assert note.summary.startswith("the mlx5 driver reports a failure that no check explains (1 line): mlx5_core")
    assert "ibstat; rdma link; ip -d link" == dict(note.values)["COMMANDS"]
    assert frozenset({NIC}) == note.ids

    (note,) = judge(fragment(), line("infiniband bnxt_re4: x failed", "bnxt_re4", code="infiniband"))
    assert note.summary.startswith("the bnxt driver reports a failure of bnxt_re4 that")
    assert ("bnxt", frozenset({"unexplained bnxt"})) == (note.label, note.ids)


@pytest.mark.parametrize(
    ("driver", "name", "commands"),
    [
        ("pcieport", "the PCIe port reports", "lspci -vvv"),
        ("DMAR", "the IOMMU reports", "lspci -vvv"),
        ("ice", "the ice driver reports", "rdma link; ip -d link"),
        ("NVRM", "the NVIDIA driver reports", "nvidia-smi -q; nvidia-smi"),
    ],
)
def test_each_driver_has_its_name_and_what_to_save(driver: str, name: str, commands: str) -> None:
    (note,) = judge(fragment(), line(f"{driver}: x failed", None, code=driver))

    assert f"{name} a failure that no check explains (1 line): {driver}: x failed" == note.summary
    assert commands == dict(note.values)["COMMANDS"]


@pytest.mark.parametrize(("count", "shown"), [(4, "0000:03:1f.3"), (5, "5 devices")])
def test_few_parts_are_named(count: int, shown: str) -> None:
    parts = [line(TEXT, f"0000:{number:02x}:1f.3") for number in range(count)]
    (note,) = judge(fragment(), *parts)
    assert shown in note.summary


def test_a_nic_that_works_or_runs_no_jobs_has_none() -> None:
    context = machine()
    nic = context.rails[0]

    def change(**fields: Any) -> RuleContext:
        nics = [replace(one, **fields) if one.id == nic.id else one for one in context.topology.nics]
        return replace(context, topology=replace(context.topology, nics=nics))

    bare = [replace(port, netdevs=[]) for port in nic.ports]
    named = [replace(port, netdevs=["ens1"]) for port in nic.ports]
    of_nic = line(f"mlx5_core {nic.pci}: x failed", nic.pci)
    assert 1 == len(judge(change(rdma_device=None, ports=bare), of_nic))
    assert [] == judge(change(rdma_device=None, ports=named), of_nic)
    assert [] == judge(change(rdma_device="mlx5_0", ports=bare), of_nic)
    assert [] == judge(change(rdma_device=None, ports=bare, role="unused"), of_nic)


def test_an_rdma_device_that_an_output_lists_has_none() -> None:
    context = fragment()
    nic = replace(machine().rails[0], pci=None, rdma_device="mlx5_4")
    listed = replace(context, topology=replace(context.topology, nics=[nic]))
    of_name = line("infiniband mlx5_4: x failed", "mlx5_4", code="infiniband")

    assert [] == judge(listed, of_name)
    assert 1 == len(judge(listed, line("infiniband mlx5_5: x failed", "mlx5_5", code="infiniband")))
    assert 1 == len(judge(context, of_name))


def test_a_line_without_a_part_beside_one_with_a_part() -> None:
    """Of one driver they are one failure, whichever has the part; of two parts they are two."""
    text = "NVRM: Xid (PCI:0000:1b:00): 79"
    assert [] == judge(fragment(), line("NVRM: GPU x failed", "0000:1b:00.0", code="NVRM"), xid(text=text))
    assert 1 == len(
        judge(
            fragment(), line("NVRM: GPU x failed", "0000:1c:00.0", code="NVRM"), xid(text=text, subject="0000:1b:00.0")
        )
    )


@pytest.mark.parametrize(("seconds", "is_note"), [(600, False), (601, True)])
@pytest.mark.parametrize("is_before", [True, False])
def test_the_limit_of_one_failure(seconds: int, is_before: bool, is_note: bool) -> None:
    times = (1000, 1000 + seconds) if is_before else (1000 + seconds, 1000)
    own, other = (f"+{at}.000 s" for at in times)
    assert is_note is bool(judge(fragment(), line(logged=own), xid(subject=NIC, logged=other)))


def test_one_line_with_a_time_is_near_to_one_without() -> None:
    assert [] == judge(fragment(), line(), xid(subject=NIC, logged="+5.000 s"))


def test_a_report_with_any_dates_and_counts_is_judged() -> None:
    (note,) = judge(fragment(), line(at="yesterday", detail={"more": "x"}), xid(subject="0000:01:00.0", at="today"))
    assert "1 line" in note.summary


def test_a_long_line_is_cut() -> None:
    (note,) = judge(fragment(), line(f"{TEXT} {'word ' * 60}"))
    assert len(note.summary) < 280
    assert "..." in note.summary
