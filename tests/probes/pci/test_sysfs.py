"""The PCI probe: what it reads, in which order, and what it makes of what is not there."""

from __future__ import annotations

import pytest

from probes.catalogue import probe
from probes.host.interface import Absent, Denied, Failed
from probes.pci.facts import Acs, PciFunction
from probes.pci.sysfs import list_models, read_pci
from probes.probe import Status, outcome_of
from probes.sources.memory import SymlinkNode
from tests.probes.pci.pci_machine import PciHost, conventional, express

DEVICES = "/sys/bus/pci/devices"
ROOT_PORT = "pci0000:15/0000:15:01.0"
GPU = f"{ROOT_PORT}/0000:16:00.0"
LINK = {
    "current_link_speed": "32.0 GT/s PCIe\n",
    "current_link_width": "16\n",
    "max_link_speed": "32.0 GT/s PCIe\n",
    "max_link_width": "16\n",
}
GPU_FILES = LINK | {
    "class": "0x030200\n",
    "vendor": "0x10de\n",
    "device": "0x2330\n",
    "subsystem_vendor": "0x10de\n",
    "subsystem_device": "0x16c1\n",
    "revision": "0xa1\n",
    "numa_node": "0\n",
    "local_cpulist": "0-31,64-95\n",
    "power/runtime_status": "active\n",
    "power_state": "D0\n",
    "resource": "0x0000000096000000 0x0000000096ffffff 0x0000000000140204\n",
    "aer_dev_correctable": "RxErr 3\nBadTLP 0\nTOTAL_ERR_COR 3\n",
    "sriov_numvfs": "0\n",
    "sriov_totalvfs": "32\n",
}


def functions(host: PciHost) -> dict[str, PciFunction]:
    return {function.address: function for function in read_pci(host).facts.functions}


def test_a_gpu_below_a_root_port() -> None:
    """Attributes, links, slot, IOMMU and names of one function, and the bridge above it."""
    host = PciHost().function(ROOT_PORT, {"class": "0x060400\n"}, driver="../../../bus/pci/drivers/pcieport")
    host.function(
        GPU, GPU_FILES, driver="../../../../bus/pci/drivers/nvidia", iommu_group="../../../../kernel/iommu_groups/18"
    )
    host.put({"/sys/kernel/iommu_groups/18/type": "DMA-FQ\n"}).put({"/sys/bus/pci/slots/21/address": "0000:16:00\n"})
    names = ("E:ID_MODEL_FROM_DATABASE=GH100 [H100 SXM5 80GB]", "E:ID_VENDOR_FROM_DATABASE=NVIDIA Corporation")
    host.put({"/run/udev/data/+pci:0000:16:00.0": "\n".join((*names, ""))})

    gpu = functions(host)["0000:16:00.0"]

    assert ("0000:15:01.0", "0000:15") == (gpu.parent, gpu.root_bus)
    assert ("0x030200", "0x10de", "0x2330", "0x16c1", "0xa1") == (
        gpu.class_code,
        gpu.vendor,
        gpu.device,
        gpu.subsystem_device,
        gpu.revision,
    )
    assert ("GH100 [H100 SXM5 80GB]", "NVIDIA Corporation", "nvidia", "21") == (
        gpu.name,
        gpu.vendor_name,
        gpu.driver,
        gpu.slot,
    )
    assert (0, "0-31,64-95", 18, "DMA-FQ") == (gpu.numa_node, gpu.local_cpus, gpu.iommu_group, gpu.iommu_type)
    assert (32.0, 16, 32.0, 16, None) == (
        gpu.current_link_speed_gt_s,
        gpu.current_link_width,
        gpu.max_link_speed_gt_s,
        gpu.max_link_width,
        gpu.link_error,
    )
    assert {"correctable": {"RxErr": 3, "BadTLP": 0, "TOTAL_ERR_COR": 3}} == gpu.aer
    assert ({"0": 16 << 20}, 0, 32) == (gpu.bars_bytes, gpu.virtual_functions, gpu.virtual_functions_supported)
    assert ("active", "D0", False, False, False) == (
        gpu.runtime_status,
        gpu.power_state,
        gpu.asleep,
        gpu.gone,
        gpu.vanished,
    )


