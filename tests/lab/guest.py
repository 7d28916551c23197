"""A guest of QEMU without KVM: booted once, asked by commands, and given machines to show."""

from __future__ import annotations

import json
import shlex
import socket
import subprocess
import time
import zlib
from contextlib import suppress
from typing import Any, NamedTuple

from fixtures.machine import Machine
from tests.lab import described
from tests.lab.setup import INITRD, NVML_ANSWERS, OUR_DISK, PLACE, ROOT_DISK

BOOT_SECONDS = 150.0  # it takes some 45: what is slow is the machine that runs this, not the guest
COMMAND_SECONDS = 150.0
SCAN = "/opt/fabricscope/bin/fabricscope"
UPTIME_SECONDS = 86_400  # links and ports of a host that has just booted are not judged yet
MACHINE = """
qemu-system-x86_64 -nodefaults -display none -no-reboot -machine q35 -cpu max,-hypervisor
-accel tcg,thread=multi,tb-size=512 -m 1536 -smp 2,sockets=2,cores=1,threads=1
-device intel-iommu -device pcie-root-port,id=port1,chassis=1,slot=1,addr=10,x-speed=16,x-width=16
-blockdev driver=null-co,node-name=nothing,size=1048576 -device nvme,bus=port1,drive=nothing,serial=LAB
-device virtio-serial-pci -device virtserialport,chardev=port,name=lab
"""
SMBIOS = (
    "type=0,vendor=Dell Inc.,version=2.3.4,date=01/15/2025,release=2.3,uefi=on",
    "type=1,manufacturer=Dell Inc.,product=PowerEdge XE9680,serial=LAB0001,uuid=4c4c4544-0000-1000-8000-000000000001",
    "type=2,manufacturer=Dell Inc.,product=0HYW5W",
    "type=3,manufacturer=Dell Inc.,serial=LAB0001",
)
CARD = "speed=100000,duplex=full,host_mtu=4200"
KERNEL_LINE = "console=ttyS0 panic=-1 loglevel=4 mitigations=off tsc=reliable random.trust_cpu=1 "
KERNEL_LINE += "intel_iommu=on iommu=pt init_on_alloc=0 audit=0"


class Done(NamedTuple):
    """A command that ran in the guest."""

    code: int | None  # none: it took too long
    out: str
    err: str
    seconds: float


class GuestFailed(AssertionError):
    """The guest did not do what it was told; the message ends with what its kernel said."""


