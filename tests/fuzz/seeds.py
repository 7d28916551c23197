"""What damage starts from: small inputs of every kind, made in memory from the fixtures."""

from __future__ import annotations

import functools
import gzip
import io
import json
import lzma
import tarfile
from collections.abc import Callable, Sequence

from agent.reports import encode_report
from fixtures import dcb
from fixtures import netlink as told
from fixtures.build import build_capture
from fixtures.description import QosSpec
from probes.netlink import HEADER, LINK, attribute, request
from tests.machines import scan_machine
from tests.probes.gpu import nvidia_smi_texts as smi
from tests.probes.pci.lspci_sample import SAMPLE

SMALL, LARGE = "2xa10-2xt4-1s-idle", "8xh100-sxm-2s-8xcx7-ib-4nvsw"

_KERNEL_SAID = (
    "NVRM: Xid (PCI:0018:01:00): 149, NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x00000004 0x00000000)",
    "NVRM: The NVIDIA GPU 0000:b3:00.0",
    "NVRM: (PCI ID: 10de:26b5) installed in this system has fallen off the bus and is not responding to commands.",
    "nvidia-nvswitch3: SXid (PCI:0000:89:00.0): 20034, Fatal, Link 30 LTSSM Fault Up",
    "pcieport 0000:00:03.1: AER: PCIe Bus Error: severity=Correctable, type=Data Link Layer, (Transmitter ID)",
    "pcieport 0000:00:03.1:    [ 6] BadTLP",
    "pcieport 0000:15:01.0: DPC: containment event, status:0x1f01 source:0x0000",
    "mlx5_core 0000:5c:00.0: Detected insufficient power on the PCIe slot (27W).",
    "mlx5_core 0000:5c:00.0 ens1f0np0: Link down",
    "nvidia_peermem: Unknown symbol ib_register_peer_memory_client (err -22)",
)
KERNEL_LOGS = (
    "".join(f"{3 << 1},{n},{n * 1000},-;{line}\n SUBSYSTEM=pci\n" for n, line in enumerate(_KERNEL_SAID)),
    "".join(f"[{n:>5}.000000] {line}\n" for n, line in enumerate(_KERNEL_SAID)),
    "".join(f"[Sat Feb 17 15:24:5{n} 2024] {line}\n" for n, line in enumerate(_KERNEL_SAID)),
    "".join(f"2026-01-05T08:00:0{n}.123456+0000 h1 kernel: {line}\n" for n, line in enumerate(_KERNEL_SAID)),
)


def texts(*expected: str) -> Callable[[], Sequence[bytes]]:
    """Seeds that are texts."""
    return lambda: [line.encode() for line in expected]


def files(*suffixes: str) -> Callable[[], Sequence[bytes]]:
    """Seeds that are files of a fixture machine, by how their names end: a few of each."""

    def found() -> Sequence[bytes]:
        tree = build_capture(LARGE).tree.files
        contents = [[content for path, content in sorted(tree.items()) if path.endswith(end)][:4] for end in suffixes]
        return [content for item in contents for content in item]

    return found


def netlink() -> Sequence[bytes]:
    bond = told.build_link_info("bond", attribute(1, b"\4"), attribute(14, b"\1"))
    links = told.build_link(4, "ens1f0np0", mac="b8:3f:d2:00:00:01") + told.build_link(9, "bond0", more=bond)
    done = request(3, 0, bytes(4))
    return [
        links + done,
        told.build_address(4, "10.0.0.1", 24) + told.build_address(4, "fe80::1", 64) + done,
        told.build_statistics(4, range(25)),
        told.build_error(1),
    ]


def link_messages() -> Sequence[bytes]:
    bond = told.build_link_info("bond", attribute(1, b"\4"))
    return [
        told.build_link(4, "ens1f0np0", mac="b8:3f:d2:00:00:01"),
        told.build_link(9, "bond0", more=bond),
        told.build_link(5, "veth1"),
    ]


def uevents() -> Sequence[bytes]:
    place = "/devices/pci0000:15/0000:15:01.0/0000:16:00.0"
    rows = (
        ("bind", place, "pci"),
        ("add", f"{place}/infiniband/mlx5_0", "infiniband"),
        ("add", "/module/nvidia", "module"),
    )
    return [
        f"{action}@{path}\0ACTION={action}\0DEVPATH={path}\0SUBSYSTEM={of}\0DRIVER=nvidia\0SEQNUM=2184\0".encode()
        for action, path, of in rows
    ]


