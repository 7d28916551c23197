"""IP addresses and GIDs of RoCE ports."""

from __future__ import annotations

import msgspec
import pytest

from agent.model.nic import Gid
from agent.rules.catalogue import every_rule
from agent.rules.engine import judge
from agent.rules.roce.addresses import roce_gid_index_wrong, roce_gid_v1_only, roce_nccl_gid_default_old, roce_no_ip
from agent.rules.roce.interfaces import roce_netdev_missing
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import (
    answers,
    changed_netdev,
    changed_nic,
    changed_nics,
    changed_port,
    changed_ports,
    fails,
    function,
    kinds,
    nic_id,
    node,
    probe,
    server,
    software,
    topology,
)
from tests.agent.rules.nccl_case import changed, jobs_hidden, lines, said, unread, using
from tests.agent.rules.roce.qos import NIC, NOT_ACTIVE, PORT, ROLES, UNSEEN

# roce-no-ip, roce-netdev-missing: when they fire, and every guard alone.

LOCAL = [Gid(index=n, gid="FE80::1", type=kind, netdev="eth1") for n, kind in enumerate(("IB/RoCE v1", "RoCE v2"))]
GLOBAL = Gid(index=2, gid="2001:0db8:0000:0000:0000:0000:0000:0001", type="RoCE v2", netdev="eth1.100")


def no_ip():
    return changed_netdev(changed_port(server(ethernet=True), 1, gids=LOCAL), 1, addresses=["fe80::1/64"])


def test_a_rail_without_an_address_is_a_warning() -> None:
    """Addresses and GIDs are the evidence."""
    (fault,) = fails(roce_no_ip, no_ip())

    assert (PORT, "warning", "", "high") == (fault.subject, fault.severity, fault.cause, fault.confidence)
    assert "2 GIDs, all link-local: eth1 has no IPv4 and no global IPv6 address" == fault.summary
    assert ["fe80::1/64", "FE80::1", "FE80::1"] == [row.value for row in fault.evidence]
    assert ["info"] == [f.severity for f in fails(roce_no_ip, changed_nic(no_ip(), 1, role="storage"))]


def test_a_fabric_of_link_local_addresses_is_one_info() -> None:
    """All ports alike; a single one, too."""
    (fault,) = fails(roce_no_ip, changed_ports(server(ethernet=True), gids=LOCAL))
    (alone,) = fails(roce_no_ip, changed_ports(server(1, ethernet=True), gids=LOCAL))

    assert ("node", "info", "all", "low") == (fault.subject, fault.severity, fault.cause, fault.confidence)
    assert "info" == alone.severity


def test_without_roce_v2_the_graver_rule_stands() -> None:
    """One finding for one rail: an info explains no warning."""
    _, findings, _ = judge(changed_port(server(ethernet=True), 1, gids=LOCAL[:1]), every_rule())

    assert [("roce-no-ip", [f"roce-gid-v1-only {PORT}"])] == [(f.rule, f.absorbs) for f in findings]


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        *ROLES,
        NOT_ACTIVE,
        *UNSEEN,
        pytest.param(lambda c: changed_port(c, 1, gids=[*LOCAL, GLOBAL]), Pass, id="an address on a VLAN"),
        pytest.param(lambda c: changed_port(c, 1, gids_known=False), Unknown, id="table not read"),
        pytest.param(lambda c: changed_port(c, 1, gids=[]), Unknown, id="table empty"),
    ],
)
def test_a_guard_keeps_no_ip_silent(circumstance, kind) -> None:
    """The firing case and this circumstance: no fault, and the answer that the page promises."""
    context = circumstance(no_ip())
    (answer,) = answers(roce_no_ip, context, PORT)

    assert isinstance(answer, kind), answer
    assert [] == fails(roce_no_ip, context)
    assert {NotApplicable} == kinds(roce_no_ip, server())


def lost(**port):
    return changed_port(server(ethernet=True), 1, **({"netdevs": [], "gids": [], "state": "DOWN"} | port))


