"""The output of `lspci -D -nn -vvv` of a report's PCI functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from agent.model.pci import PciFunction

_CLASSES = {
    "0x0300": "VGA compatible controller", "0x0302": "3D controller", "0x0200": "Ethernet controller",
    "0x0207": "Infiniband controller", "0x0108": "Non-Volatile memory controller", "0x0604": "PCI bridge",
    "0x0600": "Host bridge", "0x0680": "Bridge", "0x1200": "Processing accelerators", "0x0502": "CXL",
}  # fmt: skip
_PORTS = {
    "root_port": "Root Port (Slot+)", "upstream": "Upstream Port", "downstream": "Downstream Port (Slot+)",
    "legacy_endpoint": "Legacy Endpoint", "rciep": "Root Complex Integrated Endpoint",
}  # fmt: skip
_ACS = {"SV": "SrcValid", "TB": "TransBlk", "RR": "ReqRedir", "CR": "CmpltRedir", "UF": "UpstreamFwd",
        "EC": "EgressCtrl", "DT": "DirectTrans"}  # fmt: skip
_UNITS = ((40, "T"), (30, "G"), (20, "M"), (10, "K"))


def render_lspci(functions: Iterable[PciFunction]) -> str:
    """A block for each function that answers."""
    listed = [function for function in functions if function.state != "changed_during_scan"]
    below = {function.parent: function.id for function in listed if function.parent}
    blocks = ["\n".join([*_block(function, below.get(function.id)), ""]) for function in listed]
    if blocks and not any((function.class_code or "").startswith("0x0600") for function in listed):
        blocks.insert(0, "0000:00:00.0 Host bridge [0600]: Device [8086:09a2]\n\tControl: I/O- Mem+ BusMaster+\n")
    return "\n".join(blocks)


def _block(function: PciFunction, below: str | None) -> Iterator[str]:
    code = (function.class_code or "0xffff")[:6]
    ids = f"{(function.vendor or '0xffff')[2:]}:{(function.device or '0xffff')[2:]}"
    yield f"{function.id} {_CLASSES.get(code, 'System peripheral')} [{code[2:]}]: Device [{ids}]"
    if function.subsystem_vendor and function.subsystem_device:
        yield f"\tSubsystem: Device [{function.subsystem_vendor[2:]}:{function.subsystem_device[2:]}]"
    if function.slot:
        yield f"\tPhysical Slot: {function.slot}"
    if function.state == "gone":
        yield "\t!!! Unknown header type 7f"
    else:
        yield from _body(function, below)
    if function.driver:
        yield f"\tKernel driver in use: {function.driver}"


def _body(function: PciFunction, below: str | None) -> Iterator[str]:
    yield "\tControl: I/O- Mem+ BusMaster+"
    yield from ([f"\tNUMA node: {function.numa_node}"] if function.numa_node is not None else [])
    yield from ([f"\tIOMMU group: {function.iommu_group}"] if function.iommu_group is not None else [])
    for number, size in (function.bars_bytes or {}).items():
        shift, unit = next(((shift, unit) for shift, unit in _UNITS if size >> shift), (0, ""))
        yield f"\tRegion {number}: Memory at 90000000 (64-bit, prefetchable) [size={size >> shift}{unit}]"
    if below:
        bus = below.split(":")[1]
        yield f"\tBus: primary={function.id.split(':')[1]}, secondary={bus}, subordinate={bus}, sec-latency=0"
    if function.link or function.port_type:
        yield from _express(function)
    if function.serial:
        yield f"\tCapabilities: [148 v1] Device Serial Number {function.serial}"
    yield "\tCapabilities: [100 v2] Advanced Error Reporting"
    if function.acs and function.acs.capability:
        yield "\tCapabilities: [158 v1] Access Control Services"
        for register, values in (("ACSCap", function.acs.capability), ("ACSCtl", function.acs.control)):
            yield f"\t\t{register}:\t{' '.join(f'{name}{_sign(flag in values)}' for flag, name in _ACS.items())}"
    if function.ats is not None:
        yield "\tCapabilities: [170 v1] Address Translation Service (ATS)"
        yield f"\t\tATSCtl:\tEnable{_sign(function.ats)}, Smallest Translation Unit: 00"
    if function.virtual_functions is not None:
        yield "\tCapabilities: [180 v1] Single Root I/O Virtualization (SR-IOV)"
        yield f"\t\tIOVCtl:\tEnable{_sign(bool(function.virtual_functions))} Migration- Interrupt- MSE-"
        yield f"\t\tInitial VFs: 16, Total VFs: 16, Number of VFs: {function.virtual_functions}, Link: 00"


def _sign(flag: bool | None) -> str:
    return "+" if flag else "-"


def _express(function: PciFunction) -> Iterator[str]:
    yield f"\tCapabilities: [40] Express (v2) {_PORTS.get(function.port_type or '', 'Endpoint')}, MSI 00"
    if function.max_payload_supported_bytes:
        yield f"\t\tDevCap:\tMaxPayload {function.max_payload_supported_bytes} bytes, PhantFunc 0"
        yield f"\t\t\tExtTag{_sign(function.extended_tags_supported)} AttnBtn- AttnInd- PwrInd- RBE+"
    if function.max_payload_bytes:
        yield "\t\tDevCtl:\tCorrErr+ NonFatalErr+ FatalErr+ UnsupReq-"
        yield f"\t\t\tRlxdOrd{_sign(function.relaxed_ordering)} ExtTag{_sign(function.extended_tags)} NoSnoop+"
        read = f", MaxReadReq {function.max_read_request_bytes} bytes" if function.max_read_request_bytes else ""
        yield f"\t\t\tMaxPayload {function.max_payload_bytes} bytes{read}"
    link = function.link
    if link is None:
        return
    yield f"\t\tLnkCap:\tPort #0, Speed {_speed(link.max_speed_gt_s)}, Width x{link.max_width or 0}, ASPM not supported"
    yield f"\t\tLnkCtl:\tASPM Disabled; RCB 64 bytes, LnkDisable{_sign(function.link_disabled)} CommClk+"
    yield f"\t\tLnkSta:\tSpeed {_speed(link.speed_gt_s)}, Width x{link.width or 0}"
    retrained = function.retrained or []
    managed, autonomous = _sign("bandwidth_managed" in retrained), _sign("autonomous" in retrained)
    yield f"\t\t\tTrErr- Train- SlotClk+ DLActive{_sign(function.link_active)} BWMgmt{managed} ABWMgmt{autonomous}"
    if function.slot_occupied is not None:
        yield "\t\tSltCap:\tAttnBtn- PwrCtrl- MRL- AttnInd- PwrInd- HotPlug-"
        yield f"\t\tSltSta:\tStatus: AttnBtn- PowerFlt- MRL- CmdCplt- PresDet{_sign(function.slot_occupied)} Interlock-"
    if link.target_speed_gt_s:
        yield f"\t\tLnkCtl2: Target Link Speed: {_speed(link.target_speed_gt_s)}, EnterCompliance- SpeedDis-"


def _speed(gt_s: float | None) -> str:
    return f"{gt_s:g}GT/s" if gt_s else "unknown"