def test_config_space_adds_what_the_kernel_does_not_say() -> None:
    """The kernel's own word on the link stays; registers fill the rest."""
    config = express(device=(1, 0x2810), link=(0x0104, 0, 0x1084), extended={0x0D: bytes.fromhex("1f001d00")})
    host = PciHost(kind="capture").function("pci0000:15/0000:15:01.0", GPU_FILES | {"config": config})

    gpu = functions(host)["0000:15:01.0"]

    assert (32.0, 16) == (gpu.current_link_speed_gt_s, gpu.current_link_width)
    assert ("endpoint", 128, 256, 512, False) == (
        gpu.port_type,
        gpu.max_payload_bytes,
        gpu.max_payload_supported_bytes,
        gpu.max_read_request_bytes,
        gpu.extended_tags,
    )
    assert Acs(frozenset({"SV", "TB", "RR", "CR", "UF"}), frozenset({"SV", "RR", "CR", "UF"})) == gpu.acs
    assert (True, None, 4096) == (gpu.acs_known, gpu.ats, gpu.config_bytes)


def test_a_port_is_capable_of_what_its_own_register_says() -> None:
    """The kernel's max_link_speed is the highest of a list that may go beyond it; lspci reads LnkCap too."""
    host = PciHost(kind="capture").function(GPU, GPU_FILES | {"config": express(link=(0x0104, 0, 0x1104))})

    gpu = functions(host)["0000:16:00.0"]

    assert (32.0, 16.0) == (gpu.current_link_speed_gt_s, gpu.max_link_speed_gt_s)


@pytest.mark.parametrize(
    ("class_code", "device", "speed"), [("0x030200\n", "0x2330", 16.0), ("0x010802\n", "0x2336", 32.0)]
)
def test_config_space_of_a_tree_stands_for_files_of_the_same_device(class_code: str, device: str, speed: float) -> None:
    """A folder has no errors of its files; where its class is another one, one of both is of something else."""
    files = GPU_FILES | {"class": class_code, "device": "0x2336\n", "config": express(link=(0x0104, 0, 0x1104))}

    gpu = functions(PciHost().function(GPU, files))["0000:16:00.0"]

    assert (device, speed) == (gpu.device, gpu.current_link_speed_gt_s)


def test_no_file_is_asked_for_twice() -> None:
    """Below a mounted root those of the link are registers of a device that runs, and config space may be cut."""
    host = PciHost(kind="live", live=True).function(GPU, GPU_FILES | {"config": express()[:64]})

    assert "0000:16:00.0" in functions(host)
    asked = [path for path in host.asked if path.startswith(f"{DEVICES}/0000:16:00.0/current_link")]
    assert sorted(asked) == sorted({*asked})
    assert len(asked) == 2


def test_no_register_is_taken_of_a_recording_of_a_sleeping_device() -> None:
    """What its files hold may be of a moment when it was awake."""
    host = PciHost().function(GPU, GPU_FILES | {"config": express(), "power/runtime_status": "suspended\n"})

    gpu = functions(host)["0000:16:00.0"]

    assert (True, None, None) == (gpu.asleep, gpu.current_link_width, gpu.config_bytes)


@pytest.mark.parametrize("power", [{"power/runtime_status": "suspended\n"}, {"power_state": "D3cold\n"}])
def test_a_sleeping_device_is_asked_nothing_that_can_reach_it(power: dict[str, str]) -> None:
    """The power state is the first question about a device, and after it only the kernel's memory is read."""
    files = GPU_FILES | {"config": express(), "power/runtime_status": "active\n"} | power
    host = PciHost(live=True).function(GPU, files)

    gpu = functions(host)["0000:16:00.0"]

    request = [path for path in host.asked if path.startswith(f"{DEVICES}/0000:16:00.0/") and path[-1] != "/"]
    assert [f"{DEVICES}/0000:16:00.0/{name}" for name in ("power/runtime_status", "power_state")] == request[:2]
    assert {
        "aer_dev_correctable",
        "aer_dev_fatal",
        "aer_dev_nonfatal",
        "class",
        "device",
        "driver",
        "iommu_group",
        "local_cpulist",
        "numa_node",
        "physfn",
        "resource",
        "revision",
        "sriov_totalvfs",
        "subsystem_device",
        "subsystem_vendor",
        "vendor",
    } == {path.rsplit("/", 1)[-1] for path in request[2:]}
    assert (True, None, None, None, False) == (
        gpu.asleep,
        gpu.current_link_width,
        gpu.max_link_width,
        gpu.config_bytes,
        gpu.gone,
    )
    assert ("0x030200", 0) == (gpu.class_code, gpu.numa_node)


def test_an_awake_device_is_asked_for_its_power_first() -> None:
    """Registers come after the power state, for every function."""
    host = PciHost().function(ROOT_PORT, GPU_FILES).function(GPU, GPU_FILES | {"config": express()})

    read_pci(host)

    for address in ("0000:15:01.0", "0000:16:00.0"):
        power = host.asked.index(f"{DEVICES}/{address}/power/runtime_status")
        reaching = [host.asked.index(f"{DEVICES}/{address}/{name}") for name in (*LINK, "config")]
        assert power < min(reaching)