def test_an_interface_that_nobody_has_is_a_warning() -> None:
    """No GID is left; the port is down without it, and roce-link-down does not say it again."""
    (fault,) = fails(roce_netdev_missing, lost())
    _, findings, _ = judge(lost(), every_rule())

    assert (PORT, "warning", "lost") == (fault.subject, fault.severity, fault.cause)
    assert ["none", "0"] == [row.value for row in fault.evidence]
    assert {NIC, f"{NIC}/1"} <= fault.ids
    assert ["roce-netdev-missing"] == [f.rule for f in findings if f.severity != "info"]
    assert ["info"] == [f.severity for f in fails(roce_netdev_missing, changed_nic(lost(), 1, role="storage"))]


def test_an_interface_in_a_container_is_an_info() -> None:
    """Its GIDs are still there; the driver may tell its name, which is of no interface here."""
    (fault,) = fails(roce_netdev_missing, lost(gids=LOCAL, netdevs=["net1"], state="ACTIVE"))

    assert ("info", "elsewhere") == (fault.severity, fault.cause)
    assert ["net1", "2"] == [row.value for row in fault.evidence]


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        *ROLES[:5],
        *ROLES[6:],
        pytest.param(lambda c: function(c, NIC, state="asleep"), NotApplicable, id="asleep"),
        pytest.param(lambda c: software(c, rdma_namespaces="exclusive"), NotApplicable, id="exclusive namespaces"),
        pytest.param(lambda c: node(c, container="docker"), NotApplicable, id="a scan in a container"),
        pytest.param(lambda c: changed_ports(c, netdevs=[]), Unknown, id="no interface at all"),
        pytest.param(lambda c: changed_port(c, 1, gids_known=False), Unknown, id="GIDs not read"),
        pytest.param(lambda c: changed_port(c, 1, netdevs=["eth1"]), Pass, id="it is here"),
    ],
)
def test_a_guard_keeps_a_missing_interface_silent(circumstance, kind) -> None:
    """The firing case and this circumstance: no fault, and the answer that the page promises."""
    context = circumstance(lost())
    (answer,) = answers(roce_netdev_missing, context, PORT)

    assert isinstance(answer, kind), answer
    assert [] == fails(roce_netdev_missing, context)


# roce-gid-index-wrong: an index that is empty, or of RoCE v1.

KEY = "NCCL_IB_GID_INDEX"


def roce(index: str = "3", **where):
    return said(server(ethernet=True), **(where or {"system": {KEY: index}}))


def with_gids(n: int, keep):
    """Rail n with only some of its GIDs."""
    context = roce()
    return changed_port(context, n, gids=[gid for gid in context.topology.nics[n].ports[0].gids if keep(gid)])


@pytest.mark.parametrize(
    ("index", "cause"),
    [("0", "v1"), ("1", None), ("2", "v1"), ("3", None), ("4", "empty"), ("x", "v1"), ("255", "empty")],
)
def test_the_index_of_every_rail(index: str, cause: str | None) -> None:
    """Alike on all: one finding for the node."""
    assert ([("node", "error", cause)] if cause else []) == [
        (fault.subject, fault.severity, fault.cause) for fault in fails(roce_gid_index_wrong, roce(index))
    ]


def test_one_rail_without_an_address() -> None:
    """Its index 3 is empty: the finding is of the port, and names what would do."""
    (fault,) = fails(roce_gid_index_wrong, with_gids(1, lambda gid: gid.index < 2))

    assert (PORT, "error", "empty") == (fault.subject, fault.severity, fault.cause)
    assert "index 3 is empty here" in fault.summary
    assert "here 1" in fault.remedy
    assert nic_id(1) in fault.ids


def test_in_a_job_it_is_a_warning() -> None:
    """Its table may be another one."""
    assert ["warning"] == [fault.severity for fault in fails(roce_gid_index_wrong, roce(job={KEY: "2"}))]


@pytest.mark.parametrize(
    ("context", "kind"),
    [
        (changed_port(roce("2"), 1, gids_known=False), Unknown),
        (changed_port(roce("2"), 1, gids=[]), Unknown),
        (changed_nic(roce("2"), 1, state="other_namespace"), Unknown),
        (changed_nic(roce("2"), 1, role="storage"), NotApplicable),
        (changed_nic(roce("2"), 1, driver="efa"), NotApplicable),
        (changed_port(roce("2"), 1, state="DOWN"), NotApplicable),
        (roce("3"), Pass),
    ],
)
def test_a_guard_keeps_gid_index_wrong_silent(context, kind) -> None:
    """The firing case and this circumstance."""
    assert [kind] == [type(answer) for answer in answers(roce_gid_index_wrong, context, PORT)]


