"""inventory-lost: when it fires, when it must not, and every guard alone."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from agent.model.gpu import Mig, NvSwitch
from agent.model.pci import PciFunction
from agent.model.report import History
from agent.rules.catalogue import rules_for
from agent.rules.context import RuleContext
from agent.rules.engine import judge
from agent.rules.host.inventory import inventory_lost as rule
from agent.rules.host.inventory_matching import build_inventory
from agent.rules.pcie.devices import pcie_device_gone
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import (
    answers,
    changed_gpu,
    changed_gpus,
    changed_nic,
    changed_port,
    fails,
    function,
    gpu_id,
    kinds,
    nic_id,
    probe,
    server,
    software,
    topology,
    virtual,
)
from tests.agent.rules.rows import nvlinks

GPU, RAIL, SWITCH = gpu_id(1), nic_id(1), "0000:83:00.0"


def remembering(now: RuleContext, was: RuleContext | None = None) -> RuleContext:
    """A machine whose earlier run saw another one."""
    known = build_inventory((was or server()).topology)
    return replace(now, history=History(inventory=known, last_good="2026-01-01T00:00:00Z", runs=1))


def without(case: RuleContext, *gone: str) -> RuleContext:
    """The same machine without these functions and their devices."""
    top = case.topology
    return topology(
        case,
        pci=[f for f in top.pci if f.id not in gone],
        gpus=[g for g in top.gpus if g.id not in gone],
        nics=[n for n in top.nics if n.id not in gone],
        nvswitches=[s for s in top.nvswitches if s.id not in gone],
    )


def lost_gpu() -> RuleContext:
    return remembering(without(server(), GPU))


def lost_rail(**changes: object) -> RuleContext:
    return remembering(without(server(), RAIL), changed_nic(server(), 1, **changes))


def switched() -> RuleContext:
    """With an NVSwitch."""
    case = server()
    found = PciFunction(id=SWITCH, class_code="0x068000", vendor="0x10de")
    return topology(case, pci=[*case.topology.pci, found], nvswitches=[NvSwitch(id=SWITCH, pci=SWITCH)])


def test_a_gpu_that_is_gone_without_a_trace_is_critical() -> None:
    """One finding; its links went with it."""
    (fault,) = fails(rule, lost_gpu())

    assert (f"gpu:{GPU}", "former GPU1", "critical", "uuid GPU-00000001") == (
        fault.subject, fault.label, fault.severity, fault.cause,
    )  # fmt: skip
    assert {GPU, server().functions[GPU].parent} == set(fault.places)  # and the port that is empty now
    assert "; nor" not in fault.summary
    assert fault.impact.startswith("1 of 4 GPUs")
    assert "2026-01-01" in fault.evidence[0].what
    assert "--accept-inventory" in fault.remedy
    assert {NotApplicable} == {type(a) for n in range(18) for a in answers(rule, lost_gpu(), f"link:{GPU}/{n}")}


def test_it_is_found_where_no_device_is_left() -> None:
    """No accelerator and no NIC now, but in the inventory."""
    bare = topology(
        server(), gpus=[], nics=[], netdevs=[], pci=[f for f in server().topology.pci if f.port_type != "endpoint"]
    )
    checks, findings, summary = judge(remembering(bare), [rule])

    assert "critical" == summary.verdict
    assert 8 == len(findings)
    assert "fail" == checks[0].state


def test_a_switch_is_critical_and_a_nic_an_error() -> None:
    """Each with its parts."""
    (switch,) = fails(rule, remembering(without(switched(), SWITCH), switched()))
    (rail,) = fails(rule, lost_rail())

    assert (f"nvswitch:{SWITCH}", "critical") == (switch.subject, switch.severity)
    assert (f"nic:{RAIL}", "former mlx5_1", "error", "guid 0000:0000:0000:0001") == (
        rail.subject, rail.label, rail.severity, rail.cause,
    )  # fmt: skip
    assert {RAIL, f"rail of {GPU}", server().functions[RAIL].parent} == set(rail.places)


@pytest.mark.parametrize(("role", "severity"), [("storage", "error"), ("unused", "warning"), ("auxiliary", "warning")])
def test_a_nic_without_a_use_is_a_warning(role: str, severity: str) -> None:
    """Of any other use, an error."""
    assert [severity] == [fault.severity for fault in fails(rule, lost_rail(role=role))]


def test_what_hangs_on_one_lost_port_is_one_fault() -> None:
    """A switch died: GPU and rail below it are named in the gravest one."""
    below = [f"0000:2{rest}" for rest in ("1:00.0", "2:00.0", "2:01.0", "4:00.0", "5:00.0")]
    (fault,) = fails(rule, remembering(without(server(), *below)))

    assert (f"gpu:{GPU}", "critical") == (fault.subject, fault.severity)
    assert "mlx5_1" in fault.summary
    assert {GPU, RAIL, "0000:21:00.0"} <= fault.places
    assert "1 of 4 GPUs and 1 of 4 NICs" in fault.impact


def test_a_port_that_is_gone_takes_it_into_its_finding() -> None:
    """A switch that does not answer, and below it nothing is listed any more."""
    below = [f"0000:2{rest}" for rest in ("2:00.0", "2:01.0", "4:00.0", "5:00.0")]
    case = remembering(function(without(server(), *below), "0000:21:00.0", state="gone"))
    _, findings, _ = judge(case, [pcie_device_gone, rule])

    assert ["pcie-device-gone"] == [finding.rule for finding in findings]
    assert [f"inventory-lost gpu:{GPU}"] == findings[0].absorbs


def test_a_port_of_a_nic_that_is_here_is_an_error() -> None:
    """The RDMA device has it no more."""
    (fault,) = fails(rule, remembering(changed_nic(server(), 1, ports=[], state="no_rdma_device")))

    assert (f"port:{RAIL}/1", "mlx5_1/1", "error") == (fault.subject, fault.label, fault.severity)
    assert frozenset({RAIL}) == fault.places


@pytest.mark.parametrize(
    "links", [nvlinks(16), [*nvlinks(16), *(msgspec.structs.replace(n, state="inactive") for n in nvlinks()[16:])]]
)
def test_links_of_one_gpu_are_one_fault(links: list[object]) -> None:
    """Whether the driver lists them as down or not at all."""
    (fault,) = fails(rule, remembering(changed_gpu(server(), 1, links=links)))

    assert (f"link:{GPU}/16", "error") == (fault.subject, fault.severity)
    assert "GPU1 NVLink 17" in fault.summary
    assert "2 of 72 NVLinks" in fault.impact
    assert GPU in fault.places


def test_a_link_of_a_gpu_that_moved_is_told_under_its_new_id() -> None:
    """A subject of now, by the label of now."""
    now = function(
        changed_gpu(server(), 1, id="0000:99:00.0", pci="0000:99:00.0", links=nvlinks(17)), GPU, id="0000:99:00.0"
    )

    was = changed_gpu(server(), 1, label="GPU7")

    assert [("link:0000:99:00.0/17", "GPU1 NVLink 17")] == [
        (fault.subject, fault.label) for fault in fails(rule, remembering(now, was))
    ]


def test_a_whole_machine_passes() -> None:
    """And so does one with more than there was."""
    assert {Pass} == kinds(rule, remembering(server()))
    assert {Pass} == kinds(rule, remembering(server(4), server(3)))


@pytest.mark.parametrize(
    ("case", "kind"),
    [
        pytest.param(virtual(lost_gpu()), Unknown, id="virtual machine"),
        pytest.param(probe(lost_gpu(), "pci", "denied", "no sysfs"), Unknown, id="bus not read"),
        pytest.param(
            remembering(
                function(
                    changed_gpu(server(), 1, id="0000:99:00.0", pci="0000:99:00.0", uuid=None), GPU, id="0000:99:00.0"
                )
            ),
            Unknown,
            id="a new one that does not say who it is",
        ),
        pytest.param(
            remembering(
                function(changed_gpu(server(), 1, id="0000:99:00.0", pci="0000:99:00.0"), GPU, id="0000:99:00.0")
            ),
            Pass,
            id="moved",
        ),
        pytest.param(remembering(changed_gpu(server(), 1, uuid="GPU-new")), Pass, id="replaced"),
        pytest.param(remembering(function(server(), GPU, state="gone")), NotApplicable, id="gone, and listed"),
        pytest.param(remembering(function(server(), GPU, state="changed_during_scan")), NotApplicable, id="vanished"),
        pytest.param(remembering(function(server(), GPU, state="asleep")), Pass, id="asleep"),
        pytest.param(
            remembering(topology(server(), gpus=[g for g in server().topology.gpus if g.id != GPU])),
            NotApplicable,
            id="a function that nobody calls a GPU now",
        ),
        pytest.param(remembering(changed_gpu(server(), 1, driver_state="vfio")), Pass, id="for a virtual machine"),
    ],
)
def test_a_guard_keeps_a_device_silent(case: RuleContext, kind: type) -> None:
    """The answer that the page promises, and no fault."""
    (answer,) = answers(rule, case, f"gpu:{GPU}")

    assert isinstance(answer, kind), answer
    assert [] == fails(rule, case)


def no_port(**changes: object) -> RuleContext:
    return remembering(changed_nic(server(), 1, **{"ports": [], "state": "no_rdma_device", **changes}))


def by_name_alone(**changes: object) -> RuleContext:
    """Tools told the RDMA devices after sysfs gave no answer in time, as in a guest under load."""
    case = no_port()
    (port,) = server().nics[RAIL].ports
    told = msgspec.structs.replace(
        server().nics[RAIL], **{"id": "mlx5_1", "label": "mlx5_1", "pci": None, "ports": [port], **changes}
    )
    return topology(case, nics=[*case.topology.nics, told])


@pytest.mark.parametrize(
    ("case", "kind"),
    [
        pytest.param(by_name_alone(), Unknown, id="told without its NIC"),
        pytest.param(no_port(state="vfio"), NotApplicable, id="vfio"),
        pytest.param(no_port(state="no_driver"), NotApplicable, id="no driver"),
        pytest.param(no_port(state="other_namespace"), NotApplicable, id="another namespace"),
        pytest.param(no_port(limited="fabric manager"), NotApplicable, id="a fabric manager's now"),
        pytest.param(probe(no_port(), "rdma", "failed", "broken"), Unknown, id="rdma not read"),
        pytest.param(probe(no_port(), "rdma", "partial", "a file"), Unknown, id="rdma read in part"),
        pytest.param(software(no_port(), rdma_namespaces="exclusive"), Unknown, id="exclusive namespaces"),
        pytest.param(function(no_port(), RAIL, state="asleep"), Unknown, id="asleep"),
        pytest.param(virtual(no_port()), Unknown, id="virtual machine"),
        pytest.param(lost_rail(), NotApplicable, id="its NIC is lost"),
        pytest.param(remembering(changed_port(server(), 1, state="DOWN")), Pass, id="down, and there"),
    ],
)
def test_a_guard_keeps_a_port_silent(case: RuleContext, kind: type) -> None:
    """The answer that the page promises."""
    (answer,) = answers(rule, case, f"port:{RAIL}/1")

    assert isinstance(answer, kind), answer
    assert f"port:{RAIL}/1" not in {fault.subject for fault in fails(rule, case)}


@pytest.mark.parametrize("changes", [{"software": True}, {"ports": []}, {"pci": "0000:ff:00.0"}])
def test_another_device_without_a_nic_hides_no_loss(changes: dict[str, object]) -> None:
    """Software devices have none, and devices without ports are nobody's port."""
    assert f"port:{RAIL}/1" in {fault.subject for fault in fails(rule, by_name_alone(**changes))}


