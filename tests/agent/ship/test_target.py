"""A report as it is sent, what statuses mean, and the process that ends where an attempt has used up its time."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import socket
import subprocess
import sys
import time
from email.utils import formatdate
from pathlib import Path

import msgspec
import psutil
import pytest

from agent.model.report import REPORT_LIMIT_BYTES
from agent.reports import encode_report
from agent.ship.options import TargetOptions, open_target
from agent.ship.payload import BadPayload, compress, decompress, parse_payload, read_payload
from agent.ship.target import RETRY_AFTER_LIMIT_SECONDS, FolderTarget, SendStatus, parse_retry_after, result_of_status
from probes.own_files import temporary_path
from tests.agent.ship.servers import PATIENCE, Run, hang, report, serving, target
from tests.conftest import ROOT
from tests.machines import scan_machine


@pytest.mark.parametrize(
    ("statuses", "kind"),
    [
        ((200, 201, 202, 204), SendStatus.ACCEPTED),
        ((400, 413, 422), SendStatus.REJECTED),
        ((408, 409, 425, 429, 500, 502, 503, 504, 507, 520, 599), SendStatus.RETRY),
        ((401, 403, 404, 405, 407, 410, 415, 451, 501, 505, 511, 100, 304, 700), SendStatus.BLOCKED),
    ],
)
def test_every_status_has_its_consequence(statuses: tuple[int, ...], kind: SendStatus) -> None:
    """Whose fault it is decides."""
    assert {kind} == {result_of_status(status).status for status in statuses}


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0.0),
        (" 120 ", 120.0),
        ("99999999999999999999", RETRY_AFTER_LIMIT_SECONDS),
        ("-5", None),
        ("1.5", None),
        ("²", None),
        ("soon", None),
        ("", None),
        (None, None),
        ("Fri, 31 Dec 1999 23:59:59 GMT", 0.0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", RETRY_AFTER_LIMIT_SECONDS),
        ("Fri, 99 Dec 1999 23:59:59 GMT", None),
    ],
)
def test_retry_after(text: str | None, seconds: float | None) -> None:
    """A number, a date, or nonsense."""
    assert seconds == parse_retry_after(text)


def test_retry_after_as_a_date() -> None:
    """From now."""
    seconds = parse_retry_after(formatdate(time.time() + 600, usegmt=True))

    assert seconds is not None
    assert 500 < seconds <= 600


def test_a_file_drop(run: Run, tmp_path: Path) -> None:
    """Whole, named by host and time, and the same report is the same file; what a killed run left there is replaced."""
    drop = tmp_path / "drop"
    drop.mkdir()
    name = parse_payload(report()).file_name("gzip")
    Path(temporary_path(str(drop / name), sole=True)).write_text("half")
    for _ in range(2):
        assert run.ship(FolderTarget(str(drop), "gzip"), report()).all_handed_over

    assert [f"n1_20260115T000000Z_{parse_payload(report()).digest[:16]}.json.gz"] == [
        item.name for item in drop.iterdir()
    ]
    assert report() == gzip.decompress((drop / name).read_bytes())


def test_a_drop_that_is_not_there_costs_no_report(run: Run, tmp_path: Path) -> None:
    """It may be a mount; it is not result."""
    result = run.ship(FolderTarget(str(tmp_path / "none"), "gzip"), report())

    assert (0, 1) == (result.accepted, result.waiting)
    assert "No such file" in (result.reason or "")
    assert not (tmp_path / "none").exists()


def test_a_drop_that_hangs_does_not_hold_the_run(run: Run, tmp_path: Path) -> None:
    """As on a file server that is gone: here, a file that cannot be open_target without somebody at its other end."""
    drop = tmp_path / "drop"
    drop.mkdir()
    name = parse_payload(report()).file_name("gzip")
    target = FolderTarget(str(drop), "gzip")
    os.mkfifo(drop / name)
    target.write = lambda *_: (drop / name).read_bytes()  # type: ignore[method-assign]  # the one call that hangs
    started = time.monotonic()
    result = run.ship(target, report(), seconds=1)

    assert time.monotonic() - started < PATIENCE
    assert "hangs" in (result.reason or "")


def test_a_resolver_that_hangs_does_not_hold_the_run(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """No timeout reaches into the C library; the line names what was waited for."""
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: time.sleep(100))
    started = time.monotonic()
    result = run.ship(open_target(TargetOptions("http://inventory.example/"), {}), report(), seconds=1)

    assert time.monotonic() - started < PATIENCE
    assert "http://inventory.example/: no answer about the name inventory.example" == result.reason


def test_the_first_address_of_a_name_leaves_time_for_the_others(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that nobody answers at (a listener whose queue is full), then the server."""
    with socket.socket() as full, serving() as server:
        full.bind(("127.0.0.2", server.port))
        full.listen(0)
        with contextlib.ExitStack() as stack:
            for _ in range(2):
                waiting = stack.enter_context(socket.socket())
                waiting.setblocking(False)
                waiting.connect_ex(("127.0.0.2", server.port))
            addresses = [
                (socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, server.port)) for host in ("127.0.0.2", "127.0.0.1")
            ]
            monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: addresses)
            result = run.ship(target(server), report(), seconds=4)

    assert result.all_handed_over


def test_a_worker_ends_after_its_time_although_its_parent_was_killed(real_commands: None, run: Run) -> None:
    """And it holds neither the spool's lock nor a pipe of the parent."""
    with serving(hang) as server:
        command = [sys.executable, "-m", "fabricscope", "ship", run.file(report()), "--to", server.url]
        command += ["--spool", str(run.path), "--timeout", "3"]
        parent = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        until = time.monotonic() + 30
        while not server.requests and time.monotonic() < until:
            time.sleep(0.02)
        (worker,) = psutil.Process(parent.pid).children()
        parent.kill()
        assert (b"", b"") == parent.communicate(timeout=2)
        with run.spool().lock(time.monotonic()) as is_locked:
            assert is_locked
        assert [worker] == psutil.wait_procs([worker], timeout=0)[1]
        assert [worker] == psutil.wait_procs([worker], timeout=20)[0]


# What is read of a report, and the names that are result of it.


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
