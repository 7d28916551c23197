"""Support bundles of fixture machines: lspci is the real one on the machine's tree, other tools' texts are printed
here from the machine's own report."""

from __future__ import annotations

import functools
import io
import re
import subprocess
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path

from agent.model.gpu import Gpu
from agent.model.nic import Nic
from fixtures.build import build_capture
from fixtures.tree import FileTree
from tests.machines import scan_machine

RULE = "_" * 44
PROLOGUE = """
{rule}

Start of NVIDIA bug report log file.  Please include this file, along
with a detailed description of your problem, when reporting a graphics
driver bug via the NVIDIA Linux forum (see forums.developer.nvidia.com)
or by sending email to 'linux-bugs@nvidia.com'.

nvidia-bug-report.sh Version: 37062940

Date: {date}
uname: {uname}
command line flags:{blank}

"""
END = f"{RULE}\n\nEnd of NVIDIA bug report log file.\n"
DATE = "Thu Jan 15 09:00:00 CET 2026"
PROC = ("/proc/cpuinfo", "/proc/meminfo", "/proc/modules", "/proc/cmdline", "/proc/driver/nvidia/version")
PARAMETERS = "/proc/driver/nvidia/params"
READ_BY_LSPCI = re.compile(
    r"/pci[^/]*/(?:.*/)?(?:vendor|device|class|config|revision|subsystem_\w+|resource|irq|numa_node|address|rom|label)$"
)
COPIED_BY_SOS = (*PROC, "/proc/sys/kernel/random/boot_id", "/etc/hostname", "/etc/os-release", "/etc/machine-id")
COPIED_BY_SOS += ("/sys/class/dmi/id/", "/sys/devices/virtual/dmi/", "/sys/module/")


def uname(shape: str) -> str:
    """Of the machine."""
    node = scan_machine(shape).node
    return f"Linux {node.hostname} {node.kernel} #40 SMP Fri Oct 6 2023 {node.arch} {node.arch} {node.arch} GNU/Linux"


def tree_of(shape: str) -> FileTree:
    """The files of a fixture machine."""
    return build_capture(shape).tree


@functools.cache
def lspci(shape: str, *options: str) -> str:
    """What the real lspci says of a machine's tree."""
    command = ["lspci", "-A", "linux-sysfs", "-O", f"sysfs.path={_bus(shape).name}/sys/bus/pci", *options]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@functools.cache
def _bus(shape: str) -> tempfile.TemporaryDirectory[str]:
    """What lspci reads of a machine's tree; it goes when the tests end."""
    made = tree_of(shape)
    pci = {path: content for path, content in made.files.items() if READ_BY_LSPCI.search(path)}
    links = {path: target for path, target in made.links.items() if "/pci" in path}
    folder: tempfile.TemporaryDirectory[str] = tempfile.TemporaryDirectory()
    FileTree(pci, links, set()).write(Path(folder.name))
    return folder


def query(shape: str) -> str:
    """`nvidia-smi -q`, as far as it is read."""
    report = scan_machine(shape)
    driver = report.software.driver
    head = (
        f"\n==============NVSMI LOG==============\n\nDriver Version : {driver.version}\nCUDA Version : {driver.cuda}\n"
    )
    gpus = [gpu for gpu in report.topology.gpus if gpu.uuid]  # one in vfio is none of the driver's
    return f"{head}\nAttached GPUs : {len(gpus)}\n" + "".join(map(_queried, gpus)) + "\n"


def nvlink_status(shape: str) -> str:
    """`nvidia-smi nvlink -s`."""
    said = []
    for gpu in (gpu for gpu in scan_machine(shape).topology.gpus if gpu.uuid):
        said.append(f"GPU {gpu.index}: {gpu.name} (UUID: {gpu.uuid})\n")
        said += [f"\t Link {link.link}: {link.signal_gbyte_s} GB/s\n" for link in gpu.links]
    return "".join(said)


def ibstat(shape: str) -> str:
    """`ibstat`."""
    macs = {netdev.pci: netdev.mac for netdev in scan_machine(shape).topology.netdevs}
    return "".join(
        _stated(nic, macs.get(nic.pci) or "") for nic in scan_machine(shape).topology.nics if nic.rdma_device
    )


def ip_link(shape: str) -> str:
    """`ip -s -d link`, as iproute2 6 prints it."""
    said = []
    for index, netdev in enumerate(scan_machine(shape).topology.netdevs, 2):
        kind, blank = ("infiniband", "ff:ff") if len(netdev.mac or "") > 20 else ("ether", "ff:ff:ff:ff:ff:ff")
        said.append(
            f"{index}: {netdev.label}: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu {netdev.mtu} qdisc mq state "
            f"{(netdev.operstate or 'unknown').upper()} mode DEFAULT group default qlen 1000\n"
            f"    link/{kind} {netdev.mac} brd {blank} promiscuity 0 minmtu 68 maxmtu 9978 addrgenmode eui64 "
            f"numtxqueues 1 parentbus pci parentdev {netdev.pci} \n"
            "    RX:  bytes packets errors dropped  missed   mcast           \n          3193      29      0 0 0 0 \n"
        )
    return "".join(said)


