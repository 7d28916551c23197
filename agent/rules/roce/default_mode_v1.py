"""roce-default-mode-v1."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.rules.case import Case
from agent.rules.roce.ports import RocePort
from agent.rules.roce.wires import by_port
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, rule

_V1 = "IB/RoCE v1"


@rule("roce-default-mode-v1", "info", needs=("rdma|rdma_tools",), references=("roce-default-mode-v1",))
def roce_default_mode_v1(case: Case) -> Iterator[Answer]:
    """Programs that connect by rdma-cm use RoCE v1 on a port.

    ## What it checks
    `default_roce_mode` of rdma-cm for every active RoCE port of a rail or storage NIC, where configfs shows it.

    ## Why it matters
    rdma-cm makes the connections of UCX, NVMe over RDMA and SMB Direct. RoCE v1 is a protocol below IP: 0 % of it
    passes a router. NCCL does not use rdma-cm, and is not affected.

    ## How it is decided
    The mode is `IB/RoCE v1`: info; one finding where all ports have it.

    ## What keeps it silent
    - configfs does not show it (rdma_cm's folder is made on demand): the kernel's default is RoCE v2 since 4.14; not
      applicable.
    - Ports that are not active or have no role, InfiniBand, cloud NICs: not applicable.

    ## How to confirm
    `cma_roce_mode -d DEVICE`, or `cat /sys/kernel/config/rdma_cm/DEVICE/ports/1/default_roce_mode`

    ## How to fix
    `cma_roce_mode -d DEVICE -p 1 -m 2`

    ## Source
    Linux `Documentation/ABI/testing/configfs-rdma_cm`; NVIDIA OFED manual, cma_roce_mode.
    """
    yield from by_port(case, _judge, "rdma-cm uses RoCE v1")


def _judge(each: RocePort) -> Answer:
    mode = each.port.default_roce_mode
    if mode is None:
        return NotApplicable(each.subject, "configfs shows no mode of rdma-cm: the kernel's own is RoCE v2")
    if mode != _V1:
        return Pass(each.subject)
    device = each.nic.rdma_device or each.nic.label
    return Fail(
        subject=each.subject,
        label=each.label,
        summary="programs that connect by rdma-cm use RoCE v1 here",
        impact="0 % of their traffic passes a router, and no switch sees its DSCP. NCCL does not use rdma-cm.",
        remedy=f"cma_roce_mode -d {device} -p {each.port.port} -m 2",
        evidence=(
            Evidence(
                what=f"default_roce_mode of {each.label}",
                value=mode,
                source=f"/sys/kernel/config/rdma_cm/{device}/ports/{each.port.port}/default_roce_mode",
            ),
        ),
        severity="info",
        places=each.places,
    )
