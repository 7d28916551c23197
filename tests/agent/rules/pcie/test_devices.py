"""Cards of several functions, settings and error budgets of devices, and the number with which a driver's start ended;
the rest is rows of tests/matrix/rules.
"""

from __future__ import annotations

import msgspec
import pytest

from agent.config import Configuration
from agent.diagnose import ScanPlan, diagnose
from agent.model.finding import Finding
from agent.rules.context import RuleContext
from agent.rules.pcie import registers
from agent.rules.pcie.bandwidth import pcie_nic_starved as rule
from agent.rules.pcie.cards import USABLE, is_sufficient
from agent.rules.pcie.counters import error_budget
from probes.sources.dump import SavedOutputs
from probes.sources.memory import MemoryFiles
from probes.sources.tree import TreeHost
from tests.agent.rules.build import changed_nic, fails, function, nic_id, relinked, server, topology
from tests.agent.rules.rows import link

NIC, SECOND = nic_id(0), f"{nic_id(0)[:-1]}1"


def severities(context: RuleContext) -> list[tuple[str, str | None]]:
    return [(fault.subject, fault.severity) for fault in fails(rule, context)]


def second_of(context: RuleContext, class_code: str) -> RuleContext:
    """NIC 0 is the second function of its card; the first is something else."""
    first = msgspec.structs.replace(context.functions[NIC], class_code=class_code, driver=None)
    context = changed_nic(function(context, NIC, id=SECOND), 0, id=SECOND, pci=SECOND)
    return topology(context, pci=[*context.topology.pci[:5], first, *context.topology.pci[5:]])


def test_just_enough_is_enough() -> None:
    """A link carries a rate that is all that can be used of it."""
    assert is_sufficient(1.0, 8 * USABLE)
    assert not is_sufficient(1.0, 8.1 * USABLE)


def test_a_card_whose_first_function_is_no_nic() -> None:
    """A management function stands first: the card is judged by its NIC."""
    context = second_of(relinked(server(), NIC, link(16.0)), "0x088000")

    assert [(f"pci:{SECOND}", "error")] == severities(context)


BOOT = (
    "[    8.1] [drm] amdgpu kernel modesetting enabled.\n"
    "[    8.2] amdgpu 0000:{bus}:00.0: amdgpu: Fatal error during GPU init\n"
)
NEW, OLD = (
    "[    8.3] amdgpu 0000:{bus}:00.0: probe with driver amdgpu failed with error {error}\n",
    "[    8.3] amdgpu: probe of 0000:{bus}:00.0 failed with error {error}\n",
)


def find_start(log: str) -> Finding:
    files = MemoryFiles({"dmesg.txt": log.encode()})
    plan = ScanPlan(configuration=Configuration())
    report, _ = diagnose(TreeHost("dump", "log", MemoryFiles(), SavedOutputs(files)), plan)
    return next(finding for finding in report.findings if finding.rule == "pci-driver-missing")


@pytest.mark.parametrize("form", [NEW, OLD])
@pytest.mark.parametrize(
    ("error", "meaning", "step"),
    [
        (-12, "no memory window, or no memory", "Above 4G"),
        (-28, "no memory window, or no memory", "lspci -vvv -s 0000:c3:00.0"),
        (-2, "a file of firmware is missing", "firmware"),
        (-22, "the driver refuses what it reads of the device", "VBIOS"),
        (-110, "the device did not answer in time", "power cycle"),
    ],
)
def test_a_known_number_comes_with_its_meaning_and_first_step(form: str, error: int, meaning: str, step: str) -> None:
    finding = find_start((BOOT + form).format(bus="c3", error=error))

    assert f"({error}: {meaning})" in finding.summary
    assert step in finding.steps[0].do
    assert any(f"failed with error {error}" in evidence.value for evidence in finding.evidence)


@pytest.mark.parametrize("log", [BOOT, BOOT + OLD.replace("{error}", "-99"), BOOT + OLD.replace("{bus}", "43")])
def test_without_a_known_number_of_this_device_the_log_is_read_first(log: str) -> None:
    finding = find_start(log.format(bus="c3", error=-12))

    assert "no memory window" not in finding.summary
    assert finding.steps[0].do.startswith("Read the kernel log")


# Settings of the config space: which are read of which devices.


def test_settings_that_matter_on_nics_only_are_asked_of_nics() -> None:
    """A GPU that could be judged is left out."""
    assert [NIC] == [
        nic_register.function.id
        for nic_register in registers.nic_registers(server(1))
        if isinstance(nic_register, registers.DeviceRegisters)
    ]


# PCIe errors: how many a link may count, and which device a fault is about; the rest is rows of tests/matrix/rules.


@pytest.mark.parametrize(
    ("speed", "width", "expected"),
    [(32.0, 16, 31), (16.0, 16, 16), (8.0, 16, 8), (64.0, 16, 62), (2.5, 1, 1), (128.0, 16, 62), (32.0, 8, 16)],
)
def test_the_budget_is_a_bit_error_rate(speed: float, width: int, expected: int) -> None:
    """DCGM's table, by the best speed and width."""
    assert expected == error_budget(link(max_speed_gt_s=speed, max_width=width))
    assert 31 == error_budget(None)


def test_a_link_whose_best_speed_is_not_known_has_the_budget_of_its_speed() -> None:
    """8 errors a minute at 8 GT/s, 31 where neither is known."""
    unread = msgspec.structs.replace(link(8.0, 16), max_speed_gt_s=None)

    assert 8 == error_budget(unread)
    assert 31 == error_budget(msgspec.structs.replace(unread, speed_gt_s=None))