def sosreport(shape: str) -> dict[str, bytes | str]:
    """Member name -> content; a str is a link. The layout of sos 4.10."""
    commands = {
        "pci/lspci_-nnvv": lspci(shape, "-nnvv"),
        "pci/lspci_-tv": "-[0000:00]-+-00.0\n",
        "nvidia/nvidia-smi_-q": query(shape),
        "nvidia/nvidia-smi_-q_-d_ECC": "\n==============NVSMI LOG==============\n",
        "nvidia/nvidia-smi_nvlink_-s": nvlink_status(shape),
        "infiniband/ibstat": ibstat(shape),
        "networking/ip_-s_-d_link": ip_link(shape),
        "kernel/uname_-a": uname(shape),
        "date/date_--utc": "Thu Jan 15 08:00:00 UTC 2026\n",
    }
    root = f"sosreport-{scan_machine(shape).node.hostname}-2026-01-15-abcdefg"
    found: dict[str, bytes | str] = {f"{root}/sos_commands/{name}": text.encode() for name, text in commands.items()}
    made = tree_of(shape)
    for path, content in made.files.items():
        if path.startswith(COPIED_BY_SOS):
            found[f"{root}{path}"] = content
    for path, target in made.links.items():
        if path.startswith(COPIED_BY_SOS):
            found[f"{root}{path}"] = target
    return found | {f"{root}/lspci": "sos_commands/pci/lspci_-nnvv", f"{root}/version.txt": b"sos: 4.10.2\n"}


def packed(members: Mapping[str, bytes | str]) -> bytes:
    """A tar."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, what in members.items():
            info = tarfile.TarInfo(name)
            if isinstance(what, str):
                info.type, info.linkname = tarfile.SYMTYPE, what
                tar.addfile(info)
            else:
                info.size = len(what)
                tar.addfile(info, io.BytesIO(what))
    return buffer.getvalue()


def section(body: str) -> str:
    """One section of a bug report."""
    return f"{RULE}\n\n{body}\n"


def file_section(path: str, content: str) -> str:
    """A file, as `append` of the script writes it."""
    listed = f"-r--r--r-- 1 root root 0 2026-01-15 09:00:01.000000001 +0100 {path}"
    return section(f"*** {path}\n*** ls: {listed}\n{content}")


def commands_section(*commands: tuple[str, str]) -> str:
    """Commands that share a section."""
    return section("\n".join(f"{line}\n\n{output}" for line, output in commands))


def bug_report(shape: str, *, end: str = END, pci: tuple[tuple[str, str], ...] | None = None) -> str:
    """The log of a driver of 2025; `pci` in place of its lspci sections."""
    made = tree_of(shape)
    listings = pci or (("-nntv", "-[0000:00]-+-00.0\n"), ("-nn", ""), ("-nnDvvvxxxx", lspci(shape, "-nnDvvvxxxx")))
    smi = "/usr/bin/nvidia-smi"
    parts = [
        PROLOGUE.format(rule=RULE, date=DATE, uname=uname(shape), blank=" "),
        *(
            file_section(f"/sys/bus/pci/devices/{gpu.pci}/numa_node", "0\n")
            for gpu in scan_machine(shape).topology.gpus
        ),
        section("*** /var/log/nvidia-installer.log does not exist"),
        *(section(f"/usr/bin/lspci {options}\n\n{text}") for options, text in listings),
        section("Skipping: dmidecode output\ndmidecode not found"),
        section("dmesg:\n\n[    0.000000] Linux version 6.8\n"),
        *(file_section(path, made.files[path].decode()) for path in (*PROC, PARAMETERS) if path in made.files),
        commands_section(
            (f"{smi} --query", query(shape)),
            (f"{smi} --query --unit", "Attached Units : 0\n"),
            (f"{smi} nvlink --errorcounters", ""),
            (f"{smi} nvlink --status", nvlink_status(shape)),
        ),
        commands_section(("/usr/sbin/ibstat", ibstat(shape)), ("Running InfiniBand commands for device: mlx5_0", "")),
    ]
    return "".join(parts) + end


def _queried(gpu: Gpu) -> str:
    assert gpu.pci is not None
    assert gpu.pcie is not None
    return f"""
GPU 0000{gpu.pci.upper()}
    Product Name : {gpu.name}
    Serial Number : {gpu.serial}
    GPU UUID : {gpu.uuid}
    Minor Number : {gpu.minor}
    VBIOS Version : {gpu.vbios}
    PCI
        GPU Link Info
            PCIe Generation
                Max : {gpu.pcie.max_generation}
                Current : {gpu.pcie.generation}
            Link Width
                Max : {gpu.pcie.max_width}x
                Current : {gpu.pcie.width}x
    Performance State : {gpu.pstate}
    FB Memory Usage
        Total : {gpu.memory_mib} MiB
"""


def _stated(nic: Nic, mac: str) -> str:
    head = f"CA '{nic.rdma_device}'\n\tCA type: {nic.model}\n\tNumber of ports: {len(nic.ports)}\n"
    head += f"\tFirmware version: {nic.firmware}\n\tNode GUID: 0x{(nic.node_guid or '').replace(':', '')}\n"
    guids = {port.port: (port.port_guid or "").replace(":", "") or _eui64(mac) for port in nic.ports}
    return head + "".join(
        f"\tPort {port.port}:\n\t\tState: {(port.state or '').capitalize()}\n\t\tPhysical state: {port.phys_state}\n"
        f"\t\tRate: {port.rate_gbit_s or 10:g}\n\t\tBase lid: {port.lid}\n\t\tSM lid: {port.sm_lid}\n"
        f"\t\tPort GUID: 0x{guids[port.port]}\n\t\tLink layer: {port.link_layer}\n"
        for port in nic.ports
    )


def _eui64(mac: str) -> str:
    """As mlx5 makes the port GUID of an Ethernet port."""
    number = int(mac.replace(":", ""), 16)
    return f"{(number >> 24 << 40 | 0xFFFE << 24 | number & 0xFFFFFF) ^ 1 << 57:016x}"
