"""Reports of small nodes with one thing or another, taken into a dataset and opened."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any

from agent.fleet.engines import connect
from tests.agent.fleet.small import report, take


def node(host: str, hour: float = 0, **more: Any) -> bytes:
    """A report. Keywords: fields of `node`, or `software`, `nics`, `netdevs`, `gpus` (UUIDs), `findings`, `summary`."""
    top = {
        key: more.pop(key)
        for key in ("software", "findings", "summary", "probes", "checks", "platform", "counters_window")
        if key in more
    }
    uuids = more.pop("gpus", [f"{host}-a", f"{host}-b"])
    topology = {"nics": more.pop("nics", []), "netdevs": more.pop("netdevs", [])}
    names = more.pop("gpu_names", [more.pop("gpu_name", None)] * len(uuids))  # None: as a source without a driver
    topology["gpus"] = [
        {"id": f"0000:0{n}:00.0", "label": f"GPU{n}", "uuid": uuid, **({"name": name} if name else {})}
        for n, (uuid, name) in enumerate(zip(uuids, names, strict=True))
    ]
    facts = {"hostname": host, "vendor": "V", "product": "P", "machine_id": f"id-of-{host}", "serial": f"no-of-{host}"}
    return report(host, hour, node={**facts, **more}, topology=topology, **top)


def finding(rule: str, label: str = "GPU0", severity: str = "warning") -> dict[str, Any]:
    """A finding of a report."""
    return {
        "rule": rule,
        "severity": severity,
        "subject": f"gpu:{label}",
        "label": label,
        "summary": f"{rule} on {label}",
        "impact": "i",
        "remedy": "r",
        "fingerprint": f"{rule}-{label}",
    }


def port(lid: int, guid: str, prefix: str = "fe80:0000:0000:0000") -> dict[str, Any]:
    """A NIC with one InfiniBand port."""
    gid = {"index": 0, "gid": f"{prefix}:{guid}", "type": "IB/RoCE v1", "netdev": None}
    state = {"link_layer": "InfiniBand", "state": "ACTIVE", "lid": lid, "sm_lid": 1, "port_guid": guid}
    return {
        "id": "0000:10:00.0",
        "label": "mlx5_0",
        "node_guid": guid,
        "role": "rail",
        "state": "present",
        "ports": [{"port": 1, "gids": [gid], "gids_known": True, **state}],
    }


def interface(label: str, mac: str, *addresses: str, driver: str | None = "mlx5_core") -> dict[str, Any]:
    """A network interface."""
    return {"id": label, "label": label, "mac": mac, "addresses": list(addresses), "driver": driver}


@contextmanager
def asked(place: Any, *reports: bytes, **more: Any) -> Any:
    """The tables of these reports."""
    take(place / "dataset", *reports, **more)
    engine = connect(None, str(place / "dataset"))
    try:
        yield engine
    finally:
        engine.close()
