"""Which kind of node: exact only where a name is confirmed by a real machine and its devices."""

from __future__ import annotations

import msgspec
import pytest

from agent.model.node import Cpu, Node
from agent.model.pci import PciFunction
from agent.platforms.recognize import recognize_platform


def functions(
    device: str, count: int, switch: str = "", switches: int = 0, vendor: str = "0x10de"
) -> list[PciFunction]:
    """GPUs and NVSwitches of one model each."""
    kind = "0x030200" if vendor == "0x10de" else "0x120000"
    gpus = [PciFunction(id=f"0000:{n:02x}:00.0", class_code=kind, vendor=vendor, device=device) for n in range(count)]
    return gpus + [
        PciFunction(id=f"0001:{n:02x}:00.0", class_code="0x068000", vendor="0x10de", device=switch)
        for n in range(switches)
    ]


@pytest.mark.parametrize(
    ("product", "profile", "confidence"),
    [
        ("DGXA100 920-23687-2530-000", "dgx-a100", "exact"),
        ("DGXB200", "dgx-b200", "exact"),
        ("NVIDIA_DGX_Spark", "gb10", "exact"),
        ("DGX-1 with V100-32", "dgx1v", "exact"),
        ("DGXH100", "dgx-h100", "likely"),
        ("DGX B300", "dgx-b300", "likely"),
        ("HGX", None, "none"),
    ],
)
def test_product_names_of_nvidia(product: str, profile: str | None, confidence: str) -> None:
    """A name that no dump confirms is likely at most; another vendor's name says nothing."""
    platform = recognize_platform(Node(vendor="NVIDIA", product=product), [])

    assert (profile, confidence) == (platform.profile, platform.confidence)
    assert recognize_platform(Node(vendor="Supermicro", product=product), []).profile is None


@pytest.mark.parametrize(
    ("rows", "arch", "profile"),
    [
        (functions("0x2330", 8, "0x22a3", 4), "x86_64", "hgx-h100-8"),
        (functions("0x2330", 8), "x86_64", None),
        (functions("0x2330", 4), "x86_64", "hgx-h100-4"),
        (functions("0x2330", 7, "0x22a3", 4), "x86_64", "hgx-h100-8"),
        (functions("0x2335", 1, "0x22a3", 4), "x86_64", "hgx-h200-8"),
        (functions("0x2330", 9, "0x22a3", 4), "x86_64", None),
        (functions("0x2330", 7, "0x22a3", 3), "x86_64", None),
        (functions("0x20b2", 6, "0x1af1", 6), "x86_64", "hgx-a100-8"),
        (functions("0x20b2", 16, "0x1af1", 12), "x86_64", None),
        (functions("0x1db8", 15, "0x1ac2", 12), "x86_64", "dgx2"),
        (functions("0x20b2", 8, "0x1af1", 6), "x86_64", "hgx-a100-8"),
        (functions("0x20b2", 4), "x86_64", "hgx-a100-4"),
        (functions("0x1db8", 16, "0x1ac2", 12), "x86_64", "dgx2"),
        (functions("0x2901", 8), "x86_64", "hgx-b200-8"),
        (functions("0x2941", 4), "aarch64", "gb200-tray"),
        (functions("0x2941", 4), "x86_64", None),
        (functions("0x2342", 1), "aarch64", "gh200"),
        (functions("0x26b9", 3), None, "l40s"),
        (functions("0x74a1", 8, vendor="0x1002"), "x86_64", "mi300x-8"),
        (functions("0xd802", 8, vendor="0x19e5"), "aarch64", "ascend-a2"),
        (functions("0x26b9", 2) + functions("0x1eb8", 1), None, None),
        ([], "x86_64", None),
    ],
)
def test_devices_are_a_fingerprint(rows: list[PciFunction], arch: str | None, profile: str | None) -> None:
    """Counts, switches and architecture must fit; a fingerprint is never exact."""
    platform = recognize_platform(Node(vendor="Supermicro", arch=arch), rows)

    assert (profile, "likely" if profile else "none") == (platform.profile, platform.confidence)
    assert bool(rows) == bool(platform.evidence)


def test_gpus_that_the_bus_lacks_leave_no_fingerprint() -> None:
    """A listing that was cut shows four of eight."""
    platform = recognize_platform(Node(vendor="Supermicro"), functions("0x2330", 4), unlisted=4)

    assert "hgx-h100-4" == recognize_platform(Node(vendor="Supermicro"), functions("0x2330", 4)).profile
    assert (None, "none") == (platform.profile, platform.confidence)
    assert "the driver names 4 more GPUs than the PCI functions show" in platform.evidence


