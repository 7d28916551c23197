"""roce-dcbx-firmware-owned."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.model.nic import Netdev
from agent.rules.case import Case
from agent.rules.counting import ranges
from agent.rules.roce.lossless import Chain
from agent.rules.roce.told import fault, over_readable
from agent.rules.rule import Answer, Pass, Unknown, rule


@rule("roce-dcbx-firmware-owned", "info", needs=("rdma|rdma_tools", "netdev"), references=("roce-dcbx-firmware-owned",))
def roce_dcbx_firmware_owned(case: Case) -> Iterator[Answer]:
    """The NIC's firmware negotiates lossless classes with the switch, over what the host sets.

    ## What it checks
    Who runs DCBX at the interface of every RoCE port: the host, or the firmware of the NIC.

    ## Why it matters
    With firmware in charge 1 LLDP frame of the switch replaces PFC and ETS, and `mlnx_qos` fails or is undone. Good to
    know before somebody looks for what changes it.

    ## How it is decided
    The driver says that DCBX is not the host's, or it knows the PFC of a DCBX peer. Info.

    ## What keeps it silent
    - The host owns it, and no peer is known.
    - Drivers that do not tell, DCB not readable, virtual functions: unknown.

    ## How to confirm
    `dcb dcbx show dev INTERFACE`, or `mlnx_qos -i INTERFACE | grep DCBX`

    ## How to fix
    Nothing where switches are meant to decide. Else `mlnx_qos -i INTERFACE -d os`, and for good
    `mlxconfig -d DEVICE set LLDP_NB_DCBX_P1=0`.

    ## Source
    Linux `mlx5/core/en_dcbnl.c` (`mlx5e_dcbnl_getdcbx`).
    """
    yield from over_readable(case, _judge)


def _judge(each: Chain, netdev: Netdev) -> Answer:
    subject, qos = each.each.subject, each.qos
    if qos.dcbx is None and not qos.peer_pfc:
        return Unknown(subject, "who runs DCBX is not known")
    if qos.dcbx != "firmware" and not qos.peer_pfc:
        return Pass(subject)
    peer = ranges(n for n, on in enumerate(qos.peer_pfc) if on) if qos.peer_pfc else "not known"
    value = f"{qos.dcbx or 'not known'} ({' '.join(qos.dcbx_modes) or 'no modes'}), PFC of the peer: {peer}"
    return fault(
        each,
        "DCBX is run by the firmware of the NIC" if qos.dcbx == "firmware" else "DCBX is run with the switch",
        "Nothing where switches are meant to decide; else mlnx_qos -i INTERFACE -d os.",
        impact="1 LLDP frame of the switch replaces PFC and ETS that the host has set.",
        severity="info",
        evidence=(Evidence(what=f"DCBX of {netdev.label}", value=value, source=f"dcb dcbx show dev {netdev.label}"),),
    )
