"""PCI devices known by id: their names and kinds. Names are for display only.

A module, not a TOML file: it is needed on every run, and its import costs 0.9 ms where reading the same from TOML
costs 7 (tomllib and parsing; measured on Python 3.11).
Sources: [ids] pci.ids of 2026-08; [rm] open-gpu-kernel-modules 595 (NVSwitch id ranges); [dump] seen in a dump of a
real machine (DGX A100, DGX B200, HGX H100, HGX B300, Gaudi2, Gaudi3); [drv] the id tables of the Linux drivers bnxt_en,
ice, hns3, efa, ionic, mana, erdma, cxgb4, qib, hfi1, habanalabs.
"""

from __future__ import annotations

import msgspec


class KnownDevice(msgspec.Struct, frozen=True):
    """A known PCI device."""

    name: str
    architecture: str | None = None  # of a GPU, as NVML names them
    virtual_function: bool = False


def _ids(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NVIDIA = {  # vendor 10de [ids]; SXM, NVL and GB ids also [dump]
    "1db1": KnownDevice("Tesla V100 SXM2 16GB", "Volta"),
    "1db4": KnownDevice("Tesla V100 PCIe 16GB", "Volta"),
    "1db5": KnownDevice("Tesla V100 SXM2 32GB", "Volta"),
    "1db6": KnownDevice("Tesla V100 PCIe 32GB", "Volta"),
    "1db8": KnownDevice("Tesla V100 SXM3 32GB", "Volta"),
    "1eb8": KnownDevice("Tesla T4", "Turing"),
    "20b0": KnownDevice("A100 SXM4 40GB", "Ampere"),
    "20b2": KnownDevice("A100 SXM4 80GB", "Ampere"),
    "20b5": KnownDevice("A100 PCIe 80GB", "Ampere"),
    "20b7": KnownDevice("A30", "Ampere"),
    "20f1": KnownDevice("A100 PCIe 40GB", "Ampere"),
    "20f3": KnownDevice("A800 SXM4 80GB", "Ampere"),
    "2204": KnownDevice("GeForce RTX 3090", "Ampere"),
    "2230": KnownDevice("RTX A6000", "Ampere"),
    "2235": KnownDevice("A40", "Ampere"),
    "2236": KnownDevice("A10", "Ampere"),
    "2237": KnownDevice("A10G", "Ampere"),
    "25b6": KnownDevice("A16/A2", "Ampere"),
    "2321": KnownDevice("H100 NVL", "Hopper"),
    "2322": KnownDevice("H800 PCIe", "Hopper"),
    "2324": KnownDevice("H800 SXM5", "Hopper"),
    "2329": KnownDevice("H20", "Hopper"),
    "232c": KnownDevice("H20", "Hopper"),
    "2330": KnownDevice("H100 SXM5 80GB", "Hopper"),
    "2331": KnownDevice("H100 PCIe", "Hopper"),
    "2335": KnownDevice("H200 SXM", "Hopper"),
    "2337": KnownDevice("H100 SXM5 64GB", "Hopper"),
    "2338": KnownDevice("H100 SXM5 96GB", "Hopper"),
    "2339": KnownDevice("H100 SXM5 94GB", "Hopper"),
    "233b": KnownDevice("H200 NVL", "Hopper"),
    "2342": KnownDevice("GH200 480GB", "Hopper"),
    "2345": KnownDevice("GH200", "Hopper"),
    "2348": KnownDevice("GH200 144GB", "Hopper"),
    "237f": KnownDevice("GH200", "Hopper"),
    "2684": KnownDevice("GeForce RTX 4090", "Ada Lovelace"),
    "2685": KnownDevice("GeForce RTX 4090 D", "Ada Lovelace"),
    "26b1": KnownDevice("RTX 6000 Ada Generation", "Ada Lovelace"),
    "26b5": KnownDevice("L40", "Ada Lovelace"),
    "26b9": KnownDevice("L40S", "Ada Lovelace"),
    "26ba": KnownDevice("L20", "Ada Lovelace"),
    "27b8": KnownDevice("L4", "Ada Lovelace"),
    "2901": KnownDevice("B200", "Blackwell"),
    "2909": KnownDevice("HGX B200", "Blackwell"),
    "2920": KnownDevice("B100", "Blackwell"),
    "2941": KnownDevice("GB200", "Blackwell"),
    "29bc": KnownDevice("B100", "Blackwell"),
    "2b85": KnownDevice("GeForce RTX 5090", "Blackwell"),
    "2bb1": KnownDevice("RTX PRO 6000 Blackwell Workstation Edition", "Blackwell"),
    "2bb4": KnownDevice("RTX PRO 6000 Blackwell Max-Q Workstation Edition", "Blackwell"),
    "2bb5": KnownDevice("RTX PRO 6000 Blackwell Server Edition", "Blackwell"),
    "3182": KnownDevice("B300 SXM6", "Blackwell"),
    "31c2": KnownDevice("GB300", "Blackwell"),
    "31c3": KnownDevice("GB300", "Blackwell"),
    "1ac2": KnownDevice("NVSwitch 1"),
    "1af1": KnownDevice("NVSwitch 2"),
    "22a3": KnownDevice("NVSwitch 3"),
    "22b1": KnownDevice("Grace root port"),
}
_AMD = {  # vendor 1002 [ids]
    "7408": KnownDevice("Instinct MI250X", "CDNA2"),
    "740c": KnownDevice("Instinct MI250X", "CDNA2"),
    "740f": KnownDevice("Instinct MI210", "CDNA2"),
    "66a0": KnownDevice("Radeon Instinct MI60", "Vega"),
    "66a1": KnownDevice("Radeon Instinct MI50", "Vega"),
    "738c": KnownDevice("Instinct MI100", "CDNA"),
    "74a0": KnownDevice("Instinct MI300A", "CDNA3"),
    "74a1": KnownDevice("Instinct MI300X", "CDNA3"),
    "74a2": KnownDevice("Instinct MI308X", "CDNA3"),
    "74a5": KnownDevice("Instinct MI325X", "CDNA3"),
    "74b5": KnownDevice("Instinct MI300X VF", "CDNA3", virtual_function=True),
    "74b9": KnownDevice("Instinct MI325X VF", "CDNA3", virtual_function=True),
    "75a0": KnownDevice("Instinct MI350X", "CDNA4"),
    "75a3": KnownDevice("Instinct MI355X", "CDNA4"),
}
_HUAWEI = {  # vendor 19e5 [ids]
    "d100": KnownDevice("Ascend 310"),
    "d500": KnownDevice("Ascend 310P"),
    "d801": KnownDevice("Ascend 910"),
    "d802": KnownDevice("Ascend 910B (Atlas A2)"),
    "d803": KnownDevice("Ascend 910_93 (Atlas A3)"),
    "d804": KnownDevice("Ascend 910_93 (Atlas A3)"),  # behind PCIe
    "d805": KnownDevice("Ascend 910B VF", virtual_function=True),
    "d806": KnownDevice("Ascend 950"),
    "d807": KnownDevice("Ascend 950"),
}
_HABANA = {  # vendor 1da3 [ids]; 1020 and 1060 also [dump]
    "1000": KnownDevice("Gaudi"),
    "1020": KnownDevice("Gaudi2"),
    "1021": KnownDevice("Gaudi2 HL-288"),  # a PCIe card, as HL-338 is [drv]
    "1060": KnownDevice("Gaudi3"),
    "1063": KnownDevice("Gaudi3 HL-338"),
}
_MELLANOX = {  # vendor 15b3 [ids]; the MT number of an HCA is its device id in decimal (MT4129 is 1021)
    "1003": KnownDevice("ConnectX-3"),
    "1004": KnownDevice("ConnectX-3 VF", virtual_function=True),
    "1007": KnownDevice("ConnectX-3 Pro"),
    "1011": KnownDevice("Connect-IB"),
    "1012": KnownDevice("Connect-IB VF", virtual_function=True),
    "1013": KnownDevice("ConnectX-4"),
    "1014": KnownDevice("ConnectX-4 VF", virtual_function=True),
    "1015": KnownDevice("ConnectX-4 Lx"),
    "1016": KnownDevice("ConnectX-4 Lx VF", virtual_function=True),
    "1017": KnownDevice("ConnectX-5"),
    "1018": KnownDevice("ConnectX-5 VF", virtual_function=True),
    "1019": KnownDevice("ConnectX-5 Ex"),
    "101a": KnownDevice("ConnectX-5 Ex VF", virtual_function=True),
    "101b": KnownDevice("ConnectX-6"),
    "101c": KnownDevice("ConnectX-6 VF", virtual_function=True),
    "101d": KnownDevice("ConnectX-6 Dx"),
    "101e": KnownDevice("ConnectX VF", virtual_function=True),
    "101f": KnownDevice("ConnectX-6 Lx"),
    "1021": KnownDevice("ConnectX-7"),
    "1023": KnownDevice("ConnectX-8"),
    "1025": KnownDevice("ConnectX-9"),
    "a2d2": KnownDevice("BlueField"),
    "a2d6": KnownDevice("BlueField-2"),
    "a2dc": KnownDevice("BlueField-3"),
    "a2df": KnownDevice("BlueField-4"),
}
_AMAZON = {  # vendor 1d0f [drv] efa, [ids]
    "efa0": KnownDevice("EFA"),
    "efa1": KnownDevice("EFA 2"),
    "efa2": KnownDevice("EFA 3"),
    "efa3": KnownDevice("EFA 4"),
    "efa4": KnownDevice("EFA 5"),
    "7064": KnownDevice("Inferentia"),  # NeuronDevice [ids]
    "7164": KnownDevice("Trainium"),
    "7264": KnownDevice("Inferentia2"),
    "7364": KnownDevice("Trainium2"),
}
_OTHERS = {
    ("0x14e4", "0x1750"): KnownDevice("BCM57508"),  # [drv]
    ("0x14e4", "0x1760"): KnownDevice("BCM57608 (Thor2)"),
    ("0x1dd8", "0x1002"): KnownDevice("Pensando DSC Ethernet"),
    ("0x1dd8", "0x1003"): KnownDevice("Pensando DSC Ethernet VF", virtual_function=True),
    ("0x1414", "0x00ba"): KnownDevice("Azure Network Adapter VF (MANA)", virtual_function=True),
}

DEVICES: dict[tuple[str, str], KnownDevice] = {
    (f"0x{vendor}", f"0x{device}"): known
    for vendor, table in (
        ("10de", _NVIDIA),
        ("1002", _AMD),
        ("19e5", _HUAWEI),
        ("1da3", _HABANA),
        ("15b3", _MELLANOX),
        ("1d0f", _AMAZON),
    )
    for device, known in table.items()
} | _OTHERS


class Maker(msgspec.Struct, frozen=True):
    """A maker of accelerators, and the PCI classes of its parts."""

    name: str
    classes: tuple[str, ...]
    classes_of_known_parts: tuple[str, ...] = ()


_PROCESSING, _DISPLAY = "0x1200", ("0x0300", "0x0302", "0x0380")
ACCELERATOR_MAKERS = {  # by PCI vendor
    "0x10de": Maker("NVIDIA", ("0x0300", "0x0302")),
    "0x1002": Maker("AMD", (_PROCESSING,), _DISPLAY),
    "0x19e5": Maker("Huawei", (_PROCESSING,)),
    "0x1da3": Maker("Intel Habana", (_PROCESSING,)),
    "0x1d0f": Maker("Amazon", (), (_PROCESSING, "0x0880")),  # Neuron devices
}

# Root ports of Grace and Vera CPUs: their GPUs are attached by NVLink-C2C, and PCIe only manages them [ids]
_COHERENT_PORTS = _ids("22b1 22b2 22b8")

# Generation 1; 2 ("LR10"); 3 ("LS10"), whose 22a8 to 22af are bridges. Later ones are no PCI devices of the host [rm]
_NVSWITCHES = frozenset(f"0x{n:04x}" for n in (0x1AC2, 0x1AE8, *range(0x1AF0, 0x1B00), *range(0x22A0, 0x22A8)))

# bnxt_en, without the Ethernet-only BCM573xx; its neighbours in the same id range are tg3 and cannot RDMA [drv]
_BROADCOM = _ids(
    "16d6 16d7 16d8 16d9 16de 16df 16e0 16e2 16e3 16e4 16e7 16e8 16e9 16ec 16ee 16ef 16f0 16f1 1614 1606 "
    "1609 16c1 16cb 16d3 16dc 16e1 16e5 16ed 1750 1751 1752 1760 1761 1762 1763 1800 1801 1802 1803 1804 "
    "1805 1806 1807 1808 1809 1819 d800 d802 d804"
)
_INTEL = _ids("1591 1592 1593 1599 159a 159b 24f0 24f1")  # E810 (ice); Omni-Path (hfi1) [drv]
_HUAWEI_RDMA = _ids("a222 a223 a224 a225 a226 a227 a228 a22f")  # hns3 with RoCE, and its VF [drv]
_CAPABLE: dict[str, frozenset[str] | None] = {  # None: every network function of that vendor
    "0x15b3": None,
    "0x14e4": _BROADCOM,
    "0x8086": _INTEL,
    "0x19e5": _HUAWEI_RDMA,
    "0x1dd8": _ids("1002 1003"),  # ionic
    "0x1414": _ids("00ba"),  # mana
    "0x1ded": _ids("107f"),  # erdma
    "0x1425": None,  # cxgb4
    "0x1077": _ids("7220 7322 1654 1656 8070 8090"),  # qib; qedr
}


def find_device(vendor: str | None, device: str | None) -> KnownDevice | None:
    """Look up a device id, as sysfs prints it ("0x10de"); None if unknown."""
    return DEVICES.get((vendor or "", device or ""))


def is_accelerator(vendor: str | None, device: str | None, class_code: str | None) -> bool:
    """Whether a PCI function is a GPU or accelerator of a vendor that is known here.

    Of a display controller of AMD and of any function of Amazon only a known part is one: APUs and display chips of
    management controllers are not included.
    """
    maker = ACCELERATOR_MAKERS.get(vendor or "")
    if maker is None:
        return False
    kind = (class_code or "")[:6]
    if kind in maker.classes:
        return True
    return kind in maker.classes_of_known_parts and find_device(vendor, device) is not None


def is_nvswitch(vendor: str | None, device: str | None, class_code: str | None) -> bool:
    """Whether it is an NVSwitch: class 0x0680 and a known id; NVIDIA's bridges and root ports are not. [rm]"""
    if vendor != "0x10de" or not (class_code or "").startswith("0x0680"):
        return False
    return (device or "") in _NVSWITCHES


def is_coherent_port(vendor: str | None, device: str | None) -> bool:
    """Whether it is a root port of a CPU whose GPUs are attached by NVLink-C2C."""
    return vendor == "0x10de" and (device or "").removeprefix("0x") in _COHERENT_PORTS


def is_nvlink_management(vendor: str | None, device: str | None, name: str | None) -> bool:
    """Whether a fabric manager reaches the NVLink switches of HGX B200 and B300 through this ConnectX function.

    `vendor`, `device`: of the subsystem (15b3:0087 on DGX B200 [dump]); `name`: the product name, "... mezz internal".
    """
    return (vendor, device) == ("0x15b3", "0x0087") or "mezz internal" in (name or "").lower()


def can_rdma(vendor: str | None, device: str | None, class_code: str | None) -> bool:
    """Whether a network function has an RDMA device, or would have one with its driver loaded."""
    if not (class_code or "").startswith(("0x02", "0x0c06")):
        return False
    if vendor is None:  # a topology without ids: an InfiniBand controller is one, of any maker
        return (class_code or "").startswith("0x0207")
    if vendor == "0x1d0f":
        return (device or "").startswith("0xefa")
    if vendor not in _CAPABLE:
        return False
    devices = _CAPABLE[vendor]
    return devices is None or (device or "").removeprefix("0x") in devices
