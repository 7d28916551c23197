"""Java and PostgreSQL for `make engines`, from Debian's packages where they are missing and root asks; else says so.

A line for each that is missing, and what is left out without it. Nothing fails: its tests are skipped then.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

APT = ("apt-get", "-o", "DPkg::Lock::Timeout=300")
JAVA = ("openjdk-17-jre-headless", "openjdk-21-jre-headless")  # what Spark 4.0 is made for; a release has one of them
NO_CLUSTER = Path("/etc/postgresql-common/createcluster.conf")


def java() -> bool:
    """Whether the Java on the path is one that Spark 4 runs on."""
    if not shutil.which("java"):
        return False
    done = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False)
    match = re.search(r'version "([0-9]{1,4})', done.stderr)
    return bool(match) and int(match[1]) >= 17


def postgresql() -> bool:
    """Whether there is a server that a test can start."""
    return any(Path("/usr/lib/postgresql").glob("*/bin/initdb"))


def installed(*packages: str) -> str | None:
    """Install the first of them that there is; why not, in one line."""
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        return f"as root: apt-get install {packages[0]}"
    subprocess.run([*APT, "update", "-qq"], check=False, capture_output=True)
    result = ""
    for package in packages:
        done = subprocess.run(
            [*APT, "install", "-y", "-qq", "--no-install-recommends", package],
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"}, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode == 0:
            print(f"engines: {package} is installed now", flush=True)
            return None
        result = result or ((done.stderr or done.stdout).strip().splitlines() or ["apt-get said nothing"])[-1][:200]
    return result


def main() -> None:
    """Each that is missing."""
    if not java():
        why = installed(*JAVA)
        if why:
            print(f"engines: no Java 17 or later: Spark is left out ({why})", flush=True)
    if not postgresql():
        if os.geteuid() == 0 and not NO_CLUSTER.exists() and shutil.which("apt-get"):
            NO_CLUSTER.parent.mkdir(exist_ok=True)  # the server of a test is enough: no other is to be started
            NO_CLUSTER.write_text("create_main_cluster = false\n")
        why = installed("postgresql")
        if why:
            print(f"engines: no PostgreSQL server: it is left out ({why})", flush=True)


if __name__ == "__main__":
    main()
