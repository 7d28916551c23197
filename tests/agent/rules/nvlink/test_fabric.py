"""The NVLink fabric: unhealthy, incomplete, in several cliques; and every guard alone."""

from __future__ import annotations

import pytest

from agent.rules.nvlink.fabric import fabric_clique_mixed, fabric_incomplete, fabric_unhealthy, merge_gpus
from agent.rules.rule import Fail, NotApplicable, Pass
from tests.agent.rules.build import changed_gpu, fails, kinds
from tests.agent.rules.fabric import health, hgx, registration, tray
from tests.agent.rules.rows import NO_CLUSTER

# fabric-unhealthy: each word of the health, and every guard alone.


def made(n: int, **changes) -> Fail:
    """A fault of one GPU."""
    values = {"impact": "", "remedy": "", "evidence": (), "severity": "error", "summary": "it"} | changes
    return Fail(subject=f"gpu:{n}", label=f"GPU{n}", ids=frozenset({str(n)}), **values)


@pytest.mark.parametrize(
    ("faults", "judged", "subjects"),
    [
        ([], 0, []),
        ([made(0)], 1, ["gpu:0"]),
        ([made(0), made(1)], 2, ["node"]),
        ([made(0), made(1)], 3, ["gpu:0", "gpu:1"]),
        ([made(0), made(1, severity="warning")], 2, ["gpu:0", "gpu:1"]),
        ([made(0), made(1, cause="x")], 2, ["gpu:0", "gpu:1"]),
        ([made(0), made(1, summary="that")], 2, ["gpu:0", "gpu:1"]),
        ([made(0), made(1), made(2)], 3, ["node"]),
    ],
)
def test_the_same_of_all_is_one(faults, judged: int, subjects: list[str]) -> None:
    """Two at least, all that were judged, alike in all that is said."""
    answers = [*faults, *(Pass(f"gpu:{n}") for n in range(len(faults), judged))]
    assert subjects == [fault.subject for fault in merge_gpus(hgx(), answers)]


@pytest.mark.parametrize(("index", "command"), [(2, "nvidia-smi -q -i 2"), (None, "nvidia-smi -q")])
def test_the_command_names_the_gpu(index: int | None, command: str) -> None:
    """Where it has a number."""
    (fault,) = fails(fabric_unhealthy, changed_gpu(health(hgx(), 2, route_unhealthy="true"), 2, index=index))

    assert command == fault.evidence[0].source


# fabric-incomplete: when it fires, when it must not, and every guard alone.


def stuck(n: int | None = 2, state: str = "in_progress"):
    return registration(hgx(), n, state=state, status=None)


@pytest.mark.parametrize(("index", "command"), [(2, "nvidia-smi -q -i 2"), (None, "nvidia-smi -q")])
def test_the_command_names_the_gpu_fabric_incomplete(index: int | None, command: str) -> None:
    """Where it has a number."""
    (fault,) = fails(fabric_incomplete, changed_gpu(stuck(), 2, index=index))

    assert command == fault.evidence[0].source


# fabric-clique-mixed: when it fires, how grave it is, and every guard alone.


OTHER = "7b110000-0000-0000-0000-0000000000a1"


@pytest.mark.parametrize("uuid", [OTHER, NO_CLUSTER])
def test_another_cluster_is_an_error(uuid: str) -> None:
    """Or none, where the others have one."""
    (fault,) = fails(fabric_clique_mixed, registration(tray(), 2, cluster_uuid=uuid))

    assert ("error", "cluster") == (fault.severity, fault.cause)


def test_one_gpu_has_nothing_to_differ_from() -> None:
    """Not applicable."""
    assert {NotApplicable} == kinds(fabric_clique_mixed, hgx(1))


def test_two_agree_and_one_alone_says_nothing() -> None:
    """A pass where there was something to compare; no answer for the node where nothing registered."""
    nothing = registration(hgx(2), None, state="in_progress")

    assert [Pass("node")] == list(fabric_clique_mixed.check(hgx(2)))
    assert "node" not in {answer.subject for answer in fabric_clique_mixed.check(nothing)}
