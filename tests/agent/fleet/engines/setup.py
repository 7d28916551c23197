"""PostgreSQL for `make engines`, from Debian's packages where it is missing and root asks; else says so.

Nothing fails where it is missing: its tests are skipped then.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

APT = ("apt-get", "-o", "DPkg::Lock::Timeout=300")
NO_CLUSTER = Path("/etc/postgresql-common/createcluster.conf")


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
