"""How NVLinks are counted, and what GPU they are of: seen through nvlink-inactive."""

from __future__ import annotations

import msgspec
import pytest

from agent.model.gpu import GpuLink, NvSwitch
from agent.rules.nvlink.links import nvlink_inactive as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import answers, changed_gpu, changed_gpus, fails, gpu_id, server, topology
from tests.agent.rules.nvlink.test_inactive import dead, one_lost, unplaced
from tests.agent.rules.rows import bridge, nvlinks

GPU = gpu_id(2)
XGMI = [GpuLink(protocol="xgmi", link=n, state="inactive") for n in (30, 31)]


@pytest.mark.parametrize(("index", "command"), [(2, "nvidia-smi nvlink -s -i 2"), (None, "nvidia-smi nvlink -s")])
def test_the_command_names_the_gpu(index: int | None, command: str) -> None:
    """Where it has a number."""
    (fault,) = fails(rule, changed_gpu(one_lost(), 2, index=index))

    assert command == fault.evidence[0].source


def test_it_is_about_the_gpu_and_its_function() -> None:
    """Both are places, where they have different ids."""
    case = one_lost()
    renamed = msgspec.structs.replace(case.topology.gpus[2], id="GPU-2")
    (fault,) = fails(rule, topology(case, gpus=[*case.topology.gpus[:2], renamed, case.topology.gpus[3]]))

    assert {"GPU-2", GPU} == {place for place in fault.places if "/" not in place}
    assert "GPU-2/nvlink" in fault.places


@pytest.mark.parametrize(("links", "kind"), [(XGMI, NotApplicable), ([*nvlinks(), *XGMI], Pass)])
def test_links_of_other_protocols_are_none(links: list[GpuLink], kind: type) -> None:
    """They are not counted; a GPU with such links alone has no NVLink."""
    (answer,) = answers(rule, changed_gpu(server(), 2, links=links), f"gpu:{GPU}")

    assert isinstance(answer, kind)


@pytest.mark.parametrize(
    ("name", "lost", "kind"),
    [
        ("NVIDIA A800-SXM4-80GB", 10, Pass),
        ("NVIDIA H800", 10, Pass),
        ("NVIDIA H100 NVL", 6, Pass),
        ("NVIDIA RTX A6000", 18, NotApplicable),
        (None, 18, Unknown),
    ],
)
def test_without_a_pci_id_the_name_says_how_many_are_enough(name: str | None, lost: int, kind: type) -> None:
    """A800 and H800 have 8, bridges of H100 have 12; another name is a card's, which needs none; no name says none."""
    (answer,) = answers(rule, unplaced(name, lost=lost), f"gpu:{gpu_id(1)}")

    assert isinstance(answer, kind)


def test_a_gpu_without_live_links_may_have_lost_them_to_anything() -> None:
    """Nothing says where they led: a GPU that is not offered and a switch that is gone both explain them."""
    switch = msgspec.structs.replace(bridge("0000:f1:00.0", None, "upstream"), class_code="0x068000", state="gone")
    case = changed_gpu(changed_gpu(server(), 2, links=dead(18)), 0, driver_state="not_open")
    case = topology(case, pci=[*case.topology.pci, switch], nvswitches=[NvSwitch(id=switch.id, pci=switch.id)])
    (fault,) = fails(rule, case)

    assert {GPU, gpu_id(0), switch.id} == {place for place in fault.places if "/" not in place}


def test_two_gpus_without_any_link_do_not_share_one() -> None:
    """Each lost all of its own: nothing says that they led to each other."""
    case = changed_gpus(server(), links=nvlinks(18, "gpu"))
    for n in (2, 3):
        case = changed_gpu(case, n, links=dead(18))

    assert [f"gpu:{gpu_id(n)}" for n in (2, 3)] == [fault.subject for fault in fails(rule, case)]
