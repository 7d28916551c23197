"""profile-differs."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.model.profile import Device, Profile
from agent.rules.case import Case
from agent.rules.devices import away
from agent.rules.profile.expected import NO_PROFILE, evidence_of, number_of, severity_of
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule


@rule("profile-differs", "warning", needs=("pci|lspci",), references=("CONTRACT-PROFILE",))
def profile_differs(case: Case) -> Iterator[Answer]:
    """A device is slower than on the node from which the profile was learnt, or has another firmware or NVLink count.

    ## What it checks
    Each GPU and NIC against the device of the profile at its place: link, port rate, firmware; and the NVLinks of each
    GPU against the number that the profile has.

    ## Why it matters
    Where every device of a node is slow in the same way, no two of them differ: only a good node shows what is lost, up
    to 50 % where a board came with another riser.

    ## How it is decided
    A PCIe link that is believed and narrower or slower than in the profile, a port with a lower rate, fewer NVLinks
    than the profile says of this GPU model: warning. Another firmware: info.

    ## What keeps it silent
    - No profile: not applicable. Devices that are not in it, or of another model than in it: not applicable.
    - NVLinks where the NVLink bandwidth mode is reduced: not applicable, see nvlink-bandwidth-mode-reduced.
    - A link that is idle or not believed, a port that is not active: unknown. Rules about links, rates and NVLinks that
      find the fault themselves stand for this one.

    ## How to confirm
    `fabricscope diff GOOD.json THIS.json`

    ## How to fix
    Make the node like the good one; or learn the profile anew where the fleet has changed.

    ## Source
    The profile, which names the node that it was learnt from.
    """
    profile = case.profile
    if profile is None:
        yield NotApplicable("node", NO_PROFILE)
        return
    at = {device.pci: device for device in profile.devices if device.pci}
    for gpu in case.topology.gpus:
        yield from _links(case, profile, gpu.id)
    for pci in sorted(at.keys() & case.functions.keys()):
        yield _device(case, profile, at[pci], pci)


def _links(case: Case, profile: Profile, gpu_id: str) -> Iterator[Answer]:
    gpu, due = case.gpus[gpu_id], number_of(profile.nvlinks_per_gpu)
    function = case.functions.get(gpu.pci or "")
    model = f"{(function.vendor or '')[2:]}:{(function.device or '')[2:]}" if function else ""
    if profile.nvlinks_per_gpu is None or not due or model not in profile.gpu_devices or gpu.driver_state != "open":
        return
    subject = f"gpu:{gpu.id}"
    if not gpu.links_known:
        yield Unknown(subject, gpu.links_reason or "NVLinks not known")
        return
    if {case.topology.bandwidth_mode, gpu.nvlink_bandwidth_mode} - {"full", None}:
        yield NotApplicable(subject, "a reduced NVLink bandwidth mode: links are off on purpose")
        return
    up = sum(link.state in ("active", "sleep") for link in gpu.links)
    if up >= due or case.virtual_machine or (gpu.mig and gpu.mig.current):
        yield Pass(subject)
        return
    if any(link.state == "unknown" for link in gpu.links):
        yield Unknown(subject, "the state of a link is not known")
        return
    yield Fail(
        subject=subject,
        label=gpu.label,
        summary=f"{up} NVLinks are up, {due} expected",
        impact=f"{100 * (1 - up / due):.0f} % of the bandwidth between GPUs.",
        remedy="See what keeps them down: the fabric manager's log, the bandwidth mode, the bridge.",
        evidence=(
            Evidence(what="NVLinks up", value=str(up), source="nvidia-smi nvlink -s"),
            evidence_of(profile, "NVLinks of a GPU", profile.nvlinks_per_gpu),
        ),
        severity=severity_of(case, profile.nvlinks_per_gpu, "warning"),
        cause="nvlinks",
        places=frozenset({gpu.id, gpu.pci or gpu.id}),
    )


def _device(case: Case, profile: Profile, good: Device, pci: str) -> Answer:
    function, subject = case.functions[pci], f"pci:{pci}"
    model = f"{(function.vendor or '')[2:]}:{(function.device or '')[2:]}"
    if away(function):
        return NotApplicable(subject, away(function) or "")
    if good.vendor_device and model != good.vendor_device:
        return NotApplicable(subject, f"another model stands here than in the profile ({model})")
    slower = list(_slower(case, good, pci))
    nic = case.nic_by_pci.get(pci)
    other = bool(good.firmware and nic and nic.firmware and nic.firmware != good.firmware)
    if not slower and not other:
        return _unsure(case, good, pci) or Pass(subject)
    label = nic.label if nic else case.gpu_by_pci[pci].label if pci in case.gpu_by_pci else pci
    told = slower or [f"firmware {nic.firmware if nic else ''}, {good.firmware} in the profile"]
    return Fail(
        subject=subject,
        label=label,
        summary="; ".join(told),
        impact="up to 50 % of its bandwidth, against the node of the profile." if slower else "0 % by itself.",
        remedy="Make the node like the good one, or learn the profile anew.",
        evidence=(
            Evidence(what="this node", value="; ".join(told), source=f"/sys/bus/pci/devices/{pci}"),
            Evidence(what=f"profile {profile.name}", value=good.name or pci, source="--profile"),
        ),
        severity="warning" if slower else "info",
        cause="slower" if slower else "firmware",
        places=frozenset({pci}),
    )


def _slower(case: Case, good: Device, pci: str) -> Iterator[str]:
    link = case.functions[pci].link
    if link and link.quality.state == "conclusive":
        if good.link_width and link.width and link.width < good.link_width:
            yield f"PCIe x{link.width}, x{good.link_width} in the profile"
        if good.link_gt_s and link.speed_gt_s and link.speed_gt_s < good.link_gt_s:
            yield f"PCIe {link.speed_gt_s:g} GT/s, {good.link_gt_s:g} in the profile"
    nic = case.nic_by_pci.get(pci)
    for port in nic.ports if nic else ():
        if good.rate_gbit_s and port.state == "ACTIVE" and port.rate_gbit_s and port.rate_gbit_s < good.rate_gbit_s:
            yield f"port at {port.rate_gbit_s:g} Gb/s, {good.rate_gbit_s:g} in the profile"


def _unsure(case: Case, good: Device, pci: str) -> Unknown | None:
    link = case.functions[pci].link
    if good.link_gt_s and link and link.quality.state != "conclusive":
        return Unknown(f"pci:{pci}", f"its link is {link.quality.state}: {link.quality.reason or 'no reason given'}")
    return None