def test_types_that_could_not_be_read() -> None:
    """Nobody knows which RoCE it is."""
    context = roce("2")
    rows = [msgspec.structs.replace(gid, type=None) for gid in context.topology.nics[1].ports[0].gids]

    assert [Unknown] == [
        type(answer) for answer in answers(roce_gid_index_wrong, changed_port(context, 1, gids=rows), PORT)
    ]


@pytest.mark.parametrize(
    ("context", "kind"),
    [
        (said(server(ethernet=True)), NotApplicable),
        (roce("-1"), NotApplicable),
        (roce(""), NotApplicable),
        (unread(server(ethernet=True)), Unknown),
        (probe(said(server(ethernet=True)), "nccl", "failed", "x"), Unknown),
        (said(server(), {KEY: "2"}), NotApplicable),
    ],
)
def test_not_set_or_no_roce(context, kind) -> None:
    """One answer for the node."""
    assert [kind] == [type(answer) for answer in roce_gid_index_wrong.check(context)]


def test_it_stands_for_the_old_default() -> None:
    """The map says so."""
    assert ("roce-nccl-gid-default-old",) == roce_gid_index_wrong.absorbs
    assert roce_nccl_gid_default_old.name in roce_gid_index_wrong.absorbs
    assert judge(roce("2"), [roce_gid_index_wrong])[2].verdict == "error"


def test_of_several_values_one_that_is_wrong_is_enough() -> None:
    """A job took a good one; all others get that of the file."""
    (fault,) = fails(roce_gid_index_wrong, roce(job={KEY: "3"}, system={KEY: "2"}))

    assert ("node", "error", "v1") == (fault.subject, fault.severity, fault.cause)


# roce-gid-v1-only: when it fires, when it must not, and every guard alone.

LOCAL_V1, ROUTED = "fe80:0000:0000:0000:0000:0000:0000:0001", "0000:0000:0000:0000:0000:ffff:0a00:0001"


def with_rows(*rows: tuple[str, str | None]) -> list[Gid]:
    return [Gid(index=n, gid=gid, type=kind, netdev="eth1") for n, (gid, kind) in enumerate(rows)]


V1 = with_rows((LOCAL_V1, "IB/RoCE v1"), (ROUTED, "IB/RoCE v1"))


def only_v1():
    return changed_port(server(ethernet=True), 1, gids=V1)


def test_a_port_without_v2_is_an_error() -> None:
    """The table is the evidence."""
    (fault,) = fails(roce_gid_v1_only, only_v1())

    assert (PORT, "mlx5_1/1 (eth1)", "error", "") == (fault.subject, fault.label, fault.severity, fault.cause)
    assert [f"{LOCAL_V1} IB/RoCE v1", f"{ROUTED} IB/RoCE v1"] == [row.value for row in fault.evidence]
    assert "/sys/class/infiniband/mlx5_1/ports/1/gid_attrs/types/0" == fault.evidence[0].source
    assert "passes no router" in fault.impact


def test_storage_is_a_warning_and_a_flat_network_info() -> None:
    """Less grave, in two ways."""
    flat = changed_port(only_v1(), 1, gids=V1[:1])

    assert ["warning"] == [
        fault.severity for fault in fails(roce_gid_v1_only, changed_nic(only_v1(), 1, role="storage"))
    ]
    assert [("info", "flat")] == [(fault.severity, fault.cause) for fault in fails(roce_gid_v1_only, flat)]


