"""What the report promises: valid, small, deterministic, and judged again with the same result."""

from __future__ import annotations

import functools
import json
import random

import jsonschema_rs
import msgspec
import pytest

from agent.config import Configuration
from agent.diagnose import evaluate_report
from agent.model.report import REPORT_LIMIT_BYTES, Report, schema_text
from agent.reports import encode_report
from tests.conftest import sample_of
from tests.machines import FAULTS, HOSTS, machine, scan_machine, still

MACHINES = [(shape, None) for shape in HOSTS] + [("", fault) for fault in FAULTS]
NAMES = [shape or f"fault-{fault}" for shape, fault in MACHINES]


@functools.cache
def validator() -> jsonschema_rs.Draft202012Validator:
    """The schema's."""
    return jsonschema_rs.Draft202012Validator(json.loads(schema_text()))


@pytest.mark.parametrize(("shape", "fault"), MACHINES, ids=NAMES)
def test_a_report_is_valid_and_small(shape: str, fault: str | None) -> None:
    """By the schema, and below 4 MiB."""
    data = encode_report(scan_machine(shape, fault))

    assert [] == [error.message for error in validator().iter_errors(json.loads(data))]
    assert len(data) < REPORT_LIMIT_BYTES


@pytest.mark.parametrize(("shape", "fault"), MACHINES, ids=NAMES)
def test_judging_a_report_again_gives_the_same(shape: str, fault: str | None) -> None:
    """`--report`: same checks, findings and summary, from the bytes alone."""
    report = scan_machine(shape, fault)
    again = evaluate_report(msgspec.json.decode(encode_report(report), type=Report), Configuration())

    assert encode_report(report) == encode_report(still(again))


@pytest.mark.parametrize(("shape", "fault"), sample_of(MACHINES), ids=sample_of(NAMES))
def test_the_order_of_evidence_is_no_evidence(shape: str, fault: str | None) -> None:
    """Folders listed in another order give the same bytes."""
    shuffler = random.Random(7)
    host = machine(shape, fault)
    listdir = host.listdir

    def shuffled(path: str) -> list[str]:
        names = listdir(path)
        shuffler.shuffle(names)
        return names

    host.listdir = shuffled  # type: ignore[method-assign]  # the one answer that has an order
    from agent.diagnose import ScanPlan, diagnose

    assert encode_report(scan_machine(shape, fault)) == encode_report(still(diagnose(host, ScanPlan())[0]))


@pytest.mark.parametrize("shape", HOSTS)
def test_floats_have_at_most_three_decimals_and_rows_are_sorted(shape: str) -> None:
    """And ids are unique."""
    report = json.loads(encode_report(scan_machine(shape)))

    def walk(value: object) -> None:
        if isinstance(value, float):
            assert round(value, 3) == value
        elif isinstance(value, dict | list):
            for item in value.values() if isinstance(value, dict) else value:
                walk(item)

    walk(report)
    for table in ("pci", "gpus", "nvswitches", "nics", "netdevs"):
        ids = [row["id"] for row in report["topology"][table]]
        assert len(ids) == len(set(ids)), table
