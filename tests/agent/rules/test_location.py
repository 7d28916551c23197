"""Where a part is: form factor, slot, module, identifiers and the far end, of every kind of subject."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from agent.model.gpu import Ascend, C2c, NpuPort, NvSwitch
from agent.model.nic import FabricNeighbor, Neighbor, Nic
from agent.model.node import Chassis, Platform
from agent.model.pci import PciFunction
from agent.rules.context import RuleContext
from agent.rules.location import find_common_form_factor, find_location, find_npu_number
from tests.agent.rules.build import (
    changed_gpu,
    changed_netdev,
    changed_nic,
    changed_port,
    function,
    gpu_id,
    nic_id,
    node,
    server,
    topology,
    virtual,
)

GPU, NIC, GUID, MAC = gpu_id(0), nic_id(0), "b83f:d203:0000:0001", "02:00:00:00:00:00"
NODE_GUID = "0000:0000:0000:0000"
IB, ROCE = server(), server(ethernet=True)
DGX = replace(IB, platform=Platform(profile="dgx-h100"))
PORT = IB.nics[NIC].ports[0]
TWO_PORTS = [msgspec.structs.replace(PORT, port=n, port_guid=guid) for n, guid in ((1, GUID), (2, None))]
DUAL = function(changed_nic(IB, 0, ports=TWO_PORTS), NIC, slot="5")
LEAF = {"system": "leaf0", "port": "swp1"}
OF_GPU = {"uuid": "GPU-00000000", "pci": GPU}
OF_NIC = {"pci": NIC, "port_guid": NODE_GUID}
SWITCH = NvSwitch(id="nvswitch0", pci="0000:90:00.0")
BRIDGE = PciFunction(id="0000:90:00.0", class_code="0x068000", vendor="0x10de")
DRIVE = PciFunction(id="0000:91:00.0", class_code="0x010802", vendor="0x144d", slot="9")


def with_functions(*functions: PciFunction) -> RuleContext:
    """The server with more on its bus, and one NVSwitch."""
    return topology(IB, pci=[*IB.topology.pci, *functions], nvswitches=[SWITCH])


def named(name: str | None, **changes: Any) -> RuleContext:
    """The server with GPU 0 of that name."""
    return changed_gpu(IB, 0, name=name, **changes)


def with_lldp(neighbor: Neighbor | None) -> RuleContext:
    """The RoCE server with that at the far end of rail 0."""
    return changed_netdev(ROCE, 0, neighbor=neighbor)


def locate(context: RuleContext, subject: str) -> dict[str, Any] | None:
    """What is known of the place of a subject."""
    location = find_location(context, subject)
    return strip(msgspec.to_builtins(location)) if location else None


def strip(row: dict[str, Any]) -> dict[str, Any]:
    """Without what is not known, at every depth."""
    return {k: strip(v) if isinstance(v, dict) else v for k, v in row.items() if v is not None}


@pytest.mark.parametrize(
    ("context", "subject", "expected"),
    [
        (IB, "node", None),
        (node(IB, serial="S1"), "node", {"part": "node", "serial": "S1"}),
        (
            node(IB, chassis=Chassis(serial="C1", slot="7")),
            "node",
            {"part": "node", "serial": "C1", "slot": "7"},
        ),
        (node(IB, serial="S1", chassis=Chassis(serial="C1")), "node", {"part": "node", "serial": "S1"}),
        (IB, f"pair:{GPU}+{NIC}", None),
        (IB, f"gpu:{GPU}", {"part": "SXM module", "form_factor": "sxm", **OF_GPU}),
        (
            named("NVIDIA H200", module_id=3, serial="165"),
            f"gpu:{GPU}",
            {"part": "SXM module 3", "form_factor": "sxm", "module_id": 3, "serial": "165", **OF_GPU},
        ),
        (IB, f"link:{GPU}/4", {"part": "NVLink 4 of SXM module", "form_factor": "sxm", **OF_GPU}),
        # of a module the slot of the bus is not where it sits
        (function(IB, GPU, slot="21"), f"gpu:{GPU}", {"part": "SXM module", "form_factor": "sxm", **OF_GPU}),
        (
            function(named("NVIDIA L40S"), GPU, slot="21"),
            f"gpu:{GPU}",
            {"part": "PCIe card in slot 21", "form_factor": "pcie-card", "slot": "21", **OF_GPU},
        ),
        (
            function(named("NVIDIA L40S", module_id=2), GPU, slot=None),
            f"gpu:{GPU}",
            {"part": "PCIe card", "form_factor": "pcie-card", "module_id": 2, **OF_GPU},
        ),
        (
            function(named("unheard of"), GPU, slot="21"),
            f"gpu:{GPU}",
            {"part": "GPU in slot 21", "slot": "21", **OF_GPU},
        ),
        (
            changed_gpu(IB, 0, id="GPU-x"),
            f"pci:{GPU}",
            {"part": "SXM module", "form_factor": "sxm", **OF_GPU},
        ),
        (changed_gpu(IB, 0, id="GPU-x"), "gpu:GPU-x", {"part": "SXM module", "form_factor": "sxm", **OF_GPU}),
        (virtual(IB), f"gpu:{GPU}", {"part": "virtual device", "form_factor": "virtual", **OF_GPU}),
        (IB, f"pci:{NIC}", {"part": "NIC", **OF_NIC}),
        (IB, f"port:{NIC}/1", {"part": "NIC", **OF_NIC}),
        (changed_port(IB, 0, port_guid=GUID), f"pci:{NIC}", {"part": "NIC", "pci": NIC, "port_guid": GUID}),
        (changed_nic(ROCE, 0, ports=[]), f"pci:{NIC}", {"part": "NIC", "mac": MAC, "far_end": LEAF, **OF_NIC}),
        (IB, f"port:{NIC}/2", {"part": "NIC", **OF_NIC}),
        (changed_nic(IB, 0, id="n0", pci=NIC), "pci:n0", {"part": "NIC", **OF_NIC}),
        (
            function(changed_port(IB, 0, port_guid=GUID), NIC, slot="5"),
            f"port:{NIC}/1",
            {"part": "PCIe card in slot 5", "form_factor": "pcie-card", "slot": "5", "pci": NIC, "port_guid": GUID},
        ),
        (
            DUAL,
            f"port:{NIC}/1",
            {
                "part": "port 1 of PCIe card in slot 5",
                "form_factor": "pcie-card",
                "slot": "5",
                "pci": NIC,
                "port_guid": GUID,
            },
        ),
        (
            DUAL,
            f"port:{NIC}/2",
            {"part": "port 2 of PCIe card in slot 5", "form_factor": "pcie-card", "slot": "5", "pci": NIC},
        ),
        (
            DUAL,
            f"pci:{NIC}",
            {"part": "PCIe card in slot 5", "form_factor": "pcie-card", "slot": "5", **OF_NIC},
        ),
        (changed_nic(IB, 0, limited="it manages NVLink"), f"pci:{NIC}", {
            "part": "NIC on the board", "form_factor": "onboard-nic", **OF_NIC,
        }),
        (DGX, f"pci:{NIC}", {"part": "NIC on the board", "form_factor": "onboard-nic", **OF_NIC}),
        (changed_nic(DGX, 0, role="storage"), f"pci:{NIC}", {"part": "NIC", **OF_NIC}),
        (virtual(DGX), f"pci:{NIC}", {"part": "virtual device", "form_factor": "virtual", **OF_NIC}),
        (
            changed_nic(IB, 0, virtual_function=True),
            f"pci:{NIC}",
            {"part": "virtual device", "form_factor": "virtual", **OF_NIC},
        ),
        (
            changed_nic(IB, 0, software=True),
            f"pci:{NIC}",
            {"part": "virtual device", "form_factor": "virtual", **OF_NIC},
        ),
        (ROCE, f"port:{NIC}/1", {"part": "NIC", "mac": MAC, "far_end": LEAF, **OF_NIC}),
        (ROCE, f"pci:{NIC}", {"part": "NIC", "mac": MAC, "far_end": LEAF, **OF_NIC}),
        (ROCE, f"netdev:{NIC}", {"part": "NIC", "mac": MAC, "far_end": LEAF, **OF_NIC}),
        (ROCE, "netdev:eth0", {"part": "NIC", "mac": MAC, "far_end": LEAF, **OF_NIC}),
        (ROCE, "netdev:eth9", None),
        (
            changed_netdev(ROCE, 0, mac="00:00:10:49:fe:80:00:00:00:00:00:00:b8:3f:d2:03:00:00:00:01"),
            "netdev:eth0",
            {"part": "NIC", "far_end": LEAF, **OF_NIC},
        ),
        (
            changed_netdev(ROCE, 0, nic=None, pci=gpu_id(1), mac=None),
            "netdev:eth0",
            {"part": "PCI device", "pci": gpu_id(1), "far_end": LEAF},
        ),
        (changed_netdev(ROCE, 0, nic=None, pci=None), "netdev:eth0", {
            "part": "interface", "mac": MAC, "far_end": LEAF,
        }),
        (with_functions(BRIDGE), "nvswitch:0000:90:00.0", {
            "part": "NVSwitch on the GPU baseboard", "form_factor": "nvswitch", "pci": "0000:90:00.0",
        }),
        (virtual(IB), "nvswitch:0000:90:00.0", {"part": "NVSwitch on the GPU baseboard", "pci": "0000:90:00.0"}),
        (with_functions(BRIDGE), "pci:0000:90:00.0", {
            "part": "NVSwitch on the GPU baseboard", "form_factor": "nvswitch", "pci": "0000:90:00.0",
        }),
        (with_functions(DRIVE), "pci:0000:91:00.0", {
            "part": "drive in slot 9", "form_factor": "drive", "slot": "9", "pci": "0000:91:00.0",
        }),
        (IB, "pci:0000:10:01.0", {
            "part": "root port of the CPU", "form_factor": "root-port", "pci": "0000:10:01.0",
        }),
        (IB, "pci:0000:11:00.0", {
            "part": "on-board PCIe switch", "form_factor": "onboard-switch", "pci": "0000:11:00.0",
        }),
        (function(IB, "0000:11:00.0", vendor="0x1002"), "pci:0000:11:00.0", {
            "part": "PCI device", "pci": "0000:11:00.0",
        }),
        (virtual(IB), "pci:0000:11:00.0", {
            "part": "virtual device", "form_factor": "virtual", "pci": "0000:11:00.0",
        }),
        (IB, "pci:0000:ff:00.0", {"part": "PCI device", "pci": "0000:ff:00.0"}),
        (IB, "pci:nothing", None),
        (IB, "pci:0000:ff", None),
        (IB, "pci:0000:ff:00:1", None),
    ],
)  # fmt: skip
def test_a_part(context: RuleContext, subject: str, expected: dict[str, Any] | None) -> None:
    """All that is known of it, and nothing else."""
    assert expected == locate(context, subject)


@pytest.mark.parametrize(
    ("name", "changes", "form"),
    [
        ("NVIDIA H100 80GB HBM3", {}, "sxm"),
        ("AMD Instinct MI300X OAM", {}, "oam"),
        ("NVIDIA H100 PCIe", {}, "pcie-card"),
        ("NVIDIA H100 NVL", {}, "pcie-card"),
        ("NVIDIA GH200 480GB", {}, "superchip"),
        ("NVIDIA H100 80GB HBM3", {"c2c": C2c(enabled=True)}, "superchip"),
        ("unheard of", {"module_id": 1}, "sxm"),
        ("unheard of", {}, None),
        (None, {}, None),
    ],
)
def test_how_a_gpu_is_built_in(name: str | None, changes: dict[str, Any], form: str | None) -> None:
    """By its name, by its link to the CPU, or by the number of its socket."""
    location = find_location(named(name, **changes), f"gpu:{GPU}")

    assert location is not None
    assert form == location.form_factor


def test_a_module_number_of_another_vendor_is_no_sxm() -> None:
    """And the name of the PCI function counts as the driver's does."""
    context = function(named("unheard of", module_id=1), GPU, vendor="0x1002")

    assert None is find_location(context, f"gpu:{GPU}").form_factor
    assert "oam" == find_location(function(context, GPU, name="MI300X"), f"gpu:{GPU}").form_factor


