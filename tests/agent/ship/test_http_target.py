"""An HTTP endpoint that misbehaves in every way: what passes, what is kept, and with which key it is sent again."""

from __future__ import annotations

import socket
import threading
import time
from email.utils import formatdate
from pathlib import Path

import pytest

from agent.ship.options import TargetOptions, open_target
from agent.ship.payload import parse_payload
from tests.agent.ship.servers import (
    OK,
    PATIENCE,
    QUICK,
    Behaviour,
    Request,
    Run,
    hang,
    raw,
    read_request,
    reply,
    report,
    serving,
    target,
)


def cut(sock: socket.socket, _: Request) -> bool:
    """A reset instead of an answer."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
    return False


def closed(_: socket.socket, __: Request) -> bool:
    """No answer."""
    return False


@pytest.mark.parametrize(("compress", "encoding"), [("gzip", "gzip"), ("zstd", "zstd"), ("none", None)])
def test_a_post(compress: str, encoding: str | None, run: Run) -> None:
    """The report's own bytes, encoded, with its digest as the key."""
    with serving() as server:
        result = run.ship(target(server, compress=compress), report())

    (request,) = server.requests
    assert ("POST", "/in?tenant=7") == (request.method, request.path)
    assert encoding == request.headers.get("content-encoding")
    assert "application/json" == request.headers["content-type"]
    assert report() == request.report
    assert parse_payload(report()).digest == request.headers["idempotency-key"]
    assert f"127.0.0.1:{server.port}" == request.headers["host"]
    assert result.all_handed_over
    assert [] == run.waiting


def test_a_put_is_a_file_below_the_address(run: Run) -> None:
    """Under the key that an object store would give it; stored as sent, so no encoding is told."""
    with serving(reply(201)) as server:
        result = run.ship(target(server, method="PUT"), report())

    (request,) = server.requests
    assert f"/in/{parse_payload(report()).object_key('gzip')}?tenant=7" == request.path
    assert "content-encoding" not in request.headers
    assert report() == request.report
    assert result.all_handed_over


def test_a_backlog_goes_over_one_connection(run: Run) -> None:
    """A hundred thousand nodes come back at once; the newest report first, then findings, then healthy ones."""
    with serving(reply(503)) as server:
        for number, verdict in enumerate(("ok", "error", "unknown", "ok", "warning", "ok")):
            run.ship(target(server), report(number, verdict))
    with serving(OK) as server:
        result = run.ship(target(server))

    assert result.all_handed_over
    assert 1 == server.connections
    assert [5, 4, 1, 2, 3, 0] == [int(parse_payload(request.report).timestamp[11:13]) for request in server.requests]


def test_a_server_that_is_down_for_days_is_not_hammered(run: Run) -> None:
    """A run asks as often with a full spool as with one report; then all goes over one connection."""
    asked = []
    with serving(reply(503)) as server:
        for day in range(4):
            before = len(server.requests)
            run.ship(target(server), *[report(8 * day + number) for number in range(8 if day else 1)])
            asked.append(len(server.requests) - before)
    with serving(OK) as back:
        result = run.ship(target(back))

    assert [QUICK.attempts, *[QUICK.attempts + 1] * 3] == asked
    assert (25, 25, 1) == (result.accepted, len(back.requests), back.connections)


FAILURES: dict[str, Behaviour] = {
    "500": reply(500),
    "502 with a page": reply(502, {"Content-Type": "text/html"}, b"<html>Bad gateway</html>"),
    "408": reply(408),
    "425": reply(425),
    "429 without a time": reply(429),
    "closed without an answer": closed,
    "reset": cut,
    "cut in the headers": raw(b"HTTP/1.1 200 OK\r\nContent-Le"),
    "cut in the body": raw(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"),
    "cut in a chunk": raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10\r\nhalf"),
    "no HTTP": raw(b"SSH-2.0-OpenSSH_9.2\r\n"),
    "endless header": raw(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 70_000),
    "hundreds of headers": raw(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 300 + b"\r\n"),
}


@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES)
def test_what_passes_is_tried_again_with_the_same_key(failure: Behaviour, run: Run) -> None:
    """Twice, then it is taken."""
    with serving(failure, failure, OK) as server:
        result = run.ship(target(server), report())

    assert result.all_handed_over
    assert 3 == len(server.requests)
    assert {parse_payload(report()).digest} == {request.headers["idempotency-key"] for request in server.requests}
    assert 1 == len({request.body for request in server.requests})


@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES)
def test_what_does_not_pass_is_kept(failure: Behaviour, run: Run) -> None:
    """And goes in the next run."""
    with serving(failure) as server:
        result = run.ship(target(server), report())
        assert QUICK.attempts == len(server.requests)
        assert (0, 1) == (result.accepted, result.waiting)
        assert result.reason
        server.behaviours = [OK]
        assert run.ship(target(server)).all_handed_over


