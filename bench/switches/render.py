"""Writes the outputs of made switches, the reports of made hosts and the plan, each in its own form."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.switches.fabric import CNP, DSCP, PRIORITY, MadeFabric, MadePort, MadeRail, MadeSwitch

QUEUES = range(8)


def write(fabric: MadeFabric, folder: Path) -> None:
    """Folders `now` and `before` of outputs, `reports.ndjson`, `plan.csv`."""
    for moment in ("now", "before"):
        for switch in fabric.switches.values():
            place = folder / moment / switch.name
            place.mkdir(parents=True, exist_ok=True)
            for name, text in _outputs(switch, moment == "before").items():
                (place / name).write_text(text)
    (folder / "reports.ndjson").write_text("".join(report + "\n" for report in _reports(fabric)))
    (folder / "plan.csv").write_text(_plan(fabric))


def _outputs(switch: MadeSwitch, before: bool) -> dict[str, str]:
    return {"sonic": _sonic, "cumulus": _cumulus, "other": _lines}[switch.system](switch, before)


def _counts(port: MadePort, before: bool) -> dict[str, int]:
    return port.before if before else port.now


def _far(port: MadePort) -> tuple[str, str, str]:
    """Name, port id and description as the far end sends them: SONiC sends its alias."""
    name, far = port.told_far or (port.far, port.far_port)
    return name, port.far_alias or far, far


# --- SONiC


def _sonic(switch: MadeSwitch, before: bool) -> dict[str, str]:
    ports = switch.ports
    counts = {port.name: _counts(port, before) for port in ports}
    return {
        "config_db.json": json.dumps(_config_db(switch), indent=1),
        "show_interfaces_status.txt": _table(
            ("Interface", "Lanes", "Speed", "MTU", "FEC", "Alias", "Vlan", "Oper", "Admin", "Type", "Asym PFC"),
            [
                (
                    p.name,
                    "1,2,3,4,5,6,7,8",
                    f"{p.speed}G",
                    p.mtu,
                    p.fec,
                    p.alias,
                    "routed",
                    "up",
                    "up",
                    "OSFP 8X",
                    "on" if p.asymmetric else "off",
                )
                for p in ports
            ],
        ),
        "show_lldp_table.txt": "Capability codes: (R) Router, (B) Bridge, (O) Other\n"
        + _table(
            ("LocalPort", "RemoteDevice", "RemotePortID", "Capability", "RemotePortDescr"),
            [(p.name, *_far(p)[:2], "BR", _far(p)[2]) for p in ports],
            right=False,
        )
        + f"{'-' * 50}\nTotal entries displayed:  {len(ports)}\n",
        "show_pfc_counters.txt": "\n".join(
            _table(
                (f"Port {way.title()}", *(f"PFC{n}" for n in QUEUES)),
                [(p.name, *(f"{counts[p.name][way]:,}" if n in p.pfc else "0" for n in QUEUES)) for p in ports],
            )
            for way in ("rx", "tx")
        ),
        "show_pfcwd_stats.txt": _table(
            (
                "QUEUE",
                "STATUS",
                "STORM DETECTED/RESTORED",
                "TX OK/DROP",
                "RX OK/DROP",
                "TX LAST OK/DROP",
                "RX LAST OK/DROP",
            ),
            [
                (
                    f"{p.name}:{n}",
                    "stormed" if p.stormed else "operational",
                    "1/0" if p.stormed else "0/0",
                    "0/0",
                    "0/0",
                    "0/0",
                    "0/0",
                )
                for p in ports
                for n in p.pfc
            ],
        ),
        "show_priority-group_drop_counters.txt": "Ingress PG dropped packets:\n"
        + _table(
            ("Port", *(f"PG{n}" for n in QUEUES)),
            [(p.name, *(f"{counts[p.name]['group_drops']:,}" if n in p.pfc else "0" for n in QUEUES)) for p in ports],
        ),
        "show_interfaces_counters_fec-stats.txt": _table(
            ("IFACE", "STATE", "FEC_CORR", "FEC_UNCORR", "FEC_SYMBOL_ERR", "FEC_PRE_BER", "FEC_POST_BER"),
            [(p.name, "U", "130,402", f"{counts[p.name]['uncorrected']:,}", 0, "1.20e-09", "0.00e+00") for p in ports],
        ),
        "portstat_-fh.txt": _table(
            ("IFACE", *(f"BIN{n}" for n in range(16))),
            [
                (
                    p.name,
                    "4,374,661,575",
                    *(0 for _ in range(9)),
                    f"{counts[p.name]['near_limit']:,}",
                    *(0 for _ in range(5)),
                )
                for p in ports
            ],
        ),
        "show_interfaces_flap.txt": _table(
            ("Interface", "Flap Count", "Admin", "Oper", "Link Down TimeStamp(UTC)", "Link Up TimeStamp(UTC)"),
            [(p.name, counts[p.name]["flaps"], "Up", "Up", "Never", "Sat Feb 21 11:00:41 2026") for p in ports],
        ),
        "show_queue_counters.txt": "\n".join(
            _table(
                ("Port", "TxQ", "Counter/pkts", "Counter/bytes", "Drop/pkts", "Drop/bytes"),
                [
                    (
                        p.name,
                        f"UC{n}",
                        f"{counts[p.name]['packets']:,}" if n in p.pfc else "0",
                        f"{counts[p.name]['bytes' if n in p.pfc else 'first']:,}" if n in (*p.pfc, 6) else "0",
                        f"{counts[p.name]['drops']:,}",
                        "N/A",
                    )
                    for n in QUEUES
                ],
            )
            for p in ports
        ),
        **_sonic_options(switch, counts),
    }


def _sonic_options(switch: MadeSwitch, counts: dict[str, dict[str, int]]) -> dict[str, str]:
    """Outputs of what few switches have."""
    outputs = {}
    if any(p.retry for p in switch.ports):
        outputs["show_llr_interface.txt"] = _table(
            ("PORT", "LLR Mode", "LLR Local", "LLR Remote", "LLR Profile"),
            [
                (p.name, "static", *["enabled" if p.retry else "disabled"] * 2,
                 f"llr_{p.speed}000_{p.retry}m_profile" if p.retry else "N/A")
                for p in switch.ports
            ],
        )  # fmt: skip
    elif any(p.far and not p.far_is_host for p in switch.ports):
        outputs["show_llr_interface.txt"] = _table(
            ("PORT", "LLR Mode", "LLR Local", "LLR Remote", "LLR Profile"),
            [(p.name, "static", "disabled", "disabled", "N/A") for p in switch.ports],
        )
    if switch.trimming:
        outputs["show_queue_counters_--trim.txt"] = "\n".join(
            _table(
                ("Port", "TxQ", "Trim/pkts", "TrimSent/pkts", "TrimDrop/pkts"),
                [(p.name, "UC3", "1,000", "900", f"{counts[p.name]['trim_drops']:,}")],
            )
            for p in switch.ports
        )
    if switch.pool:
        outputs["show_headroom-pool_watermark.txt"] = "Headroom pool maximum occupancy:\n" + _table(
            ("Pool", "Bytes"), [("ingress_lossless_pool", f"{switch.pool[1]}"), ("egress_lossy_pool", "N/A")]
        )
    return outputs


def _config_db(switch: MadeSwitch) -> dict[str, Any]:
    maps: dict[str, dict[str, str]] = {}
    names: dict[str, str] = {}
    chosen: dict[str, str] = {}
    for port in switch.ports:
        row = {str(dscp): str(port.priorities.get(dscp, 0)) for dscp in range(64)}
        key = json.dumps(row)
        names.setdefault(key, f"ROCE{len(names) or ''}")
        maps[names[key]] = row
        chosen[port.name] = names[key]
    identity = {str(n): str(n) for n in QUEUES}
    qos, queues, watchdog = {}, {}, {"GLOBAL": {"POLL_INTERVAL": "200"}}
    for port in switch.ports:
        row = {"tc_to_pg_map": "ROCE", "tc_to_queue_map": "ROCE", "pfc_to_queue_map": "ROCE"}
        if port.trust == "dscp":
            row["dscp_to_tc_map"] = chosen[port.name]
        if port.pfc:
            row["pfc_enable"] = ",".join(map(str, port.pfc))
        watches = port.pfc if port.watches is None else port.watches
        if watches:
            row["pfcwd_sw_enable"] = ",".join(map(str, watches))
        qos[port.name] = row
        if port.watchdog:
            watchdog[port.name] = {
                "action": port.action,
                "detection_time": str(port.detect_ms),
                "restoration_time": "200",
            }
        for n in QUEUES:
            kind = "cnp" if n == 6 and port.cnp_strict else f"data{port.weight}" if n in port.pfc else "data50"
            queues[f"{port.name}|{n}"] = {"scheduler": kind}
            if port.ecn and n in (3, 4):
                name = "WRED_ONLY" if port.wred_only else f"ECN_{port.ecn[0]}_{port.ecn[1]}"
                queues[f"{port.name}|{n}"]["wred_profile"] = name
    profiles = {
        f"ECN_{low}_{high}": {
            "ecn": "ecn_all",
            "wred_green_enable": "true",
            "green_min_threshold": str(low),
            "green_max_threshold": str(high),
            "green_drop_probability": "10",
        }
        for low, high in {port.ecn for port in switch.ports if port.ecn}
    }
    profiles["WRED_ONLY"] = {
        "wred_green_enable": "true",
        "green_min_threshold": "1000000",
        "green_max_threshold": "3000000",
        "green_drop_probability": "10",
    }
    weights = {f"data{w}": {"type": "DWRR", "weight": str(w)} for w in {50, *(port.weight for port in switch.ports)}}
    extra: dict[str, Any] = {"SWITCH_TRIMMING": {"GLOBAL": {"size": "256"}}} if switch.trimming else {}
    if switch.pool:
        extra["BUFFER_POOL"] = {"ingress_lossless_pool": {"type": "ingress", "xoff": str(switch.pool[0])}}
    return extra | {
        "DEVICE_METADATA": {"localhost": {"hostname": switch.name, "hwsku": "ACS-SN5600", "type": "ToRRouter"}},
        "PORT": {
            p.name: {
                "alias": p.alias,
                "speed": str(p.speed * 1000),
                "mtu": str(p.mtu),
                "fec": p.fec,
                "admin_status": "up",
            }
            for p in switch.ports
        },
        "CABLE_LENGTH": {"AZURE": {p.name: f"{p.metres}m" for p in switch.ports}},
        "DSCP_TO_TC_MAP": maps,
        "TC_TO_PRIORITY_GROUP_MAP": {"ROCE": identity},
        "TC_TO_QUEUE_MAP": {"ROCE": identity},
        "MAP_PFC_PRIORITY_TO_QUEUE": {"ROCE": identity},
        "PORT_QOS_MAP": qos,
        "WRED_PROFILE": profiles,
        "SCHEDULER": weights | {"cnp": {"type": "STRICT"}},
        "QUEUE": queues,
        "PFC_WD": watchdog,
    }


def _table(names: Sequence[object], rows: Sequence[Sequence[object]], right: bool = True) -> str:
    """As Python's tabulate prints it."""
    cells = [[str(cell) for cell in row] for row in (names, *rows)]
    widths = [max(len(row[at]) for row in cells) for at in range(len(names))]

    def line(row: Sequence[str]) -> str:
        return "  ".join(
            cell.rjust(width) if right else cell.ljust(width) for cell, width in zip(row, widths, strict=True)
        ).rstrip()

    return "\n".join([line(cells[0]), "  ".join("-" * width for width in widths), *map(line, cells[1:])]) + "\n"


