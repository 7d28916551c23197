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
from agent.model.labels import group_by_key


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

    @property
    def is_amount(self) -> bool:
        """Whether a value is a count or an amount, so that "1 fewer" and "half" have a meaning."""
        return self.column in AMOUNTS


# Kinds of attributes, by their keys' beginnings, what they are for people, and what they are read from
_HOST = Attribute("", "{}", "host", "")
_GPU = Attribute("gpu-", "{}", "gpu", "", "GPU", "name")
_PORT = Attribute("port-", "{}", "port", "", "rail", "rail", rails=True)
_RAIL = Attribute("rail-", "{} of a rail", "netdev", "", "rail", "rail", rails=True)
_INTERFACE = Attribute("interface-", "{}", "netdev", "", "interface", "id", rails=False)
_ENDPOINT = Attribute("pcie-", "{}", "pci", "", "function", "id", which="only_endpoints")
_SWITCH = Attribute("switch-", "{}", "switch", "", "switch")
_SWITCH_PORT = Attribute("switch-port-", "{} of a switch port", "switch_port", "", "switch port", "peer_group")


def _of(kind: Attribute, column: str, what: str, form: str = "{}") -> Attribute:
    key = (kind.key + column).replace("_", "-")
    return kind._replace(key=key, what=kind.what.format(what), column=column, form=form)


def _of_netdev(column: str, what: str, form: str = "{}") -> tuple[Attribute, Attribute]:
    return _of(_RAIL, column, what, form), _of(_INTERFACE, column, what, form)


# Columns whose numbers count or measure something. All others name something: a NUMA node, a clique, a priority.
AMOUNTS = frozenset(
    (
        "gpus", "rails", "nics", "sockets", "numa_nodes", "threads_per_core", "memory_mib", "bar1_mib",
        "nvlinks_active", "rate_gbit_s", "active_mtu", "mtu", "speed_gbit_s", "conclusive_width",
        "conclusive_speed_gt_s", "max_payload_bytes", "max_read_request_bytes",
        "wd_detect_ms", "watchdog_poll_ms", "headroom_pool_bytes",
    )
)  # fmt: skip

