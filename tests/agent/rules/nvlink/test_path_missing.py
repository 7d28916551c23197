"""nvlink-path-missing: when it fires, when it must not, and every guard alone."""

from __future__ import annotations

from itertools import combinations

import msgspec
import pytest

from agent.model.gpu import Mig
from agent.rules.nvlink.paths import nvlink_path_missing as rule
from agent.rules.rule import Pass, Unknown
from tests.agent.rules.build import (
    answers,
    changed_gpu,
    changed_gpus,
    fails,
    function,
    gpu_id,
    kinds,
    models,
    topology,
    virtual,
)
from tests.agent.rules.fabric import hgx
from tests.agent.rules.rows import B200, H100_PCIE

PAIR = f"pair:{gpu_id(1)}+{gpu_id(2)}"


def cut(context, pairs, kind: str | None = "NODE", word: str | None = "NS", source: str = "nvml"):
    """The same machine where some pairs have no NVLink."""
    ends = [{gpu_id(a), gpu_id(b)} for a, b in pairs]
    paths = [
        msgspec.structs.replace(path, kind=kind, source=source) if {path.a, path.b} in ends else path
        for path in context.topology.paths
    ]
    context = topology(context, paths=paths)
    for a, b in [*pairs, *((b, a) for a, b in pairs)]:
        words = {} if word is None else {"read": "OK", "write": "OK", "nvlink": word}
        context = changed_gpu(context, a, p2p={**(context.topology.gpus[a].p2p or {}), gpu_id(b): words})
    return context


def fired():
    return cut(hgx(), [(1, 2)])


def test_a_pair_without_nvlink_is_critical() -> None:
    """Its links are up."""
    (fault,) = fails(rule, fired())

    assert (PAIR, "GPU1 - GPU2") == (fault.subject, fault.label)
    assert "NODE instead of NV18" in fault.summary
    assert ["NODE", "NS"] == [row.value for row in fault.evidence]


def test_a_gpu_that_none_reaches_is_one_finding_and_so_are_all() -> None:
    """The others still reach each other."""
    alone = cut(hgx(), [(2, n) for n in range(8) if n != 2])
    every = cut(hgx(), list(combinations(range(8), 2)))

    assert [f"gpu:{gpu_id(2)}"] == [fault.subject for fault in fails(rule, alone)]
    assert ["node"] == [fault.subject for fault in fails(rule, every)]
    assert gpu_id(3) not in fails(rule, alone)[0].ids


def blind(pairs, gpus: int = 8, nv: str = "NV18", current: bool | None = False):
    """A saved matrix, and nothing of links: these pairs have no NVLink."""
    context = cut(hgx(gpus), pairs, word=None, source="nvidia-smi")
    paths = [msgspec.structs.replace(p, kind=nv) if p.kind == "NV18" else p for p in context.topology.paths]
    context = changed_gpus(topology(context, paths=paths), links=[], links_known=False, mig=Mig(current=current))
    return changed_gpus(context, p2p=None)


ALONE = [(2, n) for n in range(8) if n != 2]


def test_a_matrix_alone_tells_of_a_gpu_that_none_reaches() -> None:
    """What its links are nobody told."""
    (fault,) = fails(rule, blind(ALONE))
    (eight,) = fails(rule, blind(ALONE, nv="NV8"))

    assert f"gpu:{gpu_id(2)}" == fault.subject == eight.subject
    assert fault.summary.endswith("NODE instead of NV18, as others have; their links were not reported")
    assert "instead of NV8, as" in eight.summary


@pytest.mark.parametrize(
    "context",
    [
        pytest.param(blind(ALONE, current=None), id="MIG mode not told"),
        pytest.param(changed_gpus(blind(ALONE), mig=None), id="nothing of MIG told"),
        pytest.param(blind(ALONE, nv="NV7"), id="a mesh may have gaps"),
        pytest.param(virtual(blind(ALONE)), id="virtual machine"),
        pytest.param(topology(blind(ALONE), bandwidth_mode="half"), id="bandwidth mode"),
        pytest.param(changed_gpus(blind(ALONE), nvlink_bandwidth_mode="min"), id="bandwidth mode of the GPUs"),
        pytest.param(models(blind(ALONE), H100_PCIE), id="cards"),
        pytest.param(blind(list(combinations(range(8), 2))), id="no NVLink at all"),
        pytest.param(function(blind(ALONE), gpu_id(2), device=B200), id="the only one of its model"),
    ],
)
def test_a_matrix_alone_may_mean_another_thing(context) -> None:
    """Unknown of the GPU that no other reaches."""
    assert [] == fails(rule, context)
    assert [Unknown] == [type(answer) for answer in answers(rule, context, f"gpu:{gpu_id(2)}")]


def test_two_gpus_of_a_matrix_are_joined() -> None:
    """No third of their model."""
    assert {Pass} == kinds(rule, blind([], gpus=2))


def test_two_gpus_are_a_pair() -> None:
    """No third to compare with."""
    assert [f"pair:{gpu_id(0)}+{gpu_id(1)}"] == [fault.subject for fault in fails(rule, cut(hgx(2), [(0, 1)]))]


def test_a_matrix_of_pci_paths_alone_is_unknown() -> None:
    """`topo -mp` shows no NVLink at all."""
    context = cut(hgx(), list(combinations(range(8), 2)), word=None, source="nvidia-smi")

    assert [] == fails(rule, context)
    assert Unknown in kinds(rule, context)


def test_three_gpus_are_a_board_and_two_are_not() -> None:
    """All pairs of three are one finding; two of three pairs are the GPU's; pairs of others stay pairs."""
    every = cut(hgx(3), list(combinations(range(3), 2)))
    alone = cut(hgx(3), [(2, 0), (2, 1)])
    mixed = cut(hgx(), [*((2, n) for n in range(8) if n != 2), (4, 5)])

    assert ["node"] == [fault.subject for fault in fails(rule, every)]
    assert [f"gpu:{gpu_id(2)}"] == [fault.subject for fault in fails(rule, alone)]
    assert {f"gpu:{gpu_id(2)}", f"pair:{gpu_id(4)}+{gpu_id(5)}"} == {f.subject for f in fails(rule, mixed)}


@pytest.mark.parametrize(("word", "told"), [(None, "not known"), ("U", "unknown"), ("NS", "NS")])
def test_the_driver_s_word_is_shown(word: str | None, told: str) -> None:
    """Also where it has none."""
    (fault,) = fails(rule, cut(hgx(), [(1, 2)], word=word, source="nvidia-smi"))

    assert told == fault.evidence[1].value