# --- Cumulus


def _cumulus(switch: MadeSwitch, before: bool) -> dict[str, str]:
    outputs = {
        "nv_config_show_-o_json.json": json.dumps([{"header": {"model": "SN5600"}}, {"set": _nvue_root(switch)}]),
        "nv_show_interface_-o_json.json": json.dumps(
            {
                p.name: {
                    "link": {"mtu": p.mtu, "speed": f"{p.speed}G", "fec": p.fec, "state": {"up": {}}},
                    "lldp": {
                        "neighbor": {
                            _far(p)[0]: {
                                "chassis": {"system-name": _far(p)[0]},
                                "port": {"name": _far(p)[1], "description": _far(p)[2], "type": "ifname"},
                            }
                        }
                    },
                    "type": "swp",
                }
                for p in switch.ports
            }
        ),
    }
    for p in switch.ports:
        counts = _counts(p, before)
        outputs[f"nv_show_interface_{p.name}_counters_qos_-o_json.json"] = json.dumps(
            {
                "ingress-buffer-stats": {
                    "priority-group": {
                        str(n): {"rx-frames": 1, "rx-buffer-discards": counts["group_drops"]} for n in p.pfc or [3]
                    },
                },
                "egress-queue-stats": {
                    "traffic-class": {
                        str(n): {
                            "tx-frames": counts["packets"],
                            "tx-bytes": counts["bytes"],
                            "tx-uc-buffer-discards": counts["drops"],
                        }
                        for n in p.pfc or [3]
                    }
                    | {"6": {"tx-frames": 1, "tx-bytes": counts["first"], "tx-uc-buffer-discards": 0}},
                },
                "pfc-stats": {
                    "switch-priority": {
                        str(n): {"rx-pause-frames": counts["rx"], "tx-pause-frames": counts["tx"]} for n in p.pfc or [3]
                    },
                },
            }
        )
        if p.stormed:
            outputs[f"nv_show_interface_{p.name}_qos_pfc-watchdog_-o_json.json"] = json.dumps(
                {"state": "enabled", "status": {"3": {"status": "DEADLOCK", "deadlock-count": 1}}}
            )
    return outputs


