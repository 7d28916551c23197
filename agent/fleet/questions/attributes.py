"""What nodes of one hardware class have in common: the catalogue of `fleet outliers`, and its queries per table."""

from __future__ import annotations

from typing import NamedTuple

from agent.fleet.engines.query import (
    LookupQuery,
    Query,
    identifiers,
    key_types,
    lookup,
    matching,
    query,
    quote,
    statement,
)
from agent.fleet.questions.baseline import CLASS


class Attribute(NamedTuple):
    """One column of a table, and with which of its like a value is compared."""

    key: str
    what: str  # for people
    table: str
    column: str
    one: str = "node"  # what is counted: "NIC"
    place: str | None = None  # column that must be the same, too: the board of a NIC, the address of a link
    form: str = "{}"  # of a value
    rails: bool | None = None  # True: only rails, False: only what is no rail
    which: str | None = None  # a fragment of queries/outliers.sql: only such rows


def _host(key: str, what: str, form: str = "{}") -> Attribute:
    return Attribute(key.replace("_", "-"), what, "host", key, form=form)


def _gpu(key: str, what: str, form: str = "{}", place: str | None = "name") -> Attribute:
    return Attribute(f"gpu-{key}".replace("_", "-"), what, "gpu", key, "GPU", place, form)


def _port(key: str, what: str, form: str = "{}") -> Attribute:
    return Attribute(f"port-{key}".replace("_", "-"), what, "port", key, "rail", "rail", form, rails=True)


def _netdev(key: str, what: str, form: str = "{}") -> tuple[Attribute, Attribute]:
    name = key.replace("_", "-")
    return (
        Attribute(f"rail-{name}", f"{what} of a rail", "netdev", key, "rail", "rail", form, rails=True),
        Attribute(f"interface-{name}", what, "netdev", key, "interface", "id", form, rails=False),
    )


def _endpoint(key: str, what: str, form: str = "{}") -> Attribute:
    column = key.replace("-", "_")
    return Attribute(f"pcie-{key}", what, "pci", column, "function", "id", form, which="only_endpoints")


ATTRIBUTES: tuple[Attribute, ...] = (
    _host("gpus", "number of GPUs"),
    _host("rails", "number of rails"),
    _host("nics", "number of NICs"),
    _host("sockets", "number of sockets"),
    _host("numa_nodes", "number of NUMA nodes"),
    _host("threads_per_core", "threads per core"),
    _host("cpu", "CPU"),
    _host("driver", "GPU driver"),
    _host("driver_open", "open kernel modules of the GPU driver"),
    _host("cuda", "CUDA"),
    _host("nccl", "NCCL"),
    _host("rdma_stack", "RDMA stack"),
    _host("rdma_stack_version", "version of the RDMA stack"),
    _host("bios", "BIOS"),
    _host("kernel", "kernel"),
    _host("os", "operating system"),
    _host("virtualization", "virtualization"),
    _host("profile", "recognized platform"),
    _gpu("vbios", "VBIOS"),
    _gpu("memory_mib", "GPU memory", "{} MiB"),
    _gpu("bar1_mib", "BAR1", "{} MiB"),
    _gpu("mig", "MIG"),
    _gpu("driver_state", "state in the driver", place=None),
    _gpu("nvlinks_active", "active NVLinks"),
    _gpu("fabric_state", "NVLink fabric state"),
    _gpu("fabric_status", "NVLink fabric status"),
    _gpu("clique", "NVLink clique"),
    _gpu("recovery_action", "recovery action"),
    Attribute("nic-firmware", "NIC firmware", "nic", "firmware", "NIC", "board_id"),
    Attribute("nic-driver", "NIC driver", "nic", "driver", "NIC", "board_id"),
    Attribute("nic-board", "board of a NIC", "nic", "board_id", "NIC", "id"),
    Attribute("nic-numa-node", "NUMA node of a NIC", "nic", "numa_node", "NIC", "id"),
    Attribute("gpu-numa-node", "NUMA node of a GPU", "gpu", "numa_node", "GPU", "id"),
    Attribute("nic-state", "state of a NIC", "nic", "state", "NIC", "id"),
    Attribute("nic-role", "role of a NIC", "nic", "role", "NIC", "id"),
    _port("state", "port state"),
    _port("phys_state", "physical port state"),
    _port("rate_gbit_s", "port rate", "{:g} Gbit/s"),
    _port("width", "port width"),
    _port("speed", "port speed"),
    _port("link_layer", "link layer"),
    _port("active_mtu", "RDMA MTU"),
    _port("gid_types", "GID types"),
    _port("roce_gid_index", "GID index for RoCE v2"),
    *_netdev("mtu", "MTU"),
    *_netdev("speed_gbit_s", "speed", "{:g} Gbit/s"),
    *_netdev("fec", "FEC"),
    *_netdev("trust", "QoS trust"),
    *_netdev("pfc", "PFC by priority"),
    *_netdev("dscp_prio", "DSCP to priority"),
    *_netdev("prio_tc", "traffic class by priority"),
    *_netdev("tc_bandwidth", "bandwidth by traffic class"),
    *_netdev("ecn", "ECN"),
    *_netdev("cnp_dscp", "DSCP of CNPs"),
    *_netdev("cnp_priority", "priority of CNPs"),
    *_netdev("pause_rx", "global pause, receiving"),
    *_netdev("pause_tx", "global pause, sending"),
    Attribute("pcie-width", "PCIe width", "link", "conclusive_width", "link", "id", "x{}"),
    Attribute("pcie-speed", "PCIe speed", "link", "conclusive_speed_gt_s", "link", "id", "{:g} GT/s"),
    _endpoint("max-payload-bytes", "PCIe payload", "{} bytes"),
    _endpoint("max-read-request-bytes", "PCIe read request", "{} bytes"),
    _endpoint("relaxed-ordering", "PCIe relaxed ordering"),
    Attribute("pcie-acs", "ACS", "pci", "acs", "function", "id", which="only_with_acs"),
)


