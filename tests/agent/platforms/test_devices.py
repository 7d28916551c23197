"""What is known of devices and machines: ids of devices, profiles, and which profile a machine has."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import msgspec
import pytest

from agent.config import Configuration
from agent.diagnose import evaluate_report
from agent.model.node import Cpu, Node, Platform
from agent.model.pci import PciFunction
from agent.model.profile import BadProfile, Profile
from agent.platforms.devices import (
    DEVICES,
    can_rdma,
    find_device,
    is_accelerator,
    is_coherent_port,
    is_nvlink_management,
)
from agent.platforms.profiles import (
    HERE,
    choose_profile,
    learn_profile,
    list_profiles,
    load_profile,
    profile_to_toml,
)
from agent.platforms.recognize import recognize_platform
from agent.toml_file import LIMIT_BYTES, read_toml
from tests.machines import HOSTS, scan_machine


def test_every_id_is_written_as_sysfs_prints_it() -> None:
    """Four hex digits, lower case."""
    assert [] == [key for key in DEVICES if not all(re.fullmatch(r"0x[0-9a-f]{4}", part) for part in key)]


@pytest.mark.parametrize(
    ("vendor", "device", "class_code", "able"),
    [
        ("0x15b3", "0x1021", "0x020700", True),
        ("0x15b3", "0x1234", "0x020000", True),
        ("0x15b3", "0x1979", "0x060400", False),
        ("0x15b3", "0x2100", "0x080100", False),
        ("0x14e4", "0x1750", "0x020000", True),
        ("0x14e4", "0x165f", "0x020000", False),
        ("0x8086", "0x1592", "0x020000", True),
        ("0x8086", "0x1533", "0x020000", False),
        ("0x8086", "0x24f0", "0x020800", True),
        ("0x1d0f", "0xefa2", "0x020000", True),
        ("0x1d0f", "0xec20", "0x020000", False),
        ("0x19e5", "0xa222", "0x020000", True),
        ("0x19e5", "0x0200", "0x020000", False),
        ("0x1dd8", "0x1002", "0x020000", True),
        ("0x1077", "0x7322", "0x0c0600", True),
        ("0x1af4", "0x1041", "0x020000", False),
        (None, None, None, False),
        (None, None, "0x020700", True),  # InfiniBand, whoever makes it
        (None, None, "0x020000", False),
    ],
)
def test_network_functions_that_could_have_an_rdma_device(
    vendor: str | None, device: str | None, class_code: str | None, able: bool
) -> None:
    """By vendor and device, and only of network classes."""
    assert able == can_rdma(vendor, device, class_code)


def test_unknown_ids_are_no_error() -> None:
    """The table is for names; nothing hangs on it being complete."""
    assert find_device("0x10de", "0xffff") is None
    assert find_device(None, None) is None
    assert is_accelerator("0x10de", "0xffff", "0x030200")
    assert not is_accelerator(None, None, None)


@pytest.mark.parametrize(
    ("vendor", "device", "class_code", "is_one"),
    [
        ("0x1002", "0xffff", "0x120000", True),
        ("0x1002", "0x66a1", "0x030000", True),
        ("0x1002", "0x66a1", "0x060000", False),
        ("0x1002", "0x15bf", "0x030000", False),  # the display of an APU
        ("0x19e5", "0xd807", "0x120000", True),
        ("0x19e5", "0x1711", "0x030000", False),  # the display of a management controller
        ("0x1da3", "0x1060", "0x120000", True),
        ("0x1d0f", "0x7364", "0x088000", True),
        ("0x1d0f", "0x8061", "0x088000", False),
        ("0x8086", "0x1060", "0x120000", False),
    ],
)
def test_accelerators_of_other_makers(vendor: str, device: str, class_code: str, is_one: bool) -> None:
    """By class; where that says too little, by the part."""
    assert is_one == is_accelerator(vendor, device, class_code)


def test_every_part_of_the_references_has_a_name() -> None:
    """An accelerator without a name would still be counted; its virtual functions are marked."""
    parts = {
        "0x1002": "66a0 66a1 738c 740f 7408 740c 74a0 74a1 74a2 74a5 74b5 74b9 75a0 75a3",
        "0x19e5": "d100 d500 d801 d802 d803 d804 d805 d806 d807",
        "0x1da3": "1000 1020 1060",
        "0x1d0f": "7164 7264 7364",
    }

    assert [] == [(v, d) for v, ids in parts.items() for d in ids.split() if find_device(v, f"0x{d}") is None]
    assert {("0x1002", "0x74b5"), ("0x1002", "0x74b9"), ("0x19e5", "0xd805")} == {
        key for key, device in DEVICES.items() if device.virtual_function and key[0] in parts
    }


def test_names_of_parts_that_change_what_is_expected() -> None:
    """Grace's root ports, the fabric manager's ConnectX."""
    assert is_coherent_port("0x10de", "0x22b1")
    assert not is_coherent_port("0x8086", "0x22b1")
    assert is_nvlink_management("0x15b3", "0x0087", None)
    assert not is_nvlink_management("0x15b3", "0x0050", "MT2910 Family [ConnectX-7]")


# Profiles: built-in ones, a site's file, and one learnt from a good node that its siblings are judged with.


if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

H100 = "8xh100-sxm-2s-8xcx7-ib-4nvsw"


@pytest.mark.parametrize("name", list_profiles())
def test_a_built_in_profile_is_whole(name: str) -> None:
    """Its name is its file's, every value has a source, and devices are vendor:device; it is read as TOML is."""
    profile = load_profile(name)

    assert name == profile.name
    assert read_toml(os.path.join(HERE, f"{name}.toml"), Profile) == profile
    assert profile.title
    for key in profile.__struct_fields__:
        value = getattr(profile, key)
        if key not in ("name", "title", "gpu_devices", "devices") and value is not None:
            assert value.source, key
            assert value.confidence in ("high", "medium", "low"), key
    assert all(len(gpu_device) == 9 and gpu_device[4] == ":" for gpu_device in profile.gpu_devices)