@pytest.mark.parametrize("status", [401, 403, 404, 405, 407, 415, 501, 301, 302, 307, 308])
def test_what_is_wrong_with_the_endpoint_costs_no_report(status: int, run: Run) -> None:
    """One request in a run, however many wait, and all of them stay."""
    with serving(reply(status, {"Location": "https://elsewhere.example/x?token=1"})) as server:
        result = run.ship(target(server), report(0), report(1, "error"), report(2))

    assert 1 == len(server.requests)
    assert (0, 3) == (result.accepted, result.waiting)
    assert str(status) in (result.reason or "")
    assert "token" not in (result.reason or "")


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_report_that_is_refused_goes_aside_where_another_was_taken(status: int, run: Run) -> None:
    """It does not block the others, and it can be sent again by hand."""
    with serving(OK, reply(status, body=b"you sent Bearer abc"), OK) as server:
        result = run.ship(target(server), report(0), report(1), report(2))

    aside = sorted(item.name for item in (run.path / "aside").iterdir())
    assert (2, 0) == (result.accepted, result.waiting)
    assert 2 == len(aside)
    assert f"refused: {status}" in (run.path / "aside" / aside[1]).read_text()
    assert "Bearer" not in "".join(run.warnings)
    with serving() as server:
        again = run.ship(target(server), (run.path / "aside" / aside[0]).read_bytes())
    assert 1 == again.accepted
    assert report(1) == server.requests[0].report


@pytest.mark.parametrize("status", [400, 413, 422])
def test_an_endpoint_that_refuses_all_costs_no_report(status: int, run: Run) -> None:
    """A proxy that answers 400 to everything says nothing about reports; it is not asked about each of them."""
    with serving(reply(status)) as server:
        result = run.ship(target(server), *[report(number) for number in range(9)])

    assert QUICK.rejections == len(server.requests)
    assert 9 == result.waiting


def test_a_report_on_which_the_endpoint_stumbles_does_not_keep_the_others(run: Run) -> None:
    """500 for one of them, always."""

    def stumbles(sock: socket.socket, request: Request) -> bool:
        return (reply(500) if request.report == report(1, "error") else OK)(sock, request)

    with serving(stumbles) as server:
        result = run.ship(target(server), report(0), report(1, "error"), report(2))

    assert (2, 1) == (result.accepted, result.waiting)
    assert "_error_" in run.waiting[0]


@pytest.mark.parametrize("as_date", [False, True], ids=["seconds", "date"])
def test_a_short_retry_after_is_waited_for(as_date: bool, run: Run) -> None:
    """Within the run."""
    after = formatdate(time.time() + 2, usegmt=True) if as_date else "1"
    times = []

    def note(sock: socket.socket, request: Request) -> bool:
        times.append(time.monotonic())
        return (reply(429, {"Retry-After": after}) if len(times) == 1 else OK)(sock, request)

    with serving(note) as server:
        assert run.ship(target(server), report()).all_handed_over

    assert times[1] - times[0] >= 0.9


def test_a_long_retry_after_holds_for_the_next_run(run: Run) -> None:
    """The endpoint is left alone, the reports are kept; another endpoint is not concerned."""
    with serving(reply(429, {"Retry-After": "3600"}), OK) as server:
        one = target(server)
        assert "429" in (run.ship(one, report(0)).reason or "")
        result = run.ship(one, report(1))
        assert "asked to wait" in (result.reason or "")
        assert (1, 2) == (len(server.requests), result.waiting)
    with serving() as other:
        assert run.ship(target(other)).all_handed_over
    assert 2 == len(other.requests)


def test_the_token_is_sent_and_never_told(run: Run, tmp_path: Path) -> None:
    """Not in a line, a spool file or the state, though the server repeats it in every way."""
    secret = "s3cr3tT0ken"
    (tmp_path / "token").write_text(f"{secret}\n")
    (tmp_path / "token").chmod(0o600)
    echo = {"Location": f"https://{secret}/", "Retry-After": secret, "WWW-Authenticate": f"Bearer {secret}"}
    behaviours = [raw(f"HTTP/1.1 {status} {secret}\r\nX: {secret}\r\n\r\n{secret}".encode()) for status in (500, 400)]
    behaviours += [reply(status, echo, secret.encode()) for status in (429, 302, 401)] + [raw(secret.encode())]
    for behaviour in behaviours:
        with serving(behaviour) as server:
            result = run.ship(target(server, token_file=str(tmp_path / "token")), report())
            assert f"Bearer {secret}" == server.requests[0].headers["authorization"]
            run.warnings.append(f"{result}")

    remaining = b"".join(item.read_bytes() for item in run.path.rglob("*") if item.is_file())
    assert secret.lower().encode() not in remaining.lower()
    assert secret.lower() not in "".join(run.warnings).lower()