class Guest:
    """One running guest. What it shows is a described machine, or nothing."""

    def __init__(self, name: str = "", wire: int | None = None) -> None:
        """`name`: of another guest at the same time. `wire`: a socket, at whose other end is a guest's network card."""
        self.shown: Machine | None = None
        self._loaded = False
        self._name, self._wire = name, wire
        self.serial = PLACE / f"serial{name}.log"
        self._socket_path = PLACE / f"port{name}"
        for path in (self.serial, self._socket_path):
            path.unlink(missing_ok=True)
        inherited = [] if wire is None else [wire]
        self._process = subprocess.Popen(self._arguments(), stderr=subprocess.PIPE, text=True, pass_fds=inherited)
        self._kept = b""
        try:
            self._port = self._connected()
            self._answer(BOOT_SECONDS)
        except BaseException:
            self.close()
            raise

    def _arguments(self) -> list[str]:
        memory = [f"memory-backend-ram,id=m{node},size=768M" for node in (0, 1)]
        drives = [f"if=virtio,format=raw,readonly=on,file={disk}" for disk in (ROOT_DISK, OUR_DISK)]
        arguments = shlex.split(MACHINE)
        arguments += ["-chardev", f"socket,id=port,path={self._socket_path},server=on,wait=off"]
        arguments += ["-chardev", f"file,id=serial,path={self.serial}", "-serial", "chardev:serial"]
        arguments += ["-kernel", str(PLACE / "vmlinuz"), "-initrd", str(INITRD), "-append", KERNEL_LINE]
        for node, each in enumerate(memory):
            arguments += ["-object", each, "-numa", f"node,nodeid={node},cpus={node},memdev=m{node}"]
        arguments += ["-numa", "dist,src=0,dst=1,val=21"]
        for each in drives:
            arguments += ["-drive", each]
        for each in SMBIOS:
            arguments += ["-smbios", each]
        if self._wire is not None:
            mac = f"52:54:00:00:01:{zlib.crc32(self._name.encode()) & 0xFF:02x}"
            arguments += ["-netdev", f"socket,id=wire,fd={self._wire}"]
            arguments += ["-device", f"virtio-net-pci,netdev=wire,mac={mac},{CARD}"]
        return arguments

    def _connected(self) -> socket.socket:
        until = time.monotonic() + BOOT_SECONDS
        while True:
            port = socket.socket(socket.AF_UNIX)
            try:
                port.connect(str(self._socket_path))
                return port
            except OSError:
                port.close()
                if self._process.poll() is not None or time.monotonic() > until:
                    raise GuestFailed(f"QEMU did not start: {self._complaint()}") from None
                time.sleep(0.1)

    def _complaint(self) -> str:
        if self._process.poll() is None or self._process.stderr is None:
            return "it does not answer"
        return self._process.stderr.read()[-500:]

    def _answer(self, seconds: float) -> dict[str, Any]:
        until = time.monotonic() + seconds
        while b"\n" not in self._kept:
            self._port.settimeout(max(0.1, until - time.monotonic()))
            try:
                more = self._port.recv(1 << 20)
            except TimeoutError:
                more = b""
            if not more:
                raise GuestFailed(f"no answer from the guest: {self.said()[-1500:]}")
            self._kept += more
        line, _, self._kept = self._kept.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def said(self) -> str:
        """What came over the serial line."""
        return self.serial.read_text(errors="replace") if self.serial.exists() else ""

    def run(self, *argv: str, text: str = "", seconds: float = COMMAND_SECONDS) -> Done:
        """One command in the guest."""
        answer = self._asked({"argv": argv, "input": text, "timeout": seconds}, seconds)
        return Done(answer["code"], answer["out"], answer["err"], answer["seconds"])

    def _asked(self, question: dict[str, Any], seconds: float) -> dict[str, Any]:
        self._port.settimeout(60.0)
        self._port.sendall(json.dumps(question).encode() + b"\n")
        return self._answer(seconds + 60.0)

    def must(self, *argv: str, text: str = "", seconds: float = COMMAND_SECONDS) -> str:
        """The same; what it printed. It must end well."""
        done = self.run(*argv, text=text, seconds=seconds)
        if done.code != 0:
            raise GuestFailed(f"{' '.join(argv)[:200]}: {done.code}: {(done.err or done.out)[-800:]}")
        return done.out

    def shell(self, script: str, seconds: float = COMMAND_SECONDS) -> str:
        """What a script prints that must end well."""
        return self.must("bash", "-euc", script, seconds=seconds)

    def write(self, path: str, text: str) -> None:
        """A file of the guest, written anew."""
        answer = self._asked({"path": path, "input": text}, COMMAND_SECONDS)
        if answer["code"] != 0:
            raise GuestFailed(f"{path}: {answer['err']}: {self.said()[-500:]}")

    def tell(self, lines: list[str]) -> None:
        """Commands to fabsim, whole lines in one write."""
        if lines:
            self.write("/proc/fabsim", "\n".join(lines) + "\n")

    def clear(self) -> None:
        """Take away what is shown."""
        if not self._loaded:
            self.shell(described.LOAD_MODULES)
            self._loaded = True
        self.tell(["clear"])
        self.write(NVML_ANSWERS, described.NOTHING)
        self.shown = None

    def show(self, machine: Machine) -> None:
        """Show another machine, whole. Its faults stand from the start where they can."""
        self.clear()
        self.tell(described.tree(machine))
        self.must("udevadm", "settle")
        self.tell(described.repaired(machine))
        self._apply({}, described.settings(machine))
        self.shown = machine

    def become(self, machine: Machine) -> None:
        """Change only what differs between the machine that is shown and this one: the same tree, other states."""
        assert self.shown is not None
        self.tell(described.pokes(self.shown, machine))
        self._apply(described.settings(self.shown), described.settings(machine))
        self.shown = machine

    def turn_into(self, machine: Machine) -> None:
        """Show it: as a change of what is shown, where that is the same tree."""
        if self.shown is None or self.shown.shape != machine.shape:
            self.show(machine)
        else:
            self.become(machine)

    def _apply(self, before: dict[described.Key, str], after: dict[described.Key, str]) -> None:
        fabsim, tool, files = described.differing(before, after)
        for path, text in files.items():
            if text:
                self.write(path, text)
            else:
                self.must("rm", path)
        self.tell(fabsim)
        self.must("udevadm", "settle")
        if tool:
            self.must("ip", "-batch", "-", text="\n".join(tool) + "\n")

    def scan(self, *options: str, uptime: int = UPTIME_SECONDS) -> dict[str, Any]:
        """The report of a scan in the guest, whose clock since boot says `uptime` seconds as it begins."""
        own = float(self.must("cat", "/proc/uptime").split()[0])
        shifted = ["unshare", "--time", "--boottime", str(round(uptime - own)), "--fork"]
        done = self.run(*shifted, SCAN, "scan", "--format", "json", "--timeout", "120", "--quiet", *options)
        if done.code != 0:
            raise GuestFailed(f"scan ended with {done.code}: {done.err[-800:]}")
        report: dict[str, Any] = json.loads(done.out)
        return report

    def close(self) -> None:
        """End it, and nothing of it stays."""
        with suppress(AttributeError, OSError):
            self._port.close()
        self._process.kill()
        self._process.wait()
        if self._process.stderr:
            self._process.stderr.close()
        self._socket_path.unlink(missing_ok=True)
