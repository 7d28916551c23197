"""Which parts of a module's memory are read: page, first byte, length, I2C address.

Flags of a module stay set until they are read. So the flags are read once for themselves, and again with what lies
around them: what is flagged then is so now, and not since the module was plugged in.
"""

from __future__ import annotations

Read = tuple[int, int, int, int]

MEMORY, DIAGNOSTICS = 0x50, 0x51  # I2C addresses; the second of SFF-8472 only

# identifiers (SFF-8024), by the document that lays out their memory
SFF8472 = frozenset({0x03})
SFF8636 = frozenset({0x0C, 0x0D, 0x11})
CMIS = frozenset({0x18, 0x19, 0x1B, 0x1E})

FIRST: Read = (0, 0, 16, MEMORY)  # identifier and state; with SFF-8636 and CMIS also all or some flags
LOWER: Read = (0, 0, 128, MEMORY)
UPPER: Read = (0, 128, 128, MEMORY)
CMIS_ADVERTISED: Read = (0x01, 128, 128, MEMORY)
CMIS_THRESHOLDS: Read = (0x02, 128, 128, MEMORY)
CMIS_FLAGS: Read = (0x11, 134, 20, MEMORY)
CMIS_LANES: Read = (0x11, 128, 128, MEMORY)
SFF8636_THRESHOLDS: Read = (0x03, 128, 128, MEMORY)
SFF8472_SERIAL: Read = (0, 0, 96, MEMORY)
SFF8472_DIAGNOSTICS: Read = (0, 0, 120, DIAGNOSTICS)

EVERY = (
    *(FIRST, LOWER, UPPER, CMIS_ADVERTISED, CMIS_THRESHOLDS, CMIS_FLAGS, CMIS_LANES),
    *(SFF8636_THRESHOLDS, SFF8472_SERIAL, SFF8472_DIAGNOSTICS),
)