def _nvue_root(switch: MadeSwitch) -> dict[str, Any]:
    qos: dict[str, Any] = {
        name: {} for name in ("mapping", "pfc", "egress-queue-mapping", "egress-scheduler", "congestion-control")
    }
    qos["roce"] = {"enable": "off"}
    qos["pfc-watchdog"] = {"polling-interval": "0:00:00.100", "robustness": 3}
    interfaces = {}
    for p in switch.ports:
        profile = f"p-{p.name}"
        qos["mapping"][profile] = {
            "trust": {"dscp": "l3", "none": "port", "pcp": "l2"}[p.trust],
            "dscp": {str(dscp): {"switch-priority": p.priorities.get(dscp, 0)} for dscp in range(64)},
        }
        qos["pfc"][profile] = {
            "switch-priority": {str(n): {} for n in p.pfc},
            "cable-length": p.metres,
            "tx": "enable",
            "rx": "enable",
        }
        qos["egress-queue-mapping"][profile] = {"switch-priority": {str(n): {"traffic-class": n} for n in QUEUES}}
        qos["egress-scheduler"][profile] = {
            "traffic-class": {
                "0": {"mode": "dwrr", "bw-percent": 100 - p.weight},
                "3": {"mode": "dwrr", "bw-percent": p.weight},
                "6": {"mode": "strict"} if p.cnp_strict else {"mode": "dwrr", "bw-percent": 1},
            }
        }
        qos["congestion-control"][profile] = {
            "traffic-class": {
                str(n): {
                    "ecn": "disable" if p.wred_only else "enable",
                    "red": "enable",
                    "min-threshold": p.ecn[0],
                    "max-threshold": p.ecn[1],
                    "probability": 100,
                }
                for n in (3, 4)
                if p.ecn
            }
        }
        own: dict[str, Any] = {kind: {"profile": profile} for kind in qos if kind not in ("roce", "pfc-watchdog")}
        if p.watchdog:
            own["pfc-watchdog"] = {"state": "enable"}
        interfaces[p.name] = {"type": "swp", "link": {"mtu": p.mtu}, "qos": own}
    return {"system": {"hostname": switch.name}, "qos": qos, "interface": interfaces}


