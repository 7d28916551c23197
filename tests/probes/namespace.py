"""A network namespace of its own, for tests that change interfaces of a real kernel."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from tests.conftest import ROOT


def in_namespace(code: str) -> subprocess.CompletedProcess[str]:
    """Run it where nothing of this host is changed; skipped where that is not allowed."""
    if shutil.which("unshare") is None:
        pytest.skip("unshare is not installed")
    unshare = ["unshare", "-n" if os.geteuid() == 0 else "-rn"]
    needs = "ip link add v0 type veth peer name v1 && ip link del v0"
    tried = subprocess.run([*unshare, "sh", "-c", needs], capture_output=True, text=True, check=False)
    if tried.returncode:
        pytest.skip(f"no network namespace with a veth can be made here: {tried.stderr.strip()[:80]}")
    return subprocess.run(
        [*unshare, sys.executable, "-c", code],
        capture_output=True, text=True, check=True, cwd=ROOT, timeout=100,
    )  # fmt: skip
