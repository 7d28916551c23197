"""What tests read of texts and rows: the command line's stderr, what a finding says to do, several fields at once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from operator import attrgetter
from typing import Any

from agent.model.finding import Finding

# Words of pages that stand for a value of the device, and <value>
PLACEHOLDER = re.compile(
    r"\b(ADDRESS|PORT_ABOVE|INTERFACES?|DEVICE|PORT_NUMBER|TRAFFIC_CLASS|RAIL_MTU|ACS_PORTS|LINK_TYPE|CNP_DSCP|GPU_INDEX|NPU_(INDEX|CARD|CHIP)|FAR_END|REMEDY|NAMESPACE|"
    r"PRIORITY|BITMAP|BUFFERS|SHARES|LIMITS|PID|WATTS|SWITCH|EVIDENCE|HOLDERS|RESET_GPU)\b"
    r"|PHYSICAL_PORT\b|=LEVEL\b|<\w+>|: *\.|` *`"
)


_DEVICE = re.compile(  # what a command names its device by
    r"`(?:nvidia-smi [^`|]*-i|hccn_tool -i|npu-smi [^`|]*-i|mlnx_qos -i|setpci -s|lspci [^`|]*-s|mlxconfig -d)"
    r" ([\w:.]*\d[\w:.]*)|/sys/(?:class/(?:net|infiniband)|bus/pci/devices)/([\w:.]*\d[\w:.]*)/"
)


def list_devices(finding: Finding) -> set[str]:
    """The devices that the commands of its steps are for."""
    commands = " ".join(f"`{command}`" for command in finding.confirm or ())
    texts = [commands, *(text for step in finding.steps for text in (step.do, *step.outcomes))]
    return {match[1] or match[2] for text in texts for match in _DEVICE.finditer(text)}


def list_texts(finding: Finding) -> Iterator[str]:
    """Impact, the commands that confirm it, the steps and their outcomes."""
    yield finding.impact
    yield finding.remedy
    yield from finding.confirm or ()
    for step in finding.steps:
        yield step.do
        yield from step.outcomes


def error_lines(text: str) -> list[str]:
    """The lines without the hint, of which there is one at most, at the end."""
    lines = text.splitlines()
    hints = [line for line in lines if line.startswith("hint: ")]
    assert hints in ([], lines[-1:]), text
    return [line for line in lines if line not in hints]


def read_fields(row: object, names: str) -> tuple[Any, ...]:
    """The values of two fields or more; `quality.state` is a field of a field."""
    return tuple(attrgetter(*names.split())(row))