@pytest.mark.parametrize("shape", HOSTS)
def test_a_node_fits_the_profile_that_was_learnt_from_it(shape: str, tmp_path: Path) -> None:
    """As TOML and back; nothing is found, and the report says what it was judged with."""
    report = scan_machine(shape)
    if not report.topology.gpus and not report.topology.nics:
        return
    place = tmp_path / "site.toml"
    place.write_text(profile_to_toml(learn_profile(report, "site")))
    again = evaluate_report(report, Configuration(), str(place))

    assert {"profile-differs", "device-count-low"}.isdisjoint(finding.rule for finding in again.findings)
    assert ("site", "exact") == (again.platform.profile, again.platform.confidence)
    assert "profile: site" in again.config.changed
    assert tomllib.loads(place.read_text())["name"] == "site"


def test_a_sibling_that_lost_a_gpu_is_found_by_the_learnt_profile(tmp_path: Path) -> None:
    """On the bus nothing is wrong with the other seven."""
    place = tmp_path / "site.toml"
    place.write_text(profile_to_toml(learn_profile(scan_machine(H100), "site")))
    whole = scan_machine(H100)
    import msgspec

    lost = whole.topology.gpus[3].pci
    fewer = msgspec.structs.replace(
        whole,
        topology=msgspec.structs.replace(
            whole.topology,
            pci=[f for f in whole.topology.pci if f.id != lost],
            gpus=[g for g in whole.topology.gpus if g.pci != lost],
        ),
    )
    findings = [f for f in evaluate_report(fewer, Configuration(), str(place)).findings if f.rule == "device-count-low"]

    assert ["critical"] == [finding.severity for finding in findings]
    assert str(lost) in findings[0].summary
    assert "device-count-low" not in {f.rule for f in evaluate_report(fewer, Configuration(), "none").findings}


def test_what_is_chosen() -> None:
    """Recognized, by name, none, and what is not known."""
    platform = Platform(profile="hgx-h100-8", confidence="likely", evidence=["PCI: 10de:2330 x8"])

    assert "hgx-h100-8" == choose_profile("auto", platform).profile.name  # type: ignore[union-attr]
    assert "likely" == choose_profile("auto", platform).platform.confidence
    assert choose_profile("none", platform).profile is None
    assert choose_profile("auto", Platform(profile="geforce", confidence="likely")).profile is None
    assert "exact" == choose_profile("gb200-tray", platform).platform.confidence
    with pytest.raises(BadProfile, match="no built-in profile"):
        choose_profile("hgx-h999", platform)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"name = 1\n", "Expected `str`"),
        (b"nonsense = 1\n", "site.toml"),
        (b"name = 'x'\ngpus = { value = 8 }\n", "source"),
        (b"\xff\xfe", "site.toml"),
        (b"[[[", "site.toml"),
        (b"#" * (LIMIT_BYTES + 1), "larger than"),
    ],
)
def test_a_bad_file_is_refused_in_one_line(text: bytes, message: str, tmp_path: Path) -> None:
    """It names the file and what is wrong."""
    place = tmp_path / "site.toml"
    place.write_bytes(text)

    with pytest.raises(BadProfile, match=message) as why:
        choose_profile(str(place), Platform())
    assert "\n" not in str(why.value)
    with pytest.raises(BadProfile, match="directory"):
        choose_profile(str(tmp_path), Platform())


# Which kind of node: exact only where a name is confirmed by a real machine and its devices.


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


def test_a_board_that_lost_an_nvswitch_is_recognized() -> None:
    """Without one no board has these GPUs with fewer; a guest sees those that it was given."""
    switches = functions("0x2330", 0, "0x22a3", 3)
    top = PciFunction(id="0000:01:00.0", vendor="0x1000", device="0xc030", class_code="0x060400")
    port = PciFunction(id="0000:02:00.0", vendor="0x1000", device="0xc030", class_code="0x060400", parent=top.id)
    gpus = [msgspec.structs.replace(gpu, parent=port.id) for gpu in functions("0x2330", 8)]

    assert "hgx-h100-8" == recognize_platform(Node(), [top, port, *gpus, *switches]).profile
    assert recognize_platform(Node(virtualization="kvm"), [top, port, *gpus, *switches]).profile is None
    assert recognize_platform(Node(), [top, port, *gpus]).profile is None


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
