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

    @property
    def is_amount(self) -> bool:
        """Whether a value is a count or an amount, so that "1 fewer" and "half" have a meaning."""
        return self.column in AMOUNTS


def _make_host(key: str, what: str) -> Attribute:
    return Attribute(key.replace("_", "-"), what, "host", key)


def _make_gpu(key: str, what: str, form: str = "{}", place: str | None = "name") -> Attribute:
    return Attribute(f"gpu-{key}".replace("_", "-"), what, "gpu", key, "GPU", place, form)


def _make_port(key: str, what: str, form: str = "{}") -> Attribute:
    return Attribute(f"port-{key}".replace("_", "-"), what, "port", key, "rail", "rail", form, rails=True)


def _make_netdev(key: str, what: str, form: str = "{}") -> tuple[Attribute, Attribute]:
    name = key.replace("_", "-")
    return (
        Attribute(f"rail-{name}", f"{what} of a rail", "netdev", key, "rail", "rail", form, rails=True),
        Attribute(f"interface-{name}", what, "netdev", key, "interface", "id", form, rails=False),
    )


def _make_endpoint(key: str, what: str, form: str = "{}") -> Attribute:
    column = key.replace("-", "_")
    return Attribute(f"pcie-{key}", what, "pci", column, "function", "id", form, which="only_endpoints")


def _make_switch(key: str, what: str, form: str = "{}") -> Attribute:
    return Attribute(f"switch-{key}".replace("_", "-"), what, "switch", key, "switch", form=form)


