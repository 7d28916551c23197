"""nvswitch-missing."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.rules.case import Case
from agent.rules.profile.expected import NO_PROFILE, evidence_of, number_of, severity_of
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule


@rule("nvswitch-missing", "critical", needs=("pci|lspci",), references=("NVL-015",))
def nvswitch_missing(case: Case) -> Iterator[Answer]:
    """Fewer NVSwitches are on the PCI bus than the platform has.

    ## What it checks
    The number of NVSwitches (class 0680, by their ids) against the profile of the platform.

    ## Why it matters
    Each of 4 switches of an H100 board carries a quarter of every GPU's NVLinks; without one the fabric manager does
    not start, and CUDA gives error 802 on all 8 GPUs.

    ## How it is decided
    Fewer than the profile says, for a board that shows its switches on PCI. NVIDIA bridges of class 0604 are none.

    ## What keeps it silent
    - No profile, or one that expects none (B200, GB200: their switches are no PCIe devices of the host): not
      applicable. Virtual machines, which see what they are given: not applicable.
    - The PCI bus was not read whole: unknown. A switch that does not answer: pcie-device-gone.

    ## How to confirm
    `lspci -d 10de::0680`

    ## How to fix
    Power cycle the whole board (a warm reset is not enough); if it stays away, the baseboard has to be replaced.

    ## Source
    Fabric Manager user guide; dumps of DGX A100 and HGX H100.
    """
    profile = case.profile
    due = number_of(profile.nvswitches) if profile else None
    if profile is None or profile.nvswitches is None or not due:
        yield NotApplicable("node", "the profile expects no NVSwitch" if profile else NO_PROFILE)
        return
    if case.virtual_machine:
        yield NotApplicable("node", "virtual machine: switches may stay with the host")
        return
    if case.bus_unread:
        yield Unknown("node", case.bus_unread)
        return
    seen = len(case.topology.nvswitches)
    if seen >= due:
        yield Pass("node")
        return
    gone = [f.id for f in case.topology.pci if f.state == "gone"]
    yield Fail(
        subject="node",
        label="node",
        summary=f"{seen} NVSwitches on the PCI bus, {due} expected",
        impact="the fabric manager does not start: CUDA gives error 802 on every GPU.",
        remedy="Power cycle the whole board; if it stays away, have the baseboard replaced.",
        evidence=(
            Evidence(what="NVSwitches", value=str(seen), source="lspci -d 10de::0680"),
            evidence_of(profile, "NVSwitches", profile.nvswitches),
        ),
        severity=severity_of(case, profile.nvswitches, "critical"),
        places=frozenset({"count of NVSwitches", *gone}),
    )