def test_a_link_register_that_cannot_be_read_is_an_error() -> None:
    """EINVAL from the kernel is not the absence of a link."""
    host = PciHost().function(GPU, GPU_FILES)
    host.refused[f"{DEVICES}/0000:16:00.0/current_link_speed"] = Failed(
        "current_link_speed: Invalid argument", "EINVAL"
    )

    gpu = functions(host)["0000:16:00.0"]

    assert ("EINVAL", None, 16) == (gpu.link_error, gpu.current_link_speed_gt_s, gpu.current_link_width)


def test_a_device_that_goes_away_while_it_is_read() -> None:
    """A folder that is gone, or files that answer ENODEV: the function is listed, and said to have vanished."""
    host = PciHost().function(ROOT_PORT, GPU_FILES).function(GPU, GPU_FILES)
    host.refused[f"{DEVICES}/0000:16:00.0/"] = Absent("no such directory", "ENOENT")
    host.refused[f"{DEVICES}/0000:15:01.0/config"] = Failed("no such device", "ENODEV")

    result = functions(host)

    assert (True, "0000:15:01.0") == (result["0000:16:00.0"].vanished, result["0000:16:00.0"].parent)
    assert (True, None) == (result["0000:15:01.0"].vanished, result["0000:15:01.0"].link_error)


def test_a_folder_that_may_not_be_entered_has_not_vanished() -> None:
    """Denied is not gone."""
    host = PciHost().function(GPU, GPU_FILES)
    host.refused[f"{DEVICES}/0000:16:00.0/"] = Denied("permission denied", "EACCES")

    gpu = functions(host)["0000:16:00.0"]

    assert (False, None) == (gpu.vanished, gpu.class_code)


def test_all_ones_is_a_device_that_is_gone() -> None:
    """By config space, or where there is none by the width that all-ones decode to."""
    host = PciHost().function(ROOT_PORT, GPU_FILES | {"config": b"\xff" * 64})
    host.function(GPU, GPU_FILES | {"current_link_width": "63\n"})

    assert [True, True] == [function.gone for function in functions(host).values()]


def test_a_function_without_driver_is_told_by_its_neighbours() -> None:
    """Where the source keeps driver links, a function without one has none; else nothing is known."""
    bound = PciHost().function(ROOT_PORT, {}, driver="../../../bus/pci/drivers/pcieport").function(GPU, GPU_FILES)
    pruned = PciHost().function(ROOT_PORT, {}).function(GPU, GPU_FILES)

    assert ("", None) == (functions(bound)["0000:16:00.0"].driver, functions(pruned)["0000:16:00.0"].driver)


def test_a_virtual_function_names_its_physical_one() -> None:
    """By the link of the kernel."""
    host = PciHost().function(ROOT_PORT, {}).function(GPU, GPU_FILES, physfn="../0000:16:00.4")

    assert "0000:16:00.4" == functions(host)["0000:16:00.0"].physical_function


def test_virtual_functions_of_a_live_host_are_counted_without_its_lock() -> None:
    """sriov_numvfs waits for a driver that hangs; the links to the virtual functions say the same."""
    host = PciHost(live=True).function(GPU, GPU_FILES, virtfn0="../0000:16:00.4", virtfn1="../0000:16:00.5")

    gpu = functions(host)["0000:16:00.0"]

    assert (2, 32) == (gpu.virtual_functions, gpu.virtual_functions_supported)
    assert not [path for path in host.asked if path.endswith("sriov_numvfs")]


def test_udev_is_asked_for_names_once_a_model() -> None:
    """It looks them up by ids. Where those are not known, or it has no answer, the next function is asked for."""
    below = [f"{ROOT_PORT}/0000:16:00.{number}" for number in range(4)]
    host = PciHost().function(ROOT_PORT, {"class": "0x060400\n"})
    for place in below[:2]:
        host.function(place, GPU_FILES)
    for place in below[2:]:
        host.function(place, {"class": "0x030200\n", "vendor": "0x10de\n"})
    for number in (1, 3):
        host.put({f"/run/udev/data/+pci:0000:16:00.{number}": f"E:ID_MODEL_FROM_DATABASE=model {number}\n"})
    host.function(f"{ROOT_PORT}/0000:16:00.4", GPU_FILES)

    result = functions(host)

    assert [None, "model 1", None, "model 3", "model 1"] == [result[f"0000:16:00.{number}"].name for number in range(5)]


