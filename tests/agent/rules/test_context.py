"""What the case says of its own gaps: absence is claimed only where everything was seen."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from agent.model.gpu import NvSwitch
from agent.model.node import Module
from agent.model.report import CountersWindow, History, Known
from agent.rules.catalogue import every_rule
from agent.rules.context import RuleContext
from agent.rules.engine import judge
from tests.agent.rules.build import changed_nic, changed_nics, nic_id, node, probe, server, software, topology, virtual
from tests.agent.rules.rows import bridge

GPU = Known(subject="gpu:0000:19:00.0", label="GPU0", identity="GPU-1", detail="NVIDIA H100 80GB HBM3")
LOST = History(inventory=[GPU])


def driven(context, *ids: str, pci: str | None = None):
    """The same, where the driver names GPUs that the bus lacks."""
    gpus = [msgspec.structs.replace(server(1).topology.gpus[0], id=each, pci=pci) for each in ids]
    return topology(context, gpus=gpus)


def bare(class_code: str | None, parent: str | None = None):
    """No GPU, no NIC; one function of that class."""
    only = msgspec.structs.replace(bridge("0000:00:00.0", parent, "root_port"), class_code=class_code)
    return software(topology(server(1), pci=[only], gpus=[], nics=[], paths=[]), modules=[])


def listed(context):
    """The same, from a saved listing of lspci instead of sysfs."""
    return probe(probe(context, "pci", "absent", "no sysfs"), "lspci", "ok")


CUT = "the list of lspci may be cut: it ends within a function"


@pytest.mark.parametrize(
    ("context", "why"),
    [
        pytest.param(bare("0x060400"), None, id="sysfs is whole"),
        pytest.param(bare(None), "the class of 1 of 1 PCI functions is unknown", id="no class files"),
        pytest.param(listed(bare("0x060400")), "the PCI list is partial: it has no host bridge", id="lspci -s"),
        pytest.param(listed(bare("0x060000")), None, id="lspci of all"),
        pytest.param(
            probe(listed(bare("0x060000")), "lspci", "partial", CUT, "list-cut"),
            f"lspci: {CUT}",
            id="lspci that ends in the middle",
        ),
        pytest.param(
            probe(listed(bare("0x060000")), "lspci", "partial", "lspci hid capabilities"), None, id="lspci without root"
        ),
        pytest.param(
            probe(bare("0x060000"), "lspci", "partial", CUT, "list-cut"), None, id="sysfs is whole, whatever lspci is"
        ),
        pytest.param(
            driven(listed(bare("0x060000")), "0000:19:00.0", "0000:3b:00.0"),
            "the PCI list is incomplete: 2 GPUs of the driver are missing from it",
            id="lspci that was cut",
        ),
        pytest.param(driven(bare("0x060000"), "0000:19:00.0"), None, id="a GPU that left a bus that was seen"),
        pytest.param(driven(listed(bare("0x060000")), "gpu-index-0", "GPU-7f"), None, id="GPUs without an address"),
        pytest.param(driven(listed(bare("0x060000")), "0000:19:00.0", pci="0000:19:00.0"), None, id="GPUs of the bus"),
        pytest.param(probe(bare("0x060400"), "pci", "failed", "broken"), "pci: failed: broken", id="nobody looked"),
    ],
)
def test_absence_needs_a_whole_bus(context, why) -> None:
    """A GPU that is not among the functions may be among those that were not seen."""
    assert why == replace(context).why_bus_unread  # a copy: the first answer is kept


@pytest.mark.parametrize(
    ("context", "verdict"),
    [
        pytest.param(bare("0x060400"), "nothing_to_check", id="a whole bus without devices"),
        pytest.param(bare("0x120000"), "nothing_to_check", id="an NPU inside the CPU"),
        pytest.param(bare("0x120000", parent="0000:00:00.0"), "unknown", id="a card of a maker that is not known"),
        pytest.param(bare(None), "unknown", id="functions of no known class"),
        pytest.param(listed(bare("0x060400")), "unknown", id="a list that was cut"),
        pytest.param(
            probe(listed(bare("0x060000")), "lspci", "partial", CUT, "list-cut"), "unknown", id="a list without its end"
        ),
        pytest.param(probe(bare("0x060400"), "pci", "failed", "broken"), "unknown", id="no list"),
        pytest.param(software(bare("0x060400"), modules=[Module(name="nvidia")]), "unknown", id="a driver of GPUs"),
        pytest.param(replace(bare("0x060400"), history=LOST), "critical", id="a GPU of the last run is gone"),
    ],
)
def test_a_host_without_devices_is_not_ok(context: RuleContext, verdict: str) -> None:
    """Nothing to check where the list of devices is whole; otherwise it is unknown, and the summary has the reason."""
    summary = judge(replace(context), every_rule())[2]  # a copy: answers are kept

    assert verdict == summary.verdict
    assert (verdict == "unknown") == (summary.devices_unread is not None)


def test_what_may_be_here_unlisted_has_its_reason() -> None:
    """The gap of the list itself, or the parts that nothing here supports; in a guest no port is above a device."""
    guest = virtual(bare("0x120000"))

    assert "the class of 1 of 1 PCI functions is unknown" == replace(bare(None)).devices_unread
    assert "PCI accelerators that are not supported: 0000:00:00.0" == replace(guest).devices_unread
    assert replace(bare("0x120000")).devices_unread is None


def test_a_probe_of_another_vendor_is_no_reason() -> None:
    """It had nothing to ask; where all are of other vendors, they are what there is to say."""
    context = probe(
        probe(server(), "nvml", "failed", "broken"), "kfd", "absent", "no accelerator of PCI vendor 0x1002", "no-device"
    )
    others = probe(context, "nvml", "absent", "no accelerator of PCI vendor 0x10de", "no-device")

    assert "nvml: failed: broken" == context.why_probe_failed("gpu")
    assert "nvml: absent: no accelerator of PCI vendor 0x10de" in (others.why_probe_failed("gpu") or "")


@pytest.mark.parametrize(
    ("change", "idle"),
    [
        pytest.param({}, True, id="the driver of a GPU, and no GPU"),
        pytest.param({"modules": ["mlx5_core"]}, False, id="no driver of a GPU"),
        pytest.param({"gpus": True}, False, id="a GPU"),
        pytest.param({"guest": True}, False, id="a guest"),
        pytest.param({"driver": "amdgpu"}, False, id="it drives a function"),
        pytest.param({"vendor": "0x1002", "driver": None}, False, id="what drives a function of AMD is unknown"),
        pytest.param({"vendor": "0x1002"}, True, id="another driver drives a function of AMD"),
        pytest.param({"driver": None}, True, id="what drives a function of another maker is unknown"),
    ],
)
def test_a_driver_without_a_gpu(change: dict, idle: bool) -> None:
    """It may be that of the GPU of a CPU, or of one that is gone."""
    context = bare("0x060400")
    only = replace(
        context.topology.pci[0], vendor=change.get("vendor", "0x1000"), driver=change.get("driver", "pcieport")
    )
    gpus = server(1).topology.gpus if change.get("gpus") else []
    context = topology(
        software(context, modules=[Module(name=name) for name in change.get("modules", ["amdgpu"])]), pci=[only]
    )
    context = virtual(topology(context, gpus=gpus)) if change.get("guest") else topology(context, gpus=gpus)

    assert idle == bool(context.why_gpu_driver_idle)


def test_lists_of_two_hosts() -> None:
    """A list that is cut is known to lack what comes after its end: there the other one is of the same host."""
    whole = driven(listed(bare("0x060000")), "0000:19:00.0")
    cut = probe(whole, "lspci", "partial", CUT, "list-cut")
    first = cut.topology.pci[0]
    after = topology(cut, pci=[replace(first, id="0000:17:00.0"), replace(first, id="0000:1a:00.0")])

    assert "a GPU of the driver is missing" in (whole.why_lists_differ or "")
    assert cut.why_lists_differ is None
    assert "a GPU of the driver is missing" in (after.why_lists_differ or "")
    assert topology(cut, pci=[]).why_lists_differ is None


@pytest.mark.parametrize(
    ("at", "up", "seconds"),
    [
        ("2026-01-01T23:00:00Z", 86400.0, 3600.0),
        ("2025-12-31T23:00:00Z", 86400.0, 90000.0),
        ("2025-12-31T22:59:59Z", 86400.0, None),
        ("2025-12-01T00:00:00Z", None, 2764800.0),
        (None, 86400.0, None),
        ("no time", 86400.0, None),
    ],
)
def test_seconds_since_a_line_of_this_boot(at: str | None, up: float | None, seconds: float | None) -> None:
    """Not a second more than an hour before the boot: the clock was wrong."""
    context = node(replace(server(), observed_at="2026-01-02T00:00:00Z"), uptime_seconds=up)

    assert seconds == context.seconds_since(at)


def test_a_list_that_was_cut_is_no_reason_beside_one_that_is_whole() -> None:
    """Neither is one of another subject."""
    cut = probe(server(), "rdma_tools", "partial", "ibstat: the text ends within a line")

    assert cut.why_partial("rdma") is None
    assert "rdma_tools: ibstat: the text ends within a line" == probe(cut, "rdma", "absent", "").why_partial("rdma")
    assert probe(cut, "rdma", "absent", "").why_partial("gpu") is None


def test_any_device_is_something_to_check() -> None:
    """A GPU, a NIC, an NVSwitch, or one that the last run saw."""
    context = bare("0x060400")
    full = server(1).topology
    switch = [NvSwitch(id="0000:83:00.0", pci="0000:83:00.0")]

    assert not replace(context).has_devices
    assert topology(context, nics=full.nics).has_devices
    assert topology(context, nvswitches=switch).has_devices
    assert topology(context, gpus=full.gpus).has_devices
    assert replace(context, history=LOST).has_devices
    assert not replace(context, history=History(last_run="2026-01-01T00:00:00Z", runs=1)).has_devices


def test_a_function_that_came_or_went_is_no_gap() -> None:
    """It has no class because it left while it was read."""
    context = bare(None)
    left = msgspec.structs.replace(context.topology.pci[0], state="changed_during_scan")

    assert None is topology(context, pci=[left]).why_bus_unread


@pytest.mark.parametrize(
    ("changes", "could"),
    [({}, True), ({"role": "management"}, False), ({"state": "vfio"}, False), ({"virtual_function": True}, False)],
)
def test_a_nic_may_be_a_rail_where_nothing_says_what_it_is_for(changes, could: bool) -> None:
    """One that waits for a guest, or belongs to one, is none; nor is any where there is no GPU."""
    context = changed_nic(changed_nics(server(), role="unknown"), 1, **changes)

    assert could == (nic_id(1) in {nic.id for nic in context.maybe_rails})
    assert () == topology(context, gpus=[]).maybe_rails


def test_rails_are_known_where_one_is() -> None:
    """Whatever nothing is known of beside it."""
    nameless = changed_nics(server(), role="unknown", role_evidence=["no path is known"])

    assert "which NICs are rails is not known: no path is known" == nameless.why_no_rail_known
    assert None is changed_nic(nameless, 1, role="rail").why_no_rail_known


def test_a_nic_is_found_by_its_own_function() -> None:
    """A sub-function has its parent's."""
    parent = server().topology.nics[1]
    part = msgspec.structs.replace(parent, id=f"{parent.id}/sf1")
    virtual = msgspec.structs.replace(parent, id="mlx5_9", pci=None)

    assert {parent.id: parent} == topology(server(), nics=[parent, part, virtual]).nic_by_pci


