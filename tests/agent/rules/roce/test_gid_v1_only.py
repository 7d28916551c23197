"""roce-gid-v1-only: when it fires, when it must not, and every guard alone."""

from __future__ import annotations

import msgspec
import pytest

from agent.model.nic import Gid
from agent.rules.roce.addresses import roce_gid_v1_only as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import answers, changed_nic, changed_port, changed_ports, fails, kinds, nic_id, server

NIC = nic_id(1)
PORT = f"port:{NIC}/1"
LOCAL, ROUTED = "fe80:0000:0000:0000:0000:0000:0000:0001", "0000:0000:0000:0000:0000:ffff:0a00:0001"


def gids(*rows: tuple[str, str | None]) -> list[Gid]:
    return [Gid(index=n, gid=gid, type=kind, netdev="eth1") for n, (gid, kind) in enumerate(rows)]


V1 = gids((LOCAL, "IB/RoCE v1"), (ROUTED, "IB/RoCE v1"))


def old():
    return changed_port(server(ethernet=True), 1, gids=V1)


def test_a_port_without_v2_is_an_error() -> None:
    """The table is the evidence."""
    (fault,) = fails(rule, old())

    assert (PORT, "mlx5_1/1 (eth1)", "error", "") == (fault.subject, fault.label, fault.severity, fault.cause)
    assert [f"{LOCAL} IB/RoCE v1", f"{ROUTED} IB/RoCE v1"] == [row.value for row in fault.evidence]
    assert "/sys/class/infiniband/mlx5_1/ports/1/gid_attrs/types/0" == fault.evidence[0].source
    assert "passes no router" in fault.impact


def test_storage_is_a_warning_and_a_flat_network_info() -> None:
    """Less grave, in two ways."""
    flat = changed_port(old(), 1, gids=V1[:1])

    assert ["warning"] == [fault.severity for fault in fails(rule, changed_nic(old(), 1, role="storage"))]
    assert [("info", "flat")] == [(fault.severity, fault.cause) for fault in fails(rule, flat)]


def test_the_same_on_every_port_is_one_finding() -> None:
    """Somebody switched it off."""
    (fault,) = fails(rule, changed_ports(server(ethernet=True), gids=V1))

    assert ("node", "error") == (fault.subject, fault.severity)


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        pytest.param(
            lambda c: changed_port(c, 1, gids=[*V1, *gids((LOCAL, "RoCE v2"))]), Pass, id="fe80 of v2 is enough"
        ),
        pytest.param(lambda c: changed_port(c, 1, gids_known=False), Unknown, id="table not read"),
        pytest.param(lambda c: changed_port(c, 1, gids=[]), Unknown, id="table empty"),
        pytest.param(lambda c: changed_port(c, 1, gids=gids((ROUTED, None))), Unknown, id="types not read"),
        pytest.param(lambda c: changed_nic(c, 1, state="other_namespace"), Unknown, id="another namespace"),
        pytest.param(lambda c: changed_port(c, 1, state="DOWN"), NotApplicable, id="not active"),
        pytest.param(lambda c: changed_nic(c, 1, node_type="RNIC"), NotApplicable, id="iWARP"),
        pytest.param(lambda c: changed_nic(c, 1, driver="efa"), NotApplicable, id="EFA"),
        pytest.param(lambda c: changed_nic(c, 1, software=True), NotApplicable, id="software"),
        pytest.param(lambda c: changed_nic(c, 1, limited="mezz internal"), NotApplicable, id="fabric manager's"),
        pytest.param(lambda c: changed_nic(c, 1, role="unused"), NotApplicable, id="unused"),
    ],
)
def test_a_guard_keeps_it_silent(circumstance, kind) -> None:
    """The firing case and this circumstance: no fault, and the answer that the page promises."""
    (answer,) = answers(rule, circumstance(old()), PORT)

    assert isinstance(answer, kind), answer


def test_infiniband_is_not_applicable() -> None:
    """Its GIDs have no version."""
    case = changed_ports(
        server(), gids=[msgspec.structs.replace(gid, type="IB/RoCE v1") for gid in V1], gids_known=True
    )

    assert {NotApplicable} == kinds(rule, case)
