"""An object store: a server of our own that checks each signature by itself, and the answers that S3 gives.

The signature against the examples that AWS publishes: account, bucket, times and signatures are those of "Examples:
Signature Calculations" in the Amazon S3 API reference (sig-v4-header-based-auth), the key's of "Deriving the signing
key" in the IAM user guide.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import socket
import urllib.parse
from pathlib import Path

import pytest

from agent.ship.options import TargetOptions, open_target
from agent.ship.payload import parse_payload
from agent.ship.s3 import Credentials, encode_path, load_credentials, sign, signing_key
from agent.ship.target import BadTarget
from tests.agent.ship.servers import OK, Behaviour, Request, Run, Server, reply, report, serving

SECRET = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
ENVIRONMENT = {"AWS_ACCESS_KEY_ID": "AKIAEXAMPLE", "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": "eu-north-1"}


def refusal(status: int, code: str) -> Behaviour:
    """As S3 writes it."""
    return reply(status, body=f'<?xml version="1.0"?>\n<Error><Code>{code}</Code><Message>m</Message></Error>'.encode())


def believes(request: Request, secret: str) -> bool:
    """The check of a server: from what it received, and nothing of ours."""
    match = re.fullmatch(
        r"AWS4-HMAC-SHA256 Credential=(\w+)/(\d{8})/([\w-]+)/s3/aws4_request,"
        r"SignedHeaders=([\w;-]+),Signature=(\w{64})",
        request.headers["authorization"],
    )
    assert match is not None
    key, day, region, names, signature = match.groups()
    path, _, query = request.path.partition("?")
    pairs = sorted(urllib.parse.parse_qsl(query, keep_blank_values=True))
    canonical = [
        request.method,
        urllib.parse.quote(urllib.parse.unquote(path), safe="/~"),
        "&".join(f"{urllib.parse.quote(k, safe='~')}={urllib.parse.quote(v, safe='~')}" for k, v in pairs),
        *[f"{name}:{request.headers[name]}" for name in names.split(";")],
        "",
        names,
        hashlib.sha256(request.body).hexdigest(),
    ]
    text = "\n".join(
        [
            "AWS4-HMAC-SHA256",
            request.headers["x-amz-date"],
            f"{day}/{region}/s3/aws4_request",
            hashlib.sha256("\n".join(canonical).encode()).hexdigest(),
        ]
    )
    step = f"AWS4{secret}".encode()
    for part in (day, region, "s3", "aws4_request", text):
        step = hmac.digest(step, part.encode(), "sha256")
    assert {"host", "x-amz-date", "x-amz-content-sha256"} <= set(names.split(";"))
    assert request.headers["x-amz-date"].startswith(day)
    return key == "AKIAEXAMPLE" and hmac.compare_digest(step.hex(), signature)


def store(sock: socket.socket, request: Request) -> bool:
    """Takes what is signed well."""
    good = believes(request, SECRET)
    return (OK if good else refusal(403, "SignatureDoesNotMatch"))(sock, request)


def address(server: Server, to: str = "s3://fleet/gpu nodes/lab".replace(" ", "%20"), **more: str) -> TargetOptions:
    """A store on this machine."""
    return TargetOptions(to, endpoint=server.url)._replace(**more)


def test_a_report_lands_on_its_key(run: Run) -> None:
    """Signed, and as the file that its name says."""
    with serving(store) as server:
        result = run.ship(open_target(address(server), ENVIRONMENT), report())

    (request,) = server.requests
    digest = parse_payload(report()).digest
    assert result.all_handed_over
    assert f"/fleet/gpu%20nodes/lab/raw/schema%3D1/dt%3D2026-01-15/{'a' * 32}/{digest}.json.gz" == request.path
    assert report() == request.report
    assert "application/gzip" == request.headers["content-type"]
    assert "content-encoding" not in request.headers
    assert "/eu-north-1/s3/" in request.headers["authorization"]


def test_a_wrong_secret_costs_no_report(run: Run) -> None:
    """403 and the store's own word for it; the secret is told nowhere."""
    with serving(store) as server:
        target = open_target(address(server), {**ENVIRONMENT, "AWS_SECRET_ACCESS_KEY": "wrong"})
        result = run.ship(target, report(0), report(1))

    assert (0, 2, 1) == (result.accepted, result.waiting, len(server.requests))
    assert "403 Forbidden (SignatureDoesNotMatch)" in (result.reason or "")


def test_a_session_token_goes_along(run: Run) -> None:
    """And is signed."""
    with serving(store) as server:
        run.ship(open_target(address(server), {**ENVIRONMENT, "AWS_SESSION_TOKEN": "FwoGZXIvYXdzE/+="}), report())

    (request,) = server.requests
    assert "FwoGZXIvYXdzE/+=" == request.headers["x-amz-security-token"]
    assert believes(request, SECRET)


@pytest.mark.parametrize(
    ("answer", "requests", "aside"),
    [
        (refusal(503, "SlowDown"), 4 + 1, 0),
        (refusal(400, "RequestTimeout"), 4 + 1, 0),
        (refusal(409, "OperationAborted"), 4 + 1, 0),
        (refusal(400, "ExpiredToken"), 1, 0),
        (refusal(400, "AuthorizationHeaderMalformed"), 1, 0),
        (refusal(403, "RequestTimeTooSkewed"), 1, 0),
        (refusal(404, "NoSuchBucket"), 1, 0),
        (reply(400), 1, 0),
        (reply(301, {"x-amz-bucket-region": "us-west-2"}, b"<Error><Code>PermanentRedirect</Code></Error>"), 1, 0),
    ],
)
def test_no_answer_of_a_store_costs_a_report(answer: Behaviour, requests: int, aside: int, run: Run) -> None:
    """A store takes any bytes: what it does not take is the account's, the bucket's or the moment's fault."""
    with serving(answer) as server:
        result = run.ship(open_target(address(server), ENVIRONMENT), report(0), report(1))

    assert (requests, 2) == (len(server.requests), result.waiting)
    assert aside == len(list((run.path / "aside").iterdir()))