def _make_switch_port(key: str, what: str, form: str = "{}") -> Attribute:
    name = f"switch-port-{key}".replace("_", "-")
    return Attribute(name, f"{what} of a switch port", "switch_port", key, "switch port", "peer_group", form)


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
    _make_host("gpus", "number of GPUs"),
    _make_host("gpu_models", "GPU model"),
    _make_host("rails", "number of rails"),
    _make_host("nics", "number of NICs"),
    _make_host("sockets", "number of sockets"),
    _make_host("numa_nodes", "number of NUMA nodes"),
    _make_host("threads_per_core", "threads per core"),
    _make_host("cpu", "CPU"),
    _make_host("driver", "GPU driver"),
    _make_host("driver_open", "open kernel modules of the GPU driver"),
    _make_host("cuda", "CUDA"),
    _make_host("nccl", "NCCL"),
    _make_host("rdma_stack", "RDMA stack"),
    _make_host("rdma_stack_version", "version of the RDMA stack"),
    _make_host("bios", "BIOS"),
    _make_host("kernel", "kernel"),
    _make_host("os", "operating system"),
    _make_host("virtualization", "virtualization"),
    _make_host("profile", "recognized platform"),
    _make_gpu("vbios", "VBIOS"),
    _make_gpu("memory_mib", "GPU memory", "{} MiB"),
    _make_gpu("bar1_mib", "BAR1", "{} MiB"),
    _make_gpu("mig", "MIG"),
    _make_gpu("driver_state", "state in the driver", place=None),
    _make_gpu("nvlinks_active", "active links between GPUs"),
    _make_gpu("fabric_state", "NVLink fabric state"),
    _make_gpu("fabric_status", "NVLink fabric status"),
    _make_gpu("clique", "NVLink clique"),
    _make_gpu("recovery_action", "recovery action"),
    Attribute("nic-firmware", "NIC firmware", "nic", "firmware", "NIC", "board_id"),
    Attribute("nic-driver", "NIC driver", "nic", "driver", "NIC", "board_id"),
    Attribute("nic-board", "board of a NIC", "nic", "board_id", "NIC", "id"),
    Attribute("nic-numa-node", "NUMA node of a NIC", "nic", "numa_node", "NIC", "id"),
    Attribute("gpu-numa-node", "NUMA node of a GPU", "gpu", "numa_node", "GPU", "id"),
    Attribute("nic-state", "state of a NIC", "nic", "state", "NIC", "id"),
    Attribute("nic-role", "role of a NIC", "nic", "role", "NIC", "id"),
    _make_port("state", "port state"),
    _make_port("phys_state", "physical port state"),
    _make_port("rate_gbit_s", "port rate", "{:g} Gbit/s"),
    _make_port("width", "port width"),
    _make_port("speed", "port speed"),
    _make_port("link_layer", "link layer"),
    _make_port("active_mtu", "RDMA MTU"),
    _make_port("gid_types", "GID types"),
    _make_port("roce_gid_index", "GID index for RoCE v2"),
    *_make_netdev("mtu", "MTU"),
    *_make_netdev("speed_gbit_s", "speed", "{:g} Gbit/s"),
    *_make_netdev("fec", "FEC"),
    *_make_netdev("trust", "QoS trust"),
    *_make_netdev("pfc", "PFC"),
    *_make_netdev("dscp_prio", "DSCP to priority"),
    *_make_netdev("prio_tc", "traffic class by priority"),
    *_make_netdev("tc_bandwidth", "bandwidth by traffic class"),
    *_make_netdev("ecn", "ECN"),
    *_make_netdev("cnp_dscp", "DSCP of CNPs"),
    *_make_netdev("cnp_priority", "priority of CNPs"),
    *_make_netdev("pause_rx", "global pause, receiving"),
    *_make_netdev("pause_tx", "global pause, sending"),
    Attribute("pcie-width", "PCIe width", "link", "conclusive_width", "link", "id", "x{}"),
    Attribute("pcie-speed", "PCIe speed", "link", "conclusive_speed_gt_s", "link", "id", "{:g} GT/s"),
    _make_endpoint("max-payload-bytes", "PCIe payload", "{} bytes"),
    _make_endpoint("max-read-request-bytes", "PCIe read request", "{} bytes"),
    _make_endpoint("relaxed-ordering", "PCIe relaxed ordering"),
    Attribute("pcie-acs", "ACS", "pci", "acs", "function", "id", which="only_with_acs"),
    _make_switch("version", "version of a switch"),
    _make_switch("roce_mode", "RoCE mode of a switch"),
    _make_switch("trimming", "packet trimming of a switch"),
    _make_switch("watchdog_poll_ms", "polling interval of the PFC watchdog", "{} ms"),
    _make_switch("headroom_pool_bytes", "headroom pool of a switch", "{} bytes"),
    _make_switch_port("mtu", "MTU"),
    _make_switch_port("fec_active", "FEC"),
    _make_switch_port("trust", "QoS trust"),
    _make_switch_port("pfc", "PFC"),
    _make_switch_port("dscp_prio", "DSCP to priority"),
    _make_switch_port("dscp_queue", "DSCP to queue"),
    _make_switch_port("pfc_asymmetric", "asymmetric PFC"),
    _make_switch_port("pause", "global pause"),
    _make_switch_port("pfc_wd", "PFC watchdog"),
    _make_switch_port("wd_action", "action of the PFC watchdog"),
    _make_switch_port("wd_detect_ms", "detection time of the PFC watchdog", "{} ms"),
    _make_switch_port("ecn", "ECN"),
    _make_switch_port("queue_sched", "scheduling of queues"),
    _make_switch_port("headroom", "headroom"),
    _make_switch_port("link_retry", "link layer retry"),
)


_LABELS = {
    **dict.fromkeys(("gpu", "nic", "port", "netdev"), "thing.label"),
    "link": statement("outliers", "link_label"),
    "pci": "thing.id",
    "switch_port": "thing.port",
}
_WHICH = {True: "only_rails", False: "only_others", None: "all_things"}
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
    together: dict[tuple[str, str], list[Attribute]] = {}
    for attribute in ATTRIBUTES:
        together.setdefault((attribute.table, attribute.which or _WHICH[attribute.rails]), []).append(attribute)
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
    keys = tuple(dict.fromkeys(key for part in parts for key in part.keys))
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
