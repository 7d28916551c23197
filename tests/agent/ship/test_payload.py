"""What is read of a report, and the names that are result of it."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import msgspec
import pytest

from agent.model.report import REPORT_LIMIT_BYTES
from agent.reports import encode_report
from agent.ship.payload import BadPayload, compress, decompress, parse_payload, read_payload
from tests.agent.ship.servers import report
from tests.machines import scan_machine


def test_a_real_report_is_a_parcel() -> None:
    """As the scan writes it; nothing of its bytes is touched."""
    found = scan_machine("", "gpu-width-x8")
    data = encode_report(msgspec.structs.replace(found, generated_at="2026-01-15T08:00:00Z"))
    result = parse_payload(data)

    assert data == result.data
    assert ("error", "h100-01", "1") == (result.verdict, result.host, result.schema)
    assert f"raw/schema=1/dt=2026-01-15/{found.node.machine_id}/{result.digest}.json.gz" == result.object_key("gzip")
    assert f"h100-01_20260115T080000Z_{result.digest[:16]}.json.zst" == result.file_name("zstd")


def test_the_same_report_has_one_digest_whatever_it_is_packed_in(tmp_path: Path) -> None:
    """Plain or gzip; and packing has no time in it."""
    (tmp_path / "a.json").write_bytes(report())
    (tmp_path / "b.json.gz").write_bytes(gzip.compress(report()))

    assert read_payload(str(tmp_path / "a.json")) == read_payload(str(tmp_path / "b.json.gz"))
    assert compress(report(), "gzip") == compress(report(), "gzip")
    assert report() == decompress(compress(report(), "gzip"))


@pytest.mark.parametrize(
    ("change", "object_key"),
    [
        ({"machine_id": "../../etc"}, "_.._etc-80469d2a18337"),
        ({"machine_id": None, "serial": "S/N 1"}, "S_N_1-34bdc5970f55d"),
        ({"machine_id": None}, "n1"),
        ({"machine_id": None, "hostname": None}, "unknown"),
        ({"machine_id": "x" * 300}, f"{'x' * 50}-0d4e2ca9e9cbc"),
    ],
)
def test_no_name_leads_out_of_a_folder(change: dict[str, str | None], object_key: str) -> None:
    """A report is written by a host, and a host may say anything."""
    document = json.loads(report())
    document["node"] |= change

    assert object_key == parse_payload(json.dumps(document).encode()).object_key("gzip").split("/")[3]


@pytest.mark.parametrize(
    ("when", "name"),
    [
        ("2026-01-15T08:00:00Z", "20260115T080000Z"),
        ("2026-01-15T23:30:00.123456-01:00", "20260116T003000Z"),
        ("0001-01-01T00:00:00Z", "00010101T000000Z"),
    ],
)
def test_times_are_utc(when: str, name: str) -> None:
    """And as long as all others, so that names sort by them."""
    assert name == parse_payload(report().replace(b"2026-01-15T00:00:00Z", when.encode())).timestamp


@pytest.mark.parametrize(
    ("data", "part"),
    [
        (b"", "not a report"),
        (b"[]", "not a report"),
        (b"{}", "its schema is ''"),
        (report()[:-5], "not a report"),
        (report().replace(b"fabricscope.report/1", b"fabricscope.capture/1"), "its schema is"),
        (report().replace(b"fabricscope.report/1", b"fabricscope.report/../../x"), "its schema is"),
        (report().replace(b'"node"', b'"nod"'), "no node"),
        (report().replace(b"2026-01-15T00:00:00Z", b"yesterday"), "its time"),
        (report().replace(b"n1", b"\xff\xfe"), "not a report"),
        (b"[" * 100_000, "not a report"),
        (gzip.compress(report())[:-9], "truncated gzip"),
        (b"\x1f\x8bnothing", "damaged gzip"),
        (gzip.compress(b" " * (REPORT_LIMIT_BYTES + 1)), "larger than a report"),
    ],
)
def test_what_is_no_report_is_refused(data: bytes, part: str, tmp_path: Path) -> None:
    """With what is wrong."""
    (tmp_path / "r.json").write_bytes(data)

    with pytest.raises(BadPayload, match=part):
        read_payload(str(tmp_path / "r.json"))


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    """Nor is a folder read."""
    os.mkfifo(tmp_path / "pipe")

    for path in (tmp_path / "pipe", tmp_path):
        with pytest.raises(BadPayload, match="is not a file"):
            read_payload(str(path))


def test_a_verdict_of_a_later_version_is_not_taken_for_healthy() -> None:
    """It is worth more than a healthy one."""
    assert "unknown" == parse_payload(report(verdict="splendid")).verdict