# --- all others: normalized lines


def _lines(switch: MadeSwitch, before: bool) -> dict[str, str]:
    rows: list[dict[str, Any]] = [{"name": switch.name, "nos": "eos"}]
    for p in switch.ports:
        name, far, _ = _far(p)
        row = {
            "switch": switch.name, "port": p.name, "oper": "up", "speed_gbit_s": p.speed, "mtu": p.mtu,
            "fec_active": p.fec, "neighbor_name": name, "neighbor_port": far, "trust": p.trust,
            "dscp_prio": " ".join(f"{dscp}:{p.priorities.get(dscp, 0)}" for dscp in range(64)),
            "prio_queue": " ".join(f"{n}:{n}" for n in QUEUES),
            "pfc": _bits(p.pfc) if p.pfc_known else None, "pfc_mode": p.pfc_mode,
            "pfc_active": None if p.in_use is None else _bits(p.in_use), "asymmetric": p.asymmetric,
            "pause": "both" if p.pause else "off",
            "queue_sched": f"0:{100 - p.weight} {PRIORITY}:{p.weight} 6:{'strict' if p.cnp_strict else 1}",
            "pfc_wd": "on" if p.watchdog else "off",
            "wd_action": p.action, "wd_detect_ms": p.detect_ms, "cable_metres_assumed": p.metres,
            "ecn": {str(n): {"min_bytes": p.ecn[0], "max_bytes": p.ecn[1], "percent": 100}
                    for n in (3, 4)} if p.ecn else {},
            **({"ecn_active": {"3": {"min_bytes": p.chip_ecn[0], "max_bytes": p.chip_ecn[1]}}} if p.chip_ecn else {}),
            **({"wd_state": "stormed"} if p.stormed else {}),
        }  # fmt: skip
        rows.append(row)
        counts = _counts(p, before)
        subject = f"swport:{switch.name}/{p.name}"
        prio = p.pfc[0] if p.pfc else 3
        for counter, key in (
            (f"pfc_rx_prio{prio}", "rx"), (f"pfc_tx_prio{prio}", "tx"), (f"drop_queue{prio}", "drops"),
            (f"drop_pg{prio}", "group_drops"), (f"queue_bytes_{prio}", "bytes"), ("queue_bytes_6", "first"),
            ("fec_uncorrected", "uncorrected"), ("fec_near_limit", "near_limit"), ("flaps", "flaps"),
        ):  # fmt: skip
            rows.append({"subject": subject, "name": counter, "value": counts[key]})
    return {"rows.jsonl": "".join(json.dumps(row) + "\n" for row in rows)}