@pytest.mark.parametrize(("vendor", "index", "number"), [("Huawei", 3, "3"), ("Huawei", None, None), ("AMD", 3, None)])
def test_an_npu_without_settings_has_the_number_of_the_driver(
    vendor: str, index: int | None, number: str | None
) -> None:
    """Where `/etc/hccn.conf` was not read; where the driver does not number it, there is none."""
    assert number == find_npu_number(named("Ascend 910B", vendor=vendor, index=index), GPU)


def test_an_npu_has_the_number_of_its_settings() -> None:
    """Whatever number the driver has for it; an id of settings without a number is none."""
    ports = [NpuPort(npu=5, gpu=gpu_id(1)), NpuPort(npu=6, gpu=GPU)]
    context = topology(named("Ascend 910B", vendor="Huawei", index=3), ascend=Ascend(ports=ports))

    context = replace(
        context,
        topology=replace(context.topology, nics=[Nic(id="port-6", label="port 6", role="unknown", accelerator=GPU)]),
    )

    named_so = (GPU, "port-6", "npu-9", "npu-1023", "npu-10230", "npu-", "npu-x")
    assert ["6", "6", "9", "1023", None, None, None] == [find_npu_number(context, device) for device in named_so]


@pytest.mark.parametrize(("slot", "part"), [(None, "GPU with module id 6"), ("7", "GPU in slot 7")])
def test_where_a_card_with_a_module_id_sits(slot: str | None, part: str) -> None:
    """Its slot says more than the id that its driver has."""
    context = function(named("Gaudi3", vendor="Intel", module_id=6), GPU, vendor="0x1da3", slot=slot)

    assert part == find_location(context, f"gpu:{GPU}").part


