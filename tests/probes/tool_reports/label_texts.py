"""Outputs of eight equal devices in the forms of their tools: what one device has in each, and what is its own.

`{n}` is the number of the device, `{a}` its PCI address.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

COUNT = 8


class Form(NamedTuple):
    """A form. `static`: lines that are the same on all devices, `other`: what a line has on the odd one."""

    file: str
    before: str
    device: str  # its lines; {static} is where those of `static` are
    static: tuple[tuple[str, str], ...]  # a line, and what it is where a device is the odd one
    is_of_each: bool = False  # a file per device, whose name is in that of the file
    between: str = ""
    after: str = ""

    def texts(self, changed: Mapping[int, int] = MappingProxyType({})) -> dict[str, str]:
        """The files. `changed`: the number of the line that is another one, by that of the device."""
        devices = [self._device(n, changed.get(n)) for n in range(COUNT)]
        if self.is_of_each:
            return {self.file.format(n=n): text for n, text in enumerate(devices)}
        return {self.file: self.before + self.between.join(devices) + self.after}

    def _device(self, n: int, changed: int | None) -> str:
        lines = [other if number == changed else line for number, (line, other) in enumerate(self.static)]
        text = self.device.replace("{static}\n", "".join(f"{line}\n" for line in lines))
        return text.replace("{n}", str(n)).replace("{a}", f"0000:{0x10 + 0x10 * n:02x}:00.0")


_SMI = (
    ("    Compute Mode                          : Default", "    Compute Mode                          : Prohibited"),
    ("    Accounting Mode                       : Disabled", "    Accounting Mode                       : Enabled"),
    ("    Board Part Number                     : 692-2X1-00", "    Board Part Number                     : 692-2X9-00"),
    ("    GSP Firmware Version                  : 580.65.06", "    GSP Firmware Version                  : N/A"),
    ("    Inforom Version\n        Image Version                     : G525.0200.00.02",
     "    Inforom Version\n        Image Version                     : G525.0200.00.05"),
    ("    Max Clocks\n        Video                             : 1620 MHz",
     "    Max Clocks\n        Video                             : 1400 MHz"),
    ("    GPU Power Readings\n        Max Power Limit                   : 700.00 W",
     "    GPU Power Readings\n        Max Power Limit                   : 650.00 W"),
    ("    Temperature\n        GPU Shutdown T.Limit Temp         : -8 C",
     "    Temperature\n        GPU Shutdown T.Limit Temp         : -5 C"),
)  # fmt: skip
_LSPCI = (
    ("\tControl: I/O- Mem+ BusMaster+ SpecCycle- ParErr- SERR- DisINTx+",
     "\tControl: I/O- Mem+ BusMaster+ SpecCycle- ParErr+ SERR- DisINTx+"),
    ("\tCapabilities: [60] Express (v2) Endpoint, MSI 00\n\t\tDevCtl:\tCorrErr+ NonFatalErr+ FatalErr+ UnsupReq+",
     "\tCapabilities: [60] Express (v2) Endpoint, MSI 00\n\t\tDevCtl:\tCorrErr- NonFatalErr+ FatalErr+ UnsupReq+"),
    ("\t\tLnkCtl:\tASPM Disabled; RCB 64 bytes, Disabled- CommClk+",
     "\t\tLnkCtl:\tASPM Disabled; RCB 64 bytes, Disabled- CommClk-"),
    ("\t\tDevCtl2: Completion Timeout: 50us to 50ms, TimeoutDis- LTR-",
     "\t\tDevCtl2: Completion Timeout: 65ms to 210ms, TimeoutDis- LTR-"),
    ("\t\t\t AtomicOpsCtl: ReqEn+", "\t\t\t AtomicOpsCtl: ReqEn-"),
    ("\tCapabilities: [100 v2] Advanced Error Reporting\n\t\tUEMsk:\tDLP- SDES- TLP- CmpltTO- UnxCmplt+",
     "\tCapabilities: [100 v2] Advanced Error Reporting\n\t\tUEMsk:\tDLP- SDES- TLP- CmpltTO+ UnxCmplt+"),
)  # fmt: skip
_IBV = (
    ("\tmax_mr_size:\t\t\t0xffffffffffffffff", "\tmax_mr_size:\t\t\t0xffffffff"),
    ("\tpage_size_cap:\t\t\t0xfffffffffffff000", "\tpage_size_cap:\t\t\t0x1000"),
    ("\tmax_qp_wr:\t\t\t32768", "\tmax_qp_wr:\t\t\t16384"),
    ("\tmax_qp_rd_atom:\t\t\t16", "\tmax_qp_rd_atom:\t\t\t4"),
    ("\tatomic_cap:\t\t\tATOMIC_HCA (1)", "\tatomic_cap:\t\t\tATOMIC_NONE (0)"),
    ("\tdevice_cap_flags:\t\t0xe5721c36", "\tdevice_cap_flags:\t\t0xe5721c32"),
    ("\tvendor_part_id:\t\t\t4129", "\tvendor_part_id:\t\t\t4125"),
)
_FEATURES = (
    ("rx-checksumming: on", "rx-checksumming: off"),
    ("tx-checksumming: on\n\ttx-checksum-ipv4: on", "tx-checksumming: on\n\ttx-checksum-ipv4: off"),
    ("tcp-segmentation-offload: on", "tcp-segmentation-offload: off"),
    ("generic-receive-offload: on", "generic-receive-offload: off"),
    ("ntuple-filters: off", "ntuple-filters: on"),
    ("hw-tc-offload: off", "hw-tc-offload: on"),
)
_RINGS = (
    ("Pre-set maximums:\nRX:\t\t8192\nTX:\t\t8192", "Pre-set maximums:\nRX:\t\t4096\nTX:\t\t8192"),
    ("Current hardware settings:\nRX:\t\t8192", "Current hardware settings:\nRX:\t\t1024"),
)
_COALESCE = (
    ("Adaptive RX: on  TX: on", "Adaptive RX: off  TX: on"),
    ("rx-usecs: 8", "rx-usecs: 64"),
    ("rx-frames: 128", "rx-frames: 32"),
    ("tx-usecs: 8", "tx-usecs: 16"),
)
_MLXCONFIG = (
    (
        "        SRIOV_EN                                    False(0)",
        "        SRIOV_EN                                    True(1)",
    ),
    ("        NUM_OF_VFS                                  0", "        NUM_OF_VFS                                  16"),
    (
        "        LINK_TYPE_P1                                ETH(2)",
        "        LINK_TYPE_P1                                IB(1)",
    ),
    (
        "        PCI_WR_ORDERING                             per_mkey(0)",
        "        PCI_WR_ORDERING                             force_relax(1)",
    ),
    (
        "        ROCE_CC_PRIO_MASK_P1                        255",
        "        ROCE_CC_PRIO_MASK_P1                        0",
    ),
    (
        "        CNP_DSCP_P1                                 48",
        "        CNP_DSCP_P1                                 46",
    ),
    (
        "        KEEP_ETH_LINK_UP_P1                         True(1)",
        "        KEEP_ETH_LINK_UP_P1                         False(0)",
    ),
)
_DEVLINK = (
    ("  name enable_roce type generic\n    values:\n      cmode driverinit value true",
     "  name enable_roce type generic\n    values:\n      cmode driverinit value false"),
    ("  name flow_steering_mode type driver-specific\n    values:\n      cmode runtime value smfs",
     "  name flow_steering_mode type driver-specific\n    values:\n      cmode runtime value dmfs"),
)  # fmt: skip
_SYSCTL = (
    ("net.ipv4.conf.ens{n}f0np0.arp_announce = 2", "net.ipv4.conf.ens{n}f0np0.arp_announce = 0"),
    ("net.ipv4.conf.ens{n}f0np0.arp_ignore = 1", "net.ipv4.conf.ens{n}f0np0.arp_ignore = 2"),
    ("net.ipv4.conf.ens{n}f0np0.rp_filter = 2", "net.ipv4.conf.ens{n}f0np0.rp_filter = 1"),
    ("net.ipv4.conf.ens{n}f0np0.accept_local = 1", "net.ipv4.conf.ens{n}f0np0.accept_local = 0"),
)
_AMD = (
    (
        "    VBIOS:\n        NAME: AMD INSTINCT\n        BUILD_DATE: 2024/05/01",
        "    VBIOS:\n        NAME: AMD INSTINCT\n        BUILD_DATE: 2023/01/09",
    ),
    ("    LIMIT:\n        MAX_POWER: 750 W", "    LIMIT:\n        MAX_POWER: 650 W"),
    ("        SLOWDOWN_HOTSPOT_TEMPERATURE_LIMIT: 100 C", "        SLOWDOWN_HOTSPOT_TEMPERATURE_LIMIT: 90 C"),
    (
        "    DRIVER:\n        NAME: amdgpu\n        VERSION: 6.12.12",
        "    DRIVER:\n        NAME: amdgpu\n        VERSION: 6.10.5",
    ),
    ("    PROCESS_ISOLATION: Disabled", "    PROCESS_ISOLATION: Enabled"),
    ("    RAS:\n        EEPROM_VERSION: 0x10000", "    RAS:\n        EEPROM_VERSION: 0x20000"),
)
_XML = (
    ("<compute_mode>Default</compute_mode>", "<compute_mode>Prohibited</compute_mode>"),
    ("<inforom_version><img_version>G525.0200</img_version></inforom_version>",
     "<inforom_version><img_version>G525.0100</img_version></inforom_version>"),
    ("<max_clocks><mem_clock>2619 MHz</mem_clock></max_clocks>", "<max_clocks><mem_clock>1593 MHz</mem_clock></max_clocks>"),
    ("<gsp_firmware_version>580.65.06</gsp_firmware_version>", "<gsp_firmware_version>N/A</gsp_firmware_version>"),
)  # fmt: skip
_JSON = (
    ('"driver": {"version": "6.12.12"},', '"driver": {"version": "6.10.5"},'),
    ('"limit": {"max_power": 750, "slowdown_vram_temperature": 100},',
     '"limit": {"max_power": 750, "slowdown_vram_temperature": 105},'),
    ('"process_isolation": "Disabled",', '"process_isolation": "Enabled",'),
    ('"ras": {"eeprom_version": "0x10000"}', '"ras": {"eeprom_version": "0x20000"}'),
)  # fmt: skip
_GAUDI = (
    (
        "\tFirmware [SPI] Version     : Preboot version hl-gaudi2-1.20.0",
        "\tFirmware [SPI] Version     : Preboot version hl-gaudi2-1.18.0",
    ),
    ("\tCPLD Version               : 0x00000010.1", "\tCPLD Version               : 0x0000000e.1"),
    (
        "\tPower Readings\n\t\tPower Max                  : 600 W",
        "\tPower Readings\n\t\tPower Max                  : 500 W",
    ),
    (
        "\tMax Clocks\n\t\tSoC                        : 1650 MHz",
        "\tMax Clocks\n\t\tSoC                        : 1200 MHz",
    ),
)
_NPU = (
    ("\tSoftware Version               : 24.1.rc2", "\tSoftware Version               : 23.0.3"),
    ("\tFirmware Version               : 7.3.0.1.231", "\tFirmware Version               : 7.1.0.5.220"),
    ("\tCompatibility                  : OK", "\tCompatibility                  : NOK"),
    ("\tPCB ID                         : A", "\tPCB ID                         : B"),
    ("\tBoard Type                     : 0x30", "\tBoard Type                     : 0x33"),
)
FORMS = {
    "nvidia-smi -q": Form(
        "nvidia-smi_-q.txt",
        "==============NVSMI LOG==============\n\nDriver Version : 580.65.06\nAttached GPUs : 8\n",
        "GPU 0000{a}\n    Product Name                          : NVIDIA H100 80GB HBM3\n"
        "    GPU UUID                              : GPU-0000000{n}-1111-2222-3333-444444444444\n"
        "    Minor Number                          : {n}\n    FB Memory Usage\n"
        "        Used                              : 1{n} MiB\n    Temperature\n"
        "        GPU Current Temp                  : 3{n} C\n{static}\n",
        _SMI,
    ),
    "lspci -vvv": Form(
        "lspci_-vvv.txt",
        "",
        "{a} 3D controller: NVIDIA Corporation GH100 [H100 SXM5 80GB] (rev a1)\n{static}\n"
        "\t\tUESta:\tDLP- SDES- TLP-\n\tKernel driver in use: nvidia\n\n",
        _LSPCI,
    ),
    "ibv_devinfo -v": Form(
        "ibv_devinfo_-v.txt",
        "",
        "hca_id:\tmlx5_{n}\n\ttransport:\t\t\tInfiniBand (0)\n\tfw_ver:\t\t\t\t28.43.2026\n"
        "\tnode_guid:\t\t\ta088:c203:0055:aa0{n}\n{static}\n\tphys_port_cnt:\t\t\t1\n\t\tport:\t1\n"
        "\t\t\tstate:\t\t\tPORT_ACTIVE (4)\n\t\t\tlink_layer:\t\tInfiniBand\n\n",
        _IBV,
    ),
    "ethtool -k": Form("ethtool_-k_ens{n}f0np0.txt", "", "Features for ens{n}f0np0:\n{static}\n", _FEATURES, True),
    "ethtool -g": Form("ethtool_-g_ens{n}f0np0.txt", "", "Ring parameters for ens{n}f0np0:\n{static}\n", _RINGS, True),
    "ethtool -c, in one text": Form("x.txt", "", "Coalesce parameters for ens{n}f0np0:\n{static}\n\n", _COALESCE),
    "mlxconfig": Form(
        "x.txt",
        "",
        "$ mlxconfig -d {a} q\n\nDevice #1:\n----------\n\nDevice type:        ConnectX7\n"
        "Name:               MCX75310AAS-NEA_Ax\nDevice:             {a}\n\n"
        "Configurations:                                          Next Boot\n{static}\n",
        _MLXCONFIG,
    ),
    "devlink dev param": Form("x.txt", "", "pci/{a}:\n{static}\n", _DEVLINK),
    "sysctl": Form("x.txt", "net.ipv4.conf.all.rp_filter = 0\n", "{static}\n", _SYSCTL),
    "amd-smi static": Form(
        "amd-smi_static.txt",
        "",
        "GPU: {n}\n    ASIC:\n        MARKET_NAME: AMD Instinct MI300X\n        ASIC_SERIAL: 0xABCDEF1234560{n}\n"
        "    BUS:\n        BDF: {a}\n{static}\n\n",
        _AMD,
    ),
    "nvidia-smi -q -x": Form(
        "nvidia-smi_-q_-x.xml",
        "<nvidia_smi_log><driver_version>580.65.06</driver_version><attached_gpus>8</attached_gpus>\n",
        '<gpu id="0000{a}"><product_name>NVIDIA H100 80GB HBM3</product_name><minor_number>{n}</minor_number>\n'
        "<temperature><gpu_temp>3{n} C</gpu_temp></temperature>\n{static}\n</gpu>\n",
        _XML,
        after="</nvidia_smi_log>\n",
    ),
    "amd-smi static --json": Form(
        "amd-smi_static_--json.json",
        "[",
        '{"gpu": {n}, "asic": {"market_name": "AMD Instinct MI300X", "asic_serial": "0xABC{n}"},\n'
        '"bus": {"bdf": "{a}"},\n{static}\n}',
        _JSON,
        between=",\n",
        after="]\n",
    ),
    "hl-smi -q": Form(
        "x.txt",
        "================ HL-SMI LOG ================\nDriver Version               : 1.20.0\nAttached AIPs : 8\n",
        "[{n}] AIP (accel{n}) {a}\n\tProduct Name               : HL-225\n\tSerial Number              : AN1234567{n}\n"
        "\tTemperature\n\t\tCurrent Temp               : 3{n} C\n{static}\n",
        _GAUDI,
    ),
    "npu-smi info -t board": Form(
        "x.txt",
        "",
        "$ npu-smi info -t board -i {n}\n\tNPU ID                         : {n}\n"
        "\tSerial Number                  : 03329876543{n}\n\tPCIe Bus Info                  : {a}\n{static}\n",
        _NPU,
    ),
}  # fmt: skip
