"""NVML in the guest: what the library does not answer, and what brings it down, ends one probe and not the scan."""

from __future__ import annotations

import pytest

from fixtures.nvml import build_nvml_records
from tests.lab.batches import IB, machine
from tests.lab.conftest import RecordRow, above_info
from tests.lab.place import NVML_ANSWERS
from tests.lab.qemu.described import build_answers
from tests.lab.qemu.guest import Guest
from tests.lab.qemu.processes import scanning
from tests.nvml.answers import CRASH, FOR_EVER, table

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("real_commands"), pytest.mark.timeout(900)]
SHOWN = IB
ENDS = [  # what the call does, how the probe ends, what its reason names
    (FOR_EVER, ("nvmlDeviceGetSerial", "3"), "timed_out", "no answer"),
    (CRASH, ("nvmlDeviceGetGpuFabricInfoV", "2"), "failed", "SIGSEGV"),
]


@pytest.mark.parametrize(("does", "call", "status", "reason"), ENDS, ids=[item[0] for item in ENDS])
def test_a_call_that_does_not_return_costs_one_probe(
    guest: Guest, record_row: RecordRow, does: str, call: tuple[str, str], status: str, reason: str
) -> None:
    """The GPUs of the bus are there all the same, nothing is called wrong, and no process stays."""
    guest.turn_into(machine(IB))
    guest.write(NVML_ANSWERS, table(build_nvml_records(machine(IB)) or [], {call: does}))
    try:
        report = guest.scan("--only", "nvml,pci,modules", "--timeout", "20")
        left = scanning(guest)
    finally:
        guest.write(NVML_ANSWERS, build_answers(machine(IB)))

    (run,) = [probe for probe in report["probes"] if probe["name"] == "nvml"]
    assert status == run["status"], run
    assert reason in run["reason"]
    assert 8 == len(report["topology"]["gpus"])
    assert [] == left
    assert [] == above_info(report)
    record_row(
        f"An NVML call that ends in a {does}", f"{call[0]} of GPU {call[1]}", f"probe nvml {status}: {run['reason']}"
    )