def test_nodes_with_cpus_are_sockets() -> None:
    """The third is the memory of a GPU or of CXL."""
    assert (0, 1) == server().cpu_nodes


@pytest.mark.parametrize(("seconds", "settles"), [(899.9, True), (900.0, False), (None, False)])
def test_links_settle_for_a_quarter_of_an_hour(seconds: float | None, settles: bool) -> None:
    """Where nobody says how long the host runs, it runs long enough."""
    assert settles == bool(node(server(), uptime_seconds=seconds).why_settling)


@pytest.mark.parametrize(
    ("window", "why"),
    [
        (CountersWindow(seconds=60.0), None),
        (CountersWindow(reset_reason="the host was restarted"), "the host was restarted"),
        (CountersWindow(seconds=0.0), "counters need two samples"),
        (None, "counters need two samples"),
    ],
)
def test_a_window_has_a_length(window: CountersWindow | None, why: str | None) -> None:
    """Or says why it has none."""
    result = replace(server(), window=window).why_not_counted

    assert (result or "").startswith(why) if why else result is None


def test_a_counter_that_is_not_there_did_not_stand_still() -> None:
    """What both samples hold and the window does not name did."""
    context = replace(server(), window=CountersWindow(seconds=60.0, moved={"pci:a": {"b": 2}}))

    assert [2, 0, None] == [context.counter_delta("pci:a", name, {"b": 9, "c": 9}) for name in ("b", "c", "d")]


def test_what_many_rules_ask_is_made_once() -> None:
    """For each case."""
    collected = []

    def rails(context):
        collected.append(context)
        return context.rails

    context = server()
    assert [context.rails] * 2 == [context.once(rails), context.once(rails)]
    assert [context] == collected


def test_without_an_earlier_sample_that_is_the_reason_for_each_counter() -> None:
    """Not that the counter is missing, which nobody could know."""
    context = replace(server(), window=CountersWindow(reset_reason="the host was restarted"))

    assert "the host was restarted" == context.why_no_delta("port:a", "x")


def test_a_gap_of_all_counters_is_the_reason_for_each() -> None:
    """A counter's own gap is named before that of all."""
    window = CountersWindow(seconds=60.0, not_compared={"port:a": {"*": "the driver was loaded anew"}})
    context = replace(server(), window=window)

    assert "the driver was loaded anew" in context.why_no_delta("port:a", "x")
    assert "x is not among its counters" in context.why_no_delta("port:b", "x")