ATTRIBUTES: tuple[Attribute, ...] = (
    _of(_HOST, "gpus", "number of GPUs"),
    _of(_HOST, "gpu_models", "GPU model"),
    _of(_HOST, "rails", "number of rails"),
    _of(_HOST, "nics", "number of NICs"),
    _of(_HOST, "sockets", "number of sockets"),
    _of(_HOST, "numa_nodes", "number of NUMA nodes"),
    _of(_HOST, "threads_per_core", "threads per core"),
    _of(_HOST, "cpu", "CPU"),
    _of(_HOST, "driver", "GPU driver"),
    _of(_HOST, "driver_open", "open kernel modules of the GPU driver"),
    _of(_HOST, "cuda", "CUDA"),
    _of(_HOST, "nccl", "NCCL"),
    _of(_HOST, "rdma_stack", "RDMA stack"),
    _of(_HOST, "rdma_stack_version", "version of the RDMA stack"),
    _of(_HOST, "bios", "BIOS"),
    _of(_HOST, "kernel", "kernel"),
    _of(_HOST, "os", "operating system"),
    _of(_HOST, "virtualization", "virtualization"),
    _of(_HOST, "profile", "recognized platform"),
    _of(_GPU, "vbios", "VBIOS"),
    _of(_GPU, "memory_mib", "GPU memory", "{} MiB"),
    _of(_GPU, "bar1_mib", "BAR1", "{} MiB"),
    _of(_GPU, "mig", "MIG"),
    Attribute("gpu-driver-state", "state in the driver", "gpu", "driver_state", "GPU"),
    _of(_GPU, "nvlinks_active", "active links between GPUs"),
    _of(_GPU, "fabric_state", "NVLink fabric state"),
    _of(_GPU, "fabric_status", "NVLink fabric status"),
    _of(_GPU, "clique", "NVLink clique"),
    _of(_GPU, "recovery_action", "recovery action"),
    Attribute("nic-firmware", "NIC firmware", "nic", "firmware", "NIC", "board_id"),
    Attribute("nic-driver", "NIC driver", "nic", "driver", "NIC", "board_id"),
    Attribute("nic-board", "board of a NIC", "nic", "board_id", "NIC", "id"),
    Attribute("nic-numa-node", "NUMA node of a NIC", "nic", "numa_node", "NIC", "id"),
    Attribute("gpu-numa-node", "NUMA node of a GPU", "gpu", "numa_node", "GPU", "id"),
    Attribute("nic-state", "state of a NIC", "nic", "state", "NIC", "id"),
    Attribute("nic-role", "role of a NIC", "nic", "role", "NIC", "id"),
    _of(_PORT, "state", "port state"),
    _of(_PORT, "phys_state", "physical port state"),
    _of(_PORT, "rate_gbit_s", "port rate", "{:g} Gbit/s"),
    _of(_PORT, "width", "port width"),
    _of(_PORT, "speed", "port speed"),
    _of(_PORT, "link_layer", "link layer"),
    _of(_PORT, "active_mtu", "RDMA MTU"),
    _of(_PORT, "gid_types", "GID types"),
    _of(_PORT, "roce_gid_index", "GID index for RoCE v2"),
    *_of_netdev("mtu", "MTU"),
    *_of_netdev("speed_gbit_s", "speed", "{:g} Gbit/s"),
    *_of_netdev("fec", "FEC"),
    *_of_netdev("trust", "QoS trust"),
    *_of_netdev("pfc", "PFC"),
    *_of_netdev("dscp_prio", "DSCP to priority"),
    *_of_netdev("prio_tc", "traffic class by priority"),
    *_of_netdev("tc_bandwidth", "bandwidth by traffic class"),
    *_of_netdev("ecn", "ECN"),
    *_of_netdev("cnp_dscp", "DSCP of CNPs"),
    *_of_netdev("cnp_priority", "priority of CNPs"),
    *_of_netdev("pause_rx", "global pause, receiving"),
    *_of_netdev("pause_tx", "global pause, sending"),
    Attribute("pcie-width", "PCIe width", "link", "conclusive_width", "link", "id", "x{}"),
    Attribute("pcie-speed", "PCIe speed", "link", "conclusive_speed_gt_s", "link", "id", "{:g} GT/s"),
    _of(_ENDPOINT, "max_payload_bytes", "PCIe payload", "{} bytes"),
    _of(_ENDPOINT, "max_read_request_bytes", "PCIe read request", "{} bytes"),
    _of(_ENDPOINT, "relaxed_ordering", "PCIe relaxed ordering"),
    Attribute("pcie-acs", "ACS", "pci", "acs", "function", "id", which="only_with_acs"),
    _of(_SWITCH, "version", "version of a switch"),
    _of(_SWITCH, "roce_mode", "RoCE mode of a switch"),
    _of(_SWITCH, "trimming", "packet trimming of a switch"),
    _of(_SWITCH, "watchdog_poll_ms", "polling interval of the PFC watchdog", "{} ms"),
    _of(_SWITCH, "headroom_pool_bytes", "headroom pool of a switch", "{} bytes"),
    _of(_SWITCH_PORT, "mtu", "MTU"),
    _of(_SWITCH_PORT, "fec_active", "FEC"),
    _of(_SWITCH_PORT, "trust", "QoS trust"),
    _of(_SWITCH_PORT, "pfc", "PFC"),
    _of(_SWITCH_PORT, "dscp_prio", "DSCP to priority"),
    _of(_SWITCH_PORT, "dscp_queue", "DSCP to queue"),
    _of(_SWITCH_PORT, "pfc_asymmetric", "asymmetric PFC"),
    _of(_SWITCH_PORT, "pause", "global pause"),
    _of(_SWITCH_PORT, "pfc_wd", "PFC watchdog"),
    _of(_SWITCH_PORT, "wd_action", "action of the PFC watchdog"),
    _of(_SWITCH_PORT, "wd_detect_ms", "detection time of the PFC watchdog", "{} ms"),
    _of(_SWITCH_PORT, "ecn", "ECN"),
    _of(_SWITCH_PORT, "queue_sched", "scheduling of queues"),
    _of(_SWITCH_PORT, "headroom", "headroom"),
    _of(_SWITCH_PORT, "link_retry", "link layer retry"),
)


