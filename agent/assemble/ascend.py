"""Ascend NPUs of the report: their RoCE ports by physical id, joined with the GPU rows, and what the driver keeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from agent.assemble.facts import ProbeFacts, build_row, sort_key
from agent.model.gpu import Ascend, Gpu, NpuPort, RankDevice
from agent.model.nic import Lane, Nic, Port, TransceiverModule

if TYPE_CHECKING:
    from probes.ascend.hccn import HccnFacts
    from probes.ascend.hccn_tool import PortOptics, PortOutput

_OWN_FIELDS = {"address", "netmask", "gateway", "netdetect", "mtu", "bitmap", "tls_enable"}


def build_ascend(facts: ProbeFacts, gpus: Sequence[Gpu]) -> Ascend | None:
    """None without an NPU, and without any output about one."""
    hccn: HccnFacts | None = facts.get("hccn")
    if hccn is None:
        return Ascend() if any(gpu.vendor == "Huawei" for gpu in gpus) else None
    ids = {gpu.index: gpu.id for gpu in gpus if gpu.index is not None}
    outputs = {port.npu: port for port in hccn.outputs if port.npu is not None}
    return build_row(
        Ascend,
        hccn,
        ports=[
            _build_port(npu, ids.get(npu), hccn.keys.get(npu, {}), outputs.get(npu))
            for npu in sorted({*hccn.keys, *outputs})
        ],
        rank_tables=[build_row(RankDevice, rank, source="rank table") for rank in hccn.ranks],
    )


def _build_port(npu: int, gpu: str | None, keys: Mapping[str, str], output: PortOutput | None) -> NpuPort:
    """What the port reports; where it was not asked, what was set for it."""
    return NpuPort(
        npu=npu,
        gpu=gpu,
        nic=_roce_id(npu),
        address=(output.address if output else None) or keys.get("address"),
        netmask=(output.netmask if output else None) or keys.get("netmask"),
        gateway=(output.gateway if output else None) or keys.get("gateway"),
        detect_address=(output.detect_address if output else None) or keys.get("netdetect"),
        mtu=_to_number(keys.get("mtu")),
        pfc=list(output.pfc) if output and output.pfc is not None else parse_bitmap(keys.get("bitmap")),
        tls=output.tls
        if output and output.tls is not None
        else {"0": False, "1": True}.get(keys.get("tls_enable", "")),
        fec=output.fec if output else None,
        health=output.health if output else None,
        switch_port=output.switch_port if output else None,
        module=_build_module(output.optics) if output and output.optics else None,
        settings={key: value for key, value in sorted(keys.items()) if key not in _OWN_FIELDS},
    )


def _roce_id(npu: int) -> str:
    return f"npu-{npu}-roce"


def _build_module(optics: PortOptics) -> TransceiverModule:
    lanes = sorted({*optics.rx_power_dbm, *optics.tx_power_dbm, *optics.tx_bias_ma})
    return build_row(
        TransceiverModule,
        optics,
        state="absent" if not optics.present else "low_power" if optics.high_power is False else None,
        thresholds=dict(sorted(optics.limits.items())),
        flags=sorted(optics.flags),
        lanes=[
            Lane(
                lane=lane,
                rx_power_dbm=optics.rx_power_dbm.get(lane),
                tx_power_dbm=optics.tx_power_dbm.get(lane),
                tx_bias_ma=optics.tx_bias_ma.get(lane),
            )
            for lane in lanes
        ],
    )


def add_roce_ports(nics: Sequence[Nic], ports: Sequence[NpuPort], facts: ProbeFacts) -> list[Nic]:
    """The NICs of the host, and a row for the RoCE port inside each NPU: it has no function on the bus of the host."""
    hccn: HccnFacts | None = facts.get("hccn")
    outputs = {port.npu: port for port in hccn.outputs} if hccn else {}
    own = [
        Nic(
            id=_roce_id(port.npu),
            label=f"NPU{port.npu}",
            accelerator=port.gpu or f"npu-{port.npu}",
            model="RoCE port of an Ascend NPU",
            role="rail",
            role_evidence=["inside an NPU, which alone uses it"],
            ports=[_build_link(outputs.get(port.npu))],
        )
        for port in ports
    ]
    return sorted([*nics, *own], key=lambda nic: sort_key(nic.id))


def _build_link(output: PortOutput | None) -> Port:
    if output is None:
        return Port(port=1, link_layer="Ethernet")
    speed = output.speed_mbit_s if output.state != "down" else None
    return Port(
        port=1,
        link_layer="Ethernet",
        state={"up": "ACTIVE", "down": "DOWN"}.get(output.state or ""),
        rate_gbit_s=speed / 1000 if speed else None,
        hw_counters=dict(sorted((output.counters or {}).items())),
    )


def parse_bitmap(text: str | None) -> list[int] | None:
    """Priorities with PFC, as /etc/hccn.conf has them.

    >>> parse_bitmap("0,0,0,0,1,0,0,0"), parse_bitmap("0,0"), parse_bitmap(None)
    ([4], None, None)
    """
    bits = (text or "").split(",")
    if len(bits) != 8 or not {*bits} <= {"0", "1"}:
        return None
    return [priority for priority, bit in enumerate(bits) if bit == "1"]


def _to_number(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) <= 6 else None
