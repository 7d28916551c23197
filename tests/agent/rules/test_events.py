"""Every kind of kernel log line is read by a rule, or stands beside other evidence only, for a reason."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from agent.rules.host.driver_sentences import MEANINGS
from probes.kernel import hung_tasks, sentences
from tests.matrix.rule_rows import row, row_ids, rules

# kind and code (None: whatever the line says); a rule's answer on some machine changes with it
READ_BY = {
    ("xid", None): "gpu-xid",
    ("sxid", None): "gpu-xid",
    ("gpu_lost", None): "gpu-xid",
    ("gpu_init", None): "gpu-xid",
    ("dpc", "containment"): "pcie-containment",
    ("aer", None): "pcie-containment",
    ("pcie_bandwidth", None): "pcie-width-downgraded",
    ("mlx5", "slot-power"): "port-module-fault",
    ("mlx5", "module"): "port-module-fault",
    ("mlx5", "temperature"): "port-module-fault",
    ("mlx5", "access-reg"): "ib-limited-pf",
    ("mlx5", "health"): "nic-firmware-dead",
    ("mlx5", "command"): "nic-firmware-dead",
    ("mlx5", "tx-timeout"): "nic-firmware-dead",
    ("mlx5", "recovered"): "nic-firmware-dead",
    ("mlx5", "started"): "nic-firmware-dead",
    ("nic_firmware", "reset"): "nic-firmware-dead",
    ("nic_firmware", "reset-failed"): "nic-firmware-dead",
    ("peermem", "symbol"): "gdr-peermem-broken",
    ("peermem", "register"): "gdr-peermem-broken",
    ("hotplug", None): "pcie-containment",
    ("mlx5", "load"): "pci-driver-missing",
    ("amd_init", None): "pci-driver-missing",
    ("amd_ras", None): "xgmi-errors",
    ("amd_reset", None): "amd-gpu-reset",
    ("amd_vram_lost", None): "amd-gpu-reset",
    ("amd_bad_pages", None): "amd-bad-pages",
    ("amd_fatal", None): "amd-gpu-reset",
    ("npu_heartbeat", "heartbeat-lost"): "npu-heartbeat-lost",
    ("npu_fault", None): "npu-fault-event",
    ("neuron_hw", None): "neuron-hw-errors",
    ("mlx5", "firmware-init"): "nic-firmware-dead",
    ("mlx5", "reset-failed"): "nic-firmware-dead",
    ("nic_firmware", "command"): "nic-firmware-dead",
    ("nic_firmware", "health"): "nic-firmware-dead",
    ("aer", "no-recovery"): "pcie-containment",
    ("amd_reset_failed", None): "amd-gpu-reset",
    **{("driver", code): "driver-reports-failure" for code in MEANINGS},
}
CONTEXT_ONLY = {
    ("link_down", None): "a link that is down now has a rule; how often it was down is counted by the driver",
    ("link_up", None): "the end of link_down",
    ("xgmi", None): "the GPU is outside its hive after it, which has xgmi-hive-split",
}


def _emitted() -> set[tuple[str, str | None]]:
    return {(form.kind, form.code) for form in sentences.SENTENCES} | {("aer", None), ("driver", hung_tasks.CODE)}


def test_every_event_is_listed() -> None:
    """A new line of the kernel log needs a rule, or a reason."""
    assert _emitted() == READ_BY.keys() | CONTEXT_ONLY.keys()
    assert not READ_BY.keys() & CONTEXT_ONLY.keys()


@pytest.mark.parametrize(("event", "rule"), READ_BY.items(), ids=str)
def test_the_answer_depends_on_the_event(event: tuple[str, str | None], rule: str) -> None:
    """On at least one machine of the rule's table its answer is another one without the event."""
    kind, code = event
    for name in (name for of, name in row_ids() if of == rule):
        context, _ = row(rule, name)
        rest = tuple(e for e in context.events if e.kind != kind or code not in (None, e.code))
        if rest != context.events and list(rules()[rule].check(context)) != list(
            rules()[rule].check(replace(context, events=rest))
        ):
            return
    pytest.fail(f"no row of {rule} depends on {event}")
