"""Settings of NICs' firmware in tables of mlxconfig (mstconfig): those that wait for a reset, and those of one card
that others of its kind do not have. Source: Mellanox/mstflint mlxconfig/ and its public outputs.
"""

from __future__ import annotations

import re

from probes.named_tuple import NamedTuple
from probes.text import ParseError, check_length, lazy_pattern, require, short_lines
from probes.tool_reports.facts import ToolReport, state_fault

_SHOWN = 4
_OTHERS = 3  # of the same kind, that agree
_LABEL = lazy_pattern(r"[ \t]*(?P<label>Device type|Name|Device):[ \t]+(?P<value>\S.*)", re.IGNORECASE)
_HEAD = lazy_pattern(
    r"[ \t]*Configurations:(?P<columns>(?:[ \t]+(?:Default|Current|Next Boot)){0,3})[ \t]*", re.IGNORECASE
)
_CMA_DEVICE = lazy_pattern(r"\bcma_roce_mode\b.{0,80}? -d ?(?P<device>[a-z][\w-]{1,40})")
_CMA_MODE = lazy_pattern(r"(?:IB/)?RoCE v(?P<version>[12])")
_VERSION = lazy_pattern(
    r"^[ \t]*(?P<name>FW Version(?:\(Running\))?):[ \t]+(?P<version>\d[\d.]{4,20})[ \t\r]*$", re.MULTILINE
)
_ROW = lazy_pattern(r"[ \t*]*(?P<name>[A-Z][A-Z0-9_]{2,60}(?:\[\d{1,4}\])?)[ \t]+(?P<values>\S.*)")
_OF_ONE = ("MAC", "GUID", "UUID", "SERIAL")  # are each card's own


class _Card(NamedTuple):
    kind: str
    device: str
    columns: tuple[str, ...]
    settings: dict[str, tuple[str, ...]]


def list_settings(text: str) -> list[ToolReport]:
    """What the next start changes, and what one card has alone. Raises ParseError where no two values are compared.

    >>> head = "Device: 0000:c1:00.0\\nConfigurations:   Default   Current   Next Boot\\n"
    >>> rows = f"{head}* LINK_TYPE_P1   IB(1)   IB(1)   ETH(2)\\n"
    >>> [(report.code, report.subject, report.detail) for report in list_settings(rows)]
    [('firmware-pending', '0000:c1:00.0', (('what', 'LINK_TYPE_P1 IB(1), next ETH(2)'),))]
    """
    cards = _list_cards(text)
    kinds = {kind: [card for card in cards if card.kind == kind] for kind in {card.kind for card in cards}}
    if not any(len(card.columns) > 1 for card in cards) and not any(len(of) > _OTHERS for of in kinds.values()):
        raise ParseError("no settings of a NIC that are compared")
    reports = [report for card in cards for report in _list_pending(card)]
    reports += [report for kind in sorted(kinds) for report in _list_odd(kinds[kind])]
    return reports


def list_versions(text: str) -> list[ToolReport]:
    """Whether the firmware that runs is another than the one that was written (`flint q`). Raises ParseError.

    >>> list_versions("FW Version: 28.39.1002\\nFW Version(Running): 28.36.1010\\n")[0].detail
    (('what', '28.36.1010 runs, 28.39.1002 was written'),)
    """
    versions = {row["name"]: row["version"] for row in _VERSION.finditer(check_length(text))}
    written, running = versions.get("FW Version"), versions.get("FW Version(Running)")
    if written is None or running is None:
        raise ParseError("no versions of firmware that are compared")
    what = f"{running} runs, {written} was written"
    return [state_fault("firmware-pending", None, what)] if written != running else []


def list_roce_modes(text: str) -> list[ToolReport]:
    """Devices whose connection manager uses RoCE v1, while others use v2 (`cma_roce_mode`). Raises ParseError.

    >>> rows = "$ cma_roce_mode -d mlx5_0 -p 1\\nRoCE v2\\n$ cma_roce_mode -d mlx5_1 -p 1\\nIB/RoCE v1\\n"
    >>> list_roce_modes(rows)[0].detail
    (('what', 'RoCE v1 on mlx5_1, RoCE v2 on 1 other'),)
    """
    modes: list[tuple[str, str]] = []
    device = ""
    for line in short_lines(text):
        if command := _CMA_DEVICE.search(line):
            device = command["device"]
        elif mode := _CMA_MODE.fullmatch(line.strip()):
            modes.append((device or f"number {len(modes) + 1}", mode["version"]))
    require(modes, "no mode of RoCE connections")
    old = [name for name, version in modes if version == "1"]
    others = len(modes) - len(old)
    what = f"RoCE v1 on {', '.join(old)}" + (
        f", RoCE v2 on {others} other{'s' if others > 1 else ''}" if others else ""
    )
    return [state_fault("cma-mode", None, what)] if old else []


def _list_cards(text: str) -> list[_Card]:
    labels: dict[str, str] = {}
    cards: list[_Card] = []
    is_table = False
    for line in short_lines(text):
        if label := _LABEL.fullmatch(line.rstrip()):
            labels = {} if label["label"] == "Device type" else labels
            labels[label["label"].lower()] = label["value"]
            is_table = False
        elif head := _HEAD.fullmatch(line.rstrip()):
            columns = tuple(head["columns"].replace("Next Boot", "Next").split()) or ("Next",)
            kind = f"{labels.get('device type', '')} {labels.get('name', '')}".strip()
            cards.append(_Card(kind, labels.get("device", ""), columns, {}))
            is_table = True
        elif is_table and (row := _ROW.fullmatch(line.rstrip())):
            values = tuple(row["values"].split())
            if len(values) == len(cards[-1].columns) and not any(word in row["name"] for word in _OF_ONE):
                cards[-1].settings[row["name"]] = values
    return cards


def _list_pending(card: _Card) -> list[ToolReport]:
    """Settings whose next value is not the current one."""
    if "Current" not in card.columns or "Next" not in card.columns:
        return []
    now, then = card.columns.index("Current"), card.columns.index("Next")
    changes = [f"{name} {row[now]}, next {row[then]}" for name, row in card.settings.items() if row[now] != row[then]]
    what = "; ".join(changes[:_SHOWN]) + (f"; {len(changes) - _SHOWN} more" if len(changes) > _SHOWN else "")
    line = f"{card.device}: {'; '.join(changes)}"
    return [state_fault("firmware-pending", card.device or None, what, line)] if changes else []


def _list_odd(cards: list[_Card]) -> list[ToolReport]:
    """Settings that one card of a kind has otherwise than all the others, which agree."""
    odd: dict[str, list[str]] = {}
    for name in cards[0].settings if len(cards) > _OTHERS else ():
        values = [card.settings[name][-1] for card in cards if name in card.settings]
        usual = max(values, key=values.count)
        if len(values) == len(cards) and values.count(usual) == len(values) - 1:
            device = next(card.device for card in cards if card.settings[name][-1] != usual)
            value = next(value for value in values if value != usual)
            odd.setdefault(device, []).append(f"{name} {value}, others {usual}")
    return [
        state_fault("firmware-setting-odd", device or None, "; ".join(rows[:_SHOWN]), f"{device}: {'; '.join(rows)}")
        for device, rows in odd.items()
    ]  # fmt: skip
