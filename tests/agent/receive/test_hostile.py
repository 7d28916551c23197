"""What clients may do to `receive`: it answers or closes, goes on, and never prints a traceback."""

from __future__ import annotations

import asyncio
import gzip
import json
import lzma
import socket
import ssl
import time
import tracemalloc
import zlib
from hashlib import sha256

import pytest
import zstandard

from agent.model.report import REPORT_LIMIT_BYTES
from agent.receive import admission
from agent.receive import server as server_module
from agent.receive.inbox import TooLarge, unpack
from agent.receive.server import Answer, _Log
from agent.ship.payload import BadPayload
from tests.agent.receive.conftest import TOKEN, Receiver, Start
from tests.agent.ship.conftest import Certificates
from tests.agent.ship.servers import report

GOOD = f"Authorization: Bearer {TOKEN}\r\n"


def connect(receiver: Receiver) -> socket.socket:
    """A connection that gives up after a while."""
    return socket.create_connection(("127.0.0.1", receiver.port), 10)


def send(receiver: Receiver, head: str, body: bytes = b"", length: int | None = None) -> bytes:
    """What one request is answered, until the connection ends."""
    size = "" if length == -1 else f"Content-Length: {len(body) if length is None else length}\r\n"
    with connect(receiver) as sock:
        sock.sendall(f"{head}{size}\r\n".encode("latin-1") + body)
        sock.shutdown(socket.SHUT_WR)
        data = b""
        while more := sock.recv(65536):
            data += more
    return data


def post(receiver: Receiver, body: bytes, more: str = "", length: int | None = None) -> str:
    """The status line that a POST with the right token gets."""
    answer = send(receiver, f"POST /reports HTTP/1.1\r\nHost: h\r\n{GOOD}{more}", body, length)
    return answer.partition(b"\r\n")[0].decode()


def finish(receiver: Receiver) -> None:
    """It is still there, takes a report, ends at once and printed no traceback."""
    assert "HTTP/1.1 201 Created" == post(receiver, report(59))
    assert 0 == receiver.stop()
    assert "Traceback" not in "".join(receiver.log)


BOMB = gzip.compress(b"[" + b" " * (64 << 20))
ZSTD_BOMB = b"\x28\xb5\x2f\xfd\x00\x58" + b"\x02\x00\x10\x20" * (1 << 14)  # blocks of 128 KiB of one byte: 2 GiB
BODIES = {
    "empty": (b"", "400"),
    "no JSON": (b"\x00\xff\xfe", "400"),
    "another JSON": (b'{"a": 1}', "400"),
    "another schema": (report().replace(b"fabricscope.report/1", b"x"), "400"),
    "cut JSON": (report()[:-9], "400"),
    "deep JSON": (b'{"schema":' + b"[" * 200_000, "400"),
    "a list": (b"[]", "400"),
    "no node": (json.dumps(json.loads(report()) | {"node": {}}).encode(), "400"),
    "a blank node": (json.dumps(json.loads(report()) | {"node": {"hostname": " "}}).encode(), "400"),
    "a node that is no text": (json.dumps(json.loads(report()) | {"node": {"hostname": 1}}).encode(), "400"),
    "a time that is none": (report().replace(b"2026-01-15", b"2026-99-99"), "400"),
    "cut gzip": (gzip.compress(report())[:-20], "400"),
    "damaged gzip": (b"\x1f\x8b" + b"x" * 100, "400"),
    "xz": (lzma.compress(report()), "400"),
    "gzip with more behind": (gzip.compress(report()) + b"x", "400"),
    "damaged zstd": (b"\x28\xb5\x2f\xfd" + b"x" * 100, "400"),
    "cut zstd": (zstandard.ZstdCompressor().compress(report())[:-20], "400"),
    "a gzip bomb": (BOMB, "413"),
    "a zstd bomb": (ZSTD_BOMB, "413"),
}


def test_bodies_that_are_no_report(start: Start) -> None:
    """Each with its status; the connection stays for the next request, or is closed."""
    receiver = start(plain=True)
    wrong = {name: post(receiver, body) for name, (body, _) in BODIES.items()}

    assert {name: status for name, (_, status) in BODIES.items()} == {n: line.split()[1] for n, line in wrong.items()}
    assert [] == receiver.files
    finish(receiver)


