"""Measures `receive` beside a flood: every honest report has to be taken, and how long its answer takes.

python -m bench.receive [--reports 2000] [--seconds 60] [--flood 330] [--with-token]

In a network namespace of its own (unshare; no root): reports of as many nodes, each from its own address and with its
own token, evenly over the time, retried as `ship` does. Beside them new TLS connections from 16 addresses and from
random addresses of one IPv6 /64, each held open as long as the server allows: half of them send nothing at all, the
others ask for /health (or, with a token of their own, send a report) and then nothing. Printed: what was taken, the
time of the answers, memory and CPU time.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gzip
import multiprocessing
import os
import random
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from agent.ship.run import RetryPolicy
from bench.fleet.plan import plan

PREFIX = "fd00:f5"
SOURCES = 16
IPV6_FREEBIND = 78  # linux/in6.h: an address of a route, not of an interface
TICKS = os.sysconf("SC_CLK_TCK")
EVIL = "token-of-the-node-evil"


class Load(NamedTuple):
    """What is asked of the server."""

    reports: int
    seconds: float
    flood: float  # connections per second
    with_token: bool


class Sent(NamedTuple):
    """What became of one report."""

    taken: bool
    attempts: int
    answer_seconds: float  # of the attempt that was answered
    total_seconds: float


def main() -> None:
    """One run, in a namespace."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reports", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--flood", type=float, default=330.0)
    parser.add_argument("--with-token", action="store_true")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not options.inside:
        enter = ["unshare", "--user", "--map-root-user", "--net", sys.executable, "-m", "bench.receive", "--inside"]
        sys.exit(subprocess.call([*enter, *sys.argv[1:]]))
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    subprocess.run(["ip", "-6", "route", "add", "local", f"{PREFIX}::/64", "dev", "lo"], check=True)
    load = Load(options.reports, options.seconds, options.flood, options.with_token)
    with tempfile.TemporaryDirectory() as folder:
        _measure(Path(folder), load)


def _measure(folder: Path, load: Load) -> None:
    _make_certificate(folder)
    reports = dict(plan(load.reports, 1, {}).named(one_line=True))
    nodes = list(reports)
    entries = [f'[[client]]\nhosts = "{name}"\ntoken = "token-of-{name}"\n' for name in nodes]
    (folder / "clients.toml").write_text("".join([*entries, f'[[client]]\nhosts = "evil"\ntoken = "{EVIL}"\n']))
    (folder / "clients.toml").chmod(0o600)
    bodies = [gzip.compress(data, 6, mtime=0) for data in reports.values()]
    sizes = [sum(map(len, texts)) / len(nodes) / 1000 for texts in (reports.values(), bodies)]
    print(f"{len(nodes)} reports of {sizes[0]:.0f} KB, {sizes[1]:.1f} KB as sent")
    server, port = _start_server(folder)
    try:
        _measure_server(folder, server, port, bodies, nodes, load)
    finally:
        server.kill()


def _measure_server(
    folder: Path, server: subprocess.Popen[str], port: int, bodies: list[bytes], nodes: list[str], load: Load
) -> None:
    context = multiprocessing.get_context("fork")
    flood_result = context.Queue()
    flood = context.Process(target=_flood, args=(folder, port, load, bodies[0], flood_result), daemon=True)
    if load.flood:
        flood.start()
        time.sleep(5)  # it has all that it can have before the first report
    started = time.monotonic()
    sent = asyncio.run(_send_all(folder, port, nodes, bodies, load.seconds))
    elapsed = time.monotonic() - started
    if load.flood:
        rate, finished, held = flood_result.get(timeout=120)
        flood.join()
        print(f"flood: {rate:.0f} new connections per second, {finished} handshakes, {held} open at most")
    fields = Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()
    peak = next(line for line in Path(f"/proc/{server.pid}/status").read_text().splitlines() if "VmHWM" in line)
    waits = [int(task.read_text().split()[1]) for task in Path(f"/proc/{server.pid}/task").glob("*/schedstat")]
    server.terminate()
    server.wait(30)
    answers = sorted(item.answer_seconds for item in sent if item.taken)
    totals = sorted(item.total_seconds for item in sent)
    taken = len(list((folder / "spool").iterdir()))
    print(f"reports: {taken} of {load.reports} taken in {elapsed:.0f} s, {sum(s.attempts for s in sent)} attempts")
    print(f"answers: p50 {_rank(answers, 0.5):.2f} s, p99 {_rank(answers, 0.99):.2f} s, longest {answers[-1]:.2f} s")
    print(f"with attempts before: p50 {_rank(totals, 0.5):.2f} s, p99 {_rank(totals, 0.99):.2f} s")
    cpu = (int(fields[11]) + int(fields[12])) / TICKS
    waited = f"waited {sum(waits) / 1e9:.0f} s for a core"
    print(f"receive: {int(peak.split()[1]) >> 10} MiB, {cpu:.1f} s of CPU, {waited}; load {os.getloadavg()[0]:.1f}")


def _rank(values: list[float], share: float) -> float:
    return values[min(int(len(values) * share), len(values) - 1)]


def _make_certificate(folder: Path) -> None:
    new = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    files = ["-keyout", "key.pem", "-out", "cert.pem", "-subj", "/CN=receive"]
    subprocess.run([*new, *files], cwd=folder, check=True, capture_output=True)