def dcb_answers() -> Sequence[bytes]:
    words = QosSpec(pfc=[3], trust="dscp", app={"udp:4791": 3}, peer_pfc=[3], trust_table=["dscp"])
    return [dcb.build_reply("eth0", words)[HEADER.size :]]


def payloads() -> Sequence[bytes]:
    return [
        item[HEADER.size :]
        for item in (
            told.build_link(4, "ens1f0np0", mac="b8:3f:d2:00:00:01"),
            told.build_link(9, "bond0", more=told.build_link_info("bond", attribute(1, b"\4"), attribute(14, b"\1"))),
            told.build_address(4, "10.0.0.1", 24),
            told.build_statistics(4, range(25)),
        )
    ]


def attributes() -> Sequence[bytes]:
    return [payload[LINK.size :] for payload in payloads()[:2]]


def _packed(members: dict[str, bytes], links: dict[str, str] | None = None) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, content in members.items():
            row = tarfile.TarInfo(name)
            row.size = len(content)
            archive.addfile(row, io.BytesIO(content))
        for name, target in (links or {}).items():
            row = tarfile.TarInfo(name)
            row.type, row.linkname = tarfile.SYMTYPE, target
            archive.addfile(row)
    return buffer.getvalue()


@functools.cache
def _capture() -> tuple[bytes, ...]:
    """A capture of a few files, commands and calls: small, so that damage meets every part of it."""
    capture = build_capture(SMALL)
    chosen = sorted(capture.tree.files.items())[:6]
    calls = json.dumps((capture.nvml or [])[:8]).encode()
    exchange = {"protocol": 0, "request": "AAAA", "reply": "AAAA"}
    command = {"argv": ["nvidia-smi", "-L"], "returncode": 0, "stdout": smi.LIST, "stderr": "", "seconds": 0.1}
    documents = {
        "manifest.json": json.dumps(capture.manifest).encode(),
        "nvml.json": calls,
        "commands/000.json": json.dumps(command).encode(),
        "netlink/000.json": json.dumps(exchange).encode(),
        "ethtool/000.json": b'{"interface": "eth0", "request": "EgAAAA==", "reply": "AAAA"}',
        **{f"files{path}": content for path, content in chosen},
    }
    tar = _packed(documents, {"files/sys/link": "../proc/x", "files/sys/out": "/../../../etc/passwd"})
    return tar, gzip.compress(tar, mtime=0)


def archives() -> Sequence[bytes]:
    tree = _packed({f"host{path}": data for path, data in sorted(build_capture(SMALL).tree.files.items())[:20]})
    sos = _packed(
        {
            "sos-h1/sos_commands/date/date": b"Thu Jan 15 09:00:00 UTC 2026\n",
            "sos-h1/sos_commands/nvidia/nvidia-smi_-L": smi.LIST.encode(),
            "sos-h1/sos_commands/pci/lspci_-nnvv": SAMPLE.encode(),
            "sos-h1/sos_reports/manifest.json": b'{"version": "4.7", "components": {"report": {"plugins": {}}}}',
            "sos-h1/etc/hostname": b"h1\n",
        }
    )
    return [*_capture(), tree, lzma.compress(tree), sos, lzma.compress(sos, preset=1), *bug_reports(), SAMPLE.encode()]


def bug_reports() -> Sequence[bytes]:
    rule = "_" * 44 + "\n\n"
    log = (
        f"\n{rule}Start of NVIDIA bug report log file.  Please include\n\nDate: Thu Jan 15 09:00:00 CET 2026\n"
        f"uname: Linux h1 6.8.0 #1 SMP x86_64 GNU/Linux\n\n{rule}*** /proc/cpuinfo\n"
        "*** ls: -r--r--r-- 1 root root 0 2026-01-15 09:00:00.000000000 +0100 /proc/cpuinfo\nprocessor\t: 0\n"
        f"{rule}/usr/bin/nvidia-smi -q\n\n{smi.QUERY}\n{rule}/usr/bin/lspci -nnvv\n\n{SAMPLE}\n"
        f"{rule}Skipping: nvlink output, not there\n{rule}End of NVIDIA bug report log file.\n"
    ).encode()
    return [log, gzip.compress(log, mtime=0)]