def _bits(priorities: Sequence[int]) -> str:
    return "".join("1" if n in priorities else "0" for n in QUEUES)


# --- hosts and the plan


def _reports(fabric: MadeFabric) -> list[str]:
    by_host: dict[str, list[MadeRail]] = {}
    for rail in fabric.rails:
        by_host.setdefault(rail.host, []).append(rail)
    return [json.dumps(_report(host, rails)) for host, rails in by_host.items()]


def _report(host: str, rails: Sequence[MadeRail]) -> dict[str, Any]:
    return {
        "schema": "fabricscope.report/1",
        "schema_minor": 2,
        "generated_at": "2026-01-15T08:00:00Z",
        "observed_at": "2026-01-15T08:00:00Z",
        "generator": {"name": "fabricscope", "version": "0.1.0"},
        "source": {"kind": "live", "path": None},
        "duration_seconds": 1.0,
        "node": {"hostname": host, "vendor": "V", "product": "P"},
        "software": {
            "nccl": {"settings": [{"key": "NCCL_IB_TC", "value": str(DSCP * 4), "source": "/etc/nccl.conf:1"}]}
        },
        "topology": {
            "gpus": [],
            "nics": [
                {
                    "id": f"0000:0{rail.rail + 1}:00.0", "label": f"mlx5_{rail.rail}",
                    "rdma_device": f"mlx5_{rail.rail}", "role": "rail",
                    "ports": [{"port": 1, "link_layer": "Ethernet", "state": "ACTIVE", "netdevs": [rail.name],
                               "hw_counters": {"packet_seq_err": rail.losses}}],
                }
                for rail in rails
            ],
            "netdevs": [
                {
                    "id": rail.name, "label": rail.name, "nic": f"0000:0{rail.rail + 1}:00.0", "mac": rail.mac,
                    "operstate": "up", "speed_gbit_s": 400.0, "mtu": rail.mtu, "fec": {"active": "rs"},
                    "module": {"identifier": "OSFP", "length_m": float(rail.metres)},
                    "neighbor": {"system": rail.switch, "port": rail.alias or rail.port},
                    "qos": {
                        "trust": "dscp", "pfc": [n in rail.pfc for n in range(8)],
                        "dscp_prio": {str(dscp): prio for dscp, prio in rail.priorities.items()}, "cnp_dscp": CNP,
                    },
                }
                for rail in rails
            ],
        },
        "summary": {"verdict": "ok", "counts": {}, "unknown_rules": []},
    }  # fmt: skip


def _plan(fabric: MadeFabric) -> str:
    rows = ["node,rail,switch,port,metres"]
    rows += [
        f"{switch},{name},{port.far},{port.far_port},{metres}"
        for (switch, name), metres in fabric.lengths.items()
        for port in [fabric.port(switch, name)]
    ]
    return "\n".join(rows) + "\n"
