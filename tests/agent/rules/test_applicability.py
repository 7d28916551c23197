"""Where families apply: ruled out only where it is certain that no rule of the family has anything to judge."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from agent.diagnose import ScanPlan, diagnose
from agent.history.context import build_context
from agent.model.gpu import NvSwitch
from agent.model.node import Event, Nccl, NcclSetting, Service
from agent.model.profile import Profile
from agent.model.reasons import NO_EARLIER_RUN
from agent.model.report import History, Known
from agent.rules import applicability
from agent.rules.catalogue import FAMILIES, every_rule, load_rule, rules_for
from agent.rules.context import RuleContext, Settings
from agent.rules.engine import judge
from agent.rules.fragments import assume_context
from agent.rules.pages import read_declaration
from agent.rules.rule import Fail, NotApplicable, Result, Unknown
from bench.run import FRAGMENTS
from probes.sources.open_source import open_source
from tests.agent.rules import machines
from tests.agent.rules.build import changed_nic, changed_port, instinct, node, probe, server, software, topology
from tests.agent.rules.moves import gpus, infiniband, roce

FAMILY_OF = {family.name: family for family in FAMILIES}


def test_a_kind_of_port_that_is_not_here_shuts_its_gate() -> None:
    """Every port is known to be of the other kind."""
    assert isinstance(applicability.has_roce(server()), NotApplicable)
    assert isinstance(applicability.has_infiniband(server(ethernet=True)), NotApplicable)
    assert applicability.has_roce(server(ethernet=True)) is None
    assert applicability.has_infiniband(server()) is None


@pytest.mark.parametrize(
    "context",
    [
        pytest.param(changed_port(server(), 1, link_layer=None), id="a port of unknown kind"),
        pytest.param(changed_nic(server(), 1, ports=[]), id="a NIC whose ports nobody shows"),
        pytest.param(probe(server(), "rdma", "denied", "no"), id="RDMA was not read"),
        pytest.param(probe(server(), "pci", "failed", "no"), id="the bus was not read"),
    ],
)
def test_a_gate_stays_open_where_there_is_doubt(context) -> None:
    """What could not be read may be RoCE."""
    assert applicability.has_roce(context) is None


def test_modules_need_a_nic() -> None:
    """One that is certainly not there, that is."""
    bare = topology(server(), nics=[])

    assert isinstance(applicability.has_nics(bare), NotApplicable)
    assert applicability.has_nics(server()) is None
    assert applicability.has_nics(probe(bare, "pci", "failed", "no")) is None


def test_counters_need_an_earlier_sample_and_a_settled_host() -> None:
    """Without one, what a counter stands at says nothing."""
    answer = applicability.has_window(server())
    assert isinstance(answer, Unknown)
    assert "--state-dir" in answer.reason
    assert isinstance(applicability.has_device_counters(topology(server(), gpus=[], nics=[])), NotApplicable)
    young = applicability.has_window(replace(node(server(), uptime_seconds=60.0)))
    assert isinstance(young, Unknown)


def test_nvlink_and_nccl_need_gpus() -> None:
    """The gate stays open where a GPU may be hidden, and where something of NVLink is there or is expected."""
    bare = topology(server(), gpus=[], nvswitches=[])

    assert isinstance(applicability.has_nvlink(bare), NotApplicable)
    assert isinstance(applicability.has_gpus(bare), NotApplicable)
    assert isinstance(applicability.has_nvlink(node(bare, container="docker")), NotApplicable)
    assert applicability.has_nvlink(server()) is None
    assert applicability.has_gpus(server()) is None
    assert applicability.has_gpus(probe(bare, "pci", "failed", "no")) is None
    assert applicability.has_nvlink(probe(bare, "pci", "failed", "no")) is None
    assert applicability.has_nvlink(replace(bare, profile=Profile(name="p"))) is None
    assert (
        applicability.has_nvlink(topology(bare, nvswitches=[NvSwitch(id="0000:05:00.0", pci="0000:05:00.0")])) is None
    )


@pytest.mark.parametrize("ethernet", [True, False])
def test_rules_of_nvlink_and_nccl_have_nothing_to_say_without_gpus(ethernet: bool) -> None:
    """Whatever else is set: each of them would be not applicable."""
    bare = topology(server(ethernet=ethernet), gpus=[], nvswitches=[])
    service = Service(name="nvidia-imex", state="failed")
    wrong = NcclSetting(key="", value="NCCL_X", source="/etc/nccl.conf:1", scope="system")
    bare = software(bare, services=[service], imex={"nodes_config": "4"}, nccl=Nccl(not_settings=[wrong]))
    families = [family for family in FAMILIES if family.name in ("nvlink", "nccl")]
    loaded = [load_rule(family, name) for family in families for name in family.rules]
    rules = [rule for rule in loaded if not rule.check.__module__.endswith(".counters")]

    assert {"not_applicable"} == {check.state for check in judge(bare, rules)[0]}


@pytest.mark.parametrize("ethernet", [True, False])
def test_a_shut_gate_says_what_the_rules_would(ethernet: bool) -> None:
    """Nothing is found or lost by not asking."""
    context = server(ethernet=ethernet)
    gated, _, summary = judge(context, rules_for(context))
    request, _, expected = judge(context, every_rule())

    assert [check.rule for check in gated] == [check.rule for check in request]
    assert [check.state for check in gated] == [check.state for check in request]
    assert summary == expected


def test_gates_of_nics_gpudirect_and_a_profile() -> None:
    """Shut without what they judge, open where it may be hidden."""
    bare = topology(server(), nics=[])
    no_gpus = topology(server(), gpus=[])
    hidden = probe(topology(server(), gpus=[], nics=[]), "pci", "failed", "no")

    assert applicability.has_nics(server()) is None
    assert isinstance(applicability.has_nics(bare), NotApplicable)
    assert applicability.has_nics(hidden) is None
    assert applicability.has_gpudirect(server()) is None
    assert NotApplicable("node", "no GPU") == applicability.has_gpudirect(no_gpus)
    assert isinstance(applicability.has_gpudirect(bare), NotApplicable)
    assert applicability.has_gpudirect(hidden) is None
    assert isinstance(applicability.has_profile(server()), NotApplicable)
    assert applicability.has_profile(replace(server(), profile=Profile(name="x"))) is None


def test_gates_of_moved_counters_are_shut_for_the_kind_of_port_first() -> None:
    """A node without RoCE is not told that a sample is missing; nor is one whose sample is there."""
    sampled = infiniband()

    assert isinstance(applicability.has_roce_counters(sampled), NotApplicable)
    assert isinstance(applicability.has_infiniband_counters(roce()), NotApplicable)
    assert applicability.has_infiniband_counters(sampled) is None
    assert applicability.has_roce_counters(roce()) is None
    for left in ({"gpus": []}, {"nics": []}):
        assert applicability.has_device_counters(topology(gpus(), **left)) is None
    bare = topology(gpus(), gpus=[], nics=[])
    assert isinstance(applicability.has_device_counters(bare), NotApplicable)
    assert applicability.has_device_counters(probe(bare, "pci", "failed", "no")) is None


def test_counters_of_ports_inside_accelerators_are_judged_beside_infiniband() -> None:
    """No NIC has RoCE there."""
    beside = topology(machines.npus(), nics=server().topology.nics)
    without = replace(beside, accelerator_nics=(), window=None)

    for gate in (applicability.has_roce_counters, applicability.has_roce_flaps):
        assert gate(beside) is None
        assert NotApplicable("node", "no RoCE port") == gate(without)


@pytest.mark.parametrize(
    ("history", "answer"),
    [
        (None, Unknown("node", NO_EARLIER_RUN)),
        (History(reason="another host"), Unknown("node", "another host")),
        (History(), NotApplicable("node", "the inventory of the last run is empty")),
        (History(inventory=[Known(subject="gpu:0000:14:00.0", label="GPU0")]), None),
    ],
)
def test_what_is_lost_is_judged_where_an_earlier_run_left_an_inventory(history: History | None, answer) -> None:
    """A reason why there is none comes before its being empty."""
    assert answer == applicability.has_inventory(replace(server(), history=history))


def test_roce_counters_need_an_earlier_sample() -> None:
    """RoCE alone does not open the gate."""
    assert isinstance(applicability.has_roce_counters(server(ethernet=True)), Unknown)


@pytest.mark.parametrize(
    ("gate", "machine"),
    [
        (applicability.has_gaudi, machines.gaudi_cards),
        (applicability.has_neuron, machines.neuron_devices),
        (applicability.has_ascend, machines.npus),
        (applicability.has_npu_events, machines.npus),
        (applicability.has_neuron_events, machines.neuron_devices),
        (applicability.has_cxl_events, machines.expanders),
        (applicability.has_cxl, machines.expanders),
    ],
)
def test_a_vendors_rules_need_its_devices(
    gate: Callable[[RuleContext], Result | None], machine: Callable[[], RuleContext]
) -> None:
    """A bus that was not read may have one; devices that a tool lists are there, whatever was read."""
    assert gate(machine()) is None
    assert gate(probe(machine(), "pci", "failed", "no")) is None
    assert isinstance(gate(server()), NotApplicable)
    unread = gate(probe(server(), "pci", "failed", "no"))
    assert isinstance(unread, Unknown)


def test_lines_of_the_kernel_log_open_the_gates_of_what_they_are_about() -> None:
    """Others do not: a line of an Xid is none of an NPU, nor of a link."""
    of_npu, of_link, up, of_gpu = (
        replace(server(ethernet=True), events=[Event(kind=kind, text="", source="dmesg")])
        for kind in ("npu_reset", "link_down", "link_up", "xid")
    )

    for gate, kind in (
        (applicability.has_npu_events, "npu_reset"),
        (applicability.has_neuron_events, "neuron_hw"),
        (applicability.has_cxl_events, "cxl_protocol"),
    ):
        logged = replace(server(), events=[Event(kind=kind, text="", source="dmesg")])
        assert (kind, gate(logged)) == (kind, None)
        assert isinstance(gate(of_gpu), NotApplicable)
    assert applicability.has_npu_events(of_npu) is None
    assert isinstance(applicability.has_npu_events(of_gpu), NotApplicable)
    assert applicability.has_roce_flaps(of_link) is None
    assert applicability.has_roce_flaps(up) is None
    assert isinstance(applicability.has_roce_flaps(of_gpu), Unknown)
    assert isinstance(applicability.has_roce_flaps(replace(server(), events=of_link.events)), NotApplicable)
    noted = History(link_downs={"port:0000:15:00.0/1": ["2026-11-25T10:00:00Z"]})
    assert applicability.has_roce_flaps(replace(server(ethernet=True), history=noted)) is None


def test_gates_of_amd_gpus() -> None:
    """Open where one is there or may be hidden; with GPUDirect's own guard first."""
    assert applicability.has_amd_gpus(instinct()) is None
    assert isinstance(applicability.has_amd_gpus(server()), NotApplicable)
    assert applicability.has_amd_gpus(probe(server(), "pci", "failed", "no")) is None
    assert applicability.has_amd_rails(instinct()) is None
    assert NotApplicable("node", "no GPU of AMD") == applicability.has_amd_rails(server())
    assert NotApplicable("node", "no NIC that supports RDMA") == applicability.has_amd_rails(
        topology(instinct(), nics=[])
    )


