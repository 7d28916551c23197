"""How much one machine can hold: a file that claims more would cost more than it tells, as every GPU has a way to
every NIC."""

from __future__ import annotations

from collections.abc import Collection

from probes.pci.facts import PciFunction
from probes.text import Unparsable

FUNCTIONS_LIMIT = 16_384
GPUS_LIMIT = 128  # the largest machines have 16, and display chips of their boards
NICS_LIMIT = 4096  # with virtual functions


def check(functions: Collection[PciFunction]) -> None:
    """Raises Unparsable for more than one machine can hold."""
    gpus = sum(is_gpu(function.class_code) for function in functions)
    nics = sum((function.class_code or "").startswith("0x02") for function in functions)
    if len(functions) > FUNCTIONS_LIMIT or gpus > GPUS_LIMIT or nics > NICS_LIMIT:
        raise Unparsable(
            f"more than one machine holds: {len(functions)} PCI functions, {gpus} GPUs, {nics} network functions"
        )


def is_gpu(class_code: str | None) -> bool:
    """Whether a class is that of display controllers or of processing accelerators.

    >>> is_gpu("0x030200"), is_gpu("0x120000"), is_gpu("0x020700")
    (True, True, False)
    """
    return (class_code or "").startswith(("0x03", "0x12"))
