"""What keeps every rule about a RoCE port silent, whatever is wrong with it: the circumstance and the answer."""

from __future__ import annotations

import pytest

from agent.model.nic import Netdev
from agent.rules.context import RuleContext
from agent.rules.rule import NotApplicable, Unknown
from tests.agent.rules.build import changed_netdev, changed_nic, changed_port, function, nic_id, topology, virtual

NIC = nic_id(1)
PORT, NETDEV = f"port:{NIC}/1", f"netdev:{NIC}"

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


def bonded(case: RuleContext, mode: str = "802.3ad", members: tuple[int, ...] = (1,)) -> RuleContext:
    """The same machine with the interfaces of these rails in a bond, which is what their ports are above."""
    for n in members:
        case = changed_port(changed_netdev(case, n, master="bond0"), n, netdevs=["bond0"])
    above = Netdev(id="bond0", label="bond0", mtu=4200, operstate="up", speed_gbit_s=800.0, bond={"mode": mode})
    return topology(case, netdevs=[*case.topology.netdevs, above])
