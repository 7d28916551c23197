"""nvlink-path-missing where nothing but the matrix of nvidia-smi is there: a GPU outside it, and every guard alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import msgspec
import pytest

from agent.model.gpu import Mig
from agent.model.topology import Path
from agent.rules.context import RuleContext
from agent.rules.nvlink.paths import nvlink_path_missing as rule
from tests.agent.rules.build import changed_gpu, changed_gpus, fails, gpu_id, nic_id, probe, topology
from tests.agent.rules.fabric import hgx


def matrix(outside: Sequence[int], kind: str | None = "NV18", gpus: int = 8) -> RuleContext:
    """Eight GPUs, of which nothing is known but how they reach each other."""
    context = changed_gpus(
        hgx(gpus), links=[], links_known=None, links_reason="x", p2p=None, mig=None, pci=None, name=None
    )
    paths = [
        Path(
            a=min(gpu_id(a), gpu_id(b)),
            b=max(gpu_id(a), gpu_id(b)),
            kind="SYS" if {a, b} & set(outside) else kind,
            source="nvidia-smi",
        )
        for a, b in combinations(range(gpus), 2)
    ]
    return probe(topology(context, paths=paths, pci=[], nvswitches=[]), "pci", "absent", "no list")


def change(context: RuleContext, kinds: Mapping[tuple[int, int], str | None]) -> RuleContext:
    """Another cell between some of them; None: no such path."""
    ends = {frozenset((gpu_id(a), gpu_id(b))): kind for (a, b), kind in kinds.items()}
    paths = [
        msgspec.structs.replace(path, kind=ends.get(frozenset((path.a, path.b)), path.kind))
        for path in context.topology.paths
        if ends.get(frozenset((path.a, path.b)), "") is not None
    ]
    return topology(context, paths=paths)


@pytest.mark.parametrize(
    ("context", "expected"),
    [
        (matrix([7]), [7]),
        (matrix([2, 7]), [2, 7]),
        (matrix([2, 3, 7]), []),
        (matrix([3], gpus=4), [3]),
        (matrix([2], gpus=3), []),
        (matrix([]), []),
        (matrix([], "SYS"), []),
        (matrix([7], "NV8"), [7]),
        (matrix([7], "NV7"), []),
        (change(matrix([7]), {(0, 1): "NV17"}), []),
        (change(matrix([7]), {(0, 1): "SYS"}), []),
        (change(matrix([7]), {(0, 7): None}), []),
        (probe(matrix([7]), "pci", "ok"), []),
        (changed_gpu(matrix([7]), 7, mig=Mig(current=True)), []),
        (changed_gpu(matrix([7]), 7, mig=Mig(current=False)), [7]),
        (changed_gpu(matrix([7]), 7, name="NVIDIA H200"), []),
    ],
)
def test_a_gpu_outside_the_matrix(context: RuleContext, expected: Sequence[int]) -> None:
    found = fails(rule, context)
    assert [f"gpu:{gpu_id(n)}" for n in expected] == [fault.subject for fault in found]
    assert all((fault.confidence, fault.situation) == ("low", "matrix") for fault in found)


def test_what_it_states() -> None:
    """The cells of its row, and what the others have."""
    context = change(matrix([7]), {(0, 7): "NODE"})
    beside = Path(a=gpu_id(7), b=nic_id(0), kind="PIX", source="nvidia-smi")
    (fault,) = fails(rule, topology(context, paths=[*context.topology.paths, beside]))
    assert "the others are joined by NV18" in str(fault.summary)
    assert [("GPU7 - GPU0", "NODE"), *((f"GPU7 - GPU{n}", "SYS") for n in range(1, 7))] == [
        (row.what, row.value) for row in fault.evidence
    ]