@pytest.fixture(scope="module", params=FRAGMENTS)
def fragment(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> RuleContext:
    """What a pasted output states."""
    path = tmp_path_factory.mktemp("fragment") / "x.md"
    path.write_text(FRAGMENTS[request.param])
    report = diagnose(open_source(str(path)), ScanPlan())[0]
    return build_context(report, Settings(), report.platform, None)


def test_a_rule_whose_module_is_not_imported_would_look_at_nothing(fragment: RuleContext) -> None:
    """Of the fragment as it is it states nothing; with assumed context it finds nothing."""
    put_off = 0
    for family in FAMILIES:
        for name in family.rules:
            is_unlisted = family.unlisted.get(read_declaration(name).module)
            if is_unlisted is None or not is_unlisted(fragment):
                continue
            put_off += 1
            check = load_rule(family, name).check
            assumed = assume_context(fragment)
            assert [] == list(check(fragment))
            assert not is_unlisted(assumed) or not any(isinstance(answer, Fail) for answer in check(assumed))

    assert put_off > 10


def test_a_rule_is_asked_where_assumed_context_shows_what_it_judges(fragment: RuleContext) -> None:
    """Its module is imported then: an interface may be assumed to be that of a NIC."""
    asked = next(rule for rule in rules_for(fragment) if rule.name == "roce-pfc-off")
    ports = server(ethernet=True)

    assert list(load_rule(FAMILY_OF["roce"], "roce-pfc-off").check(ports)) == list(asked.check(ports))


def test_lists_are_unread_where_a_profile_expects_what_is_not_here_or_one_was_read() -> None:
    """Then rules have something to state of what is missing."""
    bare = probe(topology(server(), gpus=[], nics=[]), "pci", "failed", "no")
    unread = probe(probe(bare, "nvml", "absent", "no"), "rdma", "absent", "no")

    assert (True, True) == (applicability.lists_no_gpu(unread), applicability.lists_no_nic(unread))
    assert (False, False) == (applicability.lists_no_gpu(bare), applicability.lists_no_nic(bare))
    expected = replace(unread, profile=Profile(name="x", title="X"))
    assert (False, False) == (applicability.lists_no_gpu(expected), applicability.lists_no_nic(expected))
    whole = probe(probe(topology(server(), gpus=[], nics=[]), "nvml", "absent", "no"), "rdma", "absent", "no")
    assert (False, False) == (applicability.lists_no_gpu(whole), applicability.lists_no_nic(whole))
