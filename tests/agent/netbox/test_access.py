"""Addresses and tokens: what is refused before anything is sent, and that no message repeats a secret."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.netbox.api import NetBoxAccess, NetBoxError, resolve_access

HTTPS = "https://netbox.example.com"
ENVIRONMENT = {"NETBOX_TOKEN": "nbt_a.b"}


def told(
    url: str | None = HTTPS, token_file: str | None = None, ca: str | None = None, **environment: str
) -> NetBoxAccess:
    """What is made of options and variables."""
    return resolve_access(url, token_file, ca, 30.0, {**ENVIRONMENT, **environment})


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        (HTTPS, HTTPS),
        (f"{HTTPS}/", HTTPS),
        (f"{HTTPS}/api/", HTTPS),
        (f"{HTTPS}:8443/netbox/api", f"{HTTPS}:8443/netbox"),
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("http://localhost", "http://localhost"),
        ("http://[::1]:8000", "http://[::1]:8000"),
    ],
)
def test_an_address_is_that_of_netbox(text: str, meant: str) -> None:
    """Without what pynetbox adds."""
    assert meant == told(text).url


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "--url .or NETBOX_URL. is missing: the address"),
        ("netbox.example.com", "https://HOST"),
        ("ftp://a", "https://HOST"),
        ("https://", "https://HOST"),
        ("https://a b", "https://HOST"),
        ("https://a:0", "not a valid address"),
        ("https://a:x", "not a valid address"),
        ("https://[", "not a valid address"),
        ("https://me:secret@a", "a user name or password"),
        ("https://a/?token=secret", "are not allowed"),
        ("https://a/#x", "are not allowed"),
        ("http://netbox.example.com", "not sent without TLS"),
        ("http://127.0.0.1.example.com", "not sent without TLS"),
    ],
)
def test_an_address_that_cannot_be_meant(text: str, said: str) -> None:
    """One line, without the secret that somebody put there."""
    with pytest.raises(NetBoxError, match=said) as error:
        told(text)
    assert "secret" not in str(error.value)


def test_the_address_may_stand_in_the_environment() -> None:
    """The option comes first."""
    assert HTTPS == told(None, NETBOX_URL=HTTPS).url
    assert HTTPS == told(HTTPS, NETBOX_URL="https://other").url


def test_a_token_is_one_word_of_a_file_that_others_cannot_read(tmp_path: Path) -> None:
    """Or of the environment; the file comes first."""
    file = tmp_path / "token"
    file.write_text("nbt_file.secret\n")
    file.chmod(0o600)

    assert "nbt_file.secret" == told(token_file=str(file)).token
    assert "nbt_a.b" == told().token
    file.chmod(0o640)
    assert "nbt_file.secret" == told(token_file=str(file)).token
    file.chmod(0o644)
    with pytest.raises(NetBoxError, match="all users of this host can read"):
        told(token_file=str(file))


@pytest.mark.parametrize(("text", "said"), [(b"", "no token in it"), (b"two words", "one word"), (b"\xff", "one word")])
def test_a_token_file_that_holds_none(tmp_path: Path, text: bytes, said: str) -> None:
    """Its content is not repeated."""
    file = tmp_path / "token"
    file.write_bytes(text)
    file.chmod(0o600)

    with pytest.raises(NetBoxError, match=said):
        told(token_file=str(file))


def test_no_token_at_all(tmp_path: Path) -> None:
    """Where it could be."""
    with pytest.raises(NetBoxError, match="--token-file or NETBOX_TOKEN"):
        told(NETBOX_TOKEN=" ")
    with pytest.raises(NetBoxError, match="No such file"):
        told(token_file=str(tmp_path / "none"))


def test_authorities_are_a_file_with_certificates(tmp_path: Path) -> None:
    """Told before the first connection."""
    file = tmp_path / "ca.pem"
    with pytest.raises(NetBoxError, match=r"--ca: .*No such file"):
        told(ca=str(file))
    file.write_text("nothing")
    with pytest.raises(NetBoxError, match="no PEM certificate"):
        told(ca=str(file))
    file.write_text("-----BEGIN CERTIFICATE-----\n")
    assert str(file) == told(ca=str(file)).ca
    with pytest.raises(NetBoxError, match="--ca is for https"):
        told("http://localhost", ca=str(file))