def test_a_bomb_costs_no_memory() -> None:
    """Never more than one report and a bit."""
    for body in (BOMB, ZSTD_BOMB):
        tracemalloc.start()
        with pytest.raises(TooLarge):
            unpack(body)
        assert 5 * REPORT_LIMIT_BYTES > tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    with pytest.raises(BadPayload):
        unpack(zlib.compress(b"{}", wbits=31)[:-1])


HEADS = {
    "no HTTP": ("\x16\x03\x01\r\n", "400"),
    "an old version": ("POST / HTTP/0.9\r\n", "400"),
    "a blank in the path": (f"POST /a b HTTP/1.1\r\n{GOOD}", "400"),
    "a folded field": (f"POST / HTTP/1.1\r\n{GOOD}A: b\r\n c\r\n", "400"),
    "a blank before the colon": (f"POST / HTTP/1.1\r\n{GOOD}A : b\r\n", "400"),
    "a control character": (f"POST / HTTP/1.1\r\n{GOOD}A: \x1b[31m\r\n", "400"),
    "two lengths": (f"POST / HTTP/1.1\r\n{GOOD}Content-Length: 1\r\n", "400"),
    "a length that is none": (f"POST / HTTP/1.1\r\n{GOOD}Content-Length: -1\r\n", "400"),
    "two tokens": (f"POST / HTTP/1.1\r\n{GOOD}{GOOD}", "400"),
    "chunks": (f"POST / HTTP/1.1\r\n{GOOD}Transfer-Encoding: chunked\r\n", "411"),
    "chunks where none belong": ("GET /health HTTP/1.1\r\nTransfer-Encoding: chunked\r\n", "401"),
    "a huge field": (f"POST / HTTP/1.1\r\n{GOOD}A: {'b' * 20000}\r\n", "431"),
    "many fields": (f"POST / HTTP/1.1\r\n{GOOD}" + "A: b\r\n" * 5000, "431"),
    "no token": ("POST / HTTP/1.1\r\n", "401"),
    "a token that is not ASCII": ("POST / HTTP/1.1\r\nAuthorization: Bearer \xff\r\n", "400"),
    "another scheme": (f"POST / HTTP/1.1\r\nAuthorization: Basic {TOKEN}\r\n", "401"),
    "another method": (f"DELETE / HTTP/1.1\r\n{GOOD}", "405"),
    "reading": (f"GET /reports HTTP/1.1\r\n{GOOD}", "405"),
}


def test_heads_that_are_no_request(start: Start) -> None:
    """None of their bodies is looked at."""
    receiver = start(plain=True)
    lengths = ("two lengths", "a length that is none")
    wrong = {n: send(receiver, head, b"", 0 if n == "two lengths" else -1 if n in lengths or n == "chunks" else None)
             for n, (head, _) in HEADS.items()}  # fmt: skip

    assert {name: status for name, (_, status) in HEADS.items()} == {
        name: answer.decode().split()[1] for name, answer in wrong.items()
    }
    assert "411" in post(receiver, b"", length=-1)
    assert "413" in post(receiver, b"", length=REPORT_LIMIT_BYTES + 1)
    assert "413" in post(receiver, b"", length=10**14)
    assert "" == post(receiver, b"{", length=100)  # cut off
    assert "400" in post(receiver, report(1), f"Idempotency-Key: {'0' * 64}\r\n")
    assert [] == receiver.files
    assert "201" in post(receiver, report(1), f"Idempotency-Key: {sha256(report(1)).hexdigest()}\r\n")
    finish(receiver)


def test_a_large_body_that_is_not_wanted_still_gets_its_answer(start: Start) -> None:
    """The client sends 3 MiB without a token, and reads 401."""
    receiver = start(plain=True)

    assert b"HTTP/1.1 401" == send(receiver, "POST / HTTP/1.1\r\n", b"x" * (3 << 20))[:12]


