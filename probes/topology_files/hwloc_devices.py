"""What the system calls the devices of a hwloc topology (OSDev objects): GPUs, RDMA devices, interfaces."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from probes.gpu.facts import Gpu, GpuFacts, PairCell
from probes.netdev.probe import Netdev, NetdevFacts
from probes.pci.attributes import decimal
from probes.rdma.facts import Gid, RdmaDevice, RdmaFacts, RdmaPort
from probes.topology_files.hwloc_node import infos
from probes.topology_files.xml_tree import Element

_NUMBERED = re.compile(r"(nvml|rsmi)([0-9]{1,4})")
_PORT = re.compile(r"Port([0-9]{1,3})(State|LID|GID([0-9]{1,3}))")
_STATES = {"1": "DOWN", "2": "INIT", "3": "ARMED", "4": "ACTIVE", "5": "ACTIVE_DEFER"}
_NETWORK, _OPENFABRICS = 2, 3  # osdev_type up to format 2
_NETWORK_BIT, _OPENFABRICS_BIT = 16, 32  # from format 3 on it is a set
_NOT_SAID = "a hwloc topology does not say which NVLinks there are"


class Device(NamedTuple):
    """One OSDev. `address`: the PCI function that it hangs from; None: from none. `version`: of the format."""

    address: str | None
    said: Element
    version: int

    @property
    def name(self) -> str:
        """What the system, or the library that found it, calls it."""
        return self.said.said("name") or ""

    @property
    def is_interface(self) -> bool:
        """Whether it is a network interface."""
        kind = decimal(self.said.said("osdev_type") or "") or 0
        return bool(kind & _NETWORK_BIT) if self.version >= 3 else kind == _NETWORK

    @property
    def is_rdma(self) -> bool:
        """Whether it is an RDMA device."""
        kind = decimal(self.said.said("osdev_type") or "") or 0
        return bool(kind & _OPENFABRICS_BIT) if self.version >= 3 else kind == _OPENFABRICS


def gpus(devices: Sequence[Device], told_by: str) -> GpuFacts | None:
    """GPUs that NVML (the driver's own list) or ROCm SMI numbered, else those that CUDA or OpenCL name by model."""
    numbered = [device for device in devices if device.address and _NUMBERED.fullmatch(device.name)]
    if not numbered:
        models = {d.address: model for d in devices if d.address and (model := infos(d.said).get("GPUModel"))}
        made = [Gpu(address=address, name=models[address], nvlink_reason=_NOT_SAID) for address in sorted(models)]
        return GpuFacts(tuple(made), told_by=told_by) if made else None
    by_nvml = all(device.name.startswith("nvml") for device in numbered)
    return GpuFacts(tuple(map(_gpu, numbered)), pairs=tuple(_xgmi(numbered)), told_by=None if by_nvml else told_by)


def rdma(devices: Sequence[Device]) -> RdmaFacts | None:
    """RDMA devices with state, LID and GIDs of their ports."""
    found = {d.name: _device(d) for d in devices if d.name and d.is_rdma}
    return RdmaFacts(tuple(found[name] for name in sorted(found))) if found else None


def netdevs(devices: Sequence[Device]) -> NetdevFacts | None:
    """Interfaces of PCI functions."""
    found = {d.name: _netdev(d) for d in devices if d.name and d.is_interface}
    return NetdevFacts(tuple(found[name] for name in sorted(found))) if found else None


def _gpu(device: Device) -> Gpu:
    said = infos(device.said)
    uuid = said.get("NVIDIAUUID") or said.get("AMDUUID") or ""
    return Gpu(
        index=_index(device.name),
        address=device.address,
        name=said.get("GPUModel"),
        uuid=uuid if uuid.strip("0") else None,
        serial=said.get("NVIDIASerial") or said.get("AMDSerial"),
        nvlink_reason=_NOT_SAID if device.name.startswith("nvml") else None,
    )


def _index(name: str) -> int | None:
    match = _NUMBERED.fullmatch(name)
    return int(match[2]) if match else None


def _xgmi(devices: Sequence[Device]) -> Iterator[PairCell]:
    """Each pair once, where either end names the other."""
    known = {device.name for device in devices}
    pairs = set()
    for device in devices:
        for peer in infos(device.said).get("XGMIPeers", "").split():
            if peer in known and peer != device.name:
                pairs.add(tuple(sorted((_index(device.name) or 0, _index(peer) or 0))))
    for a, b in sorted(pairs):
        yield PairCell(f"GPU{a}", f"GPU{b}", "XGMI")


def _device(device: Device) -> RdmaDevice:
    said = infos(device.said)
    ports: dict[int, RdmaPort] = {}
    for key, value in said.items():
        match = _PORT.fullmatch(key)
        if match is None:
            continue
        number = int(match[1])
        port = ports.get(number, RdmaPort(port=number))
        if match[2] == "State":
            port = port._replace(state=_STATES.get(value))
        elif match[2] == "LID":
            port = port._replace(lid=_hexadecimal(value))
        else:
            port = port._replace(gids=(*port.gids, Gid(index=int(match[3]), gid=value)))
        ports[number] = port
    return RdmaDevice(
        name=device.name,
        address=device.address,
        node_guid=said.get("NodeGUID"),
        system_image_guid=said.get("SysImageGUID"),
        ports=tuple(ports[number] for number in sorted(ports)),
    )


def _hexadecimal(text: str) -> int | None:
    return int(text, 16) if re.fullmatch(r"0x[0-9a-fA-F]{1,8}", text) else None


def _netdev(device: Device) -> Netdev:
    said = infos(device.said)
    port = said.get("Port", "")
    return Netdev(
        device.name,
        address=device.address,
        mac=said.get("Address"),
        dev_port=int(port) - 1 if re.fullmatch(r"[1-9][0-9]{0,2}", port) else None,
    )
