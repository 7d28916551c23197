"""The signature against the examples that AWS publishes.

Account, bucket, times and signatures are those of "Examples: Signature Calculations" in the Amazon S3 API reference
(sig-v4-header-based-auth), the key's of "Deriving the signing key" in the IAM user guide.
"""

from __future__ import annotations

import pytest

from agent.ship.sigv4 import Credentials, Request, encoded_path, signed, signing_key

ACCOUNT = Credentials("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
HOST = {"Host": "examplebucket.s3.amazonaws.com"}
EXAMPLES = [
    (
        Request("GET", "/test.txt", {}, {**HOST, "Range": "bytes=0-9"}, b""),
        "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
    ),
    (
        Request(
            "PUT",
            "/test$file.text",
            {},
            {**HOST, "Date": "Fri, 24 May 2013 00:00:00 GMT", "x-amz-storage-class": "REDUCED_REDUNDANCY"},
            b"Welcome to Amazon S3.",
        ),
        "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
    ),
    (
        Request("GET", "/", {"lifecycle": ""}, HOST, b""),
        "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
    ),
    (
        Request("GET", "/", {"prefix": "J", "max-keys": "2"}, HOST, b""),
        "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
    ),
]


@pytest.mark.parametrize(("request_", "signature"), EXAMPLES, ids=["object", "put", "lifecycle", "list"])
def test_the_published_examples(request_: Request, signature: str) -> None:
    """Byte for byte."""
    headers = signed(request_, ACCOUNT, "us-east-1", "20130524T000000Z")

    assert f"Signature={signature}" == headers["authorization"].split(",")[-1]
    assert headers["authorization"].startswith(
        "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,SignedHeaders="
    )


def test_the_published_signing_key() -> None:
    """Of the day, the region and the service."""
    key = signing_key("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "20150830", "us-east-1", "iam")

    assert "c4afb1cc5771d871763a393e44b703571b55cc28424d1a5e86da6ed3c154a4b9" == key.hex()


def test_a_session_token_is_signed() -> None:
    """Temporary credentials."""
    headers = signed(EXAMPLES[0][0], ACCOUNT._replace(session_token="t"), "us-east-1", "20130524T000000Z")

    assert "t" == headers["x-amz-security-token"]
    assert "x-amz-security-token" in headers["authorization"]


def test_paths_are_encoded_once() -> None:
    """The '=' of our keys, too."""
    assert "/b/raw/schema%3D1/dt%3D2026-01-15/a~b%20c.json.gz" == encoded_path(
        "/b/raw/schema=1/dt=2026-01-15/a~b c.json.gz"
    )


def test_credentials_do_not_print_themselves() -> None:
    """In no traceback either."""
    assert "wJalr" not in f"{ACCOUNT} {ACCOUNT!r}"
