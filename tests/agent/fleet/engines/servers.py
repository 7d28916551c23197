"""Servers of a test's own, on loopback: a free port, and waiting until somebody answers there."""

from __future__ import annotations

import importlib.util
import shutil
import socket
import subprocess
import time

import pytest

SECONDS = 90


def needed(*modules: str) -> None:
    """Skip in one line where a library is not installed."""
    missing = [module for module in modules if importlib.util.find_spec(module) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)} (make engines)")


def java_needed() -> None:
    """Skip where there is no Java that Spark can use."""
    if not shutil.which("java"):
        pytest.skip("no java (Debian: openjdk-17-jre-headless)")


def free_port() -> int:
    """A port of 127.0.0.1 that nobody has."""
    with socket.socket() as result:
        result.bind(("127.0.0.1", 0))
        return int(result.getsockname()[1])


def reachable(port: int, process: subprocess.Popen[bytes]) -> None:
    """Wait until the process answers there."""
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        assert process.poll() is None, "it ended by itself"
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    raise AssertionError("it does not answer")
