"""Boots a guest once, and keeps it: every guest of the lab goes on from there."""

from __future__ import annotations

from pathlib import Path

from tests.lab import guest
from tests.lab.guest import SCAN, Guest, GuestFailed
from tests.lab.place import FROZEN, INITRD, OUR_DISK, PLACE, ROOT_DISK, Unmakeable, newer

ATTEMPTS = 3  # once in some twenty boots an emulated CPU stands still before the kernel has said anything
LOCKS = "/run/fabricscope-root"


def freeze() -> bool:
    """Until that has been done once, the lab cannot run. Raises Unmakeable."""
    if newer(FROZEN, [ROOT_DISK, OUR_DISK, INITRD, PLACE / "vmlinuz", Path(guest.__file__)]):
        return False
    for attempt in range(1, ATTEMPTS + 1):
        try:
            booted = Guest("-boot", boot=True)
            break
        except GuestFailed as error:
            if attempt == ATTEMPTS:
                raise Unmakeable(f"no guest boots: {error}") from error
    try:
        booted.clear()
        booted.shell(f"{SCAN} scan --quiet > /dev/null; rm -rf {LOCKS}; sync")  # what it reads is in memory then
        booted.freeze(FROZEN)
    except (AssertionError, OSError) as error:
        raise Unmakeable(f"a guest was booted, and: {error}") from error
    finally:
        booted.close()
    return True
