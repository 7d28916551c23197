"""A guest of QEMU without KVM: it goes on from a booted one, is asked by commands, and given machines to show."""

from __future__ import annotations

import json
import shlex
import socket
import subprocess
import time
from pathlib import Path
from typing import Any, NamedTuple

from fixtures.machine import Machine
from tests.lab.place import FROZEN, INITRD, NVML_ANSWERS, OUR_DISK, PLACE, ROOT_DISK, frozen
from tests.lab.qemu import described
from tests.lab.qemu.monitor import Monitor
from tests.lab.qemu.shown import MACHINES

BOOT_SECONDS = 120.0  # it takes some 30: what is slow is the machine that runs this, not the guest
START_SECONDS = 60.0  # a second or two
COMMAND_SECONDS = 150.0  # of the guest's clock
HOST_SECONDS = 300.0  # that a command may take by the host's
DIES_WITH_US = ("setpriv", "--pdeathsig", "KILL")
SCAN = "/opt/fabricscope/bin/fabricscope"
UPTIME_SECONDS = 86_400  # links and ports of a host that has just booted are not judged yet
# Without erms: a kernel that copies byte by byte is slow where each is emulated; AVX costs more than it saves
MACHINE = """
qemu-system-x86_64 -nodefaults -display none -no-reboot -machine q35 -cpu max,-hypervisor,-erms,-avx,-avx2
-m 1536
-device intel-iommu -device pcie-root-port,id=port1,chassis=1,slot=1,addr=10,x-speed=16,x-width=16
-blockdev driver=null-co,node-name=nothing,size=1048576 -mon chardev=monitor,mode=control
-device virtio-serial-pci -device virtserialport,chardev=port,name=lab
"""
SMBIOS = (
    "type=0,vendor=Dell Inc.,version=2.3.4,date=01/15/2025,release=2.3,uefi=on",
    "type=1,manufacturer=Dell Inc.,product=PowerEdge XE9680,serial=LAB0001,uuid=4c4c4544-0000-1000-8000-000000000001",
    "type=2,manufacturer=Dell Inc.,product=0HYW5W",
    "type=3,manufacturer=Dell Inc.,serial=LAB0001",
)
PLUGGED = "/sys/bus/pci/devices/0000:01:00.0"  # below the root port
KERNEL_LINE = "console=ttyS0 panic=-1 loglevel=4 mitigations=off tsc=reliable random.trust_cpu=1 "
KERNEL_LINE += "intel_iommu=on iommu=pt init_on_alloc=0 audit=0 "
KERNEL_LINE += "rcupdate.rcu_cpu_stall_suppress=1"  # a guest that was frozen, and goes on, stalled for RCU


class Done(NamedTuple):
    """A command that ran in the guest."""

    code: int | None  # none: it took too long
    out: str
    err: str
    seconds: float


class GuestFailed(AssertionError):
    """The guest did not do what it was told; the message ends with what its kernel said."""


