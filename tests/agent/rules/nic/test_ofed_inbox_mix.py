"""ofed-inbox-mix: when it fires, and every guard alone."""

from __future__ import annotations

import pytest

from agent.model.node import Module
from agent.rules.nic.adapters import ofed_inbox_mix as rule
from agent.rules.rule import Fail, NotApplicable, Pass, Unknown
from tests.agent.rules.build import fails, kinds, probe, server, software, topology


def stack(**versions: str | None):
    return software(server(), modules=[Module(name=name, version=version) for name, version in versions.items()])


def test_two_releases_are_one_warning() -> None:
    """Which module is of which."""
    (fault,) = fails(rule, stack(mlx5_core="24.10-1.1.4", ib_core="23.10-0.5.5", mlx5_ib="24.10-1.1.4"))

    assert ("node", None) == (fault.subject, fault.severity)
    assert fault.summary.endswith("are loaded: 23.10-0.5.5: ib_core; 24.10-1.1.4: mlx5_core, mlx5_ib")
    assert ["/sys/module/ib_core/version"] == [row.source for row in fault.evidence if row.value == "23.10-0.5.5"]


@pytest.mark.parametrize(
    ("versions", "kind"),
    [
        ({"mlx5_core": "24.10-1.1.4", "ib_core": "24.10-1.1.4"}, Pass),
        ({"mlx5_core": "24.10-1.1.4", "ib_core": None}, NotApplicable),
        ({"mlx5_core": "24.10-1.1.4", "ib_core": "5.0-0"}, NotApplicable),
        ({"mlx5_core": "24.10-1.1.4", "gdrdrv": "23.10-0.5.5"}, NotApplicable),
        ({"mlx5_core": "24.10-1.1.4", "ib_core": "23.10-0.5.5.0.1"}, Fail),
        ({}, NotApplicable),
    ],
)
def test_only_releases_of_ofed_are_compared(versions, kind) -> None:
    """The kernel's own modules have none."""
    assert {kind} == kinds(rule, stack(**versions))


def test_modules_that_were_not_read_are_unknown() -> None:
    """Where there are NICs; lsmod names no versions."""
    blind = probe(stack(), "modules", "denied", "EACCES")

    assert [Unknown("node", "modules: denied: EACCES")] == list(rule.check(blind))
    assert {NotApplicable} == kinds(rule, topology(blind, nics=[]))
    assert {NotApplicable} == kinds(rule, probe(blind, "lsmod", "ok"))
