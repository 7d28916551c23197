"""No reader ends otherwise than by its answer or its declared refusal, whatever the bytes, and soon; no regular
expression is slow."""

from __future__ import annotations

import ast
import re
import resource
import secrets
import time
from random import Random
from typing import Any

import pytest

from probes.gpu import nvidia_smi_table
from probes.kernel.log_events import TEXT_CHARACTERS
from probes.kernel.log_lines import LINE_CHARACTERS
from probes.sources import pasted
from probes.switch_ports.names import LONGEST_LINE
from probes.text import find_required
from tests.conftest import PROFILE, ROOT, sample_of
from tests.fuzz.mutations import LONGEST_BYTES, mutated
from tests.fuzz.patterns import attacks, is_required, patterns
from tests.fuzz.readers import NOT_READERS, READERS, Reader

FIRST = 0 if PROFILE == "ci" else secrets.randbelow(1 << 64)  # CI tries the same each time round
MUTATIONS = {"ci": sample_of(range(300)), "fuzz": range(50_000)}.get(PROFILE, range(100))
SECONDS = 2.0  # of a core, for one input: a machine that stands still is no fault of a reader
GROWTH_BYTES = 250 << 20  # of the whole process, over all inputs of one reader


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_any_damage_is_read_or_refused(reader: Reader) -> None:
    """A mutation is made from its number alone, so a failure can be repeated."""
    read, seeds = reader.call(), reader.seeds()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert seeds
    assert all(seeds), "an empty seed damages nothing"

    for number in (FIRST + mutation for mutation in MUTATIONS):
        data = mutated(Random(number), seeds)
        if reader.mend is not None and number % 4:
            data = reader.mend(data)
        started = time.thread_time()
        try:
            read(data)
        except reader.refuses:
            pass
        except Exception as why:
            raise AssertionError(f"mutation {number}: {data[:2000]!r}") from why
        assert time.thread_time() - started < SECONDS, f"mutation {number}: {data[:2000]!r}"
        assert len(data) <= LONGEST_BYTES
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10 < GROWTH_BYTES


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_seeds_are_read(reader: Reader) -> None:
    """At least one of them: damage to what is no input at all finds nothing."""
    read = reader.call()
    ended = []
    for seed in reader.seeds():
        try:
            read(seed)
        except reader.refuses as why:
            ended.append(str(why))

    assert len(ended) < len(reader.seeds()), ended


def test_every_reader_is_in_the_table() -> None:
    """Public functions whose first argument is text or bytes: read, or listed with why they are not fuzzed."""
    result = set()
    for path in [*(ROOT / "probes").rglob("*.py"), ROOT / "agent" / "config.py", ROOT / "agent" / "reports.py"]:
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_") and _reads(node):
                result.add(f"{module}.{node.name}")
    table = {reader.name for reader in READERS}

    assert set() == result - table - NOT_READERS.keys()
    assert set() == NOT_READERS.keys() - result
    assert set() == table & NOT_READERS.keys()


def _reads(node: ast.FunctionDef) -> bool:
    if not node.args.args:
        return False
    annotation = node.args.args[0].annotation
    output = ast.unparse(annotation) if annotation else ""
    return node.name.startswith("parse") or output in ("str", "bytes", "str | None", "bytes | None", "Iterable[str]")


PATTERN_SECONDS = 0.05
# module -> how long a text that comes to its patterns can be
SHORT_TEXTS = {
    "probes.gpu.nvidia_smi_table": nvidia_smi_table.LINE_CHARACTERS,
    "probes.kernel.log_events": LINE_CHARACTERS,
    "probes.kernel.firmware_records": LINE_CHARACTERS,
    **dict.fromkeys(
        map(
            "probes.kernel.{}sentences".format,
            ("", "accelerator_", "host_", "network_", "network_stack_", "nvidia_", "pci_"),
        ),
        LINE_CHARACTERS,
    ),
    "probes.kernel.network_families": TEXT_CHARACTERS,
    "probes.kernel.passing_faults": LINE_CHARACTERS,
    "probes.sources.pasted": pasted.LINE_CHARACTERS,
    **dict.fromkeys(
        (
            *(
                f"probes.switch_ports.{module}"
                for module in ("alarms", "columns", "labels", "members", "names", "reading")
            ),
            "probes.tool_reports.network.switch_ports",
        ),
        LONGEST_LINE,
    ),
}
EVERY = dict.fromkeys(patterns())


def test_no_pattern_requires_what_is_not_in_all_that_fits_it() -> None:
    """A lazy pattern that required too much would leave an output unread."""
    of_text = {pattern for _, pattern, _ in EVERY if isinstance(pattern.pattern, str)}
    plain = [pattern for pattern in of_text if not pattern.flags & (re.IGNORECASE | re.VERBOSE)]
    wrong = [
        (required, pattern.pattern)
        for pattern in plain
        if (required := find_required(pattern.pattern)) and not is_required(required, pattern)
    ]

    assert [] == wrong
    assert len(plain) > 500


@pytest.mark.parametrize(("name", "pattern", "method"), EVERY, ids=lambda item: item if isinstance(item, str) else "")
def test_no_pattern_is_slow(name: str, pattern: re.Pattern[Any], method: str) -> None:
    """Of the thread's own time, the least of three: how busy the machine is does not matter."""
    for attack in attacks(pattern):
        text = attack[: SHORT_TEXTS.get(name.rpartition(".")[0], len(attack))]
        for part in (256, 64, 16, 4, 1):  # the whole of it could take hours
            subject = text[: len(text) // part]
            is_soon = any(_seconds(pattern, method, subject) < PATTERN_SECONDS for _ in range(3))
            assert is_soon, f"{text[:80]!r}, 1/{part} of it"


def _seconds(pattern: re.Pattern[Any], method: str, text: str) -> float:
    subject = text.encode("latin-1", "replace") if isinstance(pattern.pattern, bytes) else text
    began = time.thread_time()
    if method == "sub":
        pattern.sub(lambda result: result[0], subject)
    else:
        result = getattr(pattern, method)(subject)
        if method == "finditer":
            list(result)
    return time.thread_time() - began
