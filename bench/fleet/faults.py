"""What can be odd about one node's own report: overlays on its description, with which it is scanned and judged.

Kinds that only two nodes, a cable, a time or a damaged file can show are in bench/fleet/planting.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from bench.fleet.platforms import Platform, Shape, nccl
from fixtures.loader import read_table


class Odd(NamedTuple):
    """One oddity of a node: what is odd, what says so, and the overlay that makes it so."""

    subject: str
    detail: Mapping[str, Any]
    overlay: Mapping[str, Any]
    links: Mapping[int, str] = {}  # rail -> what the fabric's file says of its link; "": that there is none


Make = Callable[[Platform, Shape], Odd | None]  # none: that platform cannot have it
NCCL_CONF = "/etc/nccl.conf"
OTHER_NCCL = "2.19.3"
_FIRMWARE = {"a100-ib": ("20.39.1002", "20.43.2026")}  # an older one, and the usual
_NEWER_CARDS = ("28.39.1002", "28.43.2026")


def usual(platform: Platform, table: str, name: str) -> Any:
    """What the fixture's description says."""
    return read_table("hosts", platform.shape)[table].get(name)


def _narrow_gpu(platform: Platform, shape: Shape) -> Odd | None:
    if not shape.gpus or platform.rack:  # a GPU of a tray reaches its CPU by C2C: no rule judges the other link
        return None
    at = shape.gpus[len(shape.gpus) // 2]
    return Odd(f"pci:{at}", {"width": 8, "usual": 16}, {"device": {at: {"width": 8}}})


def _slow_gpu(platform: Platform, shape: Shape) -> Odd | None:
    if not shape.gpus or platform.rack:
        return None
    at = shape.gpus[-1]
    return Odd(
        f"pci:{at}",
        {"speed_gt_s": 8.0, "usual": 16.0 if platform.name == "a100-ib" else 32.0},
        {"device": {at: {"gen": 3}}},
    )


def _narrow_nic(platform: Platform, shape: Shape) -> Odd | None:
    if not shape.rails or platform.name in ("h200-roce", "b200-ib"):  # two functions share a link; a link is not told
        return None
    at = shape.rails[-1]
    return Odd(f"pci:{at}", {"width": 8, "usual": 16}, {"device": {at: {"width": 8}}})


def _firmware_of_one(platform: Platform, shape: Shape) -> Odd | None:
    if len(shape.rails) < 4:
        return None
    at = shape.rails[-1]
    older, now = _FIRMWARE.get(platform.name, _NEWER_CARDS)
    return Odd(f"pci:{at}", {"firmware": older, "usual": now}, {"device": {at: {"rdma": {"firmware": older}}}})


def _firmware_of_all(platform: Platform, shape: Shape) -> Odd | None:
    if not shape.rails:
        return None
    older, now = _FIRMWARE.get(platform.name, _NEWER_CARDS)
    device = {at: {"rdma": {"firmware": older}} for at in shape.rails}
    return Odd("node", {"firmware": older, "usual": now, "rails": len(shape.rails)}, {"device": device})


def _driver(platform: Platform, shape: Shape) -> Odd | None:
    now = usual(platform, "software", "driver")
    if not now:
        return None
    other = f"{now.partition('.')[0]}.30.11"
    return Odd("node", {"driver": other, "usual": now}, {"software": {"driver": other}})


def _vbios(platform: Platform, shape: Shape) -> Odd | None:
    if not shape.gpus:
        return None
    other = "96.00.30.00.01"
    device = {at: {"gpu": {"vbios": other}} for at in shape.gpus}
    return Odd("node", {"vbios": other, "usual": shape.vbios, "gpus": len(shape.gpus)}, {"device": device})


def _bios(platform: Platform, shape: Shape) -> Odd | None:
    return Odd("node", {"bios": "1.9.0"}, {"system": {"bios": "1.9.0"}})


def _kernel(platform: Platform, shape: Shape) -> Odd | None:
    now = usual(platform, "system", "kernel")
    other = re.sub(r"-(\d+)", lambda found: f"-{int(found[1]) - 15}", now, count=1)
    return Odd("node", {"kernel": other, "usual": now}, {"system": {"kernel": other}})


def _cmdline(platform: Platform, shape: Shape) -> Odd | None:
    now = usual(platform, "system", "cmdline") or "ro quiet"
    other = f"{now} mitigations=off"
    return Odd("node", {"cmdline": other, "usual": now}, {"system": {"cmdline": other}})


def _fewer_nvlinks(platform: Platform, shape: Shape) -> Odd | None:
    if shape.nvlinks < 8:
        return None
    at = shape.gpus[1]
    detail = {"link": 3, "nv": shape.nvlinks - 1, "usual": shape.nvlinks}
    return Odd(f"gpu:{at}", detail, {"device": {at: {"gpu": {"nvlink_inactive": [3]}}}})


def _mtu(platform: Platform, shape: Shape) -> Odd | None:
    if shape.infiniband or not shape.rails:
        return None
    at = shape.rails[-1]
    return Odd(
        f"netdev:{at}",
        {"mtu": 1500, "usual": 9000 if platform.name == "l40s-roce" else 4220},
        {"device": {at: {"net": {"mtu": 1500}}}},
    )


def _mtu_of_the_first(platform: Platform, shape: Shape) -> Odd | None:
    """The same on another rail: another answer."""
    if shape.infiniband or not shape.rails:
        return None
    at = shape.rails[0]
    return Odd(f"netdev:{at}", {"mtu": 1500}, {"device": {at: {"net": {"mtu": 1500}}}})


def _pfc(platform: Platform, shape: Shape) -> Odd | None:
    if shape.infiniband or not shape.rails:
        return None
    at = shape.rails[0]
    return Odd(
        f"netdev:{at}", {"pfc": [], "usual": [3]}, {"device": {at: {"net": {"pause": "off", "qos": {"pfc": []}}}}}
    )


def _trust(platform: Platform, shape: Shape) -> Odd | None:
    if shape.infiniband or not shape.rails:
        return None
    at = shape.rails[0]
    return Odd(f"netdev:{at}", {"trust": "pcp", "usual": "dscp"}, {"device": {at: {"net": {"qos": {"trust": "pcp"}}}}})


def _slow_port(platform: Platform, shape: Shape) -> Odd | None:
    if platform.wiring is None or platform.wiring.speed != "NDR":
        return None
    at = shape.rails[2]
    detail = {"rate_gbit_s": 200.0, "usual": 400.0, "link": "4xHDR"}
    slower = {"rdma": {"rate": "200 Gb/sec (4X HDR)"}, "net": {"speed_mbit_s": 200_000}}
    return Odd(f"port:{at}/1", detail, {"device": {at: slower}}, {2: "4xHDR"})


def _port_down(platform: Platform, shape: Shape) -> Odd | None:
    if not shape.infiniband:
        return None
    at = shape.rails[-1]
    down = {"rdma": {"state": "DOWN", "phys_state": "Polling"}, "net": {"operstate": "down"}}
    detail = {"state": "DOWN", "usual": "ACTIVE"}
    return Odd(f"port:{at}/1", detail, {"device": {at: down}}, {len(shape.rails) - 1: ""})


def _no_driver(platform: Platform, shape: Shape) -> Odd | None:
    if shape.infiniband or not shape.rails:
        return None
    at = shape.rails[-1]
    detail = {"driver": "", "usual": "mlx5_core", "rails": len(shape.rails)}
    return Odd(f"pci:{at}", detail, {"device": {at: {"driver": ""}}})


def _unknown_checks(platform: Platform, shape: Shape) -> Odd | None:
    if not shape.gpus:
        return None
    return Odd("node", {"probe": "nvml", "status": "denied"}, {"software": {"nvml_error": "NO_PERMISSION"}})


def _gpu_lost(platform: Platform, shape: Shape) -> Odd | None:
    if len(shape.gpus) < 4:
        return None
    at = shape.gpus[-1]
    return Odd(f"gpu:{at}", {"gpus": len(shape.gpus) - 1, "usual": len(shape.gpus)}, {"pci": {"remove": [at]}})


def _nic_lost(platform: Platform, shape: Shape) -> Odd | None:
    """A rail in the middle: the later ones get the names and numbers of those before them."""
    if not shape.infiniband or len(shape.rails) < 4:
        return None
    rail = len(shape.rails) // 2
    at = shape.rails[rail]
    return Odd(f"pci:{at}", {"rails": len(shape.rails) - 1}, {"pci": {"remove": [at]}}, {rail: ""})


def _nccl_setting(platform: Platform, shape: Shape) -> Odd | None:
    """One line more in /etc/nccl.conf."""
    if not shape.gpus:
        return None
    files = read_table("hosts", platform.shape).get("files", {})
    text = files.get(NCCL_CONF, "") + "NCCL_IB_QPS_PER_CONNECTION=4\n"
    return Odd("node", {"setting": "NCCL_IB_QPS_PER_CONNECTION=4"}, {"files": {NCCL_CONF: text}})


def _nccl_version(platform: Platform, shape: Shape) -> Odd | None:
    return Odd("node", {"nccl": OTHER_NCCL}, nccl(OTHER_NCCL)) if platform.nccl else None


def _small_reads(platform: Platform, shape: Shape) -> Odd | None:
    if len(shape.rails) < 4:
        return None
    at = shape.rails[1]
    return Odd(f"pci:{at}", {"max_read_request_bytes": 128}, {"device": {at: {"max_read_request": 128}}})


def _strict_ordering(platform: Platform, shape: Shape) -> Odd | None:
    if not shape.gpus:
        return None
    at = shape.gpus[0]
    return Odd(f"pci:{at}", {"relaxed_ordering": False}, {"device": {at: {"relaxed_ordering": False}}})


def _gpus_lost(share: int) -> Make:
    def make(platform: Platform, shape: Shape) -> Odd | None:
        """The last of so many parts of the GPUs."""
        if len(shape.gpus) < 4:
            return None
        remaining = len(shape.gpus) - len(shape.gpus) // share
        return Odd(
            "node", {"gpus": remaining, "usual": len(shape.gpus)}, {"pci": {"remove": list(shape.gpus[remaining:])}}
        )

    return make


def _of_device(key: str, value: Any, spec: Mapping[str, Any], rail: bool, suits: Callable[[Shape], bool]) -> Make:
    """One device, a rail or a GPU, with something else in its description."""

    def make(platform: Platform, shape: Shape) -> Odd | None:
        devices = shape.rails if rail else shape.gpus
        if len(devices) < 4 or not suits(shape):
            return None
        return Odd(f"pci:{devices[1]}", {key: value}, {"device": {devices[1]: spec}})

    return make


def _is_any(shape: Shape) -> bool:
    return True


def _is_roce(shape: Shape) -> bool:
    return not shape.infiniband


def _acs(platform: Platform, shape: Shape) -> Odd | None:
    """Redirection of requests is on at one root port."""
    if not shape.gpus or not shape.acs_port:
        return None
    return Odd(
        f"pci:{shape.acs_port}", {"acs": "SV RR", "usual": ""}, {"device": {shape.acs_port: {"acs_control": "SV RR"}}}
    )


def _system(key: str, value: str) -> Make:
    return lambda platform, shape: Odd("node", {key: value}, {"system": {key: value}})


def _no_smt(platform: Platform, shape: Shape) -> Odd | None:
    if usual(platform, "cpu", "threads_per_core") == 1 or platform.rack:
        return None
    return Odd("node", {"threads_per_core": 1, "usual": 2}, {"cpu": {"threads_per_core": 1}})


def _small_numa_node(platform: Platform, shape: Shape) -> Odd | None:
    """A quarter of the memory of the last NUMA node is not used."""
    nodes = [dict(node) for node in read_table("hosts", platform.shape)["numa"]]
    if not shape.gpus or platform.rack:
        return None
    nodes[-1]["memory_gib"] = nodes[-1]["memory_gib"] * 3 // 4
    return Odd("node", {"memory_gib": nodes[-1]["memory_gib"], "numa_node": nodes[-1]["id"]}, {"numa": nodes})


def _of_rack(key: str, value: Any) -> Make:
    """All GPUs of a tray in another NVLink partition or domain."""

    def make(platform: Platform, shape: Shape) -> Odd | None:
        if not platform.rack:
            return None
        return Odd("node", {key: value}, {"device": {at: {"gpu": {key: value}} for at in shape.gpus}})

    return make


def _other_gpu(platform: Platform, shape: Shape) -> Odd | None:
    """One H100 is an H200."""
    if platform.name != "h100-ib":
        return None
    at = shape.gpus[3]
    models = "7x H100 SXM5 80GB, 1x H200 SXM"
    return Odd("node", {"models": models}, {"device": {at: {"device": "2335", "gpu": {"name": "NVIDIA H200"}}}})


MODELS: dict[str, Make] = {"gpu-model": _other_gpu}  # on request
OVERLAYS: dict[str, Make] = {
    "gpu-link-narrow": _narrow_gpu,
    "gpu-link-slow": _slow_gpu,
    "nic-link-narrow": _narrow_nic,
    "nic-firmware-one": _firmware_of_one,
    "nic-firmware-node": _firmware_of_all,
    "driver": _driver,
    "vbios": _vbios,
    "bios": _bios,
    "kernel": _kernel,
    "cmdline": _cmdline,
    "nvlink-fewer": _fewer_nvlinks,
    "mtu-1500": _mtu,
    "mtu-1500-first": _mtu_of_the_first,
    "pfc-off": _pfc,
    "trust-pcp": _trust,
    "port-slow": _slow_port,
    "port-down": _port_down,
    "nic-no-driver": _no_driver,
    "unknown-checks": _unknown_checks,
    "read-request-small": _small_reads,
    "relaxed-ordering-off": _strict_ordering,
    "gpus-half-lost": _gpus_lost(2),
    "gpus-all-lost": _gpus_lost(1),
    "nic-board": _of_device("board_id", "MT_0000009999", {"rdma": {"board_id": "MT_0000009999"}}, True, _is_any),
    "nic-numa": _of_device("numa_node", 1, {"numa": 1}, True, _is_any),
    "gpu-numa": _of_device("numa_node", 1, {"numa": 1}, False, _is_any),
    "payload-small": _of_device("max_payload_bytes", 128, {"max_payload": 128}, False, _is_any),
    "gid-index": _of_device("index", 2, {"rdma": {"gid_types": ["RoCE v2", "IB/RoCE v1"]}}, True, _is_roce),
    "prio-tc": _of_device("prio_tc", [0] * 8, {"net": {"qos": {"prio_tc": [0] * 8}}}, True, _is_roce),
    "cnp-dscp": _of_device("cnp_dscp", 46, {"net": {"ecn": {"cnp_dscp": 46}}}, True, _is_roce),
    "cnp-priority": _of_device("cnp_priority", 3, {"net": {"ecn": {"cnp_priority": 3}}}, True, _is_roce),
    "dscp-map": _of_device("dscp", {"10": 4}, {"net": {"qos": {"dscp": {"10": 4}}}}, True, _is_roce),
    "nic-lost": _nic_lost,
    "nccl-setting": _nccl_setting,
    "nccl-version": _nccl_version,
    "acs-on": _acs,
    "os": _system("os", "Ubuntu 20.04.6 LTS"),
    "smt-off": _no_smt,
    "numa-memory": _small_numa_node,
    "nvlink-clique": _of_rack("clique", 7),
    "nvlink-domain": _of_rack("cluster_uuid", "ab" * 16),
}
OF_SMALL_CLASSES: dict[str, Make] = {
    f"small-class-{kind}": OVERLAYS[kind]
    for kind in ("kernel", "os", "cmdline", "driver", "nccl-version", "nccl-setting")
}
LINK_DOWNS = 40  # between two sweeps, or ever since the boot


def _link_downs(platform: Platform, shape: Shape) -> Odd | None:
    """A port whose link has gone down often."""
    if not shape.infiniband or not shape.rails:
        return None
    at = shape.rails[-1]
    return Odd(
        f"port:{at}/1",
        {"link_downed": LINK_DOWNS},
        {"device": {at: {"rdma": {"counters": {"link_downed": LINK_DOWNS}}}}},
    )


SYMBOL_ERRORS = 600  # between two sweeps


def _symbol_errors(platform: Platform, shape: Shape) -> Odd | None:
    """A port that receives many symbols wrongly."""
    if not shape.infiniband or not shape.rails:
        return None
    at = shape.rails[0]
    counters = {"symbol_error": SYMBOL_ERRORS}
    return Odd(f"port:{at}/1", counters, {"device": {at: {"rdma": {"counters": counters}}}})


RETRANSMISSIONS = 2_000_000  # between two sweeps, in which a port sends some 6e9 packets


def _retransmissions(platform: Platform, shape: Shape) -> Odd | None:
    """A RoCE port whose packets are lost."""
    if shape.infiniband or not shape.rails:
        return None
    at = shape.rails[1]
    counters = {"packet_seq_err": RETRANSMISSIONS}
    return Odd(f"port:{at}/1", counters, {"device": {at: {"rdma": {"counters": counters}}}})


RATES: dict[str, Make] = {
    "rate-retransmissions": _retransmissions,
    "rate-link-downs": _link_downs,
    "rate-symbol-errors": _symbol_errors,
}  # in the last sweep alone
HIGH_COUNTERS: dict[str, Make] = {"counter-high": _link_downs}  # from the start, and no more since
DRIFTS: dict[str, Make] = {  # from one sweep on
    "drift-driver": _driver,
    "drift-gpu-lost": _gpu_lost,
    "drift-firmware": _firmware_of_one,
}
