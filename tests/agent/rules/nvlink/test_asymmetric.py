"""nvlink-asymmetric: when it fires, when it must not, and every guard alone."""

from __future__ import annotations

import msgspec
import pytest

from agent.model.gpu import Mig
from agent.rules.nvlink.links import nvlink_asymmetric as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import (
    answers,
    changed_gpu,
    changed_gpus,
    fails,
    function,
    gpu_id,
    models,
    server,
    topology,
)
from tests.agent.rules.nvlink.test_inactive import dead
from tests.agent.rules.rows import B200, H100_PCIE, nvlinks

GPU = gpu_id(2)


def fewer():
    """GPU 2 has 16 links where the others have 18; the driver calls none inactive."""
    return changed_gpu(server(), 2, links=nvlinks(16))


def test_a_gpu_with_fewer_links_than_most_is_an_error() -> None:
    """However the driver names the missing ones."""
    (fault,) = fails(rule, fewer())

    assert (f"gpu:{GPU}", "GPU2", "error", "") == (
        fault.subject,
        fault.label,
        fault.severity or rule.severity,
        fault.cause,
    )
    assert "16 active NVLinks; the other GPUs of its model have 18" == fault.summary
    assert fault.impact.startswith("11%")


def test_without_a_majority_the_highest_number_is_due() -> None:
    """Two GPUs, 18 and 16."""
    (fault,) = fails(rule, changed_gpu(server(2), 1, links=nvlinks(16)))

    assert f"gpu:{gpu_id(1)}" == fault.subject


def test_one_gpu_with_more_than_most_shows_what_the_others_lost() -> None:
    """A majority excuses nothing."""
    case = changed_gpu(changed_gpus(server(), links=nvlinks(16)), 2, links=nvlinks(18))

    assert 3 == len(fails(rule, case))


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        pytest.param(lambda c: models(c, H100_PCIE), NotApplicable, id="cards with bridges"),
        pytest.param(lambda c: function(c, GPU, device=B200), NotApplicable, id="the only one of its model"),
        pytest.param(lambda c: changed_gpu(c, 2, mig=Mig(current=True)), NotApplicable, id="MIG"),
        pytest.param(lambda c: topology(c, bandwidth_mode="half"), NotApplicable, id="bandwidth mode"),
        pytest.param(lambda c: changed_gpu(c, 2, links=dead(2, "unknown")), Unknown, id="state not known"),
        pytest.param(lambda c: changed_gpu(c, 2, links=dead(2, "sleep")), Pass, id="asleep is active"),
        pytest.param(lambda c: changed_gpu(c, 2, links_known=False), Unknown, id="links not known"),
    ],
)
def test_a_guard_keeps_it_silent(circumstance, kind) -> None:
    """The firing case and this circumstance: no fault, and the answer that the page promises."""
    (answer,) = answers(rule, circumstance(fewer()), f"gpu:{GPU}")

    assert isinstance(answer, kind), answer


def test_it_is_about_the_gpu_and_its_function() -> None:
    """Both are places, where they have different ids."""
    case = fewer()
    renamed = msgspec.structs.replace(case.topology.gpus[2], id="GPU-2")
    (fault,) = fails(rule, topology(case, gpus=[*case.topology.gpus[:2], renamed, case.topology.gpus[3]]))

    assert {"GPU-2", GPU} == fault.places