def dead_links(**changes: object) -> RuleContext:
    links = [msgspec.structs.replace(each, state="inactive") for each in nvlinks()]
    return remembering(changed_gpu(server(), 1, **{"links": links, **changes}))


@pytest.mark.parametrize(
    ("case", "kind"),
    [
        pytest.param(dead_links(mig=Mig(current=True)), NotApplicable, id="MIG"),
        pytest.param(dead_links(nvlink_bandwidth_mode="min"), NotApplicable, id="bandwidth mode"),
        pytest.param(dead_links(driver_state="no_driver"), NotApplicable, id="no driver"),
        pytest.param(function(dead_links(), GPU, state="asleep"), NotApplicable, id="asleep"),
        pytest.param(dead_links(links_known=False, links_reason="denied"), Unknown, id="not read"),
        pytest.param(
            dead_links(links=[msgspec.structs.replace(each, state="unknown") for each in nvlinks()]),
            Unknown,
            id="no state",
        ),
        pytest.param(virtual(dead_links()), Unknown, id="virtual machine"),
        pytest.param(
            dead_links(links=[msgspec.structs.replace(each, state="sleep") for each in nvlinks()]),
            Pass,
            id="asleep links",
        ),
    ],
)
def test_a_guard_keeps_links_silent(case: RuleContext, kind: type) -> None:
    """The answer that the page promises."""
    (answer,) = answers(rule, case, f"link:{GPU}/3")

    assert isinstance(answer, kind), answer
    assert [] == fails(rule, case)


