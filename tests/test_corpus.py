"""Real machines, whole: every tree and every saved output of the corpus is scanned, and nothing of it breaks us.

What each of them must say in detail stands in the tests of its probe; here it is the pipeline that is held.
"""

from __future__ import annotations

import functools
import json
import tarfile
from pathlib import Path

import jsonschema
import msgspec
import pytest

from agent.config import Configuration
from agent.diagnose import Plan, diagnose, judged
from agent.model.report import REPORT_LIMIT_BYTES, Report
from agent.model.schema import schema_text
from agent.reports import encode
from probes.host.door import BadSource
from probes.host.source import open_source
from tests.conftest import CORPUS
from tests.machines import still

TREES = sorted(path.name for path in (CORPUS / "trees").glob("*.tar.xz"))
TEXTS = sorted(
    str(path.relative_to(CORPUS))
    for folder in ("text", "blocks", "lspci", "nvidia-smi")
    for path in (CORPUS / folder).rglob("*")
    if path.is_file() and path.name != "INDEX.tsv"
)
NOT_A_HOST = {"gpud-infiniband-h100.tar.xz"}  # a class folder without its sys/: no source kind of ours


@functools.cache
def validator() -> jsonschema.Draft202012Validator:
    """Of the schema as it is now."""
    return jsonschema.Draft202012Validator(json.loads(schema_text()))


def check(report: Report) -> None:
    """Valid, small, and the same when it is judged again."""
    data = encode(report)
    again = judged(msgspec.json.decode(data, type=Report), Configuration())
    assert [] == [error.message for error in validator().iter_errors(json.loads(data))]
    assert len(data) < REPORT_LIMIT_BYTES
    assert encode(still(report)) == encode(still(again))


@pytest.mark.parametrize("tree", TREES)
def test_every_tree_is_scanned_packed_and_unpacked_alike(tree: str, corpus: Path, tmp_path: Path) -> None:
    """The archive read in memory and the folder that it unpacks to are the same machine."""
    packed = corpus / "trees" / tree
    if tree in NOT_A_HOST:
        with pytest.raises(BadSource):
            open_source(str(packed), None)
        return
    report, _ = diagnose(open_source(str(packed), None), Plan())
    with tarfile.open(packed) as archive:
        archive.extractall(tmp_path, filter="data")
    unpacked, _ = diagnose(open_source(str(tmp_path), None), Plan())

    check(report)
    assert encode(still(report)) == encode(still(unpacked))


@pytest.mark.parametrize("text", TEXTS)
def test_every_saved_output_is_scanned_or_refused_in_one_line(text: str, corpus: Path) -> None:
    """A single file is recognized by what it holds; one that holds nothing of ours is refused, never a traceback."""
    try:
        host = open_source(str(corpus / text), None)
    except BadSource as refused:
        assert str(corpus / text) in str(refused)
        assert "\n" not in str(refused)
        return
    report, _ = diagnose(host, Plan())
    check(report)
    assert [] == [run.reason for run in report.probes if run.status == "failed" and "Error at" in (run.reason or "")]
