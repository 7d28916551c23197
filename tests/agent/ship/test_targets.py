"""Addresses and secrets: what can be meant, and that nothing of a secret is repeated."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.ship.answer import BadTarget
from agent.ship.folder import Folder
from agent.ship.targets import Address, checked, opened

SECRET = "Tr0ub4dor&3"


@pytest.mark.parametrize(
    ("address", "part"),
    [
        (Address(""), "--to is empty"),
        (Address("ftp://host/x"), "ftp"),
        (Address("https:///x"), "names no host"),
        (Address("https://host:99999/"), "no address"),
        (Address("https://host:0/"), "no address"),
        (Address("https://[::1/"), "no address"),
        (Address("https://host/a b"), "blank"),
        (Address("https://host/a\nb"), "control"),
        (Address("https://host/#x"), "'#'"),
        (Address(f"https://me:{SECRET}@host/"), "no name or password"),
        (Address("file://elsewhere/dir"), "file:///"),
        (Address("file:dir"), "file:///"),
        (Address("s3://"), "bucket"),
        (Address("s3://b"), "bucket"),
        (Address("s3://bucket/../x"), "prefix"),
        (Address("s3://bucket/x?y=1"), "'?'"),
        (Address("https://h/", method="DELETE"), "--method"),
        (Address("https://h/", compress="lzma"), "--compress"),
        (Address("/dir", token_file="t"), "--token-file"),
        (Address("s3://bucket", token_file="t"), "--token-file"),
        (Address("https://h/", endpoint="https://x"), "--endpoint"),
        (Address("https://h/", credentials="x"), "--credentials"),
        (Address("https://h/", key="k"), "--key goes with --cert"),
        (Address("http://h/", ca="c"), "https"),
        (Address("http://h/", token_file="t"), "without TLS"),
        (Address("http://127.0.0.1.example/", token_file="t"), "without TLS"),
    ],
)
def test_what_cannot_be_meant(address: Address, part: str) -> None:
    """One line, before anything is read or sent."""
    with pytest.raises(BadTarget, match=part) as caught:
        checked(address)

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
    target = opened(Address(to), {})

    assert isinstance(target, Folder)
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
        opened(Address("https://host/", token_file=str(tmp_path / "token")), {})
    assert SECRET not in str(caught.value)


def test_files_of_tls_are_named(tmp_path: Path) -> None:
    """The one that is missing, or holds no PEM."""
    (tmp_path / "ca").write_text("no PEM")

    with pytest.raises(BadTarget, match="no/such: No such file"):
        opened(Address("https://host/", ca="/no/such"), {})
    with pytest.raises(BadTarget, match="ca: "):
        opened(Address("https://host/", ca=str(tmp_path / "ca")), {})
    with pytest.raises(BadTarget, match="no/cert"):
        opened(Address("https://host/", cert="/no/cert"), {})
