"""Boots a guest once and keeps it; shows it the machines of most tests and keeps these: guests go on from there."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.lab.place import FROZEN, INITRD, LAB, OUR_DISK, PLACE, ROOT, ROOT_DISK, Unmakeable, frozen, newer
from tests.lab.qemu import guest
from tests.lab.qemu.described import LOAD_MODULES
from tests.lab.qemu.guest import SCAN, Guest, GuestFailed
from tests.lab.qemu.shown import BARE, MACHINES

ATTEMPTS = 3  # once in some twenty boots an emulated CPU stands still before the kernel has said anything
# What a scan reads is in memory then
LOOK = f"{SCAN} scan --quiet --state-dir /run/look --capture /run/look.tar.zst > /dev/null"
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
    for _ in range(ATTEMPTS):  # its clock leaps while it waits for a slow disk of the host, and then a scan is late
        booted = _booted("-boot")
        try:
            if loads:
                booted.shell(LOAD_MODULES)
                booted.clear()
                booted.shell(f"{LOOK}; {FORGET}")
            booted.freeze(file)
            return
        except (AssertionError, OSError) as error:
            why = error
        finally:
            booted.close()
    raise Unmakeable(f"a guest was booted, and: {why}") from why


def freeze_shown() -> bool:
    """A guest for each of `MACHINES`. Raises Unmakeable."""
    fixtures = ROOT / "fixtures"
    made_of = [FROZEN, LAB / "described.py", LAB / "shown.py", *fixtures.rglob("*.py"), *fixtures.rglob("*.toml")]
    missing = [shape for shape in MACHINES if not newer(frozen(shape), made_of)]
    with ThreadPoolExecutor(2) as beside:
        list(beside.map(_freeze_shown, missing))
    return bool(missing)


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
        started.shell(f"{LOOK if output.look else 'true'}; {FORGET}")
        started.freeze(frozen(shape))
    except (AssertionError, OSError) as error:
        raise Unmakeable(f"a guest goes on, and {shape} cannot be shown: {error}") from error
    finally:
        started.close()
