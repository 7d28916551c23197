"""Made-up machines with NVIDIA GPUs: what sysfs, NVML and saved commands say; each notes what was asked.

Two are whole: an HGX with switches, and a workstation with bridges.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from probes.gpu import nvml
from probes.gpu.facts import GpuFacts
from probes.host.interface import Absent, Completed, Failed, ReadError
from probes.sources.memory import SymlinkNode
from tests.probes.machine import Machine

NOT_SUPPORTED = Failed("Not Supported", "NOT_SUPPORTED")
FUNCTION_NOT_FOUND = Failed("Function Not Found", "FUNCTION_NOT_FOUND")
INVALID_ARGUMENT = Failed("Invalid Argument", "INVALID_ARGUMENT")
GPU_IS_LOST = Failed("GPU is lost", "GPU_IS_LOST")


class GpuMachine(Machine):
    """A capture with GPUs. `nvml` holds answers or errors by call; `commands` stdouts by argv."""

    def __init__(
        self,
        nvml: Mapping[tuple[Any, ...], Any] | None = None,
        commands: Mapping[tuple[str, ...], str | Completed] | None = None,
        live: bool = False,
        otherwise: ReadError | None = None,
    ) -> None:
        super().__init__(kind="capture", live=live)
        self.nvml_answers = dict(nvml or {})
        self.otherwise = otherwise  # of every NVML call that is not listed
        self.put({"/sys/devices/system/cpu/possible": "0-127\n"})
        for argv, result in (commands or {}).items():
            self.outputs[argv] = result if isinstance(result, Completed) else Completed(argv, 0, result, "", 0.1)

    def with_pci(self, *addresses: str, driver: str = "nvidia", status: str = "active") -> GpuMachine:
        """Put NVIDIA GPUs on the bus."""
        for address in addresses:
            texts = {"vendor": "0x10de\n", "class": "0x030200\n", "power/runtime_status": f"{status}\n"}
            self.put({f"/sys/bus/pci/devices/{address}/{name}": text for name, text in texts.items()})
            self.put({f"/sys/bus/pci/devices/{address}/driver": SymlinkNode(f"../../../../bus/pci/drivers/{driver}")})
        return self

    def with_driver(self) -> GpuMachine:
        """The driver is loaded and has its device nodes."""
        version = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.211.01\n"
        self.put({"/proc/driver/nvidia/version": version, "/dev/nvidiactl": ""})
        return self

    def run(self, *argv: str) -> Completed:
        self.asked.append(" ".join(argv))
        return super().run(*argv)

    def nvml(self, function: str, *arguments: Any) -> Any:
        self.asked.append(function)
        if function == "nvmlDeviceGetFieldValues":
            return [self._field(arguments[0], *field) for field in arguments[1]]
        call = (function, *arguments)
        if call not in self.nvml_answers:
            raise self.otherwise or Absent(f"{function}: not recorded")
        answer = self.nvml_answers[call]
        if isinstance(answer, ReadError):
            raise answer
        return answer

    def _field(self, index: int, field: int, scope: int) -> dict[str, Any]:
        """A field value that is listed under ("field", index, id, scope); any other is not supported."""
        value = self.nvml_answers.get(("field", index, field, scope))
        return {"id": field, "scope": scope, "return": 3 if value is None else 0, "value": value}


def gpu_answers(index: int, address: str, **other: Any) -> dict[tuple[Any, ...], Any]:
    """NVML's answers for one healthy H100; `other` replaces or adds answers by the name behind "nvmlDevice"."""
    result = {
        "GetPciInfo_v3": {"busId": f"0000{address.upper()}", "pciDeviceId": 0x233010DE, "pciSubSystemId": 0x16C110DE},
        "GetUUID": f"GPU-00000000-0000-0000-0000-{index:012}",
        "GetName": "NVIDIA H100 80GB HBM3",
        "GetSerial": f"16500{index}",
        "GetVbiosVersion": "96.00.74.00.0D",
        "GetMinorNumber": index,
        "GetArchitecture": 9,
        "GetCudaComputeCapability": [9, 0],
        "GetModuleId": index + 1,
        "GetPerformanceState": 0,
        "GetUtilizationRates": {"gpu": 0, "memory": 0},
        "GetPersistenceMode": 1,
        "GetCurrPcieLinkGeneration": 5,
        "GetCurrPcieLinkWidth": 16,
        "GetMaxPcieLinkGeneration": 5,
        "GetMaxPcieLinkWidth": 16,
        "GetPcieReplayCounter": 0,
        "GetBAR1MemoryInfo": {"bar1Total": 131072 << 20},
        "GetMemoryInfo": {"total": 81559 << 20},
        "GetNumaNodeId": NOT_SUPPORTED,
        "GetMigMode": [0, 0],
        "GetVirtualizationMode": 0,
        "GetC2cModeInfoV": NOT_SUPPORTED,
        "GetAddressingMode": 0,
        "GetGpuFabricInfoV": {
            "state": 3,
            "status": 0,
            "cliqueId": 0,
            "clusterUuid": "0" * 32,
            "healthMask": 0x2AA,
            "healthSummary": 1,
        },
        **other,
    }
    answers: dict[tuple[Any, ...], Any] = {(f"nvmlDevice{name}", index): answer for name, answer in result.items()}
    answers["field", index, 230, 0] = 0
    return answers