@pytest.mark.parametrize(
    ("neighbor", "far_end"),
    [
        (Neighbor(system="leaf", chassis="c", port="1", port_description="d"), {"system": "leaf", "port": "1"}),
        (Neighbor(chassis="c", port_description="d"), {"system": "c", "port": "d"}),
        (Neighbor(port="1"), {"port": "1"}),
        (Neighbor(system="leaf"), {"system": "leaf"}),
        (Neighbor(max_frame_bytes=9216), None),
        (None, None),
    ],
)
def test_the_far_end_by_lldp(neighbor: Neighbor | None, far_end: dict[str, str] | None) -> None:
    """The system's name before the chassis, the port before its description."""
    for subject in (f"port:{NIC}/1", "netdev:eth0"):
        assert far_end == (locate(with_lldp(neighbor), subject) or {}).get("far_end")


@pytest.mark.parametrize(("name", "system"), [("leaf-1", "leaf-1"), (None, "0x1")])
def test_the_far_end_by_discovery(name: str | None, system: str) -> None:
    """It stands before LLDP."""
    neighbor = FabricNeighbor(name=name, node_guid="0x1", port=7, source="ibnetdiscover")
    for subject in (f"port:{NIC}/1", "netdev:eth0"):
        assert {"system": system, "port": "7"} == locate(changed_port(ROCE, 0, neighbor=neighbor), subject)["far_end"]