def test_several_requests_on_one_connection_and_curls_question(start: Start) -> None:
    """`Expect: 100-continue` is answered before the body is sent."""
    receiver = start(plain=True)
    head = f"POST / HTTP/1.1\r\n{GOOD}Expect: 100-continue\r\nContent-Length: {len(report(1))}\r\n\r\n"
    with connect(receiver) as sock, sock.makefile("rb") as file:
        for number in (1, 2):
            sock.sendall(head.encode())
            assert b"HTTP/1.1 100 Continue\r\n" == file.readline()
            assert b"\r\n" == file.readline()
            sock.sendall(report(number))
            lines = [file.readline() for _ in range(6)]
            assert b"HTTP/1.1 201 Created\r\n" == lines[0]
            assert b"received\n" == lines[5]
        sock.sendall(b"HEAD /health HTTP/1.0\r\nConnection: close\r\n\r\n")
        assert file.readline().startswith(b"HTTP/1.1 200")
        assert file.read().endswith(b"Connection: close\r\n\r\n")
    assert 2 == len(receiver.files)


def test_slow_clients_hold_nobody_up(start: Start) -> None:
    """A hundred that send nothing or half a request; a report arrives all the same, and each slow one ends."""
    receiver = start("--timeout", "1", plain=True)
    slow = [connect(receiver) for _ in range(100)]
    for number, sock in enumerate(slow):
        sock.sendall((b"", b"POST / HT", f"POST / HTTP/1.1\r\n{GOOD}Content-Length: 99\r\n\r\n{{".encode())[number % 3])
    began = time.monotonic()
    assert "201" in post(receiver, report(1))
    assert 5 > time.monotonic() - began
    assert slow[2].recv(100).startswith(b"HTTP/1.1 408")
    slow[0].settimeout(admission.ANONYMOUS_SECONDS + 5)
    assert b"" == slow[0].recv(1)
    for sock in slow:
        sock.close()
    finish(receiver)


def test_one_address_cannot_take_all_connections(start: Start, certificates: Certificates) -> None:
    """The oldest above its share are closed, also while their TLS handshake has not begun; a new one is served."""
    receiver = start()
    limit = admission.CONNECTIONS_OF_SOURCE
    holder = [connect(receiver) for _ in range(limit + 3)]
    assert [b"", b"", b""] == [sock.recv(1) for sock in holder[:3]]
    context = ssl.create_default_context(cafile=certificates.file("ca.pem"))
    with context.wrap_socket(connect(receiver), server_hostname="127.0.0.1") as tls:
        tls.sendall(b"GET /health HTTP/1.1\r\n\r\n")
        assert tls.recv(100).startswith(b"HTTP/1.1 200")
    with connect(receiver) as sock:
        sock.sendall(b"GET / HTTP/1.1\r\n\r\n")  # plain, to the port of TLS
        assert not sock.recv(100).startswith(b"HTTP/1.1 2")
    for sock in holder:
        sock.close()
    assert 0 == receiver.stop()
    assert [] == receiver.log


def test_a_connection_without_a_token_is_closed_after_one_answer(start: Start, certificates: Certificates) -> None:
    """And ten seconds after it was opened at the latest, whatever came over it; one with a token stays."""
    receiver = start()
    context = ssl.create_default_context(cafile=certificates.file("ca.pem"))
    with context.wrap_socket(connect(receiver), server_hostname="127.0.0.1") as silent:
        began = time.monotonic()
        with context.wrap_socket(connect(receiver), server_hostname="127.0.0.1") as tls:
            tls.sendall(b"GET /health HTTP/1.1\r\n\r\n")
            assert b"Connection: close" in tls.recv(1000)
            assert b"" == tls.recv(1)
        with context.wrap_socket(connect(receiver), server_hostname="127.0.0.1") as tls, tls.makefile("rwb") as file:
            for number in range(2):
                body = report(number)
                file.write(f"POST / HTTP/1.1\r\n{GOOD}Content-Length: {len(body)}\r\n\r\n".encode() + body)
                file.flush()
                assert file.readline().startswith(b"HTTP/1.1 201")
                head = iter(file.readline, b"\r\n")
                fields = dict(line.rstrip().split(b": ", 1) for line in head)
                assert b"keep-alive" == fields[b"Connection"]
                file.read(int(fields[b"Content-Length"]))
        silent.settimeout(admission.ANONYMOUS_SECONDS + 5)
        assert b"" == silent.recv(1)
        assert admission.ANONYMOUS_SECONDS - 1 < time.monotonic() - began < admission.ANONYMOUS_SECONDS + 3


