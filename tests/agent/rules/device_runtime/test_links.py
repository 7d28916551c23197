"""Devices and links that the rules of errors look at: which are judged, where, and how often."""

from __future__ import annotations

import msgspec

from agent.rules.pcie.counters import error_budget, pcie_errors_correctable, pcie_replays
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import answers, changed_gpu, fails, function, probe, topology
from tests.agent.rules.moves import GPU, NIC, gpus, moved, one, severities, without_window
from tests.agent.rules.rows import link

SUBJECT, PCI, ABOVE = f"gpu:{GPU}", f"pci:{GPU}", "pci:0000:22:00.0"
REPLAYS = moved(gpus(), SUBJECT, {"replays": 1861})
ERRORS = {"correctable.RxErr": 18601}


def test_a_link_whose_best_speed_is_not_known_has_the_budget_of_its_speed() -> None:
    """8 errors a minute at 8 GT/s, 31 where neither is known."""
    unread = msgspec.structs.replace(link(8.0, 16), max_speed_gt_s=None)

    assert 8 == error_budget(unread)
    assert 31 == error_budget(msgspec.structs.replace(unread, speed_gt_s=None))


def test_a_node_without_gpus_is_told_so_once_the_bus_was_read() -> None:
    """Else they may be there all the same; a node with GPUs has no answer of its own."""
    bare = topology(REPLAYS, gpus=[])

    assert isinstance(one(pcie_replays, bare, "node"), NotApplicable)
    assert isinstance(one(pcie_replays, probe(bare, "pci", "failed", "broken"), "node"), Unknown)
    assert [] == answers(pcie_replays, REPLAYS, "node")
    assert 1 == len(list(pcie_replays.check(without_window(REPLAYS))))


def test_what_was_seen_of_the_bus_is_judged() -> None:
    """One function of an unknown kind does not hide the others, and is nothing to tell of the node."""
    case = function(moved(gpus(), PCI, ERRORS), "0000:32:00.0", class_code=None)

    assert [(PCI, "error")] == severities(pcie_errors_correctable, case)
    assert [] == answers(pcie_errors_correctable, case, "node")


def test_a_gpu_without_a_number_is_asked_for_with_all_others() -> None:
    """No -i in the command."""
    (fault,) = fails(pcie_replays, changed_gpu(REPLAYS, 1, index=None))

    assert "nvidia-smi -q" == fault.evidence[0].source


def test_a_fault_of_a_gpu_is_about_its_pci_function_too() -> None:
    """Whatever the GPU is called: a finding about the function may be the cause."""
    case = moved(changed_gpu(gpus(), 1, id="GPU-1"), "gpu:GPU-1", {"replays": 1861})
    (fault,) = fails(pcie_replays, case)

    assert frozenset({"GPU-1", GPU}) == fault.places


def test_errors_of_the_port_above_a_card_are_told_once() -> None:
    """Of its first function."""
    second = f"{NIC[:-1]}1"
    case = topology(
        gpus(),
        pci=[*gpus().topology.pci, msgspec.structs.replace(gpus().functions[NIC], id=second)],
        nics=[*gpus().topology.nics, msgspec.structs.replace(gpus().nics[NIC], id=second, pci=second)],
    )

    assert [(f"pci:{NIC}", "error")] == severities(pcie_errors_correctable, moved(case, "pci:0000:22:01.0", ERRORS))
    assert [(f"pci:{second}", "error")] == severities(pcie_errors_correctable, moved(case, f"pci:{second}", ERRORS))


def test_a_bridge_of_unknown_kind_is_no_end_of_the_link_below() -> None:
    """Its errors may be of the link above it: they are its own."""
    case = function(moved(gpus(), ABOVE, ERRORS), ABOVE[4:], port_type=None)

    assert [(ABOVE, "error")] == severities(pcie_errors_correctable, case)
    assert Pass(PCI) == one(pcie_errors_correctable, case, PCI)