@pytest.mark.parametrize(
    "slow",
    [
        raw(b"HTTP/1.1 200 OK\r\nX-Filler: " + b"x" * 200 + b"\r\nContent-Length: 0\r\n\r\n", drip=0.3),
        raw(b"HTTP/1.1 100 Continue\r\n\r\n" * 50, drip=0.3),
        hang,
    ],
    ids=["drips headers", "continues for ever", "says nothing"],
)
def test_a_slow_server_does_not_hold_the_run(slow: Behaviour, run: Run) -> None:
    """Every byte comes in time, and the answer never does."""
    started = time.monotonic()
    with serving(slow) as server:
        result = run.ship(target(server), report(), seconds=1.5)

    assert time.monotonic() - started < PATIENCE
    assert (0, 1) == (result.accepted, result.waiting)


def test_a_server_that_does_not_read_does_not_hold_the_run(run: Run) -> None:
    """A large report, and a window that fills."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = TargetOptions(f"http://127.0.0.1:{listening.getsockname()[1]}/", compress="none")
        started = time.monotonic()
        result = run.ship(open_target(address, {}), report(pad=1_900_000), seconds=1.5)

    assert time.monotonic() - started < PATIENCE
    assert 0 == result.accepted


def test_a_huge_answer_is_not_read(run: Run) -> None:
    """Its status says all that is to be known."""
    sent = []

    def huge(sock: socket.socket, _: Request) -> bool:
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n")
        sent.extend(sock.send(b"x" * 65536) for _count in range(10_000))
        return False

    with serving(huge) as server:
        assert run.ship(target(server), report()).all_handed_over

    assert sum(sent) < 100 << 20


def test_an_answer_before_the_report_was_read_is_heard(run: Run) -> None:
    """413 and closed, while we still send."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            for _count in range(3):
                try:
                    sock, _ = listening.accept()
                except OSError:  # the test is over
                    return
                sock.recv(1000)
                sock.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                sock.shutdown(socket.SHUT_WR)
                time.sleep(0.3)
                sock.close()

        threading.Thread(target=answer, daemon=True).start()
        address = TargetOptions(f"http://127.0.0.1:{listening.getsockname()[1]}/", compress="none")
        result = run.ship(open_target(address, {}), report(pad=1_900_000))

    assert "413" in (result.reason or "")


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_the_last_answer_of_a_connection_is_read(version: str, run: Run) -> None:
    """Its body comes later than the word that it is the last one."""

    def last(sock: socket.socket, _: Request) -> bool:
        sock.sendall(f"HTTP/{version} 201 Created\r\nContent-Length: 6\r\nConnection: close\r\n\r\n".encode())
        time.sleep(0.2)
        sock.sendall(b"thanks")
        return False

    with serving(last) as server:
        result = run.ship(target(server), report(0), report(1))

    assert result.all_handed_over
    assert 2 == len(server.requests)


def test_a_connection_that_was_closed_meanwhile_is_opened_anew(run: Run) -> None:
    """A server drops idle connections; that is no failure."""

    def once(sock: socket.socket, request: Request) -> bool:
        OK(sock, request)
        return False  # without having said so

    with serving(once) as server:
        result = run.ship(target(server), report(0), report(1), report(2), policy=QUICK._replace(attempts=1))

    assert result.all_handed_over
    assert 3 == len(server.requests)


def test_ipv6(run: Run) -> None:
    """A literal address, and its Host header."""
    try:
        listening = socket.create_server(("::1", 0), family=socket.AF_INET6)
    except OSError:
        pytest.skip("no IPv6 on this machine")
    with listening:
        heard = []

        def answer() -> None:
            sock, _ = listening.accept()
            heard.append(read_request(sock.makefile("rb")))
            sock.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")

        threading.Thread(target=answer, daemon=True).start()
        port = listening.getsockname()[1]
        assert run.ship(open_target(TargetOptions(f"http://[::1]:{port}/"), {}), report()).all_handed_over

    assert heard[0] is not None
    assert f"[::1]:{port}" == heard[0].headers["host"]


def test_nobody_there(run: Run) -> None:
    """A port that is shut, and a name that nobody has."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    for host, part in ((f"127.0.0.1:{port}", "refused"), ("no-such-host.invalid", "not resolved")):
        result = run.ship(
            open_target(TargetOptions(f"http://{host}/"), {}), report(), policy=QUICK._replace(attempts=1)
        )
        assert part in (result.reason or "")
        assert 1 == result.waiting
