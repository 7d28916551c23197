"""No reader ends otherwise than by its answer or its declared refusal, whatever the bytes, and soon."""

from __future__ import annotations

import ast
import os
import resource
import secrets
import time
from random import Random

import pytest

from tests.conftest import ROOT
from tests.fuzz.mutations import LONGEST_BYTES, mutated
from tests.fuzz.readers import NOT_READERS, READERS, Reader

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "")
MUTATIONS = {"ci": 1000, "fuzz": 50_000}.get(PROFILE, 100)
FIRST = 0 if PROFILE == "ci" else secrets.randbelow(1 << 64)  # CI tries the same each time
SECONDS = 2.0  # of a core, for one input: a machine that stands still is no fault of a reader
GROWTH_BYTES = 250 << 20  # of the whole process, over all inputs of one reader


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_any_damage_is_read_or_refused(reader: Reader) -> None:
    """A mutation is made from its number alone, so a failure can be repeated."""
    read, seeds = reader.call(), reader.seeds()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert seeds
    assert all(seeds), "an empty seed damages nothing"

    for number in range(FIRST, FIRST + MUTATIONS):
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