def test_the_region_of_the_bucket_is_told(run: Run) -> None:
    """As S3 tells it."""
    moved = reply(301, {"x-amz-bucket-region": "us-west-2"}, b"<Error><Code>PermanentRedirect</Code></Error>")
    with serving(moved) as server:
        result = run.ship(open_target(address(server), ENVIRONMENT), report())

    assert "(PermanentRedirect, the bucket is in us-west-2)" in (result.reason or "")


def test_aws_itself_has_a_host_for_each_bucket() -> None:
    """But for a name with dots, which no certificate covers."""
    for to, host, label in (
        ("s3://fleet/x/", "fleet.s3.eu-north-1.amazonaws.com", "s3://fleet/x"),
        ("s3://fleet.example", "s3.eu-north-1.amazonaws.com", "s3://fleet.example"),
    ):
        target = open_target(TargetOptions(to), ENVIRONMENT)
        assert (host, 443, True) == (target.client.host, target.client.port, target.client.tls is not None)  # type: ignore[attr-defined]  # an S3Target
        assert label == target.label


def test_credentials_come_from_where_aws_has_them(tmp_path: Path) -> None:
    """A file that is named first, then the environment, then the shared file and its profile."""
    file = tmp_path / "credentials"
    file.write_text(
        "[default]\naws_access_key_id = one\naws_secret_access_key = 1%x\n"
        "[lab]\naws_access_key_id=two\naws_secret_access_key=2\naws_session_token=t\n"
    )
    shared = {"AWS_SHARED_CREDENTIALS_FILE": str(file)}

    assert ("one", "1%x", None) == load_credentials({}, str(file))
    assert ("one", "1%x", None) == load_credentials(ENVIRONMENT, str(file))
    assert ("AKIAEXAMPLE", SECRET, None) == load_credentials({**ENVIRONMENT, **shared}, None)
    assert ("two", "2", "t") == load_credentials({**shared, "AWS_PROFILE": "lab"}, None)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (None, "No such file"),
        ("[other]\n", r"no profile \[default\]"),
        ("[default]\naws_access_key_id = x\n", "has no"),
        (f"aws_secret_access_key = {SECRET}\n", "no credentials file"),
        (f"[default]\naws_access_key_id = x\naws_secret_access_key = {SECRET} y\n", "character"),
    ],
)
def test_credentials_that_are_none(text: str | None, part: str, tmp_path: Path) -> None:
    """One line, and no word of a secret in it."""
    path = tmp_path / "credentials"
    if text is not None:
        path.write_text(text)

    with pytest.raises(BadTarget, match=part) as caught:
        load_credentials({}, str(path))
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None or SECRET not in str(caught.value.__cause__)


def test_no_credentials_at_all(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What could be given is named."""
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(BadTarget, match="AWS_ACCESS_KEY_ID"):
        open_target(TargetOptions("s3://fleet"), {})


def test_an_endpoint_is_a_host() -> None:
    """No path, no other scheme."""
    for item in ("https://h/path", "ftp://h", "https://h?x=1"):
        with pytest.raises(BadTarget, match="--endpoint"):
            open_target(TargetOptions("s3://fleet", endpoint=item), ENVIRONMENT)
    with pytest.raises(BadTarget, match="--region"):
        open_target(TargetOptions("s3://fleet", region="eu north"), ENVIRONMENT)


ACCOUNT = Credentials("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
HOST = {"Host": "examplebucket.s3.amazonaws.com"}
EXAMPLES: list[tuple[tuple[str, str, dict[str, str], bytes], str]] = [
    (
        ("GET", "/test.txt", {**HOST, "Range": "bytes=0-9"}, b""),
        "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
    ),
    (
        (
            "PUT",
            "/test%24file.text",
            {**HOST, "Date": "Fri, 24 May 2013 00:00:00 GMT", "x-amz-storage-class": "REDUCED_REDUNDANCY"},
            b"Welcome to Amazon S3.",
        ),
        "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
    ),
    (
        ("GET", "/?lifecycle=", HOST, b""),
        "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
    ),
    (
        ("GET", "/?max-keys=2&prefix=J", HOST, b""),
        "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
    ),
]


@pytest.mark.parametrize(("request_parts", "signature"), EXAMPLES, ids=["object", "put", "lifecycle", "list"])
def test_the_published_examples(request_parts: tuple[str, str, dict[str, str], bytes], signature: str) -> None:
    """Byte for byte."""
    headers = sign(*request_parts, ACCOUNT, "us-east-1", "20130524T000000Z")

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
    headers = sign(*EXAMPLES[0][0], ACCOUNT._replace(session_token="t"), "us-east-1", "20130524T000000Z")

    assert "t" == headers["x-amz-security-token"]
    assert "x-amz-security-token" in headers["authorization"]


def test_paths_are_encoded_once() -> None:
    """The '=' of our keys, too."""
    assert "/b/raw/schema%3D1/dt%3D2026-01-15/a~b%20c.json.gz" == encode_path(
        "/b/raw/schema=1/dt=2026-01-15/a~b c.json.gz"
    )


def test_credentials_do_not_print_themselves() -> None:
    """In no traceback either."""
    assert "wJalr" not in f"{ACCOUNT} {ACCOUNT!r}"