class Guest:
    """One running guest. What it shows is a described machine, or nothing.

    It goes on from where a booted one was frozen, in a second or two; `boot` makes the one that is to be frozen.

    It runs only while a command of ours does, and its clock counts instructions, a nanosecond each: a slow host makes
    nothing late in it, and where all of it waits, the clock leaps to the end of that. With a wire, whose other end has
    a clock of its own, it runs all the time, and waits as long as it says.
    """

    def __init__(
        self, name: str = "", wire: int | None = None, boot: bool = False, cpus: int = 1, shape: str | None = None
    ) -> None:
        """`name`: of its serial line. `wire`: a socket, at whose other end is a guest's network card.

        `shape`: it shows that machine of `MACHINES` already, with its CPUs; or it is `BARE`.
        `cpus`: with two, one a NUMA node, it has the host's time: QEMU counts instructions of one CPU only.
        """
        remaining = MACHINES.get(shape) if shape else None  # none: of `BARE`
        self.shown: Machine | None = remaining.machine() if remaining else None
        self._frozen = frozen(shape) if shape else FROZEN
        self.seconds = 0.0  # that the last command took, by the guest's clock
        self._boots, self._wire, self._cpus = boot, wire, remaining.cpus if remaining else cpus
        self.serial = PLACE / f"serial{name}.log"
        self.serial.unlink(missing_ok=True)
        self._port, port = socket.socketpair()
        monitor, monitored = socket.socketpair()
        self.monitor = Monitor(monitor)
        inherited = [item for item in (port.fileno(), monitored.fileno(), wire) if item is not None]
        arguments = [*DIES_WITH_US, *self._arguments(port.fileno(), monitored.fileno())]
        self._process = subprocess.Popen(
            arguments, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, pass_fds=inherited, cwd=PLACE
        )
        port.close()
        monitored.close()
        self._kept = b""
        try:
            if self._boots:
                self._answer(BOOT_SECONDS)
                self.monitor.ask("stop")
            else:
                self._thawed()
                self._asked({"argv": ["date", "--set", f"@{time.time():.3f}"], "timeout": 10}, START_SECONDS)
        except BaseException:
            self.close()
            raise

    def _arguments(self, port: int, monitor: int) -> list[str]:
        arguments = shlex.split(MACHINE)
        arguments += ["-chardev", f"socket,id=port,fd={port}", "-chardev", f"socket,id=monitor,fd={monitor}"]
        arguments += ["-chardev", f"file,id=serial,path={self.serial}", "-serial", "chardev:serial"]
        arguments += ["-kernel", str(PLACE / "vmlinuz"), "-initrd", str(INITRD), "-append", KERNEL_LINE]
        for node in (0, 1):
            arguments += ["-object", f"memory-backend-ram,id=m{node},size=768M"]
            arguments += ["-numa", f"node,nodeid={node},memdev=m{node}" + f",cpus={node}" * (node < self._cpus)]
        for disk in (ROOT_DISK, OUR_DISK):
            arguments += ["-drive", f"if=virtio,format=raw,readonly=on,file={disk}"]
        for item in SMBIOS:
            arguments += ["-smbios", item]
        if self._cpus > 1:
            arguments += shlex.split(f"-accel tcg,thread=multi -smp {self._cpus},sockets={self._cpus}")
        else:
            clock = f"shift=0,sleep={'off' if self._wire is None else 'on'}"
            arguments += shlex.split(f"-accel tcg,thread=single,tb-size=512 -smp 1 -icount {clock}")
        if self._wire is not None:
            arguments += ["-netdev", f"socket,id=wire,fd={self._wire}"]
        return arguments if self._boots else [*arguments, "-incoming", f"exec:cat {self._frozen.name}"]

    def _thawed(self) -> None:
        until = time.monotonic() + START_SECONDS
        while self.monitor.ask("query-status")["status"] == "inmigrate":
            if time.monotonic() > until:
                raise GuestFailed(f"it does not go on from {self._frozen}")
            time.sleep(0.05)

    def _answer(self, seconds: float) -> dict[str, Any]:
        until = time.monotonic() + seconds
        while b"\n" not in self._kept:
            self._port.settimeout(max(0.1, until - time.monotonic()))
            try:
                more = self._port.recv(1 << 20)
            except (TimeoutError, ConnectionError):
                more = b""
            if not more:
                raise GuestFailed(f"no answer from the guest: {self._complaint()}: {self.said()[-1500:]}")
            self._kept += more
        line, _, self._kept = self._kept.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _complaint(self) -> str:
        try:
            self._process.wait(1.0)
        except subprocess.TimeoutExpired:
            return "QEMU runs"
        return f"QEMU has ended: {self._process.stderr.read()[-500:] if self._process.stderr else ''}"

    def freeze(self, file: Path) -> None:
        """Keep it in a file, for others to go on from. It is not to be used after that."""
        new = file.with_suffix(".new")
        self.monitor.ask("migrate-set-parameters", **{"max-bandwidth": 1 << 34})
        self.monitor.ask("migrate", uri=f"exec:cat > {new.name}")
        until = time.monotonic() + START_SECONDS
        while (state := self.monitor.ask("query-migrate").get("status")) != "completed":
            if state == "failed" or time.monotonic() > until:
                raise GuestFailed(f"it cannot be frozen: {state}: {self._complaint()}")
            time.sleep(0.1)
        new.replace(file)

    def plug(self, **device: str | int) -> None:
        """A device into the root port that is empty: driver, and its properties."""
        self.monitor.ask("device_add", bus="port1", **device)
        self.shell(
            f"for each in {{1..100}}; do [ -e {PLUGGED} ] && break; sleep 0.2; done; ls {PLUGGED}; udevadm settle"
        )

    def said(self) -> str:
        """What came over the serial line."""
        return self.serial.read_text(errors="replace") if self.serial.exists() else ""

    def run(self, *argv: str, text: str = "", seconds: float = COMMAND_SECONDS) -> Done:
        """One command in the guest."""
        answer = self._asked({"argv": argv, "input": text, "timeout": seconds})
        self.seconds = answer["seconds"]
        return Done(answer["code"], answer["out"], answer["err"], answer["seconds"])

    def _asked(self, question: dict[str, Any], seconds: float = HOST_SECONDS) -> dict[str, Any]:
        """The answer, which must come within so many seconds of the host's clock."""
        try:
            self.monitor.ask("cont")
            self._port.settimeout(seconds)
            self._port.sendall(json.dumps(question).encode() + b"\n")
            answer = self._answer(seconds)
            if self._wire is None:
                self.monitor.ask("stop")
            return answer
        except OSError as error:
            raise GuestFailed(f"QEMU is not there: {error}: {self._complaint()}") from error

    def until(self, condition: str, seconds: int) -> bool:
        """Whether a shell line ends well within that time, by the guest's clock."""
        script = f"for each in {{1..{seconds}}}; do {condition} && exit; sleep 1; done; exit 1"
        return self.run("bash", "-c", script, seconds=2.0 * seconds).code == 0

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
        answer = self._asked({"path": path, "input": text})
        if answer["code"] != 0:
            raise GuestFailed(f"{path}: {answer['err']}: {self.said()[-500:]}")

    def tell(self, lines: list[str]) -> None:
        """Commands to fabsim, whole lines in one write."""
        if lines:
            self.write("/proc/fabsim", "\n".join(lines) + "\n")

    def clear(self) -> None:
        """Take away what is shown."""
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

    def scan(self, *options: str, uptime: int | None = UPTIME_SECONDS, user: tuple[str, ...] = ()) -> dict[str, Any]:
        """The report of a scan in the guest, whose clock since boot says `uptime` seconds as it begins; None: its own.

        `user`: the command that makes it another user's.
        """
        own = float(self.must("cat", "/proc/uptime").split()[0])
        shifted = [] if uptime is None else ["unshare", "--time", "--boottime", str(round(uptime - own)), "--fork"]
        done = self.run(*shifted, *user, SCAN, "scan", "--format", "json", "--timeout", "120", "--quiet", *options)
        if done.code != 0:
            raise GuestFailed(f"scan ended with {done.code}: {done.err[-800:]}")
        report: dict[str, Any] = json.loads(done.out)
        return report

    def close(self) -> None:
        """End it, and nothing of it stays."""
        self._process.kill()
        self._process.wait()
        self._port.close()
        self.monitor.close()
        if self._process.stderr:
            self._process.stderr.close()
