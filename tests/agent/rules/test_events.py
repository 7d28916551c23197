"""Every kind of kernel log line is read by a rule, or stands beside other evidence only, for a reason; and the page of
all sentences that are read, of the kernel log and of services.
"""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from agent.rules.host.driver_findings import MEANINGS
from agent.rules.host.meaning import Meaning
from agent.rules.host.service_sentences import CONTEXT, SERVICE_MEANINGS
from probes.kernel import hung_tasks
from probes.kernel.network_families import FAMILIES
from probes.kernel.passing_faults import PASSING_FAULTS
from probes.kernel.sentence import DRIVER, NIC_DRIVERS, Sentence
from probes.kernel.sentences import SENTENCES
from probes.kernel.unexplained import HARMLESS_SENTENCES
from probes.services.sentences import LOG_FILES, PROGRAMS, SERVICE_SENTENCES
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
_COLUMNS = """
| module | recognized by | event | part | what it states | confidence | rule | source |
|---|---|---|---|---|---|---|---|
"""
_HEAD = """# Sentences of logs

Every line that is read of the kernel log and of the logs of services, by the module or service that writes it. This
page is made from the tables that the probes use (`probes/kernel/sentences.py`, `probes/services/sentences.py`)
and from what the rules state of them (`agent/rules/host/meanings/`); run `make docs` after a change of either.

## Kernel log

AER records and CXL records go over several lines and are read by `probes/kernel/log_events.py`; so do the calls of a
task that is blocked, of which the first one in a driver is read (`probes/kernel/hung_tasks.py`).

`part`: what the line names. Sentences of the NVIDIA driver without an address are about the GPU that a line beside them
names. All logs that a source holds are read: `dmesg`, the journals of this boot and of earlier ones
(`journalctl -k -b -3`, options in any order), kern.log, syslog, messages and /var/log/dmesg with the parts that were
put aside (`syslog.1`, `messages-20260101`, also `.gz`, `.bz2` and `.xz`), and the scan section of nvidia-bug-report. Of
two outputs of `dmesg` one is read, and the report names the other: they may be of two hosts. What finds nothing in the
first is unknown then. A fault that only a log of
an earlier boot shows begins with "before the last boot" and has medium confidence; so does one that a file has and a
whole `dmesg` has not.
"""
_FAMILIES = """
### Lines of NICs by what failed

A line of a driver of a NIC ({drivers}) that reads as a failure and fits none of the rows is read by the words for what
failed. What it means has low confidence.

| event | what it states |
|---|---|
"""
_PASSING = """
### Faults that a later line ends

They count where no later line of the same log about the same server, bond or port ends them.

| event | begins | ends | what it states |
|---|---|---|---|
"""
_UNEXPLAINED = """
### Lines that no sentence explains

A line of the driver of a GPU, NIC, NVSwitch, IOMMU or PCIe port that reads as a failure and fits none of the rows
is a note of `driver-reports-failure`, one per driver, with the line, its number and dates, and the name of the error in
it. It is not one beside a failure of the same part that a row explains (within 10 minutes), nor on a host whose part
works now. These lines read as a failure, and are left out:

| line | source |
|---|---|
"""
_SERVICES = """
## Services

Read of saved sources: `systemctl status UNIT` (also `--all`), `journalctl -u UNIT`, the journal of the boot, syslog and
messages, and {files} in /var/log. A log that was saved under another name is recognized by its lines, also within a
pasted text. Programs: {programs}. Of all units systemd's own sentences are read: started, stopped, failed.

A sentence counts until the node or the service started again, and one about a start until the service runs. The sources
of the fabric manager and of IMEX are closed: what is marked with `thread:` is from a public thread alone.
"""


def _emitted() -> set[tuple[str, str | None]]:
    of_tasks = (hung_tasks.IN_DRIVER, hung_tasks.ALONE)
    codes = {*of_tasks, *(row.code for row in FAMILIES), *(row.code for row in PASSING_FAULTS)}
    return {(form.kind, form.code) for form in SENTENCES} | {("aer", None)} | {(DRIVER, code) for code in codes}


