"""Servers of a test's own, on loopback: on a free port, ready when they answer, and with a log for when they do not.

`make engines` installs PostgreSQL from Debian's packages where it is missing and root asks; else its tests are skipped.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.fleet.engines import schema
from agent.fleet.engines.engine import Engine
from agent.fleet.engines.query import table_query

SECONDS, STOP_SECONDS, ATTEMPTS = 90, 60, 3
LOG_CHARACTERS = 4000
_PORT_TAKEN = re.compile(r"(?i)address (?:is )?already in use|could not bind|BindException")
APT = ("apt-get", "-o", "DPkg::Lock::Timeout=300")
NO_CLUSTER = Path("/etc/postgresql-common/createcluster.conf")


def needed(*modules: str) -> None:
    """Skip in one line where a library is not installed."""
    missing = [module for module in modules if importlib.util.find_spec(module) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)} (make engines)")


def free_port() -> int:
    """A port of 127.0.0.1 that nobody has."""
    with socket.socket() as result:
        result.bind(("127.0.0.1", 0))
        return int(result.getsockname()[1])


class NotReadyError(Exception):
    """A server that does not answer yet; the message says what came."""


@contextlib.contextmanager
def run_server(
    make_command: Callable[[int], list[str]], log: Path, ask: Callable[[int], object] | None = None, **options: Any
) -> Iterator[int]:
    """A server on a free port, once it answers; where it does not, the end of its log is the failure's text.

    `make_command`: of a port. `ask`: a question of the server's own protocol: one that accepts a connection may still
    refuse what comes over it. Raises NotReadyError until it is answered. A port may be taken between its choice and its
    use: then another one is tried, twice.
    """
    for attempt in range(ATTEMPTS):
        port = free_port()
        with log.open("wb") as written:
            server = subprocess.Popen(make_command(port), stdout=written, stderr=subprocess.STDOUT, **options)
        try:
            problem = _wait(port, server, ask or _connect)
            if problem is None:
                yield port
                return
            ending = log.read_bytes().decode("utf-8", "replace")[-LOG_CHARACTERS:]
            if attempt == ATTEMPTS - 1 or not _PORT_TAKEN.search(ending):
                raise AssertionError(f"{make_command(port)[0]}: {problem}; the end of its log:\n{ending}")
        finally:
            stop(server)


def stop(*servers: subprocess.Popen[bytes]) -> None:
    """End them, also where they do not end by themselves."""
    for server in servers:
        server.terminate()
    for server in servers:
        try:
            server.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def _wait(port: int, server: subprocess.Popen[bytes], ask: Callable[[int], object]) -> str | None:
    """Why it is not ready, after a bounded time; None once it answers."""
    until, came = time.monotonic() + SECONDS, "nothing answers"
    while time.monotonic() < until:
        try:
            ask(port)
            is_ready = True
        except NotReadyError as problem:
            came, is_ready = str(problem), False
            time.sleep(0.2)
        if server.poll() is not None:  # what answered then is another server
            return f"it ended by itself with exit code {server.returncode}"
        if is_ready:
            return None
    return f"not ready after {SECONDS} s: {came}"


def _connect(port: int) -> None:
    with socket.socket() as tried:
        if problem := tried.connect_ex(("127.0.0.1", port)):
            raise NotReadyError(os.strerror(problem))


def every_row(engine: Engine) -> dict[str, list[Any]]:
    """Of every table, in an order that has no meaning."""
    rows = {name: sorted(engine.rows(table_query(name)), key=repr) for name in schema.names()}
    engine.close()
    return rows


def postgresql() -> bool:
    """Whether there is a server that a test can start."""
    return any(Path("/usr/lib/postgresql").glob("*/bin/initdb"))


def installed(package: str) -> str | None:
    """Install it; why not, in one line."""
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        return f"as root: apt-get install {package}"
    subprocess.run([*APT, "update", "-qq"], check=False, capture_output=True)
    done = subprocess.run(
        [*APT, "install", "-y", "-qq", "--no-install-recommends", package],
        env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode == 0:
        print(f"engines: {package} is installed now", flush=True)
        return None
    return ((done.stderr or done.stdout).strip().splitlines() or ["apt-get said nothing"])[-1][:200]


def main() -> None:
    """Install it where it is missing."""
    if not postgresql():
        if os.geteuid() == 0 and not NO_CLUSTER.exists() and shutil.which("apt-get"):
            NO_CLUSTER.parent.mkdir(exist_ok=True)  # the server of a test is enough: no other is to be started
            NO_CLUSTER.write_text("create_main_cluster = false\n")
        why = installed("postgresql")
        if why:
            print(f"engines: no PostgreSQL server: it is left out ({why})", flush=True)


if __name__ == "__main__":
    main()