def test_a_node_gets_through_while_sixteen_addresses_hold_all_they_can(
    start: Start, certificates: Certificates
) -> None:
    """32 connections each, as many as there are places; each node that comes is served within seconds."""
    receiver = start()
    sockets = [connect_from(receiver, f"127.0.1.{address}") for address in range(1, 17) for _ in range(32)]
    time.sleep(0.5)
    context = ssl.create_default_context(cafile=certificates.file("ca.pem"))
    context.check_hostname = False
    for number in range(5):
        began = time.monotonic()
        with context.wrap_socket(connect_from(receiver, f"127.0.2.{number + 1}")) as tls:
            body = report(number)
            tls.sendall(f"POST / HTTP/1.1\r\n{GOOD}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            assert tls.recv(100).startswith(b"HTTP/1.1 201")
        assert time.monotonic() - began < 5
    for sock in sockets:
        sock.close()


def connect_from(receiver: Receiver, address: str) -> socket.socket:
    """A connection from an address of this host."""
    return socket.create_connection(("127.0.0.1", receiver.port), timeout=30, source_address=(address, 0))


async def fill_bodies() -> list[int]:
    """How many bodies of each client are received, where one client asks for all and another comes later."""
    bodies, held = server_module._Bodies(), [0, 0]
    groups = [("evil", "10.0.0.1"), ("honest", "10.0.0.2")]

    async def receive(number: int) -> None:
        async with bodies.hold(groups[number], 3600):
            held[number] += 1
            await asyncio.sleep(3600)

    tasks = [asyncio.ensure_future(receive(0)) for _ in range(200)]
    await asyncio.sleep(0.1)
    tasks += [asyncio.ensure_future(receive(1)) for _ in range(5)]
    await asyncio.sleep(0.1)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return held


def test_one_client_cannot_take_all_places_for_bodies() -> None:
    """It has as many as are left for the others."""
    assert [server_module.BODIES // 2, 5] == asyncio.run(fill_bodies())


def test_the_log_is_bounded_and_printable(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client can write neither escape sequences nor a disk full."""
    receiver = start(plain=True)
    document = json.loads(report()) | {"node": {"hostname": "evil\x1b[31m\n" * 20}}
    assert "403" in post(receiver, json.dumps(document).encode())
    assert 0 == receiver.stop()
    (line,) = receiver.log
    assert line.rstrip("\n").isprintable()
    assert 600 > len(line)

    lines: list[str] = []
    log = _Log(lines.append, verbose=False)
    monkeypatch.setattr(time, "monotonic", lambda: 60.0)
    for _ in range(server_module.LOG_LINES_PER_MINUTE + 50):
        log.add("1.2.3.4", Answer(server_module.HTTPStatus.FORBIDDEN, "no"))
    assert server_module.LOG_LINES_PER_MINUTE == len(lines)
    monkeypatch.setattr(time, "monotonic", lambda: 120.0)
    log.add("1.2.3.4", Answer(server_module.HTTPStatus.FORBIDDEN, "no"))
    assert "50 more requests" in lines[-2]


def test_a_stop_lets_a_request_end(start: Start) -> None:
    """SIGTERM while a body is on its way: the report is kept, and the exit code is 0."""
    receiver = start(plain=True)
    body = report(1)
    with connect(receiver) as sock:
        sock.sendall(f"POST / HTTP/1.1\r\n{GOOD}Content-Length: {len(body)}\r\n\r\n".encode() + body[:50])
        time.sleep(0.5)
        receiver.process.terminate()
        time.sleep(0.5)
        sock.sendall(body[50:])
        assert sock.recv(100).startswith(b"HTTP/1.1 201")
    assert 0 == receiver.process.wait(20)
    assert 1 == len(receiver.files)