def test_every_event_is_listed() -> None:
    """A new line of the kernel log needs a rule, or a reason."""
    assert _emitted() == READ_BY.keys() | CONTEXT_ONLY.keys()
    assert not READ_BY.keys() & CONTEXT_ONLY.keys()


@pytest.mark.parametrize(("event", "rule"), [(e, rule) for e, rule in READ_BY.items() if e[0] != "driver"], ids=str)
def test_the_answer_depends_on_the_event(event: tuple[str, str | None], rule: str) -> None:
    """On at least one machine of the rule's table its answer is another one without the event. Those of drivers, which
    rows of a page state: tests/agent/rules/host/test_sentences.py."""
    kind, code = event
    for name in (name for of, name in row_ids() if of == rule):
        context, _ = row(rule, name)
        rest = tuple(e for e in context.events if e.kind != kind or code not in (None, e.code))
        if rest != context.events and list(rules()[rule].check(context)) != list(
            rules()[rule].check(replace(context, events=rest))
        ):
            return
    pytest.fail(f"no row of {rule} depends on {event}")


def describe_log_sentences() -> str:
    """The page as Markdown."""
    kernel = "".join(map(_describe_row, SENTENCES))
    services = "".join(map(_describe_service_row, SERVICE_SENTENCES))
    head = _SERVICES.format(
        files=", ".join(f"`{name}`" for name in LOG_FILES), programs=", ".join(f"`{name}`" for name in PROGRAMS)
    )
    usual = "".join(f"| `{pattern.replace('|', '` or `')}` | {source} |\n" for pattern, source in HARMLESS_SENTENCES)
    families = "".join(f"| {row.code} | {MEANINGS[row.code].title} |\n" for row in FAMILIES)
    passing = "".join(
        f"| {row.code} | {_quote(row.begins)} | {_quote(row.ends)} | {MEANINGS[row.code].title} |\n"
        for row in PASSING_FAULTS
    )
    drivers = ", ".join(f"`{name}`" for name in NIC_DRIVERS.replace("mlx[45]_core", "mlx4_core|mlx5_core").split("|"))
    by_words = f"{_FAMILIES.format(drivers=drivers)}{families}{_PASSING}{passing}"
    return f"{_HEAD}{_COLUMNS}{kernel}{by_words}{_UNEXPLAINED}{usual}{head}{_COLUMNS}{services}"


def _quote(pattern: re.Pattern[str]) -> str:
    """A pattern as a cell of a table."""
    return f"`{pattern.pattern}`".replace("|", "\\|")


def _describe_row(row: Sentence) -> str:
    meaning = MEANINGS.get(row.code or "") if row.kind == DRIVER else None
    key = (row.kind, row.code)
    rule = READ_BY.get(key)
    groups = row.pattern.groupindex
    part = "PCI address" if "bdf" in groups or "short" in groups else "name" if "name" in groups else "host"
    return _format_row(row, part, meaning, rule, CONTEXT_ONLY.get(key, "see the rule"))


def _describe_service_row(row: Sentence) -> str:
    part = "NVSwitch" if "bdf" in row.pattern.groupindex else "service"
    is_context = row.code in CONTEXT
    rule = None if is_context else "service-reports-failure"
    return _format_row(row, part, SERVICE_MEANINGS.get(row.code or ""), rule, "evidence of fm-no-switch")


def _format_row(row: Sentence, part: str, meaning: Meaning | None, rule: str | None, otherwise: str) -> str:
    cells = (
        row.module,
        f"`{row.needle.strip()}`",
        f"{row.kind} {row.code or ''}".strip(),
        part,
        meaning.title if meaning else otherwise,
        meaning.confidence if meaning else "high" if rule else "",
        f"`{rule}`" if rule else "evidence only",
        row.source,
    )
    return f"| {' | '.join(cells)} |\n"
