"""The fixture machines as tests use them: every host, every fault, scanned once a session; and texts that are saved."""

from __future__ import annotations

import functools
from pathlib import Path

import msgspec

from agent.diagnose import ScanPlan, diagnose
from agent.model.report import Report
from fixtures.build import build_capture, capture_machine, host_in_memory
from fixtures.loader import merge_tables, read_table
from fixtures.machine import base_of, parse_machine
from probes.sources.capture import CaptureHost
from probes.sources.open_source import open_source
from tests.conftest import ROOT, sample_of

HOSTS = sorted(path.stem for path in (ROOT / "fixtures" / "hosts").glob("*.toml"))
# With other devices at the places of another host: what only that could change is tried there alone.
LIKE = {host for host in HOSTS if "\nlike = " in (ROOT / "fixtures" / "hosts" / f"{host}.toml").read_text()}
NO_NIC = {
    *("2xl40s-2s-4xcxl", "8x910b-4s-atlas-a2", "16x910c-4s-atlas-a3", "8xgaudi2-2s", "8xgaudi3-2s"),
    *("trn1-16xtrainium", "trn2-16xtrainium2"),
}  # none with an interface
SOME_HOSTS = sample_of(HOSTS)  # for what costs seconds a machine
SMALL = "2xa10-2xt4-1s-idle"  # a machine of few files, for what is about no machine
FAULTS = sorted(path.stem for path in (ROOT / "fixtures" / "faults").glob("*.toml"))
SOME_FAULTS = sample_of(FAULTS)  # for the form of an output, not for what it says


@functools.cache
def scan_machine(shape: str, fault: str | None = None) -> Report:
    """The report of one fixture machine, with what differs from run to run set to a constant."""
    report, _ = diagnose(machine(shape, fault), ScanPlan())
    return still(report)


def machine(shape: str, fault: str | None = None) -> CaptureHost:
    """A fixture machine as a host, in memory."""
    return host_in_memory(build_capture(shape or None, fault), fault or shape)


@functools.cache
def scan_faults(*faults: str) -> Report:
    """The report of a machine that has several faults at once; where two set one value, the later one counts."""
    shape = base_of(faults[0])
    table = functools.reduce(
        merge_tables, [read_table("faults", fault) for fault in faults], read_table("hosts", shape)
    )
    table.pop("base")
    capture = capture_machine(parse_machine(table, shape, faults[0]))
    report, _ = diagnose(host_in_memory(capture, "+".join(faults)), ScanPlan())
    return still(report)


def still(report: Report) -> Report:
    """The same report without clocks, durations and where it was read from."""
    return msgspec.structs.replace(
        report,
        generated_at="",
        observed_at=None,
        duration_seconds=0.0,
        source=msgspec.structs.replace(report.source, path=None),
        probes=[msgspec.structs.replace(run, duration_seconds=0.0) for run in report.probes],
    )


def scan_text(folder: Path, text: str, name: str = "issue.md") -> Report:
    """The report of one file with this text."""
    (folder / name).write_text(text)
    return diagnose(open_source(str(folder / name)), ScanPlan())[0]


def scan_files(folder: Path, **texts: str) -> Report:
    """The report of a folder with these files; a name without a dot is that of a .txt."""
    for name, text in texts.items():
        (folder / (name if "." in name else f"{name}.txt")).write_text(text)
    return diagnose(open_source(str(folder)), ScanPlan())[0]
