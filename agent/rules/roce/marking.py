"""Which traffic class RDMA packets of a port carry, and who says so: the first link of the lossless chain.

A traffic class is the ToS byte of a packet: DSCP in the upper six bits, ECN in the lower two (106 is DSCP 26).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from agent.rules.case import Case
from agent.rules.nccl.settings import Effective, effective, files_unread, jobs_unread, number
from agent.rules.roce.ports import RocePort

VARIABLE = "NCCL_IB_TC"


class Marking(NamedTuple):
    """One traffic class that packets of a port may carry."""

    traffic_class: int  # 0 to 255
    text: str  # as it is written where it is set: "106", "0x6a"
    source: str
    kind: str  # forced | job | declared | file | default
    wrong: str | None = None  # what is wrong with the text itself
    doubt: str | None = None  # why packets may carry another all the same

    @property
    def dscp(self) -> int:
        """The upper six bits."""
        return self.traffic_class >> 2


def markings(case: Case, each: RocePort) -> Sequence[Marking]:
    """Traffic classes of a port, those that are in force for it only; empty where `unknown` says why.

    A class that the driver forces is that of every queue pair; else running jobs tell, else the operator, else files,
    else it is NCCL's default, 0.
    """
    forced = each.port.traffic_class
    if forced is not None:
        return (Marking(forced & 0xFF, str(forced), _forced_file(each), "forced"),)
    found = effective(case, VARIABLE)
    jobs = [one for one in found if one.scope == "job"]
    declared = case.settings.facts.get("roce_traffic_class")
    if jobs:
        return [_of(one) for one in jobs]
    if isinstance(declared, int):
        return (Marking(declared & 0xFF, str(declared), "configuration: facts.roce_traffic_class", "declared"),)
    if found:
        return [_of(one) for one in found if one.scope == found[0].scope]
    if unknown(case):
        return ()
    return (Marking(0, "not set", _searched(case), "default", doubt=_doubt(case)),)


def unknown(case: Case) -> str | None:
    """Why it is not known what marks packets, where nothing does; None where NCCL's files were read."""
    return files_unread(case)


def _of(setting: Effective) -> Marking:
    value = number(setting.value)
    wrong = None
    if not setting.value.strip()[:1].isdigit():
        wrong = "is no number of 0 to 255: NCCL takes 0"
    elif value is None or value > 255:
        wrong = "is above 255: it does not fit into the byte"
    marked = max(value or 0, 0) & 0xFF
    return Marking(marked, setting.value, setting.source, "job" if setting.scope == "job" else "file", wrong)


def _doubt(case: Case) -> str | None:
    """Why a class may be set although nothing that was read sets one."""
    unread = jobs_unread(case)
    if unread:
        return unread
    plugins = case.software.nccl.plugins
    if plugins:
        return f"a network plugin may mark by itself: {plugins[0].path}"
    chosen = next((one for key in ("NCCL_NET_PLUGIN", "NCCL_NET") for one in effective(case, key)), None)
    if chosen and chosen.value.strip().lower() not in ("", "ib", "none"):
        return f"a network plugin may mark by itself: {chosen.value} ({chosen.source})"
    return None


def _searched(case: Case) -> str:
    return ", ".join(case.software.nccl.searched[:4])


def _forced_file(each: RocePort) -> str:
    return f"/sys/class/infiniband/{each.nic.rdma_device or each.nic.label}/tc/{each.port.port}/traffic_class"
