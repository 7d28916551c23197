"""Values of one part that people quote: lanes and speed of a link in a sentence, in files of /sys, in metrics; options
of a driver; records of BMCs of all makers.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agent.rules.test_fragments import scan_text

_WIDTHS = "$ cat /sys/bus/pci/devices/0000:5e:00.0/{}_link_width\n{}\n"
_OF_CLASS = "/sys/class/{kind}/{name}/device/{which}_link_{what}:{value}\n"
_SECTION = (  # of `nvidia-smi -q`
    "    PCI\n        Bus Id                            : {bus}\n"
    "        Sub System Id                     : 0x16C110DE\n"
    "        GPU Link Info\n            PCIe Generation\n                Max                       : 5\n"
    "                Current                   : {generation}\n            Link Width\n"
    "                Max                       : 16x\n                Current                   : {width}x\n"
)
_METRIC = 'nvidia_smi_pcie_link_width_{which}{{uuid="{gpu}"}} {lanes}\n'
_ILO = "/system1/log1/record{n}\n    number={n}\n    severity={grade}\n    date=05/06/2026\n    description={what}\n"
_XCC = "2026-05-06 07:08:09 [FQXSFIO0010I] [Warning] An {} PCIe Error has Occurred at Bus C3 Device 00 Function 00.\n"
_UTIL = (
    "1    server   2026-05-06 07:08:09    ipmid   SEL Entry: FRU: 1, Record: Standard (0x02), "
    "Time: 2026-05-06 07:08:09, Sensor: VR_FAULT (0xB1), Event Data: (001A41) PVDDQ_ABC status: 0x1a {}\n"
)
_UNIFIED = (
    "3    slot3    2026-05-06 07:08:09    ipmid   SEL Entry: FRU: 3, Record: Facebook Unified SEL (0xFB), "
    "GeneralInfo: {}\n"
)
_SUPPLY = "PSU{} Status | 0x1 | discrete | 0x{}80| na | na\n"
_RECORD = """{
  "checkName": "GpuNvlinkWatch",
  "isHealthy": %s,
  "message": "%s",
  "errorCode": ["DCGM_FR_NVLINK_DOWN"],
  "entitiesImpacted": [{"entityType": "GPU", "entityValue": "4"}]
}
"""
_LEVEL = "GPU[{}]\t\t: pcie clock level: {}\n"
_NO_LINKS = (
    "GPU {0}: NVIDIA {1} (UUID: GPU-1111111{0}-2222-3333-4444-555555555555)\n"
    "NVML: Unable to retrieve NVLink information as all links are inActive\n"
)
_NPUS = (
    "| 0     910B3 | OK | 92.8 44 0 / 0 |\n| 0 | 0000:C1:00.0 | 0 0 / 0 3375 / 65536 |\n"
    "| 1     910B3 | OK | 90.1 43 0 / 0 |\n| 0 | 0000:01:00.0 | 0 0 / 0 3361 / 65536 |\n"
)
_BAR = "pci 0000:5e:00.0: BAR 1: {} [mem size 0x2000000000 64bit pref]"
_LINKS = "GPU 3: Tesla V100-SXM2-16GB (UUID: GPU-0f)\n" + "".join(
    f"\t Link {link}: {'<inactive>' if link in (2, 4) else '25.781 GB/s'}\n" for link in range(6)
)


_RECOVERED = "$ nvidia-smi nvlink -e -i 3 | grep recovery\n" + "".join(
    f"\t Link {link}: Link recovery failed events: {{{link}}}\n" for link in range(4)
)
_GIDS = (
    "DEV     PORT    INDEX   GID                                     IPv4            VER     DEV\n"
    "---     ----    -----   ---                                     ------------    ---     ---\n"
    "mlx5_2  1       3       0000:0000:0000:0000:0000:ffff:0a00:0409 10.0.4.9        v2      eth4\n"
    "mlx5_3  1       3       0000:0000:0000:0000:0000:ffff:{} {}        v2      eth5\n"
    "n_gids_found=2\n"
)
_OF_JQ = """$ curl -sk https://bmc/redfish/v1/Systems/HGX_Baseboard_0/Processors/GPU_SXM_3 | jq '{Id,SystemInterface}'
{
  "Id": "GPU_SXM_3",
  "SystemInterface": {
    "InterfaceType": "PCIe",
    "PCIe": {
      "LanesInUse": %d,
      "MaxLanes": 16,
      "PCIeType": "Gen5"
    }
  }
}
"""
_PING = (
    "$ ping -c 3 -M do -s {} 10.7.0.4\nPING 10.7.0.4 (10.7.0.4) {}({}) bytes of data.\n\n"
    "--- 10.7.0.4 ping statistics ---\n3 packets transmitted, 0 received, 100% packet loss, time 2041ms\n"
)
_IMEX = (
    "$ nvidia-imex-ctl -N\nConnectivity Table Legend:\nI - Invalid - Node wasn't reachable\n"
    + "".join(
        f"Node #{n}   - 10.3.0.{n}   - READY                - Version: {{{n}}} - Hostname: t{n}\n" for n in range(4)
    )
    + "Domain State: {4}\n"
)
_NPU_ROWS = "".join(  # of `npu-smi info`, without its heading
    f"| {n}     910B3              | {{{n}:<13}} | 93.1        45                0    / 0             |\n"
    f"| 0                         | 0000:{bus}:00.0  | 0           0    / 0          3361 / 65536         |\n"
    for n, bus in enumerate(("C1", "01", "C2", "02"))
)
_HCA = "hca_id:\tmlx5_{}\n\tfw_ver:\t\t\t\t28.41.{}\n"
_HCA_PORT = "\t\tport:\t{}\n\t\t\tstate:\t\t\t{}\n\t\t\tactive_width:\t\t4X (2)\n\t\t\tactive_speed:\t\t{}\n"
_CA = "CA 'mlx5_{}'\n\tCA type: MT4129\n\tNumber of ports: {}\n\tFirmware version: 28.41.1000\n"
_CA_PORT = "\tPort {}:\n\t\tState: Active\n\t\tPhysical state: LinkUp\n\t\tRate: {}\n\t\tLink layer: InfiniBand\n"
_P2P = "$ nvidia-smi topo -p2p n\n \tGPU0\tGPU1\tGPU2\tGPU3\n{}"
_SLOWED = "".join(  # of `nvidia-smi -q`; the third GPU differs
    f"GPU 00000000:{gpu}E:00.0\n    Clocks Event Reasons Counters\n"
    f"        HW Thermal Slowdown               : {{{gpu}}} us\n"
    "        HW Power Braking                  : 0 us\n"
    for gpu in range(4)
)
_ACTION = "NVRM: Xid (PCI:0000:5e:00): 154, GPU recovery action changed from 0x0 (None) to {}\n"
_CLOCKS = (
    "index, clocks.current.sm [MHz], utilization.gpu [%]\n0, 1980, 99\n1, {clock}, {use}\n2, 1980, 98\n3, 1980, 97\n"
)


def p2p(*words: str) -> str:
    """The matrix, with these words in the rows of the four GPUs."""
    return _P2P.format("".join(f" GPU{gpu}\t{row}\n" for gpu, row in enumerate(words)))


def hcas(odd: int | None = None, two: int | None = None, state: str = "PORT_ACTIVE (4)") -> str:
    """Of `ibv_devinfo` through grep: one with other firmware, one with two ports of half the speed."""
    text = ""
    for n in range(5):
        speed = "50.0 Gbps (64)" if n == two else "100.0 Gbps (128)"
        text += _HCA.format(n, 1002 if n == odd else 1000)
        for port in range(1, 3 if n == two else 2):
            text += _HCA_PORT.format(port, "PORT_ACTIVE (4)" if n else state, speed)
    return text


def findings_of(tmp_path: Path, text: str) -> list[str]:
    """Severity, rule and part of each."""
    report = scan_text(tmp_path, text, "chat.txt")
    return [f"{finding.severity} {finding.rule} {finding.label}" for finding in report.findings]


_LANES = "pcie-width-downgraded device 0000:5e:00.0"
_SAVED = "tool-reports-fault"
TEXTS = {
    "lanes of a GPU": ("On rack 4 GPU 6 runs at x4 instead of x16.\n", [f"warning {_SAVED} GPU6"]),
    "speed of an address": ("0000:5e:00.0 is at Gen3, expected Gen5\n", [f"warning {_SAVED} device 0000:5e:00.0"]),
    "speed under load": ("gpu2 shows gen 1 under load, why?\n", [f"warning {_SAVED} GPU2"]),
    "files by cat": (_WIDTHS.format("current", 8) + _WIDTHS.format("max", 16), [f"info {_LANES}"]),
    "files with all lanes": (_WIDTHS.format("current", 16) + _WIDTHS.format("max", 16), []),
    "files within a sentence": (
        "`/sys/bus/pci/devices/0000:5e:00.0/current_link_width` -> 8 while `max_link_width` is 16.\n",
        [f"info {_LANES}"],
    ),
    "files of a NIC's class": (
        "".join(
            _OF_CLASS.format(kind="infiniband", name="mlx5_3", which=which, what="speed", value=value)
            for which, value in (("current", "8.0 GT/s PCIe"), ("max", "32.0 GT/s PCIe"))
        ),
        [f"info {_SAVED} mlx5_3"],
    ),
    "speed of a GPU's class": (
        "".join(
            _OF_CLASS.format(kind="drm", name="card1", which=which, what="speed", value=value)
            for which, value in (("current", "2.5 GT/s PCIe"), ("max", "32.0 GT/s PCIe"))
        ),
        [],
    ),
    "a section at full speed": (
        _SECTION.format(bus="00000000:5E:00.0", generation=5, width=4),
        [f"warning {_SAVED} device 0000:5e:00.0"],
    ),
    "a section at idle speed": (
        _SECTION.format(bus="00000000:5E:00.0", generation=1, width=4),
        [f"info {_SAVED} node"],
    ),
    "a section of a superchip": (
        _SECTION.format(bus="00000009:01:00.0", generation=5, width=1),
        [f"info {_SAVED} node"],
    ),
    "metrics": (
        "".join(
            _METRIC.format(which=which, gpu=gpu, lanes=lanes)
            for which, gpu, lanes in (("current", "a", 8), ("max", "a", 16), ("current", "b", 16), ("max", "b", 16))
        ),
        [f"warning {_SAVED} a"],
    ),
    "metrics of GPUs that are all alike": (
        "".join(
            _METRIC.format(which=which, gpu=gpu, lanes=lanes)
            for which, gpu, lanes in (("current", "a", 1), ("max", "a", 16), ("current", "b", 1), ("max", "b", 16))
        ),
        [],
    ),
    "NVLink off in a file": ("options nvidia NVreg_NvLinkDisable=1\n", [f"warning {_SAVED} node"]),
    "NVLink off in the driver": ("NvLinkDisable: 1\nEnableMSI: 1\n", [f"warning {_SAVED} node"]),
    "NVLink on": ("NvLinkDisable: 0\nEnableMSI: 1\n", []),
    "GPUs left out": ('NvLinkDisable: 0\nExcludedGpus: "0000:5e:00.0"\n', [f"info {_SAVED} node"]),
    "a third of the links of one GPU": (_LINKS, ["info nvlink-inactive GPU3"]),
    "a record of iLO": (
        _ILO.format(n=1, grade="Informational", what="POST complete")
        + _ILO.format(n=2, grade="Critical", what="Uncorrectable PCI Express Error (Bus 0x5E, Device 0x0, Function 0)"),
        [f"warning {_SAVED} device 0000:5e:00.0"],
    ),
    "a line of XCC": (_XCC.format("Uncorrectable"), [f"warning {_SAVED} device 0000:c3:00.0"]),
    "a line of XCC about what was corrected": (_XCC.format("Correctable"), []),
    "a line of log-util": (_UTIL.format("Assertion"), [f"warning {_SAVED} VR_FAULT"]),
    "a line of log-util that ends it": (_UTIL.format("Assertion") + _UTIL.format("Deassertion"), []),
    "a PCIe record of log-util": (
        _UNIFIED.format("x86/PCIeErr(0x20), Bus 5E/Dev 00/Fun 00, ErrID2: 0x21(Surprise Down Error)"),
        [f"warning {_SAVED} device 0000:5e:00.0"],
    ),
    "a PCIe record of log-util about what was corrected": (
        _UNIFIED.format("x86/PCIeErr(0x20), Bus 5E/Dev 00/Fun 00, ErrID2: 0x50(Received ERR_COR Message)"),
        [],
    ),
    "power supplies by their bits": (
        _SUPPLY.format(1, "03") + _SUPPLY.format(2, "01"),
        [f"warning {_SAVED} PSU1 Status"],
    ),
    "power supplies that work": (_SUPPLY.format(1, "01") + _SUPPLY.format(2, "01"), []),
    "sensors in rows of one length": (
        "FAN3     | 0.000  | RPM       | nr    | 700.000 | na | na | na | na\n"
        "GPU4 Temp| 52.000 | degrees C | ok    | na      | na | na | na | na\n",
        [f"warning {_SAVED} FAN3"],
    ),
    "a record of a health check on several lines": (
        _RECORD % ("false", "GPU 4's NvLink link 7 is currently down"),
        [f"error {_SAVED} GPU4"],
    ),
    "Gaudi cards whose fields the command states": (
        "$ hl-smi -Q module_id,bus_id,ecc.errors.uncorrected.volatile.total -f csv,noheader\n0, 0000:33:00.0, 0\n"
        "2, 0000:9a:00.0, 7\n",
        [f"error {_SAVED} device 0000:9a:00.0"],
    ),
    "RVS: a GPU below its target": (
        "[RESULT] [ 92.1] Action name :gst\n[RESULT] [ 93.1] [gst] gst 5059 GFLOPS 118 Target GFLOPS: 98 met: TRUE\n"
        "[RESULT] [ 93.2] [gst] gst 3336 GFLOPS 61 Target GFLOPS: 98 met: FALSE\n",
        [f"warning {_SAVED} node"],
    ),
    "RVS: a link": (
        "[RESULT] [ 95.1] [p] peqt 50599 link_cap_max_speed ^(32 GT/s)$ true\n"
        "[RESULT] [ 95.2] [p] peqt 50599 link_stat_cur_speed ^(32 GT/s)$ false\n",
        [f"warning {_SAVED} node"],
    ),
    "rocm-smi: one GPU with fewer lanes": (
        "".join(_LEVEL.format(n, "1 (32.0GT/s x16)") for n in range(3)) + _LEVEL.format(3, "1 (32.0GT/s x8)"),
        ["info peer-differs GPU 3"],
    ),
    "rocm-smi: all alike": ("".join(_LEVEL.format(n, "1 (32.0GT/s x16)") for n in range(4)), []),
    "modules without any NVLink": (
        _NO_LINKS.format(0, "H200") + _NO_LINKS.format(1, "H200"),
        ["error nvlink-inactive node"],
    ),
    "the first module alone": (_NO_LINKS.format(0, "H200"), ["warning nvlink-inactive GPU0"]),
    "cards without a bridge": (_NO_LINKS.format(0, "A100-PCIE-40GB") + _NO_LINKS.format(1, "A100-PCIE-40GB"), []),
    "one power limit of a query": (
        "index, name, power.limit [W]\n"
        + "".join(f"{n}, NVIDIA H100 80GB HBM3, {watts:.2f} W\n" for n, watts in enumerate((700, 700, 700, 350))),
        ["warning gpu-power-limited GPU3", "info peer-differs GPU3"],
    ),
    "an error that the driver could not recover from": (
        "nvidia 0000:b1:00.0: AER: can't recover (no error_detected callback)\n",
        ["warning pcie-containment 0000:b1:00.0"],
    ),
    "the same of its audio function": (
        "snd_hda_intel 0000:b1:00.1: AER: can't recover (no error_detected callback)\n",
        [f"info {_SAVED} device 0000:b1:00.1"],
    ),
    "a cut number of NPUs": (_NPUS.removesuffix("5536 |\n"), []),
    "a cut number of lanes": (
        "0000:4e:00.0 3D controller: NVIDIA Corporation GH100 [H100 SXM5 80GB] (rev a1)\n"
        "\t\tLnkCap:\tPort #0, Speed 32GT/s, Width x16\n\t\tLnkSta:\tSpeed 32GT/s, Width x1",
        [],
    ),
    "a state of check_ipmi_sensor": (
        "IPMI Status: Critical [2 system event log (SEL) entries present - details: (PS1 Status = Critical, Power "
        "Supply, Power Supply Failure detected), (Sensor #0 = Warning, OS Critical Stop, OS Graceful Shutdown)]\n",
        [f"warning {_SAVED} PS1 Status"],
    ),
    "the kernel's lines in a log of Go": (
        f'level=info msg="[   67.492525] {_BAR.format("no space for")}\\n"\n'
        f'level=info msg="[   67.492646] {_BAR.format("failed to assign")}\\n"\n',
        ["warning driver-reports-failure device 0000:5e:00.0"],
    ),
    "one GPU without P2P over NVLink": (
        p2p("X\tOK\tOK\tNS", "OK\tX\tOK\tNS", "OK\tOK\tX\tNS", "NS\tNS\tNS\tX"),
        ["warning nvlink-path-missing GPU3"],
    ),
    "pairs with a bridge": (p2p("X\tOK\tNS\tNS", "OK\tX\tNS\tNS", "NS\tNS\tX\tOK", "NS\tNS\tOK\tX"), []),
    "all with P2P over NVLink": (p2p("X\tOK\tOK\tOK", "OK\tX\tOK\tOK", "OK\tOK\tX\tOK", "OK\tOK\tOK\tX"), []),
    "one GPU that heat slowed": (
        _SLOWED.format(0, 0, 903_000_000, 0),
        [f"warning {_SAVED} GPU@0000:2e:00.0"],
    ),
    "GPUs that heat slowed alike": (
        _SLOWED.format(*[903_000_000] * 4),
        [f"info {_SAVED} node"],
    ),
    "GPUs that heat slowed for a moment": (_SLOWED.format(0, 0, 9_000_000, 0), []),
    "one slow clock": (_CLOCKS.format(clock=345, use=97), [f"warning {_SAVED} GPU1"]),
    "one slow clock of an idle GPU": (_CLOCKS.format(clock=345, use=0), []),
    "a GPU that waits for a reset": (
        _ACTION.format("0x1 (GPU Reset Required)"),
        ["error gpu-xid device 0000:5e:00.0"],
    ),
    "a GPU that waits for its jobs": (
        _ACTION.format("0x4 (Drain and Reset)"),
        ["warning gpu-xid device 0000:5e:00.0"],
    ),
    "one GPU that is not registered, through grep": (
        "$ nvidia-smi -q | grep -E '^GPU 0|State|Status'\n" + "".join(
            f"GPU 00000000:{bus}:00.0\n        State                             : {state}\n"
            f"        Status                            : {'N/A' if state == 'In Progress' else 'Success'}\n"
            for bus, state in (("18", "Completed"), ("3B", "In Progress"), ("5D", "Completed"), ("9A", "Completed"))
        ),
        [f"warning {_SAVED} device 0000:3b:00.0"],
    ),
    "a link that did not recover": (_RECOVERED.format(0, 0, 4, 0), [f"info {_SAVED} node"]),
    "links without a recovery": (_RECOVERED.format(0, 0, 0, 0), []),
    "two devices with one address": (_GIDS.format("0a00:0409", "10.0.4.9"), [f"warning {_SAVED} node"]),
    "an address for each device": (_GIDS.format("0a00:0609", "10.0.6.9"), []),
    "lanes by jq": (_OF_JQ % 8, [f"warning {_SAVED} GPU_SXM_3"]),
    "all lanes by jq": (_OF_JQ % 16, []),
    "a limit within a job": (f"$ srun -w n7 bash -c 'ulimit -l'\n{65536}\n", ["warning gdr-memlock-low node"]),
    "no limit within a job": ("$ srun -w n7 bash -c 'ulimit -l'\nunlimited\n", []),
    "a large packet without an answer": (_PING.format(8972, 8972, 9000), [f"warning {_SAVED} 10.7.0.4"]),
    "a small packet without an answer": (_PING.format(56, 56, 84), [f"warning {_SAVED} node"]),
    "IMEX of another version": (
        _IMEX.format("580.65.06", "580.65.06", "575.57.08", "580.65.06", "DEGRADED"),
        [f"error {_SAVED} t2"],
    ),
    "IMEX of one version": (_IMEX.format(*["580.65.06"] * 4, "UP"), []),
    "NPUs without a heading": (_NPU_ROWS.format("OK", "OK", "Alarm", "OK"), [f"error {_SAVED} GPU2"]),
    "NPUs without a heading that are well": (_NPU_ROWS.format(*["OK"] * 4), []),
    "firmware of one HCA": (hcas(odd=1), [f"info {_SAVED} mlx5_1"]),
    "firmware of one HCA beside a port that is down": (
        hcas(odd=1, state="PORT_DOWN (1)"),
        ["info ib-port-down mlx5_0/1"],
    ),
    "one HCA with two ports": (hcas(two=2), [f"info {_SAVED} mlx5_2"]),  # a note: no rate is degraded
    "what an Xid would look like": (
        "A lost GPU would look like [Tue May  5 07:08:09 2026] NVRM: Xid (PCI:0000:5e:00): 79, GPU has fallen off\n",
        [],
    ),
    "an Xid that a manual has": (
        'The runbook has "May  5 07:08:09 n7 kernel: NVRM: Xid (PCI:0000:5e:00): 79, GPU has fallen off" in it\n',
        [],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), TEXTS.values(), ids=TEXTS)
def test_values_that_a_text_states(tmp_path: Path, text: str, expected: list[str]) -> None:
    assert expected == findings_of(tmp_path, text)
