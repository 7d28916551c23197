"""CXL expanders of one model, compared with each other."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.model.pci import CxlDevice
from agent.model.reasons import Reason
from agent.rules.context import RuleContext
from agent.rules.cxl.devices import BUS, cxl_devices, report_no_cxl, subject_of
from agent.rules.devices import device_label
from agent.rules.rule import Fail, NotApplicable, Pass, Result, Unknown, rule
from agent.rules.wording import find_majority, join_labels

_FIRMWARE, _CAPACITY = "firmware", "capacity"
_FILES = {_FIRMWARE: "firmware_version", _CAPACITY: "ram/size"}
_IMPACT = {
    _FIRMWARE: "A fault that one firmware version fixes may remain in the other.",
    _CAPACITY: "A region over several expanders uses only the smallest capacity of each.",
}


@rule("cxl-sibling-differs")
def cxl_sibling_differs(case: RuleContext) -> Iterator[Result]:
    yield from report_no_cxl(case)
    models: dict[tuple[str | None, ...], list[CxlDevice]] = {}
    for device in cxl_devices(case):
        function = case.functions.get(device.id)
        if device.memdev is None:
            yield NotApplicable(
                subject_of(device),
                Reason("judged-elsewhere", detail="no memory device of it: see cxl-no-memdev and cxl-driver-missing"),
            )
        elif function is None:
            yield Unknown(subject_of(device), Reason("not-known", fact="its PCI function"))
        else:
            ids = (function.vendor, function.device, function.subsystem_vendor, function.subsystem_device)
            models.setdefault(ids, []).append(device)
    for devices in models.values():
        yield from _compare_model(case, devices)


def _compare_model(case: RuleContext, devices: list[CxlDevice]) -> Iterator[Result]:
    if len(devices) == 1:
        yield NotApplicable(
            subject_of(devices[0]), Reason("nothing-to-compare", detail="the only expander of its model")
        )
        return
    faults = [fault for what in _FILES if (fault := _compare(case, devices, what))]
    yield from faults
    named = {place for fault in faults for place in fault.places}
    for device in devices:
        if device.id in named:
            continue
        if None in (_read_value(device, _FIRMWARE), _read_value(device, _CAPACITY)):
            yield Unknown(subject_of(device), Reason("not-shown", detail="its firmware or its capacity is not shown"))
        else:
            yield Pass(subject_of(device))


def _read_value(device: CxlDevice, what: str) -> str | None:
    if what == _FIRMWARE:
        return device.firmware
    return f"{device.ram_mib / 1024:g} GiB" if device.ram_mib is not None else None


def _compare(case: RuleContext, devices: list[CxlDevice], what: str) -> Fail | None:
    known = {device.id: value for device in devices if (value := _read_value(device, what)) is not None}
    values = sorted(set(known.values()))
    if len(values) < 2:
        return None
    usual_value = find_majority(known.values())
    others = [device for device in devices if device.id in known and known[device.id] != usual_value]
    texts = (f"{value} at {join_labels([place for place in known if known[place] == value])}" for value in values)
    single = len(others) == 1
    return Fail(
        subject=subject_of(others[0]) if single else "node",
        label=device_label(case, others[0].id) if single else "node",
        summary=f"{what} of expanders of one model differs: {'; '.join(texts)}",
        impact=_IMPACT[what],
        evidence=tuple(
            Evidence(
                what=f"{what} of {device.memdev}",
                value=known[device.id],
                source=f"{BUS}/{device.memdev}/{_FILES[what]}",
            )
            for device in others[:8]
        ),
        severity=None if what == _FIRMWARE else "info",
        cause=what,
        places=frozenset(device.id for device in others),
    )