_LABELS = {
    **dict.fromkeys(("gpu", "nic", "port", "netdev"), "thing.label"),
    "link": statement("outliers", "link_label"),
    "pci": "thing.id",
}
_WHICH = {True: "only_rails", False: "only_others", None: "all_things"}
_SHARED = (("gpu", "name"), ("gpu", None), ("nic", "board_id"))  # places that several things of one node share


class TablePass(NamedTuple):
    """Attributes that one pass over a table answers. `keys`: their places and columns, the class first."""

    table: str
    attributes: list[Attribute]
    keys: tuple[str, ...]
    counts: Query  # how often each row of keys occurs
    things: LookupQuery  # node, label and keys
    of_nodes: LookupQuery  # the same of all things of some nodes
    nodes: dict[str | None, LookupQuery]  # nodes of a class and a place that things share, by place
    labelled: bool  # whether things have a label of their own


def _parts() -> list[TablePass]:
    """One for each table and choice of its rows."""
    together: dict[tuple[str, str], list[Attribute]] = {}
    for attribute in ATTRIBUTES:
        together.setdefault((attribute.table, attribute.which or _WHICH[attribute.rails]), []).append(attribute)
    return [_part(table, which, attributes) for (table, which), attributes in together.items()]


def _part(table: str, only: str, attributes: list[Attribute]) -> TablePass:
    places = [attribute.place for attribute in attributes if attribute.place]
    keys = tuple(dict.fromkeys((CLASS, *places, *(attribute.column for attribute in attributes))))
    which = statement("outliers", only)
    counts = query("outliers", "value_counts", keys=identifiers(keys, "thing"), table=quote(table), which=which)
    things = _lookup("things", table, keys, which)
    nodes = {
        place: _lookup("group_nodes", table, (CLASS, place) if place else (CLASS,), which)
        for place in dict.fromkeys(attribute.place for attribute in attributes)
        if (table, place) in _SHARED
    }
    of_nodes = _lookup("things_of_nodes", table, keys, which, ("node",))
    return TablePass(table, attributes, keys, counts, things, of_nodes, nodes, table in _LABELS)


def _lookup(name: str, table: str, keys: tuple[str, ...], which: str, by: tuple[str, ...] | None = None) -> LookupQuery:
    """`by`: what is looked up; None: the keys, of which each can be null."""
    return lookup(
        key_types(table, by or keys), "outliers", name,
        keys=identifiers(keys, "thing"), table=quote(table), which=which,
        matching=matching(by or keys, null_safe=by is None), label=_LABELS.get(table, "thing.node"),
    )  # fmt: skip


PARTS = _parts()
