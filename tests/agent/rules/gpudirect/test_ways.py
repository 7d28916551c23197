"""ACS, IOMMU and ATS between GPUs and rails: what is a fault on which kind of platform."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from agent.model.node import Driver, Platform
from agent.model.pci import Acs
from agent.rules.gpudirect.iommu import (
    gdr_acs_directnic,
    gdr_acs_on_path,
    gdr_ats_vm,
    gdr_iommu_group_directnic,
    gdr_iommu_translated,
)
from agent.rules.gpudirect.pairs import pairs, platform_kind
from agent.rules.gpudirect.peer_memory import gdr_datadirect_missing
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import (
    all_functions,
    answers,
    changed_nic,
    changed_nics,
    fails,
    function,
    gpu_id,
    kinds,
    nic_id,
    node,
    probe,
    server,
    software,
    topology,
    virtual,
)
from tests.agent.rules.gpudirect.machines import (
    DMA,
    PORT_DMA,
    PORT_GPU,
    ROOT,
    acs,
    direct_nic,
    grace,
    grouped,
    hosting,
    setting,
)

PAIR = f"pair:{gpu_id(1)}+{nic_id(1)}"
DOWN = ("0000:22:00.0", "0000:22:01.0")  # of GPU 1 and rail 1


def redirecting(*control: str, case=None):
    return function(case or server(), DOWN[0], acs=acs(*(control or ("RR",))))


def test_pairs_are_gpus_with_their_nearest_rails() -> None:
    """Not every GPU with every NIC."""
    assert [(gpu_id(n), nic_id(n)) for n in range(4)] == [(p.gpu.id, p.nic.id) for p in pairs(server())]
    assert {PAIR} <= {pair.subject for pair in pairs(server())}
    assert [] == list(pairs(changed_nics(server(), role="storage")))
    limited = changed_nic(server(), 1, limited="mezz internal")
    assert nic_id(1) not in {pair.nic.id for pair in pairs(limited)}


@pytest.mark.parametrize(
    ("made", "kind"),
    [
        (lambda c: c, "x86"),
        (virtual, "guest"),
        (lambda c: changed_nics(c, driver="efa"), "cloud"),
        (direct_nic, "direct-nic"),
        (grace, "grace"),
        (lambda c: function(c, "0000:11:00.0", vendor="0x15b3", device="0x1979"), "inline"),
        (lambda c: function(c, "0000:10:01.0", vendor="0x10de", device="0x22b1"), "grace"),
    ],
)
def test_the_kind_of_platform(made, kind: str) -> None:
    """It decides what ACS and IOMMU should be."""
    assert kind == platform_kind(made(server()))


@pytest.mark.parametrize("bit", ["RR", "CR"])
def test_a_redirect_on_the_way_is_an_error(bit: str) -> None:
    """Either, at either port; the port is named with the command that mends it."""
    (fault,) = fails(gdr_acs_on_path, redirecting(bit))

    assert (PAIR, "GPU1 and mlx5_1", None) == (fault.subject, fault.label, fault.severity)
    assert f"setpci -s {DOWN[0]} ECAP_ACS+0x6.w=0000" in fault.remedy
    assert bit == fault.evidence[0].value
    assert {gpu_id(1), nic_id(1), *DOWN} <= fault.places
    assert 1 == len(fails(gdr_acs_on_path, function(server(), DOWN[1], acs=acs(bit))))


def test_all_pairs_are_one_finding() -> None:
    """Nobody sets ACS for a single pair."""
    (fault,) = fails(gdr_acs_on_path, all_functions(server(), "0x060400", acs=acs("SV", "RR", "CR", "UF")))

    assert "node" == fault.subject
    assert 8 == len(fault.evidence)


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        pytest.param(virtual, NotApplicable, id="a guest"),
        pytest.param(hosting, NotApplicable, id="a host of guests"),
        pytest.param(lambda c: changed_nics(c, driver="efa"), NotApplicable, id="a cloud's NICs"),
        pytest.param(
            lambda c: function(c, "0000:30:01.0", vendor="0x10de", device="0x22b8"), NotApplicable, id="Grace"
        ),
        pytest.param(direct_nic, NotApplicable, id="a Direct NIC board"),
        pytest.param(lambda c: function(c, DOWN[0], acs=acs("SV", "TB")), Pass, id="bits that redirect nothing"),
        pytest.param(lambda c: function(c, DOWN[0], acs=Acs()), Pass, id="no ACS"),
        pytest.param(lambda c: function(c, DOWN[0], acs=None), Unknown, id="not readable"),
        pytest.param(
            lambda c: function(function(c, DOWN[0], acs=acs("RR", "DT")), nic_id(1), ats=True), Pass, id="translated"
        ),
        pytest.param(lambda c: function(c, DOWN[0], port_type=None), Unknown, id="kind of port not known"),
        pytest.param(
            lambda c: topology(c, pci=[f for f in c.topology.pci if f.id != DOWN[0]]), Unknown, id="port not listed"
        ),
    ],
)
def test_what_keeps_acs_silent(circumstance, kind) -> None:
    """The firing case and this circumstance."""
    case = circumstance(redirecting())
    (answer,) = answers(gdr_acs_on_path, case, PAIR)

    assert isinstance(answer, kind), answer
    assert [] == fails(gdr_acs_on_path, case)


def test_translated_requests_need_both_ats_and_direct_translation() -> None:
    """One alone is still redirected."""
    assert fails(gdr_acs_on_path, function(redirecting("RR", "DT"), nic_id(1), ats=False))
    assert fails(gdr_acs_on_path, function(redirecting("RR"), nic_id(1), ats=True))


def test_pairs_that_meet_further_away_are_another_matter() -> None:
    """ACS is not what costs there."""
    far = [p for p in server().topology.paths if p.pcie_kind == "NODE"]
    case = redirecting(case=topology(server(), paths=far))

    assert {NotApplicable} == kinds(gdr_acs_on_path, case)


def test_translation_is_a_warning_and_with_peer_memory_an_error() -> None:
    """nvidia-peermem takes bus addresses for physical ones."""
    (loaded,) = fails(gdr_iommu_translated, grouped(server(), "DMA-FQ"))
    (open_way,) = fails(gdr_iommu_translated, software(grouped(server(), "DMA"), modules=[]))

    assert ("node", "error") == (loaded.subject, loaded.severity)
    assert ("node", "warning") == (open_way.subject, open_way.severity)
    assert "nvidia_peermem may fail" in loaded.impact
    assert "/sys/kernel/iommu_groups/3/type" == loaded.evidence[0].source


@pytest.mark.parametrize(
    ("circumstance", "kinds_expected"),
    [
        pytest.param(virtual, {NotApplicable}, id="a guest"),
        pytest.param(hosting, {NotApplicable}, id="a host of guests"),
        pytest.param(grace, {NotApplicable}, id="Grace"),
        pytest.param(lambda c: changed_nics(c, driver="gve"), {NotApplicable}, id="a cloud"),
        pytest.param(
            lambda c: software(c, driver=Driver(version="570.1", confidential_computing=True)),
            {NotApplicable},
            id="confidential computing",
        ),
        pytest.param(lambda c: grouped(c, "identity"), {Pass}, id="identity"),
        pytest.param(lambda c: grouped(c, None), {Unknown}, id="type not read"),
        pytest.param(
            lambda c: all_functions(grouped(c, None), "0x030200", iommu_group=None), {Unknown, Pass}, id="GPUs without"
        ),
    ],
)
def test_what_keeps_translation_silent(circumstance, kinds_expected) -> None:
    """The firing case and this circumstance."""
    case = circumstance(grouped(server(), "DMA"))

    assert kinds_expected == kinds(gdr_iommu_translated, case)


def test_translation_does_not_matter_where_nothing_goes_directly() -> None:
    """GPUs that meet their rails at a host bridge."""
    far = [p for p in server().topology.paths if p.pcie_kind == "NODE"]

    assert {NotApplicable} == kinds(gdr_iommu_translated, topology(grouped(server(), "DMA"), paths=far))


def test_no_iommu_is_right() -> None:
    """No group, no translation."""
    assert {Pass} == kinds(gdr_iommu_translated, server())


def test_a_direct_nic_board_as_it_must_be_is_clean() -> None:
    """Three ports are looked at, and the groups are one."""
    case = direct_nic(server())

    assert [Pass(f"pci:{p}") for p in sorted((PORT_DMA, PORT_GPU, ROOT))] == list(gdr_acs_directnic.check(case))
    assert [Pass(f"pci:{DMA}")] == list(gdr_iommu_group_directnic.check(case))


@pytest.mark.parametrize(
    ("port", "control", "said"),
    [
        (PORT_DMA, ("SV", "CR", "UF", "RR"), "RR- expected"),
        (PORT_DMA, ("CR", "UF"), "SV+ expected"),
        (PORT_GPU, ("SV", "RR", "UF", "CR"), "CR- expected"),
        (PORT_GPU, ("SV", "UF"), "RR+ expected"),
        (ROOT, ("SV", "RR", "CR", "UF"), "SV- expected"),
        (ROOT, ("RR", "CR"), "UF+ expected"),
    ],
)
def test_each_wrong_bit_of_a_direct_nic_board(port: str, control: tuple[str, ...], said: str) -> None:
    """Too much and too little, at each of the three ports."""
    (fault,) = fails(gdr_acs_directnic, function(direct_nic(server()), port, acs=acs(*control)))

    assert f"pci:{port}" == fault.subject
    assert fault.summary.endswith(said)
    assert {DMA, gpu_id(0)} & fault.places


def test_what_keeps_direct_nic_rules_silent() -> None:
    """Other boards, guests, config space that could not be read, GPUs elsewhere."""
    assert {NotApplicable} == kinds(gdr_acs_directnic, server())
    assert {NotApplicable} == kinds(gdr_iommu_group_directnic, server())
    assert {NotApplicable} == kinds(gdr_acs_directnic, virtual(direct_nic(server())))
    assert {NotApplicable} == kinds(gdr_iommu_group_directnic, virtual(direct_nic(server())))
    (unread,) = answers(gdr_acs_directnic, function(direct_nic(server()), ROOT, acs=None), f"pci:{ROOT}")
    assert isinstance(unread, Unknown)
    alone = function(direct_nic(server()), PORT_DMA, parent=None)
    assert [] == fails(gdr_acs_directnic, alone)
    assert {NotApplicable} == kinds(gdr_iommu_group_directnic, alone)
    assert {Unknown} == kinds(gdr_iommu_group_directnic, function(direct_nic(server()), DMA, parent=None))


def test_groups_of_a_direct_nic_pair() -> None:
    """Another one, and none."""
    (other,) = fails(gdr_iommu_group_directnic, function(direct_nic(server()), DMA, iommu_group=8))
    (none,) = fails(gdr_iommu_group_directnic, function(direct_nic(server()), DMA, iommu_group=None))

    assert ("IOMMU group 8, and GPU0 is in 7", "IOMMU group none, and GPU0 is in 7") == (other.summary, none.summary)
    both = function(function(direct_nic(server()), DMA, iommu_group=None), gpu_id(0), iommu_group=None)
    assert [Pass(f"pci:{DMA}")] == list(gdr_iommu_group_directnic.check(both))


def cx8(case):
    return all_functions(case, "0x020700", device="0x1023")


def test_connectx8_on_grace_without_its_second_way() -> None:
    """Missing, without a driver, switched off."""
    (missing,) = fails(gdr_datadirect_missing, cx8(grace(server())))
    (dark,) = fails(gdr_datadirect_missing, function(cx8(direct_nic(server())), DMA, driver=""))
    (off,) = fails(gdr_datadirect_missing, setting(cx8(direct_nic(server())), "NCCL_IB_DATA_DIRECT", "0"))

    assert ["missing", "driver", "setting"] == [missing.cause, dark.cause, off.cause]
    assert "/etc/nccl.conf:1" in off.summary
    assert {Pass} == kinds(gdr_datadirect_missing, cx8(direct_nic(server())))
    assert {Pass} == kinds(gdr_datadirect_missing, setting(cx8(direct_nic(server())), "NCCL_IB_DATA_DIRECT", "1"))


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(grace(server()), id="ConnectX-7"),
        pytest.param(cx8(server()), id="x86"),
        pytest.param(virtual(cx8(grace(server()))), id="a guest"),
    ],
)
def test_what_keeps_data_direct_silent(case) -> None:
    """Boards that have none by design."""
    assert {NotApplicable} == kinds(gdr_datadirect_missing, case)
    assert {Unknown} == kinds(gdr_datadirect_missing, probe(cx8(grace(server())), "pci", "failed", "broken"))


def guest(case, ats: bool | None = False):
    return virtual(all_functions(case, "0x020700", ats=ats))


def test_a_nic_that_was_passed_through_without_ats() -> None:
    """Each pair of the guest."""
    found = fails(gdr_ats_vm, guest(server()))

    assert [f"pair:{gpu_id(n)}+{nic_id(n)}" for n in range(4)] == [fault.subject for fault in found]


@pytest.mark.parametrize(
    ("case", "kind"),
    [
        pytest.param(all_functions(server(), "0x020700", ats=False), NotApplicable, id="bare metal"),
        pytest.param(guest(server(), ats=True), Pass, id="ATS is on"),
        pytest.param(guest(server(), ats=None), Unknown, id="not readable"),
        pytest.param(changed_nic(guest(server()), 1, virtual_function=True), NotApplicable, id="a virtual function"),
        pytest.param(function(guest(server()), nic_id(1), physical_function="x"), NotApplicable, id="by the kernel"),
        pytest.param(node(guest(server()), arch="aarch64"), NotApplicable, id="Grace"),
        pytest.param(
            replace(guest(server()), platform=Platform(evidence=["cloud: AWS"])),
            NotApplicable,
            id="a cloud",
        ),
    ],
)
def test_what_keeps_ats_silent(case, kind) -> None:
    """Where the provider decides, and where nothing is translated."""
    (answer,) = answers(gdr_ats_vm, case, PAIR)

    assert isinstance(answer, kind), answer


def test_ends_of_other_makers_that_sleep_or_are_software_make_no_pair() -> None:
    """Whoever cannot be asked, or has no GPUDirect of this kind."""
    for case in (
        function(server(), gpu_id(1), vendor="0x1002"),
        function(server(), gpu_id(1), state="asleep"),
        changed_nic(server(), 1, software=True),
    ):
        assert PAIR not in {pair.subject for pair in pairs(case)}


def test_a_way_of_no_known_kind_makes_no_pair() -> None:
    """A path that only NVML names."""
    paths = [msgspec.structs.replace(p, pcie_kind=None) for p in server().topology.paths]

    assert () == pairs(topology(server(), paths=paths))


def test_a_path_may_begin_at_either_end() -> None:
    """The rail first, the GPU second."""
    turned = [msgspec.structs.replace(p, a=p.b, b=p.a) for p in server().topology.paths]

    assert [p.subject for p in pairs(server())] == [p.subject for p in pairs(topology(server(), paths=turned))]


@pytest.mark.parametrize(
    "changes",
    [
        {"vendor": "0x1000", "device": "0x1979"},  # a switch of another maker with that number
        {"vendor": "0x15b3", "device": "0x197e"},
        {"vendor": "0x1000", "device": "0x22b1"},
        {"vendor": "0x1000", "device": "0x2100"},
    ],
)
def test_a_number_alone_or_a_maker_alone_is_no_platform(changes) -> None:
    """Vendor and device together."""
    assert "x86" == platform_kind(function(server(), "0000:11:00.0", **changes))
    assert "x86" == platform_kind(topology(server(), nics=[]))


@pytest.mark.parametrize(("gpus", "subjects"), [(1, ["pair"]), (2, ["node"])])
def test_how_many_pairs_are_all(gpus: int, subjects: list[str]) -> None:
    """One pair is named; two are the node's matter; some of them are not."""
    found = fails(gdr_acs_on_path, all_functions(server(gpus), "0x060400", acs=acs("RR")))

    assert subjects == [fault.subject.partition(":")[0] for fault in found]
    some = function(function(server(3), DOWN[0], acs=acs("RR")), "0000:32:00.0", acs=acs("RR"))
    assert ["pair", "pair"] == [fault.subject.partition(":")[0] for fault in fails(gdr_acs_on_path, some)]