def system_answers(count: int) -> dict[tuple[Any, ...], Any]:
    """What NVML says of the whole system."""
    return {
        ("nvmlInit_v2",): None,
        ("nvmlDeviceGetCount_v2",): count,
        ("nvmlSystemGetDriverVersion",): "570.211.01",
        ("nvmlSystemGetCudaDriverVersion_v2",): 12080,
        ("nvmlSystemGetNvlinkBwMode",): 0,
    }


def link_answers(
    index: int, links: Mapping[int, tuple[str, int]], kind: int, version: int = 6, mbyte_s: int = 26562, count: int = 18
) -> dict[tuple[Any, ...], Any]:
    """NVML's answers for the active links of one GPU: number -> (far address, far link). Other links are inactive."""
    answers: dict[tuple[Any, ...], Any] = {("field", index, 91, 0): count}
    for link in range(count):
        active = link in links
        answers["field", index, 165, link] = int(active)
        answers["nvmlDeviceGetNvLinkState", index, link] = int(active)
        answers["nvmlDeviceGetNvLinkVersion", index, link] = version
        if active:
            address, far = links[link]
            answers["field", index, 164, link] = mbyte_s
            answers["field", index, 146, link] = far
            answers["nvmlDeviceGetNvLinkRemoteDeviceType", index, link] = kind
            answers["nvmlDeviceGetNvLinkRemotePciInfo_v2", index, link] = {"busId": f"0000{address.upper()}"}
            answers.update({("field", index, field, link): 0 for field in (161, 162, 163)})
    return answers


def pair_answers(a: int, b: int, level: int, nvlink: int, read: int = 0) -> dict[tuple[Any, ...], Any]:
    """NVML's answers for one pair of GPUs, both ways."""
    answers: dict[tuple[Any, ...], Any] = {}
    for one, other in ((a, b), (b, a)):
        answers["nvmlDeviceGetTopologyCommonAncestor", one, other] = level
        for index, status in ((0, read), (1, read), (2, nvlink), (3, nvlink)):
            answers["nvmlDeviceGetP2PStatus", one, other, index] = status
    return answers


HGX = [f"0000:{bus}:00.0" for bus in ("1b", "43", "52", "61", "9d", "c3", "d1", "df")]
SWITCHES = [f"0000:{bus}:00.0" for bus in ("05", "06", "07", "08")]


def hgx_h100() -> GpuMachine:
    """8 H100 SXM, each with 18 links into 4 NVSwitches."""
    answers = system_answers(8)
    for index, address in enumerate(HGX):
        into_switches = {link: (SWITCHES[link % 4], 32 + link) for link in range(18)}
        answers |= gpu_answers(index, address) | link_answers(index, into_switches, kind=2)
        for other in range(index):
            answers |= pair_answers(other, index, level=50, nvlink=0)
    return GpuMachine(answers).with_pci(*HGX).with_driver()


def bridged_pairs() -> GpuMachine:
    """4 A6000-like cards in two pairs, 0-2 and 1-3, each with a bridge of 4 links."""
    at = HGX[:4]
    peers = {0: 2, 1: 3, 2: 0, 3: 1}
    answers = system_answers(4)
    for index, address in enumerate(at):
        bridge = {link: (at[peers[index]], link) for link in range(4)}
        answers |= gpu_answers(index, address, GetArchitecture=7, GetGpuFabricInfoV=NOT_SUPPORTED)
        answers |= link_answers(index, bridge, kind=0, version=5, mbyte_s=14062, count=4)
        for other in range(index):
            bridged = peers[index] == other
            answers |= pair_answers(other, index, level=30 if bridged else 40, nvlink=0 if bridged else 5)
    return GpuMachine(answers).with_pci(*at).with_driver()


def facts_of(machine: GpuMachine) -> GpuFacts:
    facts = nvml.read(machine).facts
    assert isinstance(facts, GpuFacts)
    return facts
