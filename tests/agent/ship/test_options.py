"""Addresses and secrets: what can be meant, and that nothing of a secret is repeated."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.ship.options import TargetOptions, check_options, open_target
from agent.ship.target import BadTarget, FolderTarget

SECRET = "Tr0ub4dor&3"


@pytest.mark.parametrize(
    ("address", "part"),
    [
        (TargetOptions(""), "--to is empty"),
        (TargetOptions("ftp://host/x"), "ftp"),
        (TargetOptions("https:///x"), "names no host"),
        (TargetOptions("https://host:99999/"), "no address"),
        (TargetOptions("https://host:0/"), "no address"),
        (TargetOptions("https://[::1/"), "no address"),
        (TargetOptions("https://host/a b"), "blank"),
        (TargetOptions("https://host/a\nb"), "control"),
        (TargetOptions("https://host/#x"), "'#'"),
        (TargetOptions(f"https://me:{SECRET}@host/"), "no name or password"),
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
        (SECRET.encode(), 0o644, "everybody"),
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