def test_one_of_two_functions_of_a_card_is_named_with_the_other() -> None:
    """A dual-port card is one card."""
    second = RAIL.replace(".0", ".1")
    rail = server().topology.nics[1]
    pair = topology(
        server(),
        nics=[
            *server().topology.nics,
            msgspec.structs.replace(rail, id=second, pci=second, label="mlx5_9", node_guid="9"),
        ],
    )
    (fault,) = fails(rule, remembering(without(server(), RAIL), pair))

    assert "mlx5_9" in fault.summary


@pytest.mark.parametrize(
    ("history", "state"),
    [
        (None, "unknown"),
        (History(reason="the first run"), "unknown"),
        (History(runs=3), "not_applicable"),
        (History(runs=3, inventory=build_inventory(server().topology)), "pass"),
    ],
)
def test_the_gate_is_shut_without_an_inventory(history: History | None, state: str) -> None:
    """What nobody wrote down is not known; an empty inventory misses nothing."""
    case = replace(server(), history=history)
    chosen = [each for each in rules_for(case) if each.name == "inventory-lost"]

    assert [state] == [check.state for check in judge(case, chosen)[0]]


def test_a_hostile_inventory_is_judged_without_a_fault_of_ours() -> None:
    """A report may hold anything."""
    rows = [msgspec.structs.replace(each, subject=text) for each in build_inventory(server(1).topology)[:1] for text in
            ("", "gpu", "link:", "port:x", "link:a/b/c", ":::", "quantum:7", "nic:")]  # fmt: skip
    case = replace(changed_gpus(server()), history=History(inventory=rows, runs=1))

    assert list(rule.check(case))


