"""Rails without an RDMA device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from agent.model.finding import Evidence
from agent.model.nic import Nic
from agent.rules.context import RuleContext
from agent.rules.devices import about_function, about_nic, find_function, kernel_log_evidence, why_unreachable
from agent.rules.node_wide import count_faults, merge_if_on_all
from agent.rules.rule import NODE, Fail, Result, rule

# The module that makes an RDMA device of each network driver's function; drivers without RDMA are not here
_RDMA_MODULES = {
    "mlx5_core": "mlx5_ib", "mlx4_core": "mlx4_ib", "bnxt_en": "bnxt_re", "ice": "irdma", "ionic": "ionic_rdma",
}  # fmt: skip
_NEAR = ("PIX", "PXB")


def _list_rails(context: RuleContext) -> Iterator[Nic | Result]:
    if not context.rails:
        why = context.why_no_rail_known
        yield NODE.unknown(why) if why else NODE.not_applicable("no-such-device", detail="no rail")
    yield from context.rails


def _merge_rails(context: RuleContext, answers: Sequence[Result]) -> Iterator[Fail]:
    for fault in merge_if_on_all(count_faults(answers)[0], len(context.rails), "no rail has an RDMA device"):
        none = fault.subject == "node" and fault.severity == "error"
        yield replace(fault, severity="critical") if none else fault


@rule("rdma-device-missing", each=_list_rails, merge=_merge_rails)
def rdma_device_missing(context: RuleContext, nic: Nic) -> Result:
    about, some_have = about_nic(nic), any(nic.rdma_device for nic in context.rails)
    function = find_function(context, nic)
    driver = nic.driver or (function.driver if function else None)
    if nic.rdma_device:
        return about.passes()
    if absent := why_unreachable(function):
        return about.not_applicable(absent)
    if nic.virtual_function or (context.virtual_machine and not some_have):
        return about.not_applicable(
            "guest", detail="a virtual function or machine: the provider decides what it can do"
        )
    if nic.state == "present" and driver in _RDMA_MODULES:
        if any(n.rdma_device and not n.pci for n in context.nics.values()):
            return about.unknown(
                "not-shown", detail="the PCI address of an RDMA device is not known: it may be this one's"
            )
        if not nic.bond and (unread := context.why_partial("rdma")):
            return about.unknown(unread)
    if nic.state != "no_rdma_device" or driver is None:
        return about.not_applicable(
            "not-in-use", detail="no driver, handed to a guest, in another namespace, or part of a bond"
        )
    if driver not in _RDMA_MODULES:
        return about.not_applicable("other-kind", detail=f"{driver} has no RDMA, or not by a module of its own")
    if context.software.rdma_namespaces == "exclusive":
        return about.unknown("namespace-hides", detail="RDMA devices of other network namespaces are not seen here")
    return _fail_rdma_device(context, nic, driver, some_have)


def _fail_rdma_device(context: RuleContext, nic: Nic, driver: str, some_have: bool) -> Fail:
    pci, module = nic.pci or nic.id, _RDMA_MODULES[driver]
    loaded = {row.name for row in context.software.modules}
    unread: str | None = context.why_probe_failed("modules")
    if unread is None and module not in loaded and driver not in loaded:
        unread = f"not listed, nor is {driver}: both can be built into the kernel"
    missing = unread is None and module not in loaded
    near = any(path.kind in _NEAR for path in context.paths_of.get(nic.id, ()))
    why = f"{module} is not loaded" if missing else f"{module} is loaded" if unread is None else f"{module}: {unread}"
    return about_function(context, pci).fail(
        label=nic.label,
        summary=f"its network driver runs, and it has no RDMA device; {why}",
        impact="NCCL does not see this rail: the job goes on without it, or over TCP where no rail has one.",
        remedy=f"Load {module}, and have it loaded at boot (/etc/modules-load.d)."
        if missing
        else f"Load {module}, where it is not built into the kernel; read in the kernel log why it made no device."
        if unread
        else f"load {module} again.",
        evidence=(
            Evidence(f"RDMA device of {nic.label}", "none", "rdma link show"),
            Evidence(module, "not loaded" if missing else str(unread or "loaded"), "/proc/modules"),
            *kernel_log_evidence(context, pci),
        ),
        severity="error" if some_have or near else "info",
        cause="module" if missing else "device",
        situation="no-module" if missing else "not-known" if unread else "no-device",
        ids=frozenset({nic.id, pci}),
    )
