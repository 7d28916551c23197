"""Boots a guest once and keeps it; shows it the machines of most tests and keeps these: guests go on from there."""

from __future__ import annotations

import fcntl
from pathlib import Path

from tests.lab.place import FROZEN, INITRD, OUR_DISK, PLACE, ROOT, ROOT_DISK, Unmakeable, frozen, newer
from tests.lab.qemu import guest
from tests.lab.qemu.described import LOAD_MODULES
from tests.lab.qemu.guest import SCAN, Guest, GuestFailed
from tests.lab.qemu.shown import BARE, MACHINES

ATTEMPTS = 3  # once in some twenty boots an emulated CPU stands still before the kernel has said anything
# What a scan reads is in memory then
LOOK = f"{SCAN} scan --quiet --state-dir /run/look --capture /run/look.tar.zst > /dev/null"
# The same without a scan, which might load modules: all that a scan could open of the disks
READ = "find /opt/fabricscope /usr/lib/python3* -xdev -type f -size -8M -exec cat {} + > /dev/null; "
READ += f"{SCAN} --version; {SCAN} scan --help > /dev/null; setpriv --version; lsmod > /dev/null"
# Of the guest's clock, which leaps to the next timer while all of the guest waits for a slow disk of the host
PATIENT_SECONDS = 100_000.0
FORGET = "rm -rf /run/fabricscope-root /run/look*; sync"


def freeze() -> bool:
    """Until that has been done once, the lab cannot run. Raises Unmakeable."""
    made_of = [ROOT_DISK, OUR_DISK, INITRD, PLACE / "vmlinuz", Path(guest.__file__)]
    if newer(frozen(BARE), made_of) and newer(FROZEN, made_of):
        return False
    _keep(frozen(BARE), loads=False)
    _keep(FROZEN, loads=True)
    return True


def _keep(file: Path, loads: bool) -> None:
    """Boot a guest and freeze it, with our modules and what a scan reads in memory or as it is. Raises Unmakeable."""
    why: Exception | None = None
    for _ in range(ATTEMPTS):
        booted = _booted("-boot")
        try:
            if loads:
                booted.shell(LOAD_MODULES)
                booted.clear()
                booted.shell(f"{LOOK}; {FORGET}", seconds=PATIENT_SECONDS)
            else:
                booted.shell(READ, seconds=PATIENT_SECONDS)
            booted.freeze(file)
            return
        except (AssertionError, OSError) as error:
            why = error
        finally:
            booted.close()
    raise Unmakeable(f"a guest was booted, and: {why}") from why


def freeze_shown(shape: str) -> None:
    """A guest that shows this one of `MACHINES`, where there is none that is as new as what it is made of.

    Of several processes that need it, one makes it. Raises Unmakeable.
    """
    fixtures = ROOT / "fixtures"
    made_of = [FROZEN, *Path(__file__).parent.glob("*.py"), *fixtures.rglob("*.py"), *fixtures.rglob("*.toml")]
    with Path(f"{frozen(shape)}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not newer(frozen(shape), made_of):
            _freeze_shown(shape)


def _booted(name: str, cpus: int = 1) -> Guest:
    why: GuestFailed | None = None
    for _ in range(ATTEMPTS):
        try:
            return Guest(name, boot=True, cpus=cpus)
        except GuestFailed as error:
            why = error
    raise Unmakeable(f"no guest boots: {why}") from why


def _freeze_shown(shape: str) -> None:
    output = MACHINES[shape]
    started = Guest(f"-{shape}") if output.cpus == 1 else _booted(f"-{shape}", output.cpus)
    try:
        if output.cpus > 1:
            started.shell(LOAD_MODULES)
        started.shell(output.before)
        started.show(output.machine())
        started.shell(f"{LOOK if output.look else 'true'}; {FORGET}", seconds=PATIENT_SECONDS)
        started.freeze(frozen(shape))
    except (AssertionError, OSError) as error:
        raise Unmakeable(f"a guest goes on, and {shape} cannot be shown: {error}") from error
    finally:
        started.close()