def reports() -> Sequence[bytes]:
    data = encode_report(scan_machine("cpu-only-2s"))
    return [data, encode_report(scan_machine(SMALL))[: 64 << 10], gzip.compress(data, mtime=0)]


def config_spaces() -> Sequence[bytes]:
    return [content for path, content in sorted(build_capture(LARGE).tree.files.items()) if path.endswith("/config")][
        ::9
    ]


IP_LINK = """4: ens1f0np0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 9000 qdisc mq master bond0 state UP mode DEFAULT
    link/ether b8:3f:d2:00:00:01 brd ff:ff:ff:ff:ff:ff promiscuity 0 portname p0 parentbus pci parentdev 0000:1a:00.0
9: bond0: <BROADCAST,MULTICAST,MASTER,UP,LOWER_UP> mtu 9000 qdisc noqueue state UP mode DEFAULT group default
    link/ether b8:3f:d2:00:00:01 brd ff:ff:ff:ff:ff:ff promiscuity 0
    bond mode 802.3ad miimon 100 updelay 0
10: ens1f0np0.100@ens1f0np0: <BROADCAST,UP,LOWER_UP> mtu 9000 qdisc noqueue state UP
    link/ether b8:3f:d2:00:00:01 brd ff:ff:ff:ff:ff:ff promiscuity 0
    vlan protocol 802.1Q id 100 <REORDER_HDR>
"""
DMIDECODE = """# dmidecode 3.3
Handle 0x0100, DMI type 1, 27 bytes
System Information
\tManufacturer: NVIDIA
\tProduct Name: DGXH100
\tSerial Number: 1660224000024
"""
HWLOC = """<?xml version="1.0"?><!DOCTYPE topology SYSTEM "hwloc2.dtd"><topology version="2.0"><object type="Machine">
<object type="NUMANode" os_index="0" cpuset="0x0000000f" nodeset="0x1" local_memory="1073741824"/>
<object type="Bridge" bridge_type="0-1" bridge_pci="0000:[44-54]"><object type="PCIDev" pci_busid="0000:44:00.0"
 pci_link_speed="63.015385" pci_type="0302 [10de:2330] [10de:16c1] a1"><object type="OSDev" name="cuda0"
 osdev_type="5" subtype="CUDA"/></object></object></object></topology>"""
NCCL = """<system version="1"><cpu numaid="0" affinity="00000000,0000000f" arch="x86_64" vendor="GenuineIntel">
<pci busid="0000:17:00.0" class="0x060400" link_speed="32.0 GT/s PCIe" link_width="16">
<pci busid="0000:19:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16">
<gpu dev="0" sm="90" rank="0" gdr="1"><nvlink target="0000:83:00.0" count="4" tclass="0x068000"/></gpu></pci>
<pci busid="0000:1a:00.0" class="0x020700"><nic><net name="mlx5_0" dev="0" speed="400000" port="1" guid="0x1"/></nic>
</pci></pci></cpu></system>"""
RDMA_TOPO = json.dumps(
    [
        {
            "realpath": "/sys/devices/pci0000:00/0000:00:01.0",
            "modalias": "pci:v00008086d00001901sv00001028sd0000085Abc06sc04i00",
            "config": "eJwDAAAAAAE=",
            "numa_node": "0",
            "iommu_group": "/sys/kernel/iommu_groups/1",
            "subsystems": {"net": ["ens1"], "infiniband": ["mlx5_0"]},
        }
    ]
)
CPUINFO = "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel\t\t: 143\nphysical id\t: 0\nflags\t\t: hypervisor\n"
MODULES = (
    "nvidia_uvm 1744896 4 - Live 0x0000000000000000 (POE)\nnvidia 9789440 72 nvidia_uvm,nvidia_modeset, Live 0x0\n"
)
LSMOD = "Module                  Size  Used by\nnvidia_uvm  1744896  4\nnvidia               9789440  72 nvidia_uvm\n"
VERSION = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.124.06  Release Build  (dvs-builder)\n"
