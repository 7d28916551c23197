"""RoCE machines with something done to them, and what keeps every rule about a RoCE port silent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from agent.model.nic import Netdev
from agent.model.report import CountersWindow
from agent.rules.context import RuleContext, Settings
from agent.rules.roce.qos_path import QosPath, qos_paths
from agent.rules.rule import NotApplicable, Result, Rule, Unknown
from tests.agent.rules.build import (
    answers,
    changed_netdev,
    changed_nic,
    changed_port,
    fails,
    function,
    nccl,
    nic_id,
    server,
    software,
    topology,
    virtual,
)

NIC = nic_id(1)
PORT, NETDEV = f"port:{NIC}/1", f"netdev:{NIC}"


def roce(gpus: int = 4) -> RuleContext:
    """The healthy RoCE node."""
    return server(gpus, ethernet=True)


def dcb(context: RuleContext, n: int = 1, **changes: Any) -> RuleContext:
    """The same machine with DCB of rail n changed."""
    netdev = context.topology.netdevs[n]
    assert netdev.qos
    return changed_netdev(context, n, qos=msgspec.structs.replace(netdev.qos, **changes))


def dcb_everywhere(context: RuleContext, **changes: Any) -> RuleContext:
    """The same machine with DCB of all rails changed."""
    for n in range(len(context.topology.netdevs)):
        context = dcb(context, n, **changes)
    return context


def netdevs(context: RuleContext, **changes: Any) -> RuleContext:
    """The same machine with all interfaces changed."""
    for n in range(len(context.topology.netdevs)):
        context = changed_netdev(context, n, **changes)
    return context


def nccl_sets(context: RuleContext, **settings: str) -> RuleContext:
    """The same machine with another /etc/nccl.conf."""
    return software(context, nccl=nccl(**settings))


def facts(context: RuleContext, **declared: Any) -> RuleContext:
    """The same machine with facts that the operator declares."""
    return replace(context, settings=Settings(facts=declared))


def limited(context: RuleContext, name: str, value: float) -> RuleContext:
    """The same machine with a limit of the operator's."""
    return replace(context, settings=Settings(thresholds={name: value}))


def window(context: RuleContext, moved: Mapping[str, Mapping[str, int]], seconds: float = 600.0) -> RuleContext:
    """The same machine with counters that moved since an earlier sample."""
    result = CountersWindow(seconds=seconds, moved={subject: dict(row) for subject, row in moved.items()})
    return replace(context, window=result)


def traffic(
    context: RuleContext, priority: int, n: int = 1, gbyte: float = 20.0, rdma: float = 1.0, way: str = "tx"
) -> RuleContext:
    """The same machine with rail n's bytes of the window in one priority, a share of them RDMA."""
    netdev = context.topology.netdevs[n]
    sent = {f"{way}_prio{priority}_bytes": int(gbyte * 1e9), "tx_vport_rdma_unicast_bytes": int(gbyte * rdma * 1e9)}
    context = changed_netdev(context, n, counters={**netdev.counters, "tx_vport_rdma_unicast_bytes": 0})
    return window(context, {f"netdev:{netdev.id}": sent})


def lost(context: RuleContext, n: int = 1, counter: str = "packet_seq_err", by: int = 5) -> RuleContext:
    """The same machine with lost packets counted at rail n in the window."""
    nic = context.topology.nics[n]
    ports = [msgspec.structs.replace(port, hw_counters={counter: 100}) for port in nic.ports]
    nics = [msgspec.structs.replace(each, ports=ports) if each.id == nic.id else each for each in context.topology.nics]
    context = replace(context, topology=msgspec.structs.replace(context.topology, nics=nics))
    return window(context, {f"port:{nic.id}/1": {counter: by}})


def vlan(context: RuleContext, egress: str | None) -> RuleContext:
    """Rail 1 with its routable addresses on a VLAN, trust in PCP."""
    row = {"id": 5, "parent": "eth1"} | ({} if egress is None else {"egress_map": egress})
    tagged = msgspec.structs.replace(context.topology.netdevs[1], id="eth1.5", label="eth1.5", vlan=row, qos=None)
    context = topology(context, netdevs=[*context.topology.netdevs, tagged])
    gids = [
        msgspec.structs.replace(gid, netdev="eth1.5") if not gid.gid.startswith("fe80") else gid
        for gid in context.topology.nics[1].ports[0].gids
    ]
    return dcb(changed_port(context, 1, gids=gids), trust="pcp")


def of(context: RuleContext, nic: str = NIC) -> QosPath:
    """The chain of one rail's port."""
    (result,) = [
        qos_path for qos_path in qos_paths(context) if isinstance(qos_path, QosPath) and qos_path.each.nic.id == nic
    ]
    return result


def silent(rule: Rule, context: RuleContext, kind: type[Result]) -> None:
    """No fault anywhere, and this answer for rail 1."""
    (answer,) = answers(rule, context, PORT)

    assert isinstance(answer, kind), answer
    assert [] == fails(rule, context)


ROLES = [
    pytest.param(lambda c: changed_nic(c, 1, software=True), NotApplicable, id="software"),
    pytest.param(lambda c: changed_nic(c, 1, limited="mezz internal"), NotApplicable, id="fabric manager's"),
    pytest.param(lambda c: changed_nic(c, 1, role="management"), NotApplicable, id="management"),
    pytest.param(lambda c: changed_nic(c, 1, driver="efa"), NotApplicable, id="EFA"),
    pytest.param(lambda c: function(c, NIC, physical_function="0000:15:00.0"), NotApplicable, id="virtual function"),
    pytest.param(lambda c: function(c, NIC, state="gone"), NotApplicable, id="gone"),
    pytest.param(lambda c: changed_port(c, 1, state=None), Unknown, id="state not read"),
]
NOT_ACTIVE = pytest.param(lambda c: changed_port(c, 1, state="DOWN"), NotApplicable, id="not active")
PROVIDERS = [
    pytest.param(virtual, NotApplicable, id="virtual machine"),
    pytest.param(lambda c: changed_nic(c, 1, virtual_function=True), NotApplicable, id="virtual function by its id"),
]
UNSEEN = [
    pytest.param(lambda c: changed_nic(c, 1, state="other_namespace"), Unknown, id="another namespace"),
    pytest.param(lambda c: changed_port(c, 1, netdevs=[]), Unknown, id="no interface in sight"),
]


def bonded(context: RuleContext, mode: str = "802.3ad", members: tuple[int, ...] = (1,)) -> RuleContext:
    """The same machine with the interfaces of these rails in a bond, which is what their ports are above."""
    for n in members:
        context = changed_port(changed_netdev(context, n, master="bond0"), n, netdevs=["bond0"])
    above = Netdev(id="bond0", label="bond0", mtu=4200, operstate="up", speed_gbit_s=800.0, bond={"mode": mode})
    return topology(context, netdevs=[*context.topology.netdevs, above])
