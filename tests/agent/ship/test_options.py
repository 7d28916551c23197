"""The options of ship and a run of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.ship.options import TargetOptions, check_options, open_target
from agent.ship.payload import Payload
from agent.ship.target import BadTarget, FolderTarget, SendResult, SendStatus
from tests.agent.ship.servers import (
    Down,
    Run,
    Up,
    report,
)

# Addresses and secrets: what can be meant, and that nothing of a secret is repeated.


SECRET = "Tr0ub4dor&3"


@pytest.mark.parametrize(
    ("address", "part"),
    [
        (TargetOptions(""), "--to is empty"),
        (TargetOptions("ftp://host/x"), "ftp"),
        (TargetOptions("https:///x"), "names no host"),
        (TargetOptions("https://host:99999/"), "not a valid address"),
        (TargetOptions("https://host:0/"), "not a valid address"),
        (TargetOptions("https://[::1/"), "not a valid address"),
        (TargetOptions("https://host/a b"), "blank"),
        (TargetOptions("https://host/a\nb"), "control"),
        (TargetOptions("https://host/#x"), "'#'"),
        (TargetOptions(f"https://me:{SECRET}@host/"), "a user name or password"),
        (TargetOptions("file://elsewhere/dir"), "file:///"),
        (TargetOptions("file:dir"), "file:///"),
        (TargetOptions("s3://"), "bucket"),
        (TargetOptions("s3://b"), "bucket"),
        (TargetOptions("s3://bucket/../x"), "prefix"),
        (TargetOptions("s3://bucket/x?y=1"), "'?'"),
        (TargetOptions("https://h/", method="DELETE"), "--method"),
        (TargetOptions("https://h/", compress="lzma"), "--compress"),
        (TargetOptions("/dir", token_file="t"), "--token-file"),
        (TargetOptions("s3://bucket", token_file="t"), "--token-file"),
        (TargetOptions("https://h/", endpoint="https://x"), "--endpoint"),
        (TargetOptions("https://h/", credentials="x"), "--credentials"),
        (TargetOptions("https://h/", key="k"), "--key goes with --cert"),
        (TargetOptions("http://h/", ca="c"), "https"),
        (TargetOptions("http://h/", token_file="t"), "without TLS"),
        (TargetOptions("http://127.0.0.1.example/", token_file="t"), "without TLS"),
    ],
)
def test_what_cannot_be_meant(address: TargetOptions, part: str) -> None:
    """One line, before anything is read or sent."""
    with pytest.raises(BadTarget, match=part) as caught:
        check_options(address)

    assert SECRET not in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("to", "path"),
    [
        ("/srv/a%20b", "/srv/a%20b"),
        ("file:///srv/a%20b", "/srv/a b"),
        ("file://localhost/srv", "/srv"),
    ],
)
def test_folders(to: str, path: str) -> None:
    """A plain path is a path; an address is decoded."""
    target = open_target(TargetOptions(to), {})

    assert isinstance(target, FolderTarget)
    assert path == target.path


@pytest.mark.parametrize(
    ("content", "mode", "part"),
    [
        (b"", 0o600, "no token"),
        (b" \n", 0o600, "no token"),
        (f"{SECRET}\nmore\n".encode(), 0o600, "one word"),
        (f"{SECRET}\x00".encode(), 0o600, "one word"),
        (b"x" * 20_000, 0o600, "one word"),
        (SECRET.encode(), 0o644, "all users"),
    ],
)
def test_tokens_that_are_none(content: bytes, mode: int, part: str, tmp_path: Path) -> None:
    """And no word of them is told."""
    (tmp_path / "token").write_bytes(content)
    (tmp_path / "token").chmod(mode)

    with pytest.raises(BadTarget, match=part) as caught:
        open_target(TargetOptions("https://host/", token_file=str(tmp_path / "token")), {})
    assert SECRET not in str(caught.value)


def test_files_of_tls_are_named(tmp_path: Path) -> None:
    """The one that is missing, or holds no PEM."""
    (tmp_path / "ca").write_text("no PEM")

    with pytest.raises(BadTarget, match="no/such: No such file"):
        open_target(TargetOptions("https://host/", ca="/no/such"), {})
    with pytest.raises(BadTarget, match="ca: "):
        open_target(TargetOptions("https://host/", ca=str(tmp_path / "ca")), {})
    with pytest.raises(BadTarget, match="no/cert"):
        open_target(TargetOptions("https://host/", cert="/no/cert"), {})


# A run: what comes while it is under way, what it has no time for, and what is no report.


@pytest.mark.parametrize("up", [True, False])
def test_a_report_that_comes_while_we_run_is_taken_too(up: bool, run: Run) -> None:
    """A scan that ends while the service runs starts it no second time."""
    path = Path(run.file(report(0), "0.json"))

    class Meanwhile(Down):
        def hand_over(self, payload: Payload, until: float) -> SendResult:
            if len(self.payloads) < 2:
                path.with_suffix(".new").write_bytes(report(len(self.payloads) + 1))
                path.with_suffix(".new").replace(path)
            return super().hand_over(payload, until)

    target = Meanwhile(SendResult(SendStatus.ACCEPTED) if up else None)
    result = run.ship(target, report(0))

    assert ((3, 0) if up else (0, 2)) == (result.accepted, result.waiting)
    assert (3 if up else 1) == len(target.payloads)


def test_a_report_that_had_no_room_and_is_replaced_is_counted(run: Run) -> None:
    """It was seen, and it is gone: that is told."""
    small = run._replace(count=1)
    small.ship(Down(), report(5, "error"))
    path = Path(run.file(report(0), "0.json"))

    class Meanwhile(Down):
        def hand_over(self, payload: Payload, until: float) -> SendResult:
            path.write_bytes(report(9, "critical"))
            return super().hand_over(payload, until)

    result = small.ship(Meanwhile(), report(0))

    assert {"healthy": 1, "not_judged": 0, "with_findings": 1, "set_aside": 0} == result.dropped
    assert ["critical"] == [name.split("_")[1] for name in small.waiting]


def test_many_reports_and_little_time(run: Run) -> None:
    """What is not reached stands where it was named, and is told; nothing of it is counted as dropped."""
    result = run.ship(Down(), *[report(number) for number in range(20)], seconds=0)

    assert (1, 19, False) == (result.waiting, result.left, result.all_handed_over)
    assert 0 == sum(result.dropped.values())
    full = run._replace(count=1)
    result = full.ship(Up(), *[report(number) for number in range(30, 33)])
    assert (4, True) == (result.accepted, result.all_handed_over)


def test_no_target_keeps_everything(run: Run) -> None:
    """A secret that is missing today."""
    assert (0, 1) == run.ship(None, report())[:2]


def test_a_file_that_is_no_report_keeps_nothing_back(run: Run) -> None:
    """It is told; the others go."""
    result = run.ship(Up(), report(), b"{}", report(1))

    assert 2 == result.accepted
    assert ["its schema"] == [part for line in result.bad for part in ["its schema"] if part in line]
