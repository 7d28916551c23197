"""The section about GPUDirect: groups of pairs that are alike, the worst first."""

from __future__ import annotations

import msgspec

from agent.model.finding import Gpudirect
from agent.model.topology import Topology
from agent.outputs.text.gpudirect import render_gpudirect
from agent.outputs.text.lines import to_plain_text
from tests.agent.outputs.text.reports import report
from tests.agent.rules import rows

GPUS = [rows.gpu(f"0000:{n}4:00.0", n) for n in range(1, 5)]
NICS = [rows.nic(f"0000:{n}5:00.0", n) for n in range(1, 5)]


def pair(n: int, verdict: str = "ready", via: str = "dma-buf", *causes: str) -> Gpudirect:
    return Gpudirect(gpu=GPUS[n].id, nic=NICS[n].id, verdict=verdict, via=via, causes=list(causes))


def render(*pairs: Gpudirect, width: int = 80) -> str:
    changed = msgspec.structs.replace(report(Topology(gpus=GPUS, nics=NICS)), gpudirect=list(pairs))
    return to_plain_text(render_gpudirect(changed, width))


def test_all_ready_is_one_sentence() -> None:
    """With the way."""
    assert "  ready (DMA-BUF): GPU1-4 – mlx5_1-4\n" == render(*(pair(n) for n in range(4)))
    assert "" == render()


def test_the_worst_come_first_with_their_causes() -> None:
    """Devices as people call them, and reasons as they are."""
    port = f"ib-port-down port:{NICS[0].id}/1"
    acs = f"gdr-acs-on-path pair:{GPUS[1].id}+{NICS[1].id}"
    text = render(
        pair(3),
        pair(2, "unknown", "unknown", "gdr-no-path: modules could not be listed"),
        pair(1, "degraded", "peermem", acs, "gdr-iommu-translated node"),
        pair(0, "blocked", "none", port, "distance NODE: NCCL uses GPUDirect up to PXB"),
    )

    assert (
        "  blocked: GPU1 – mlx5_1\n"
        "    - ib-port-down of mlx5_1\n"
        "    - distance NODE: NCCL uses GPUDirect up to PXB\n"
        "  degraded (nvidia_peermem): GPU2 – mlx5_2\n"
        "    - gdr-acs-on-path\n"
        "    - gdr-iommu-translated\n"
        "  unknown: GPU3 – mlx5_3\n"
        "    - gdr-no-path: modules could not be listed\n"
        "  ready (DMA-BUF): GPU4 – mlx5_4\n"
    ) == text
