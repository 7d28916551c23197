"""What the number means with which the kernel reports that a driver did not start on a device, and what to do first.

Sources: Linux drivers/base/dd.c (the number is what the driver's probe returned), drivers/pci/setup-res.c (no window),
amdgpu/amdgpu_device.c, mlx5/core/main.c.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from agent.model.node import Event
from agent.rules.devices import quote_log
from agent.rules.rule import Fail

_MEANINGS = {
    "-2": (
        "a file of firmware is missing",
        "Install the firmware files of the driver's version: `dmesg -T | grep -i firmware` names the file.",
    ),
    "-5": (
        "the device answers with errors",
        "Save the kernel log, then power cycle the node completely; an error that comes back is one of the device.",
    ),
    "-12": (
        "no memory window, or no memory",
        "Look for a memory window that the device did not get: `lspci -vvv -s ADDRESS | grep Region` (`unassigned`, "
        "`disabled`) and `dmesg | grep -E 'BAR .*(no space|failed to assign)'`. In the BIOS switch on Above 4G "
        "Decoding and Resizable BAR, and update the BIOS; the kernel's `pci=realloc` is the second choice.",
    ),
    "-19": (
        "no such device for this driver",
        "Compare the version of the driver with the list of devices that it supports.",
    ),
    "-22": (
        "the driver refuses what it reads of the device",
        "Compare the versions of driver, VBIOS and firmware with those of a device that starts; update the oldest. "
        "Where they are the same, power cycle the node completely.",
    ),
    "-62": (
        "the device did not answer in time",
        "Save the kernel log, then power cycle the node completely; a device that does not answer then is faulty.",
    ),
}
_SAME_AS = {"-110": "-62", "-121": "-5", "-28": "-12"}


def explain_start(fault: Fail, events: Iterable[Event]) -> Fail:
    """The fault with what the number of its failed start means, where the log has one that is known."""
    own = [event for event in events if event.code == "probe-error" and f"pci:{event.subject}" == fault.subject]
    error = next((str(event.detail["error"]) for event in reversed(own) if event.detail.get("error")), None)
    meaning = _MEANINGS.get(_SAME_AS.get(error or "", error or ""))
    if meaning is None:
        return fault
    what, remedy = meaning
    return replace(
        fault,
        summary=f"{fault.summary} ({error}: {what})",
        remedy=remedy,
        evidence=(*fault.evidence, quote_log(own[-1])),
    )