def _start_server(folder: Path) -> tuple[subprocess.Popen[str], int]:
    files = ["--cert", str(folder / "cert.pem"), "--key", str(folder / "key.pem")]
    command = [sys.executable, "-m", "fabricscope", "receive", "--spool", str(folder / "spool"), *files]
    clients = ["--clients", str(folder / "clients.toml"), "--listen", ":0"]
    with socket.socket(socket.AF_INET) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    clients[-1] = f":{port}"
    server = subprocess.Popen([*command, *clients], stderr=subprocess.PIPE, text=True)
    assert server.stderr is not None
    line = server.stderr.readline()
    assert "listening" in line, line
    return server, port


def _connect(source: str) -> socket.socket:
    """A socket of that address."""
    family = socket.AF_INET6 if ":" in source else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.setblocking(False)
    if family == socket.AF_INET6:
        sock.setsockopt(socket.IPPROTO_IPV6, IPV6_FREEBIND, 1)
    sock.bind((source, 0))
    return sock


async def _open(folder: Path, source: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    loop = asyncio.get_running_loop()
    sock = _connect(source)
    try:
        await loop.sock_connect(sock, ("::1" if ":" in source else "127.0.0.1", port))
    except BaseException:
        sock.close()
        raise
    # whatever comes of it, its transport closes the socket: its number would be another connection's already
    return await asyncio.open_connection(sock=sock, ssl=_client_context(folder), server_hostname="receive")


_CONTEXTS: dict[Path, ssl.SSLContext] = {}


def _client_context(folder: Path) -> ssl.SSLContext:
    if folder not in _CONTEXTS:
        _CONTEXTS[folder] = ssl.create_default_context(cafile=str(folder / "cert.pem"))
        _CONTEXTS[folder].check_hostname = False
    return _CONTEXTS[folder]


async def _send_all(folder: Path, port: int, nodes: list[str], bodies: list[bytes], seconds: float) -> list[Sent]:
    """Each at its moment, whatever became of those before."""
    tasks = []
    started = time.monotonic()
    for number, (name, body) in enumerate(zip(nodes, bodies, strict=True)):
        await asyncio.sleep(max(started + seconds * number / len(nodes) - time.monotonic(), 0))
        source = f"127.3.{number // 250}.{number % 250 + 1}"
        tasks.append(asyncio.ensure_future(_send(folder, source, port, name, body)))
    return list(await asyncio.gather(*tasks))


async def _send(folder: Path, source: str, port: int, name: str, body: bytes) -> Sent:
    """As a run of `ship`: with its pauses and its time for one attempt."""
    policy, began, pause = RetryPolicy(), time.monotonic(), RetryPolicy().first_pause_seconds
    head = f"POST / HTTP/1.1\r\nAuthorization: Bearer token-of-{name}\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    for attempt in range(1, policy.attempts + 1):
        tried = time.monotonic()
        with contextlib.suppress(OSError, EOFError, asyncio.TimeoutError):
            status = await asyncio.wait_for(_post(folder, source, port, head + body), policy.attempt_seconds)
            if status in (b"200", b"201"):
                now = time.monotonic()
                return Sent(True, attempt, now - tried, now - began)
        await asyncio.sleep(random.uniform(0, pause))
        pause = min(pause * 2, policy.longest_pause_seconds)
    return Sent(False, policy.attempts, 0.0, time.monotonic() - began)


async def _post(folder: Path, source: str, port: int, request: bytes) -> bytes:
    reader, writer = await _open(folder, source, port)
    try:
        writer.write(request)
        line = await reader.readline()
        if not line:
            raise EOFError
        return line.split()[1]
    finally:
        writer.transport.abort()


def _flood(
    folder: Path, port: int, load: Load, body: bytes, result: multiprocessing.Queue[tuple[float, int, int]]
) -> None:
    head = f"POST / HTTP/1.1\r\nAuthorization: Bearer {EVIL}\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    request = head + body if load.with_token else b"GET /health HTTP/1.1\r\n\r\n"
    result.put(asyncio.run(_hold_all(folder, port, load, request)))


async def _hold_all(folder: Path, port: int, load: Load, request: bytes) -> tuple[float, int, int]:
    """So many new connections a second, until the time is up; each from one source after the other.

    How many a second it came to, how many TLS handshakes were finished, and how many were open at most.
    """
    count, most, tasks = 0, 0, set[asyncio.Task[None]]()
    held: set[object] = set()
    finished = [0]
    until, started = time.monotonic() + load.seconds + 5, time.monotonic()
    while time.monotonic() < until:
        count += 1
        await asyncio.sleep(max(started + count / load.flood - time.monotonic(), 0))
        number = count % (SOURCES + 1)
        source = f"127.1.0.{number}" if number else f"{PREFIX}::{random.getrandbits(16):x}:{random.getrandbits(16):x}"
        task = asyncio.ensure_future(_hold(folder, source, port, request if count % 2 else b"", held, finished))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        most = max(most, len(held))
    for task in list(tasks):
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return count / (time.monotonic() - started), finished[0], most


async def _hold_silent(source: str, port: int, held: set[object]) -> None:
    loop, sock = asyncio.get_running_loop(), _connect(source)
    try:
        await loop.sock_connect(sock, ("::1" if ":" in source else "127.0.0.1", port))
        held.add(sock)
        await loop.sock_recv(sock, 1)
    finally:
        held.discard(sock)
        sock.close()


async def _hold(folder: Path, source: str, port: int, request: bytes, held: set[object], finished: list[int]) -> None:
    """One connection, until the server ends it."""
    with contextlib.suppress(OSError, EOFError, asyncio.TimeoutError):
        if not request:
            await _hold_silent(source, port, held)
            return
        reader, writer = await _open(folder, source, port)
        held.add(writer)
        finished[0] += 1
        try:
            writer.write(request)
            while await reader.read(65536):
                pass
        finally:
            held.discard(writer)
            writer.transport.abort()


if __name__ == "__main__":
    main()
