"""One fact of one of several parts is changed in the evidence of a healthy machine, for every fact of the description.

`python -m tests.matrix.single` takes minutes, and writes what was found into docs/scope.md. No cause is written: what
describes a GPU or a rail (fixtures/description.py) is changed on one of them, and the machine is scanned.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import msgspec

from agent.diagnose import ScanPlan, diagnose
from agent.model.finding import SEVERITIES
from fixtures.description import FunctionSpec
from fixtures.loader import read_table
from fixtures.machine import parse_machine
from tests.conftest import ROOT
from tests.machines import scan_machine
from tests.matrix.cases import overlaid

PAGE = ROOT / "docs" / "scope.md"
MACHINES = (
    "8xh200-sxm-2s-16xcx7-roce-4nvsw", "8xh100-sxm-2s-8xcx7-ib-4nvsw", "8xmi300x-2s-8xcx7-roce",
    "4xgb200-tray-2xgrace-4xcx7-ib",
)  # fmt: skip
# What a text is changed to, and lists and numbers that have few values
OTHERS: dict[str, Any] = {
    "driver": "", "subsystem": "1028:1234", "revision": "b2", "aspm": "L1", "power_state": "D3hot", "gen": 3,
    "width": 8, "max_gen": 4, "max_width": 8, "target_gen": 3, "errors": {"correctable.TOTAL_ERR_COR": 90_000},
    "rdma.rate": "100 Gb/sec (2X HDR)", "rdma.state": "DOWN", "rdma.firmware": "28.39.1002", "rdma.board_id": "MT_1",
    "rdma.gid_types": ["IB/RoCE v1"], "rdma.subnet": "fec0:0000:0000:0001", "rdma.pkeys": ["0x8001"],
    "rdma.counters": {"link_downed": 5_000}, "rdma.traffic_class": 96, "rdma.cma_mode": "IB/RoCE v1",
    "net.operstate": "down", "net.pause": "rx tx", "net.fec": "off", "net.prefix": 24, "net.address": "",
    "net.counters": {"rx_crc_errors_phy": 90_000}, "net.vlans": [{"id": 7}], "net.dcb_error": "EOPNOTSUPP",
    "net.qos.pfc": [], "net.qos.trust": "pcp", "net.qos.prio_tc": [0] * 8, "net.qos.tsa": ["strict"] * 8,
    "net.qos.dscp": {"26": 5}, "net.qos.dcbx": ["lld_managed", "ieee"], "net.qos.prio_buffer": [0] * 8,
    "net.qos.peer_pfc": [4], "net.qos.max_rate_kbit_s": [0, 0, 0, 50_000_000, 0, 0, 0, 0],
    "net.ecn": {"notification": [], "reaction": []}, "net.module.state": "fault", "net.module.media": "copper",
    "net.module.part": "another", "net.module.voltage_v": 3.7, "net.module.rx_power_dbm": [-9.0] * 4,
    "net.module.tx_power_dbm": [-9.0] * 4, "net.module.tx_bias_ma": [13.0] * 4,
    "net.module.flags": ["temperature_high_alarm"], "net.module.lane_flags": {"1": ["rx_los"]},
    "gpu.name": "another", "gpu.vbios": "90.00.00.00.01", "gpu.compute_capability": [8, 0], "gpu.recovery": 1,
    "gpu.uncorrectable": [2, 2], "gpu.remapped": [0, 0, 0, 1], "gpu.pages_pending": True, "gpu.cluster_uuid": "1" * 32,
    "gpu.nvlink_inactive": [3], "gpu.link_mbyte_s": {"3": 13_281}, "gpu.link_errors": {"3": {"161": 90_000}},
    "gpu.pcie_counters": {"94": 90_000}, "gpu.c2c_inactive": [2], "gpu.c2c_errors": [0, 90_000, 0],
    "gpu.repairs_pending": [True, False], "gpu.bandwidth_mode": 1, "gpu.addressing": 0, "gpu.fabric_state": 1,
    "gpu.fabric_health": 1, "gpu.clock_limits": 8, "gpu.error": "GPU_IS_LOST", "gpu.application_clock_mhz": 900,
}  # fmt: skip
# What the machine is built from, and no fact of it
_BUILT = re.compile(
    r"(?:.*\.)?(?:name|port_name|class_code|vendor|device|port|bus|slot|numa|serial|form|type|dev_port|hca_type|image|"
    r"link_layer|here|monitors|lanes|bond_mode|architecture|mig_instances|module_id|module|has_serial|nvlinks|"
    r"nvlink_version|c2c_links|memory_node|chassis|runtime_status|bars|acs|acs_control|ats|peer|card_present|"
    r"retrained|link_disabled|virtualization|sram_threshold|ports|length_m|address)"
)


def list_leaves(spec: msgspec.Struct, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Every value of a description by its path."""
    for name in spec.__struct_fields__:
        value = getattr(spec, name)
        if isinstance(value, msgspec.Struct):
            yield from list_leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def change_value(path: str, value: Any) -> Any:
    """Another value; None where there is none that a part could have."""
    if path in OTHERS:
        return OTHERS[path]
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float) and value:
        return type(value)(value // 2 if value > 1 else value * 2)
    return None


def list_changes(shape: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Kind, path and overlay of each fact of one GPU and one rail of a machine."""
    topology = scan_machine(shape).topology
    nodes = {node.address: node.function for node in parse_machine(read_table("hosts", shape), shape).nodes}
    rails = [nic.pci or "" for nic in topology.host_nics if nic.role == "rail"]
    for kind, devices in (("GPU", [gpu.pci or "" for gpu in topology.gpus]), ("rail", rails)):
        device = devices[len(devices) // 2]
        function: FunctionSpec = nodes[device]
        for path, value in list_leaves(function):
            other = None if _BUILT.fullmatch(path) else change_value(path, value)
            if other is not None and other != value:
                overlay = other
                for name in reversed(path.split(".")):
                    overlay = {name: overlay}
                yield kind, path, {"device": {device: overlay}}


def find_severity(shape: str, overlay: dict[str, Any]) -> str:
    """Of the gravest finding that the healthy machine does not have; "silent" where there is none."""
    healthy = {(row.rule, row.subject, row.severity) for row in scan_machine(shape).findings}
    report, _ = diagnose(overlaid(shape, overlay), ScanPlan())
    new = [row.severity for row in report.findings if (row.rule, row.subject, row.severity) not in healthy]
    return max(new, key=SEVERITIES.index, default="silent")


def format_section(found: dict[tuple[str, str], dict[str, str]]) -> str:
    """The table of the page. `found`: severity by machine, of each kind and path."""
    lines = ["| part | facts | machines | error, critical | warning | note | silent |", "|---|---|---|---|---|---|---|"]
    silent: dict[str, list[str]] = defaultdict(list)
    for kind in dict.fromkeys(kind for kind, _ in found):
        rows = {path: severities for (own, path), severities in found.items() if own == kind}
        all_of = [severity for severities in rows.values() for severity in severities.values()]
        counts = [sum(severity in names for severity in all_of) for names in (("error", "critical"), ("warning",))]
        counts += [all_of.count("info"), all_of.count("silent")]
        lines.append(f"| one {kind} | {len(rows)} | {len(MACHINES)} | {' | '.join(map(str, counts))} |")
        silent[kind] = [path for path, severities in rows.items() if set(severities.values()) == {"silent"}]
    texts = [
        f"Silent on every machine, of one {kind}: {', '.join(map(_quote, paths))}." for kind, paths in silent.items()
    ]
    return "\n".join([*lines, "", *texts, ""])


def _quote(path: str) -> str:
    return f"`{path}`"


def main() -> None:
    """Change every fact, and write the section."""
    found: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    for shape in MACHINES:
        for kind, path, overlay in list_changes(shape):
            try:
                found[kind, path][shape] = find_severity(shape, overlay)
            except Exception as why:  # noqa: BLE001  # a value that the builder of the machine rejects
                sys.stderr.write(f"{shape} {kind} {path}: {why!r}\n"[:200])
    found = {key: severities for key, severities in found.items() if severities}
    text = re.sub(
        r"(?<=<!-- one fact -->\n\n).*?(?=\n## |\Z)", lambda _: format_section(found), PAGE.read_text(), flags=re.DOTALL
    )
    PAGE.write_text(text)


if __name__ == "__main__":
    main()
