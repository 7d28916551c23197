"""gdr-datadirect-missing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agent.model.finding import Evidence
from agent.rules.case import Case
from agent.rules.counting import named
from agent.rules.devices import MELLANOX, device_id, on_c2c
from agent.rules.gpudirect.ways import data_direct
from agent.rules.nccl.settings import Effective, effective, number
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule

_CX8 = "0x1023"


@rule("gdr-datadirect-missing", "warning", needs=("pci|lspci",), references=("gdr-datadirect-missing",))
def gdr_datadirect_missing(case: Case) -> Iterator[Answer]:
    """ConnectX-8 rails of a Grace board do not use their second way to the GPU.

    ## What it checks
    On GB200 and GB300 with ConnectX-8: whether data-direct functions (15b3:2100) are there with a driver, and whether
    NCCL is told not to use them.

    ## Why it matters
    Without it traffic goes over C2C and the CPU, not over the direct Gen 6 link: 1 of 2 ways of each rail lies idle.

    ## How it is decided
    ConnectX-8 rails beside GPUs on C2C, and no data-direct function; or one without the mlx5 driver; or
    `NCCL_IB_DATA_DIRECT=0`.

    ## What keeps it silent
    - No ConnectX-8 rail, or no GPU on C2C: not applicable. GB200 with ConnectX-7 has none by design. Virtual machines:
      not applicable.
    - The PCI functions could not all be seen: unknown.

    ## How to confirm
    `lspci -d 15b3:2100 -k`

    ## How to fix
    NIC firmware configuration for data direct, DOCA-OFED, and a kernel that has its driver (6.14-nvidia); remove the
    setting.

    ## Source
    NVIDIA Grace-Blackwell ConnectX-8 GPUDirect RDMA guide; NCCL `src/transport/net_ib/init.cc`.
    """
    rails = [nic for nic in case.rails if device_id(case, nic) == _CX8]
    if case.virtual_machine or not rails or not any(on_c2c(case, gpu) for gpu in case.topology.gpus):
        yield NotApplicable("node", "no ConnectX-8 rail beside a GPU on C2C")
        return
    functions = data_direct(case)
    dark = [f.id for f in functions if f.driver is not None and not f.driver.startswith("mlx5")]
    off = [each for each in effective(case, "NCCL_IB_DATA_DIRECT") if number(each.value) == 0]
    if functions and not dark and not off:
        yield Pass("node")
        return
    if not functions and case.bus_unread:
        yield Unknown("node", case.bus_unread)
        return
    yield _fault(len(rails), [f.id for f in functions], dark, off)


def _fault(rails: int, functions: Sequence[str], dark: Sequence[str], off: Sequence[Effective]) -> Fail:
    what = (
        "no data-direct function is there"
        if not functions
        else f"{named(dark)} have no mlx5 driver"
        if dark
        else f"NCCL_IB_DATA_DIRECT=0 ({off[0].source})"
    )
    return Fail(
        subject="node",
        label="node",
        summary=f"{rails} ConnectX-8 rails, and {what}",
        impact="1 of 2 ways of each rail lies idle: traffic goes over C2C and the CPU.",
        remedy="Remove the setting."
        if functions and not dark
        else "NIC firmware, DOCA-OFED and kernel with data direct.",
        evidence=(
            Evidence(
                what="data-direct functions",
                value=named(functions) or "none",
                source=f"lspci -d {MELLANOX[2:]}:2100 -k",
            ),
            *(each.evidence("NCCL_IB_DATA_DIRECT") for each in off),
        ),
        cause="missing" if not functions else "driver" if dark else "setting",
        places=frozenset({"node"}),
    )
