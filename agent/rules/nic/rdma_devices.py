"""Rails without an RDMA device."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from agent.model.finding import Evidence
from agent.model.nic import Nic
from agent.model.reasons import Reason
from agent.rules.context import RuleContext
from agent.rules.devices import find_function, kernel_log_evidence, unreachable_reason
from agent.rules.node_wide import merge_if_on_all
from agent.rules.rule import Fail, NotApplicable, Pass, Result, Unknown, rule

# The module that makes an RDMA device of each network driver's function; drivers without RDMA are not here
_RDMA_MODULES = {
    "mlx5_core": "mlx5_ib", "mlx4_core": "mlx4_ib", "bnxt_en": "bnxt_re", "ice": "irdma", "ionic": "ionic_rdma",
}  # fmt: skip
_NEAR = ("PIX", "PXB")


@rule("rdma-device-missing")
def rdma_device_missing(case: RuleContext) -> Iterator[Result]:
    if case.no_rail_known:
        yield Unknown("node", case.no_rail_known)
        return
    if not case.rails:
        yield NotApplicable("node", Reason("no-such-device", detail="no rail"))
    some_have = any(nic.rdma_device for nic in case.rails)
    answers = [_judge_rdma_device(case, nic, some_have) for nic in case.rails]
    faults = [answer for answer in answers if isinstance(answer, Fail)]
    yield from (answer for answer in answers if not isinstance(answer, Fail))
    for fault in merge_if_on_all(faults, len(case.rails), "no rail has an RDMA device"):
        none = fault.subject == "node" and fault.severity == "error"
        yield replace(fault, severity="critical" if none else fault.severity)


def _judge_rdma_device(case: RuleContext, nic: Nic, some_have: bool) -> Result:
    subject = f"pci:{nic.pci or nic.id}"
    function = find_function(case, nic)
    driver = nic.driver or (function.driver if function else None)
    if nic.rdma_device:
        return Pass(subject)
    if absent := unreachable_reason(function):
        return NotApplicable(subject, absent)
    if nic.virtual_function or (case.virtual_machine and not some_have):
        return NotApplicable(
            subject, Reason("guest", detail="a virtual function or machine: the provider decides what it can do")
        )
    if nic.state == "present" and driver in _RDMA_MODULES:
        if any(n.rdma_device and not n.pci for n in case.nics.values()):
            return Unknown(
                subject,
                Reason("not-shown", detail="the PCI address of an RDMA device is not known: it may be this one's"),
            )
        if not nic.bond and (unread := case.partial_reason("rdma")):
            return Unknown(subject, unread)
    if nic.state != "no_rdma_device" or driver is None:
        return NotApplicable(
            subject,
            Reason("not-in-use", detail="no driver, handed to a guest, in another namespace, or part of a bond"),
        )
    if driver not in _RDMA_MODULES:
        return NotApplicable(
            subject, Reason("other-kind", detail=f"{driver} has no RDMA, or not by a module of its own")
        )
    if case.software.rdma_namespaces == "exclusive":
        return Unknown(
            subject, Reason("namespace-hides", detail="RDMA devices of other network namespaces are not seen here")
        )
    return _fail_rdma_device(case, nic, driver, some_have)


def _fail_rdma_device(case: RuleContext, nic: Nic, driver: str, some_have: bool) -> Fail:
    pci, module = nic.pci or nic.id, _RDMA_MODULES[driver]
    loaded = {row.name for row in case.software.modules}
    unread: str | None = case.probe_failure("modules")
    if unread is None and module not in loaded and driver not in loaded:
        unread = f"not listed, nor is {driver}: both can be built into the kernel"
    missing = unread is None and module not in loaded
    near = any(path.kind in _NEAR for path in case.paths_of.get(nic.id, ()))
    why = f"{module} is not loaded" if missing else f"{module} is loaded" if unread is None else f"{module}: {unread}"
    return Fail(
        subject=f"pci:{pci}",
        label=nic.label,
        summary=f"its network driver runs, and it has no RDMA device; {why}",
        impact="NCCL does not see this rail: the job goes on without it, or over TCP where no rail has one.",
        remedy=f"Load {module}, and have it loaded at boot (/etc/modules-load.d)."
        if missing
        else f"Load {module}, where it is not built into the kernel; read in the kernel log why it made no device."
        if unread
        else f"load {module} again.",
        evidence=(
            Evidence(what=f"RDMA device of {nic.label}", value="none", source="rdma link show"),
            Evidence(what=module, value="not loaded" if missing else str(unread or "loaded"), source="/proc/modules"),
            *kernel_log_evidence(case, pci),
        ),
        severity="error" if some_have or near else "info",
        cause="module" if missing else "device",
        situation="no-module" if missing else "not-known" if unread else "no-device",
        places=frozenset({nic.id, pci}),
    )
