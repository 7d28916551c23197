"""Whether a node's Ethernet NICs are meant for RDMA at all."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.counters import port_counters
from agent.rules.cabling import place_on_bus
from agent.rules.context import RuleContext

_RAILS = 3  # cards that are near GPUs: a server for jobs of several nodes
_RDMA_PACKETS = (
    *("rx_vport_rdma_unicast_packets", "tx_vport_rdma_unicast_packets", "rx_write_requests", "rx_read_requests"),
    *("rx_pkts", "tx_pkts", "rx_rdma_ucast_pkts", "tx_rdma_ucast_pkts"),  # bnxt_re, ionic_rdma
)


def is_plain_ethernet(context: RuleContext) -> bool:
    """Whether nothing on this node states that its Ethernet NICs are meant for RDMA: a driver offers it unasked.

    InfiniBand, NVSwitches, a profile, OFED, peer memory, settings of NCCL, PFC, trust in DSCP, RDMA packets that were
    counted, or rails on three cards and more do.
    """
    return all(context.once(_plain_ethernet))


def _plain_ethernet(context: RuleContext) -> Iterator[bool]:
    rails = [nic for nic in context.rails if not nic.software]
    ports = [port for nic in rails for port in nic.ports]
    netdevs = [netdev for netdev in context.topology.netdevs if netdev.nic in {nic.id for nic in rails}]
    of_others = all(gpu.vendor not in ("NVIDIA", "AMD") for gpu in context.topology.gpus)  # with ports of their own
    yield context.why_bus_unread is None and not context.topology.nvswitches and (context.profile is None or of_others)
    yield bool(context.software.modules) and context.software.rdma_stack.kind != "ofed"
    yield not context.software.peer_memory_clients
    yield not context.software.nccl.settings and not context.settings.facts
    yield len({place_on_bus(nic).rpartition(".")[0] for nic in rails}) < _RAILS
    yield all(port.link_layer == "Ethernet" for nic in context.topology.nics for port in nic.ports)
    yield not any(netdev.qos and (any(netdev.qos.pfc) or netdev.qos.trust == "dscp") for netdev in netdevs)
    yield not any(port_counters(port).get(name) for port in ports for name in _RDMA_PACKETS)
    yield not any(netdev.counters.get(name) for netdev in netdevs for name in _RDMA_PACKETS)
