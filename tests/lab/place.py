"""Where the lab keeps what it is made of, and what its steps share."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

LAB = Path(__file__).resolve().parent
ROOT = LAB.parent.parent
PLACE = ROOT / "build" / "lab"
KERNEL, OBJECTS = PLACE / "kernel", PLACE / "objects"
ROOT_DISK, OUR_DISK, INITRD = PLACE / "root.squashfs", PLACE / "ours.squashfs", PLACE / "initrd.gz"
FROZEN = PLACE / "frozen"  # the memory of a guest that has booted; with a machine's name behind it: that shows it
PYTHON = "/usr/bin/python3"  # Debian's: the guest has the same one
ROWS = PLACE / "rows"  # of docs/lab.md, a file a test
NVML_ANSWERS = "/run/nvml-answers"  # in the guest: what its NVML says


class Unmakeable(Exception):
    """The lab cannot be made here; the message is one line."""


def frozen(shape: str) -> Path:
    """The memory of a guest that shows that machine."""
    return FROZEN.with_name(f"{FROZEN.name}-{shape}")


def unsuited() -> str | None:
    """Why the lab cannot be made on this machine; None where it can."""
    if os.geteuid() != 0:
        return "it needs root"
    if os.uname().machine != "x86_64":
        return "its guest is an x86_64"
    return None if shutil.which("apt-get") else "it is made of Debian's packages, and there is no apt-get"


def absent() -> str | None:
    """Why the lab cannot run on this machine; None where it can."""
    why = unsuited()
    if why:
        return f"no lab here: {why}"
    if not all(path.exists() for path in (ROOT_DISK, OUR_DISK, INITRD, FROZEN)):
        return "the lab is not set up: `make lab` does that"
    return None if Path("/usr/bin/qemu-system-x86_64").exists() else "qemu-system-x86_64 is not installed"


def run(*command: str, cwd: Path | None = None) -> str:
    """What a command prints. Raises Unmakeable with its last line."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        output = (done.stderr or done.stdout).strip().splitlines() or ["it said nothing"]
        raise Unmakeable(f"{' '.join(command)[:80]}: {output[-1][:300]}")
    return done.stdout


def newer(target: Path, sources: Iterable[Path]) -> bool:
    """Whether the target is there and newer than all of these."""
    return target.exists() and all(source.stat().st_mtime <= target.stat().st_mtime for source in sources)


def version() -> str:
    """Of the kernel that is unpacked."""
    return next((KERNEL / "boot").glob("vmlinuz-*")).name.partition("-")[2]
