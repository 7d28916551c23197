"""A connection: nothing holds it beyond its time, and no answer is taken for more or less than it is."""

from __future__ import annotations

import socket
import threading
import time

import pytest

from agent.ship.targets import Address, opened
from tests.agent.ship.servers import (
    OK,
    QUICK,
    Behaviour,
    Request,
    Run,
    raw,
    read_request,
    report,
    serving,
    target,
)


@pytest.mark.parametrize(
    "slow",
    [
        raw(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", drip=0.3),
        raw(b"HTTP/1.1 100 Continue\r\n\r\n" * 50, drip=0.3),
        lambda sock, _: bool(time.sleep(20)),
    ],
    ids=["drips headers", "continues for ever", "says nothing"],
)
def test_a_slow_server_does_not_hold_the_run(slow: Behaviour, run: Run) -> None:
    """Every byte comes in time, and the answer never does."""
    started = time.monotonic()
    with serving(slow) as server:
        made = run.ship(target(server), report(), seconds=1.5)

    assert time.monotonic() - started < 8
    assert (0, 1) == (made.taken, made.waiting)


def test_a_server_that_does_not_read_does_not_hold_the_run(run: Run) -> None:
    """A large report, and a window that fills."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = Address(f"http://127.0.0.1:{listening.getsockname()[1]}/", compress="none")
        started = time.monotonic()
        made = run.ship(opened(address, {}), report(pad=1_900_000), seconds=1.5)

    assert time.monotonic() - started < 8
    assert 0 == made.taken


def test_a_huge_answer_is_not_read(run: Run) -> None:
    """Its status says all that is to be known."""
    sent = []

    def huge(sock: socket.socket, _: Request) -> bool:
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n")
        sent.extend(sock.send(b"x" * 65536) for _count in range(10_000))
        return False

    with serving(huge) as server:
        assert run.ship(target(server), report()).all_gone

    assert sum(sent) < 100 << 20


def test_an_answer_before_the_report_was_read_is_heard(run: Run) -> None:
    """413 and closed, while we still send."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            for _count in range(3):
                sock, _ = listening.accept()
                sock.recv(1000)
                sock.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                sock.shutdown(socket.SHUT_WR)
                time.sleep(0.3)
                sock.close()

        threading.Thread(target=answer, daemon=True).start()
        address = Address(f"http://127.0.0.1:{listening.getsockname()[1]}/", compress="none")
        made = run.ship(opened(address, {}), report(pad=1_900_000))

    assert "413" in (made.why or "")


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_the_last_answer_of_a_connection_is_read(version: str, run: Run) -> None:
    """Its body comes later than the word that it is the last one."""

    def last(sock: socket.socket, _: Request) -> bool:
        sock.sendall(f"HTTP/{version} 201 Created\r\nContent-Length: 6\r\nConnection: close\r\n\r\n".encode())
        time.sleep(0.2)
        sock.sendall(b"thanks")
        return False

    with serving(last) as server:
        made = run.ship(target(server), report(0), report(1))

    assert made.all_gone
    assert 2 == len(server.requests)


def test_a_connection_that_was_closed_meanwhile_is_opened_anew(run: Run) -> None:
    """A server drops idle connections; that is no failure."""

    def once(sock: socket.socket, request: Request) -> bool:
        OK(sock, request)
        return False  # without having said so

    with serving(once) as server:
        made = run.ship(target(server), report(0), report(1), report(2), patience=QUICK._replace(tries=1))

    assert made.all_gone
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
        assert run.ship(opened(Address(f"http://[::1]:{port}/"), {}), report()).all_gone

    assert heard[0] is not None
    assert f"[::1]:{port}" == heard[0].headers["host"]


def test_nobody_there(run: Run) -> None:
    """A port that is shut, and a name that nobody has."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    for host, part in ((f"127.0.0.1:{port}", "refused"), ("no-such-host.invalid", "not resolved")):
        made = run.ship(opened(Address(f"http://{host}/"), {}), report(), patience=QUICK._replace(tries=1))
        assert part in (made.why or "")
        assert 1 == made.waiting