def test_the_same_on_every_port_is_one_finding() -> None:
    """Somebody switched it off."""
    (fault,) = fails(roce_gid_v1_only, changed_ports(server(ethernet=True), gids=V1))

    assert ("node", "error") == (fault.subject, fault.severity)


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        pytest.param(
            lambda c: changed_port(c, 1, gids=[*V1, *with_rows((LOCAL_V1, "RoCE v2"))]), Pass, id="fe80 of v2 is enough"
        ),
        pytest.param(lambda c: changed_port(c, 1, gids_known=False), Unknown, id="table not read"),
        pytest.param(lambda c: changed_port(c, 1, gids=[]), Unknown, id="table empty"),
        pytest.param(lambda c: changed_port(c, 1, gids=with_rows((ROUTED, None))), Unknown, id="types not read"),
        pytest.param(lambda c: changed_nic(c, 1, state="other_namespace"), Unknown, id="another namespace"),
        pytest.param(lambda c: changed_port(c, 1, state="DOWN"), NotApplicable, id="not active"),
        pytest.param(lambda c: changed_nic(c, 1, node_type="RNIC"), NotApplicable, id="iWARP"),
        pytest.param(lambda c: changed_nic(c, 1, driver="efa"), NotApplicable, id="EFA"),
        pytest.param(lambda c: changed_nic(c, 1, software=True), NotApplicable, id="software"),
        pytest.param(lambda c: changed_nic(c, 1, limited="mezz internal"), NotApplicable, id="fabric manager's"),
        pytest.param(lambda c: changed_nic(c, 1, role="unused"), NotApplicable, id="unused"),
    ],
)
def test_a_guard_keeps_gid_v1_only_silent(circumstance, kind) -> None:
    """The firing case and this circumstance: no fault, and the answer that the page promises."""
    (answer,) = answers(roce_gid_v1_only, circumstance(only_v1()), PORT)

    assert isinstance(answer, kind), answer


def test_infiniband_is_not_applicable() -> None:
    """Its GIDs have no version."""
    context = changed_ports(
        server(), gids=[msgspec.structs.replace(gid, type="IB/RoCE v1") for gid in V1], gids_known=True
    )

    assert {NotApplicable} == kinds(roce_gid_v1_only, context)


# roce-nccl-gid-default-old: a running NCCL that takes GID 0.

LIBRARY = "/usr/lib/libnccl.so.2.18.3"


def old_nccl(version: str | None = "2.18.3", ethernet: bool = True):
    return using(server(ethernet=ethernet), LIBRARY, version=version)


def with_gid_0(context, **changes):
    """The same with the first GID of every rail changed."""
    for n, nic in enumerate(context.topology.nics):
        first, *others = nic.ports[0].gids
        context = changed_port(context, n, gids=[msgspec.structs.replace(first, **changes), *others])
    return context


@pytest.mark.parametrize(
    ("version", "fires"), [("2.18.3", True), ("2.20.5", True), ("2.21.5", False), ("2.21", False), ("2.9.9", True)]
)
def test_the_version_decides(version: str, fires: bool) -> None:
    """Below 2.21; versions as numbers."""
    faults = fails(roce_nccl_gid_default_old, old_nccl(version))

    assert ["node"] * fires == [fault.subject for fault in faults]
    assert fires or [Pass("node")] == list(roce_nccl_gid_default_old.check(old_nccl(version)))


def test_what_is_told() -> None:
    """A warning with the library and GID 0."""
    (fault,) = fails(roce_nccl_gid_default_old, old_nccl())

    assert "warning" == roce_nccl_gid_default_old.severity
    assert f"{LIBRARY} (2.18.3)" == fault.evidence[0].value
    assert "GID 0 of mlx5_0/1 (eth0)" == fault.evidence[1].what


@pytest.mark.parametrize(
    ("context", "kind"),
    [
        (changed(old_nccl(), settings=lines("/etc/nccl.conf", "system", {"NCCL_IB_GID_INDEX": "3"})), Pass),
        (with_gid_0(old_nccl(), type="RoCE v2"), Pass),
        (with_gid_0(old_nccl(), type=None), Unknown),
        (with_gid_0(old_nccl(), index=9), Unknown),
        (old_nccl(None), Unknown),
        (unread(old_nccl()), Unknown),
        (jobs_hidden(old_nccl()), Unknown),
        (changed(old_nccl(), jobs_unread=1), Unknown),
        (
            changed(
                old_nccl(),
                libraries=[type(r)(path=r.path, version=r.version) for r in old_nccl().software.nccl.libraries],
            ),
            NotApplicable,
        ),
        (old_nccl(ethernet=False), NotApplicable),
        (changed_nics(old_nccl(), role="storage"), NotApplicable),
        (probe(changed_nics(old_nccl(), ports=[]), "rdma", "failed", "x"), Unknown),
        (probe(topology(old_nccl(), nics=[]), "rdma", "failed", "x"), NotApplicable),
        (changed_port(with_gid_0(old_nccl(), type="RoCE v2"), 1, gids_known=False), Unknown),
    ],
)
def test_silent(context, kind) -> None:
    """Set, new, installed only, not known."""
    assert [kind] == [type(answer) for answer in roce_nccl_gid_default_old.check(context)]
