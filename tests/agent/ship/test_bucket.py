"""An object store: a server of our own that checks each signature by itself, and the answers that S3 gives."""

from __future__ import annotations

import hashlib
import hmac
import re
import socket
import urllib.parse
from pathlib import Path

import pytest

from agent.ship.answer import BadTarget
from agent.ship.bucket import found_credentials
from agent.ship.parcel import parcel
from agent.ship.targets import Address, opened
from tests.agent.ship.servers import OK, Behaviour, Request, Run, Server, reply, report, serving

SECRET = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
ENVIRONMENT = {"AWS_ACCESS_KEY_ID": "AKIAEXAMPLE", "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": "eu-north-1"}


def refusal(status: int, code: str) -> Behaviour:
    """As S3 writes it."""
    return reply(status, body=f'<?xml version="1.0"?>\n<Error><Code>{code}</Code><Message>m</Message></Error>'.encode())


def believes(request: Request, secret: str) -> bool:
    """The check of a server: from what it received, and nothing of ours."""
    found = re.fullmatch(
        r"AWS4-HMAC-SHA256 Credential=(\w+)/(\d{8})/([\w-]+)/s3/aws4_request,"
        r"SignedHeaders=([\w;-]+),Signature=(\w{64})",
        request.headers["authorization"],
    )
    assert found is not None
    key, day, region, names, signature = found.groups()
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


def address(server: Server, to: str = "s3://fleet/gpu nodes/lab".replace(" ", "%20"), **more: str) -> Address:
    """A store on this machine."""
    return Address(to, endpoint=server.url)._replace(**more)


def test_a_report_lands_on_its_key(run: Run) -> None:
    """Signed, and as the file that its name says."""
    with serving(store) as server:
        made = run.ship(opened(address(server), ENVIRONMENT), report())

    (request,) = server.requests
    digest = parcel(report()).digest
    assert made.all_gone
    assert f"/fleet/gpu%20nodes/lab/raw/schema%3D1/dt%3D2026-01-15/{'a' * 32}/{digest}.json.gz" == request.path
    assert report() == request.report
    assert "application/gzip" == request.headers["content-type"]
    assert "content-encoding" not in request.headers
    assert "/eu-north-1/s3/" in request.headers["authorization"]


def test_a_wrong_secret_costs_no_report(run: Run) -> None:
    """403 and the store's own word for it; the secret is told nowhere."""
    with serving(store) as server:
        target = opened(address(server), {**ENVIRONMENT, "AWS_SECRET_ACCESS_KEY": "wrong"})
        made = run.ship(target, report(0), report(1))

    assert (0, 2, 1) == (made.taken, made.waiting, len(server.requests))
    assert "403 Forbidden (SignatureDoesNotMatch)" in (made.why or "")


def test_a_session_token_goes_along(run: Run) -> None:
    """And is signed."""
    with serving(store) as server:
        run.ship(opened(address(server), {**ENVIRONMENT, "AWS_SESSION_TOKEN": "FwoGZXIvYXdzE/+="}), report())

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
        made = run.ship(opened(address(server), ENVIRONMENT), report(0), report(1))

    assert (requests, 2) == (len(server.requests), made.waiting)
    assert aside == len(list((run.path / "aside").iterdir()))


def test_the_region_of_the_bucket_is_told(run: Run) -> None:
    """As S3 tells it."""
    moved = reply(301, {"x-amz-bucket-region": "us-west-2"}, b"<Error><Code>PermanentRedirect</Code></Error>")
    with serving(moved) as server:
        made = run.ship(opened(address(server), ENVIRONMENT), report())

    assert "(PermanentRedirect, the bucket is in us-west-2)" in (made.why or "")


def test_aws_itself_has_a_host_for_each_bucket() -> None:
    """But for a name with dots, which no certificate covers."""
    for to, host, shown in (
        ("s3://fleet/x/", "fleet.s3.eu-north-1.amazonaws.com", "s3://fleet/x"),
        ("s3://fleet.example", "s3.eu-north-1.amazonaws.com", "s3://fleet.example"),
    ):
        target = opened(Address(to), ENVIRONMENT)
        assert (host, 443, True) == (target.wire.host, target.wire.port, target.wire.tls is not None)  # type: ignore[attr-defined]  # a Bucket
        assert shown == target.shown


def test_credentials_come_from_where_aws_has_them(tmp_path: Path) -> None:
    """A file that is named first, then the environment, then the shared file and its profile."""
    file = tmp_path / "credentials"
    file.write_text(
        "[default]\naws_access_key_id = one\naws_secret_access_key = 1%x\n"
        "[lab]\naws_access_key_id=two\naws_secret_access_key=2\naws_session_token=t\n"
    )
    shared = {"AWS_SHARED_CREDENTIALS_FILE": str(file)}

    assert ("one", "1%x", None) == found_credentials({}, str(file))
    assert ("one", "1%x", None) == found_credentials(ENVIRONMENT, str(file))
    assert ("AKIAEXAMPLE", SECRET, None) == found_credentials({**ENVIRONMENT, **shared}, None)
    assert ("two", "2", "t") == found_credentials({**shared, "AWS_PROFILE": "lab"}, None)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (None, "No such file"),
        ("[other]\n", r"no profile \[default\]"),
        ("[default]\naws_access_key_id = x\n", "lacks"),
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
        found_credentials({}, str(path))
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None or SECRET not in str(caught.value.__cause__)


def test_no_credentials_at_all(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What could be given is named."""
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(BadTarget, match="AWS_ACCESS_KEY_ID"):
        opened(Address("s3://fleet"), {})


def test_an_endpoint_is_a_host() -> None:
    """No path, no other scheme."""
    for each in ("https://h/path", "ftp://h", "https://h?x=1"):
        with pytest.raises(BadTarget, match="--endpoint"):
            opened(Address("s3://fleet", endpoint=each), ENVIRONMENT)
    with pytest.raises(BadTarget, match="--region"):
        opened(Address("s3://fleet", region="eu north"), ENVIRONMENT)