def test_one_answer_where_no_rail_is_near() -> None:
    """On any kind of host."""
    bare = topology(grouped(server(), "DMA"), nics=[])

    for case in (bare, hosting(bare)):
        assert 1 == len(list(gdr_iommu_translated.check(case)))


def test_an_end_that_does_not_answer_is_not_judged() -> None:
    """A rail that is gone has no group."""
    case = function(grouped(server(), "DMA"), nic_id(1), state="gone")

    assert nic_id(1) not in fails(gdr_iommu_translated, case)[0].places


def test_direct_nic_ports_are_looked_at_only_where_a_gpu_is_beside_them() -> None:
    """Another maker's GPU, a GPU below another root port, a meeting at the root port alone: nothing."""
    board = direct_nic(server())
    port_apart = function(board, PORT_DMA, parent=ROOT)  # they share the root port, and no switch

    assert 3 == len(list(gdr_acs_directnic.check(board)))
    assert [] == list(gdr_acs_directnic.check(port_apart))
    assert [] == list(gdr_acs_directnic.check(function(board, DMA, parent=None)))
    assert [] == list(gdr_acs_directnic.check(function(board, PORT_DMA, parent="0000:20:01.0")))
    amd = function(board, gpu_id(0), vendor="0x1002")
    assert [] == list(gdr_acs_directnic.check(amd))
    assert [NotApplicable(f"pci:{DMA}", "no GPU below its root port")] == list(gdr_iommu_group_directnic.check(amd))


def test_a_port_of_two_data_direct_functions_is_told_once() -> None:
    """And what is below it is what it is about."""
    board = direct_nic(server())
    second = msgspec.structs.replace(board.functions[DMA], id="0000:16:00.1")
    case = function(topology(board, pci=[*board.topology.pci, second]), PORT_GPU, acs=acs("SV"))
    (fault,) = fails(gdr_acs_directnic, case)

    assert f"pci:{PORT_GPU}" == fault.subject
    assert {PORT_GPU, gpu_id(0)} == fault.places
    assert 3 == len(list(gdr_acs_directnic.check(case)))


def test_a_data_direct_function_that_is_there_counts_on_a_half_read_bus() -> None:
    """It is dark, whatever else could not be seen."""
    case = probe(function(cx8(direct_nic(server())), DMA, driver=""), "pci", "failed", "broken")

    assert ["driver"] == [fault.cause for fault in fails(gdr_datadirect_missing, case)]