def test_short_config_space_says_what_would_make_it_whole() -> None:
    """64 bytes are the answer to a reader without privilege: partial, with the number of functions."""
    host = PciHost().function(ROOT_PORT, GPU_FILES | {"config": bytes(express()[:64])})
    host.function(GPU, GPU_FILES | {"config": express()})

    outcome = outcome_of(probe("pci"), host)  # type: ignore[arg-type]  # a stand-in host for tests

    assert Status.PARTIAL is outcome.status
    assert "config space past byte 64 needs CAP_SYS_ADMIN (1 of 2 functions)" == outcome.reason
    assert [False, True] == [function.acs_known for function in outcome.facts.functions]
    assert 32.0 == outcome.facts.functions[0].max_link_speed_gt_s  # the kernel's: its own register was not read


def test_plain_folders_are_functions_whose_place_bus_numbers_tell() -> None:
    """A tree made by a tool that does not keep links."""
    bridge = bytes(conventional(bridge=(0, 1, 1)))
    host = PciHost().put({f"{DEVICES}/0000:00:01.0/config": bridge}).put({f"{DEVICES}/0000:01:00.0/class": "0x030200"})

    result = functions(host)

    assert (None, "0000:00") == (result["0000:00:01.0"].parent, result["0000:00:01.0"].root_bus)
    assert ("0000:00:01.0", "0000:00") == (result["0000:01:00.0"].parent, result["0000:01:00.0"].root_bus)


def test_functions_below_their_bus_only() -> None:
    """/sys/class/pci_bus/*/device/* completes what the list of devices lacks; a place that nothing tells is unknown."""
    bus = "/sys/class/pci_bus/0000:54/device/0000:54:00.0"
    host = PciHost().put({f"{bus}/current_link_speed": "16 GT/s\n"}).put({f"{bus}/current_link_width": "8\n"})
    host.put({f"{DEVICES}/0000:54:00.0/infiniband/mlx5_3/node_guid": "x"}).put({f"{bus}:pcie001/x": "no function"})
    host.put({"/sys/class/pci_bus/0000:05/device": SymlinkNode("../../../devices/pci0000:00/0000:00:03.0")})
    host.put({"/sys/devices/pci0000:00/0000:00:03.0/0000:05:00.0/current_link_width": "4\n"})
    host.put({"/sys/class/pci_bus/0000:00/device/0000:00:03.0/current_link_width": "4\n"})

    result = functions(host)

    assert ["0000:00:03.0", "0000:05:00.0", "0000:54:00.0"] == list(result)
    assert (16.0, 8, None, None) == (
        result["0000:54:00.0"].current_link_speed_gt_s,
        result["0000:54:00.0"].current_link_width,
        result["0000:54:00.0"].parent,
        result["0000:54:00.0"].root_bus,
    )
    assert ("0000:00:03.0", "0000:00") == (result["0000:05:00.0"].parent, result["0000:05:00.0"].root_bus)


def test_order_is_by_number() -> None:
    """Domain 10000 comes after ffff."""
    host = PciHost()
    for address in ("10000:00:00.0", "ffff:00:00.0", "0000:0a:00.0"):
        host.function(f"pci{address.rsplit(':', 1)[0]}/{address}", GPU_FILES)

    assert ["0000:0a:00.0", "ffff:00:00.0", "10000:00:00.0"] == list(functions(host))


def test_no_pci_bus_is_absent_and_an_empty_one_is_a_fact() -> None:
    """A source without /sys/bus/pci says nothing; a machine may have no PCI function."""
    empty = PciHost()
    empty.files.add(DEVICES, {})

    assert Status.ABSENT is outcome_of(probe("pci"), PciHost()).status  # type: ignore[arg-type]  # a stand-in host
    assert {} == functions(empty)


def test_models_are_read_of_the_makers_that_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of any other function its vendor alone: a bus has hundreds."""
    host = PciHost().function(ROOT_PORT, {"vendor": "0x8086\n", "device": "0x352a\n", "class": "0x060400\n"})
    host.function(GPU, GPU_FILES)
    asked: list[tuple[str, ...]] = []
    read = host.attributes
    monkeypatch.setattr(host, "attributes", lambda place, names: asked.append(tuple(names)) or read(place, names))

    assert [("0x10de", "0x2330", "0x030200")] == list(list_models(host, 1, {"0x10de"}))
    assert [("vendor",), ("vendor",), ("device", "class")] == asked
    assert [] == list(list_models(host, 2, {"0x10de"}))