def test_parts_that_are_gone_are_about_their_device() -> None:
    """A port of a NIC that is here: the NIC is the place, and no GPU's rail is missing."""
    case = changed_nic(server(), 1, ports=[])
    (fault,) = fails(rule, remembering(case))

    assert {RAIL} == set(fault.places)


def test_nobody_remembers_and_one_answer_says_so() -> None:
    """Not every device of now."""
    assert 1 == len(list(rule.check(server())))


def test_a_probe_that_saw_all_outweighs_one_that_saw_part() -> None:
    """The ports of a NIC are gone where one source was whole, and not known where none was."""
    case = remembering(changed_nic(server(), 1, ports=[]))
    part = probe(case, "rdma", "partial", "some")

    assert 1 == len(fails(rule, case))
    assert [] == fails(rule, part)
    assert 1 == len(fails(rule, probe(part, "rdma_tools", "ok")))
    assert [] == fails(rule, probe(part, "rdma_tools", "absent", "none"))
    tools = probe(probe(case, "rdma", "failed", "broken"), "rdma_tools", "partial", "a file")
    assert [Unknown(f"port:{RAIL}/1", "rdma_tools: a file")] == answers(rule, tools, f"port:{RAIL}/1")


def test_an_inventory_that_is_not_this_hosts_is_not_used() -> None:
    """The reason is the one answer."""
    case = lost_gpu()
    foreign = replace(case, history=msgspec.structs.replace(case.history, reason="another host"))

    assert [Unknown("node", "another host")] == list(rule.check(foreign))


def test_a_link_that_is_down_is_lost_whatever_another_tells() -> None:
    """Link 4 does not tell its state."""
    links = [msgspec.structs.replace(each, state={3: "inactive", 4: "unknown"}.get(each.link, "active")) for each in
             nvlinks()]  # fmt: skip
    case = remembering(changed_gpu(server(), 1, links=links))

    assert [f"link:{GPU}/3"] == [fault.subject for fault in fails(rule, case)]


def two_ports(case: RuleContext) -> RuleContext:
    """Rail 1 is a card with two ports."""
    (port,) = case.nics[RAIL].ports
    return changed_nic(case, 1, ports=[port, msgspec.structs.replace(port, port=2)])


def test_a_namespace_hides_whole_devices() -> None:
    """A port whose sibling is seen is lost: both would be hidden."""
    case = software(remembering(server(), two_ports(server())), rdma_namespaces="exclusive")

    assert [f"port:{RAIL}/2"] == [fault.subject for fault in fails(rule, case)]


def test_ports_of_two_functions_are_two_faults() -> None:
    """Each function has an RDMA device of its own; the two ports of one go together."""
    second = f"{RAIL[:-1]}1"
    rail = two_ports(server()).nics[RAIL]
    twin = msgspec.structs.replace(rail, id=second, pci=second, label="mlx5_9", node_guid="9")
    was = topology(two_ports(server()), nics=[rail, twin])
    now = topology(was, nics=[msgspec.structs.replace(each, ports=[]) for each in (rail, twin)])

    assert [f"port:{RAIL}/1", f"port:{second}/1"] == [fault.subject for fault in fails(rule, remembering(now, was))]