@pytest.mark.parametrize(
    ("vendor", "device", "profile"), [("0x10de", "0x2901", "hgx-b200-8"), ("0x1002", "0x74a1", "mi300x-8")]
)
def test_modules_of_boards_with_eight_sockets_are_a_fingerprint(vendor: str, device: str, profile: str) -> None:
    """Fewer of them are lost ones where they are below switches; a guest shows what it was given."""
    bare = functions(device, 4, vendor=vendor)
    ports = [
        PciFunction(id=f"0002:{n:02x}:00.0", class_code="0x060400", parent=up)
        for n, up in enumerate((None, "0002:00:00.0"))
    ]
    below = [msgspec.structs.replace(row, parent="0002:01:00.0") for row in bare]
    at_the_root = [msgspec.structs.replace(row, parent="0002:00:00.0") for row in bare]

    assert profile == recognize_platform(Node(), [*ports, *below]).profile
    assert recognize_platform(Node(virtualization="kvm"), [*ports, *below]).profile is None
    assert recognize_platform(Node(), [*ports, *at_the_root]).profile is None
    assert recognize_platform(Node(), [*ports, *below[1:], bare[0]]).profile is None
    assert (
        recognize_platform(
            Node(), [*ports, *below, *[msgspec.structs.replace(row, id=f"3:{row.id}") for row in below * 3]]
        ).profile
        is None
    )


def test_a_superchip_with_fewer_gpus_than_the_other_has_lost_some() -> None:
    """One GPU at each CPU is another product; a guest, and a machine of one CPU, have what they are given."""
    port = PciFunction(id="0002:00:00.0", vendor="0x10de", device="0x22b1", class_code="0x060400")
    emulated = msgspec.structs.replace(port, vendor="0x1b36", device="0x000c")
    four = [msgspec.structs.replace(row, parent=port.id) for row in functions("0x2941", 4)]
    tray = Node(arch="aarch64", cpu=Cpu(sockets=2))

    def recognized(node: Node, *at: int | None, above: PciFunction = port) -> str | None:
        rows = [msgspec.structs.replace(row, numa_node=place) for row, place in zip(four, at, strict=False)]
        return recognize_platform(node, [above, *rows]).profile

    assert "gb200-tray" == recognized(tray, 0, 0)
    assert "gb200-tray" == recognized(tray, 0, 0, 1)
    assert "gb200-tray" == recognized(tray, None, None, None, None, above=emulated)
    assert recognized(tray, 0, 1) is None
    assert recognized(tray, 0) is None
    assert recognized(tray, 0, 0, None) is None
    assert recognized(tray, 0, 0, above=emulated) is None
    assert recognized(msgspec.structs.replace(tray, virtualization="kvm"), 0, 0) is None
    assert recognized(msgspec.structs.replace(tray, cpu=Cpu(sockets=1)), 0, 0) is None
    assert recognized(msgspec.structs.replace(tray, cpu=Cpu()), 0, 0) is None
    assert recognized(msgspec.structs.replace(tray, arch="x86_64"), 0, 0) is None


def test_a_confirmed_name_with_other_devices_is_only_likely() -> None:
    """With what was counted. Fewer GPUs on the board that the name promises leave no doubt."""
    dgx = Node(vendor="NVIDIA", product="DGXA100")
    platform = recognize_platform(dgx, functions("0x20b0", 7, "0x1af1", 5))

    assert ("dgx-a100", "likely") == (platform.profile, platform.confidence)
    assert "PCI: 10de:20b0 x7, NVSwitch x5" in platform.evidence
    assert "exact" == recognize_platform(dgx, functions("0x20b0", 7, "0x1af1", 6)).confidence


def test_clouds_are_named() -> None:
    """On AWS the product is the instance type; elsewhere the shape is not in the firmware."""
    aws = recognize_platform(Node(vendor="Amazon EC2", product="p5.48xlarge"), functions("0x2330", 8))
    azure = recognize_platform(Node(vendor="Microsoft Corporation"), [], "7783-7084-3265-9085-8269-3286-77")
    other = recognize_platform(Node(vendor="Amazon EC2", product="m5.large"), [])

    assert ("p5.48xlarge", "exact") == (aws.profile, aws.confidence)
    assert (None, ["cloud: Azure"]) == (azure.profile, azure.evidence)
    assert (None, ["cloud: AWS"]) == (other.profile, other.evidence)