def test_the_slot_is_that_of_the_card() -> None:
    """Its first function has it, or the physical function of a virtual one."""
    second = msgspec.structs.replace(IB.functions[NIC], id="0000:15:00.1")
    virtual_one = msgspec.structs.replace(second, id="0000:15:01.2", physical_function=NIC)
    context = function(topology(IB, pci=[*IB.topology.pci, second, virtual_one]), NIC, slot="5")

    assert "5" == locate(context, "pci:0000:15:00.1")["slot"]
    assert "5" == locate(context, "pci:0000:15:01.2")["slot"]


@pytest.mark.parametrize(
    ("context", "devices", "form"),
    [
        (IB, [GPU, gpu_id(1)], "sxm"),
        (IB, [GPU, NIC], "sxm"),  # the GPUs decide
        (named("NVIDIA L40S"), [GPU, gpu_id(1)], None),
        (DGX, [NIC, nic_id(1)], "onboard-nic"),
        (function(DGX, NIC, slot="5"), [NIC, nic_id(1)], None),
        (IB, ["0000:ff:00.0"], None),
    ],
)
def test_the_form_of_several_parts(context: RuleContext, devices: list[str], form: str | None) -> None:
    """Where all are alike."""
    assert form == find_common_form_factor(context, devices)


def test_an_interface_is_of_its_own_port() -> None:
    """Of a NIC with two."""
    ports = [
        msgspec.structs.replace(ROCE.nics[NIC].ports[0], port=n, netdevs=[name], port_guid=f"{GUID[:-1]}{n}")
        for n, name in ((1, "eth8"), (2, "eth0"))
    ]
    context = function(changed_nic(ROCE, 0, ports=ports), NIC, slot="5")

    assert "port 2 of PCIe card in slot 5" == locate(context, "netdev:eth0")["part"]
    assert f"{GUID[:-1]}2" == locate(context, "netdev:eth0")["port_guid"]
    assert "mac" not in locate(context, f"port:{NIC}/1")


def test_an_interface_has_its_own_far_end() -> None:
    """Also where its NIC has two interfaces and no port that owns it."""
    context = changed_nic(ROCE, 0, ports=[])
    second = msgspec.structs.replace(context.netdevs["eth0"], id="eth9", label="eth9", neighbor=None)
    context = topology(context, netdevs=[*context.topology.netdevs, second])

    assert LEAF == locate(context, "netdev:eth0")["far_end"]
    assert "far_end" not in locate(context, "netdev:eth9")


def test_an_npu_is_no_gpu() -> None:
    """Where it sits is not known; what it is, is."""
    context = named(None, vendor="Huawei")

    location = find_location(context, f"gpu:{context.topology.gpus[0].id}")

    assert location is not None
    assert location.part.startswith("NPU")