_LABELS = {
    **dict.fromkeys(("gpu", "nic", "port", "netdev"), "thing.label"),
    "link": statement("outliers", "link_label"),
    "pci": "thing.id",
    "switch_port": "thing.port",
}
_WHICH = {True: "only_rails", False: "only_others", None: "all_things"}
_FOR_FACTS = {"nic": ("rail",)}  # columns for what nodes have in common
# columns of which several things of one node have the same value; null: the class alone
_SHARED = (("gpu", "name"), ("gpu", None), ("nic", "board_id"), ("switch_port", "peer_group"))


class TablePass(NamedTuple):
    """Attributes that one pass over a table answers. `keys`: their places and columns, the class first."""

    table: str
    choice: str  # of its rows: a fragment of queries/outliers.sql
    attributes: list[Attribute]
    keys: tuple[str, ...]
    counts: Query  # how often each row of keys occurs
    things: LookupQuery  # node, label and keys
    nodes: dict[str | None, LookupQuery]  # nodes of a class and a value that things share, by column
    labelled: bool  # whether things have a label of their own


def _list_parts() -> list[TablePass]:
    """One for each table and choice of its rows."""
    together = group_by_key(((one.table, one.which or _WHICH[one.rails]), one) for one in ATTRIBUTES)
    return [_make_part(table, which, attributes) for (table, which), attributes in together.items()]


def _make_part(table: str, only: str, attributes: list[Attribute]) -> TablePass:
    places = [attribute.place for attribute in attributes if attribute.place]
    keys = tuple(dict.fromkeys((CLASS, *places, *(attribute.column for attribute in attributes))))
    which = statement("outliers", only)
    counts = query("outliers", "value_counts", keys=identifiers(keys, "thing"), table=quote(table), which=which)
    things = _query_lookup("things", table, keys, which)
    nodes = {
        column: _query_lookup("group_nodes", table, (CLASS, column) if column else (CLASS,), which)
        for column in dict.fromkeys(attribute.place for attribute in attributes)
        if (table, column) in _SHARED
    }
    return TablePass(table, only, attributes, keys, counts, things, nodes, table in _LABELS)


def _query_lookup(name: str, table: str, keys: tuple[str, ...], which: str) -> LookupQuery:
    """Of the keys each can be null."""
    return lookup(
        key_types(table, keys), "outliers", name,
        keys=identifiers(keys, "thing"), table=quote(table), which=which, matching=matching(keys), label=_label(table),
    )  # fmt: skip


def _label(table: str) -> str:
    return _LABELS.get(table, "thing.node")


PARTS = _list_parts()


class TableThings(NamedTuple):
    """What all passes over a table read of some nodes. `columns`: after node and label, keys and then choices."""

    of_nodes: LookupQuery
    columns: tuple[str, ...]


def _make_things(table: str, parts: list[TablePass]) -> TableThings:
    keys = tuple(dict.fromkeys((*(key for part in parts for key in part.keys), *_FOR_FACTS.get(table, ()))))
    choices = {part.choice: statement("outliers", part.choice) for part in parts}
    of_nodes = lookup(
        key_types(table, ("node",)), "outliers", "things_of_nodes",
        keys=identifiers(keys, "thing"), table=quote(table), matching=matching(("node",), null_safe=False),
        label=_label(table), choices=", ".join(f"({which}) AS {quote(choice)}" for choice, which in choices.items()),
        which=" OR ".join(f"({which})" for which in choices.values()),
    )  # fmt: skip
    return TableThings(of_nodes, keys + tuple(choices))


THINGS = {
    table: _make_things(table, [part for part in PARTS if part.table == table])
    for table in dict.fromkeys(part.table for part in PARTS)
}
