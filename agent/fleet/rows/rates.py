"""Error counters that grew in the window of a report -> rows of table rate."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.json import Decoder

from agent.fleet.rows.devices import Row
from agent.fleet.rows.recent import decode_part
from agent.fleet.rows.report_fields import TopologyFields, WindowFields
from agent.fleet.rows.row_columns import MOST
from agent.fleet.rows.verdicts import window_seconds
from agent.model.counters import LINK, NETDEV, PORT
from agent.model.error_counters import find_error_family
from agent.model.finding import list_devices

_MOVED = Decoder(dict[str, dict[str, int]])


def rate_rows(window: WindowFields | None, topology: TopologyFields, rails: Mapping[str, int]) -> list[Row]:
    """`rails`: by NIC. Raises DamagedPart."""
    seconds = window_seconds(window)
    if window is None or seconds is None or bytes(window.moved) in (b"", b"{}"):
        return []
    moved = decode_part(_MOVED, window.moved, "counters_window.moved")
    rows = [(subject, name, grown) for subject, counts in moved.items() for name, grown in counts.items()]
    errors = [row for row in rows if find_error_family(row[1]) is not None and 0 < row[2] <= MOST]
    if not errors:
        return []
    labels = {
        **{gpu.pci: gpu.label for gpu in topology.gpus if gpu.pci},
        **{netdev.id: netdev.label for netdev in topology.netdevs},
        **{nic.id: nic.label for nic in topology.nics},
        **{gpu.id: gpu.label for gpu in topology.gpus},
    }
    interfaces = {netdev.id: netdev.label for netdev in topology.netdevs}
    rail_of = {
        **rails,
        **{dev.id: rails[dev.nic] for dev in topology.netdevs if dev.nic is not None and dev.nic in rails},
    }

    def make_row(subject: str, name: str, grown: int) -> Row:
        label = _find_label(subject, interfaces if subject.startswith(NETDEV) else labels)
        return subject, name, label, _find_place(subject, rail_of), grown, seconds

    return [make_row(*row) for row in errors]


def _find_label(subject: str, labels: Mapping[str, str | None]) -> str | None:
    """Of the device, with the number of a link or port."""
    kind, _, rest = subject.partition(":")
    (device,) = list_devices(subject)[:1] or [rest]
    label = labels.get(device) or device
    number = rest.rpartition("/")[2] if "/" in rest else ""
    return f"{label}/{number}" if kind in (LINK, PORT) and number else label


def _find_place(subject: str, rails: Mapping[str, int]) -> str:
    kind = subject.partition(":")[0]
    device = next(iter(list_devices(subject)), "")
    return f"rail {rails[device]}" if kind in (PORT, NETDEV) and device in rails else subject
