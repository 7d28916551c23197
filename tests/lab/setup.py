"""Makes what the lab boots, from Debian's own packages, in build/lab: `python -m tests.lab.setup`. Needs root.

Every step is left out where its result is there and nothing that it is made of is newer.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.lab import dmar

LAB = Path(__file__).resolve().parent
ROOT = LAB.parent.parent
PLACE = ROOT / "build" / "lab"
KERNEL, OBJECTS = PLACE / "kernel", PLACE / "objects"
ROOT_DISK, OUR_DISK, INITRD = PLACE / "root.squashfs", PLACE / "ours.squashfs", PLACE / "initrd.gz"
PYTHON = "/usr/bin/python3"  # Debian's: the guest has the same one
HOST_PACKAGES = {  # a file of it -> the package
    "/usr/bin/qemu-system-x86_64": "qemu-system-x86",
    "/usr/bin/busybox": "busybox-static",
    "/usr/sbin/modprobe": "kmod",
    "/usr/bin/cpio": "cpio",
    "/usr/bin/mmdebstrap": "mmdebstrap",
    "/usr/bin/mksquashfs": "squashfs-tools",
    "/usr/bin/gcc": "gcc",
    "/usr/bin/make": "make",
    "/usr/bin/ibsim": "ibsim-utils",
    "/usr/sbin/iblinkinfo": "infiniband-diags",
    "/usr/sbin/opensm": "opensm",
    PYTHON: "python3",
}
GUEST_PACKAGES = (
    "systemd-sysv udev dbus kmod iproute2 ethtool pciutils python3 rdma-core ibverbs-providers ibverbs-utils perftest "
    "rdmacm-utils lldpd"
)
ON_DEMAND = ("lldpd",)  # services that a scenario starts
BOOT_MODULES = ("virtio_pci", "virtio_blk", "virtio_console", "squashfs", "overlay")
GUEST_MODULES = shlex.split(
    "ib_core ib_uverbs ib_umad rdma_cm rdma_ucm rdma_rxe dummy veth virtio_net sch_netem crc32_generic fuse aer_inject"
)
MASKED = shlex.split(  # services that a boot takes seconds for, and that no scenario needs
    "e2scrub_reap.service systemd-logind.service dbus.service dbus.socket systemd-user-sessions.service "
    "systemd-update-utmp.service systemd-update-utmp-runlevel.service systemd-random-seed.service rdma-ndd.service "
    "systemd-remount-fs.service dev-hugepages.mount dev-mqueue.mount sys-kernel-debug.mount sys-kernel-tracing.mount "
    "modprobe@.service getty.target systemd-binfmt.service systemd-journal-flush.service "
    "rdma-load-modules@rdma.service rdma-load-modules@roce.service rdma-load-modules@infiniband.service"
)
NVML_ANSWERS = "/run/nvml-answers"  # in the guest: what its NVML says
INSTALL = shlex.split("apt-get -o DPkg::Lock::Timeout=300 install -y -qq --no-install-recommends")


class Unmakeable(Exception):
    """The lab cannot be made here; the message is one line."""


def unsuited() -> str | None:
    """Why the lab cannot be made on this machine; None where it can."""
    if os.geteuid() != 0:
        return "it needs root"
    if os.uname().machine != "x86_64":
        return "its guest is an x86_64"
    return None if shutil.which("apt-get") else "it is made of Debian's packages, and there is no apt-get"


def absent() -> str | None:
    """Why the lab cannot run on this machine; None where it can."""
    why = unsuited()
    if why:
        return f"no lab here: {why}"
    if not all(path.exists() for path in (ROOT_DISK, INITRD, PLACE / "vmlinuz")):
        return "the lab is not set up: `make lab` does that"
    return None if Path("/usr/bin/qemu-system-x86_64").exists() else "qemu-system-x86_64 is not installed"


def setup() -> None:
    """All of it. Raises Unmakeable."""
    began = time.monotonic()

    def told(what: str, step: Callable[[], bool]) -> None:
        if step():
            print(f"lab: {what} ({time.monotonic() - began:.0f} s)", flush=True)

    PLACE.mkdir(parents=True, exist_ok=True)
    (PLACE / "rows.json").unlink(missing_ok=True)
    told("packages of this host", host_packages)
    with ThreadPoolExecutor() as beside:  # each of these keeps one CPU busy for a minute
        root = beside.submit(told, "the guest's root", root_disk)
        environment = beside.submit(installed)
        told("Debian's kernel", kernel)
        told("our modules", modules)
        told("the initrd", initrd)
        root.result()
        ours(environment.result())
    print(f"lab: all of it ({time.monotonic() - began:.0f} s)", flush=True)


def run(*command: str, cwd: Path | None = None) -> str:
    """What a command prints. Raises Unmakeable with its last line."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines() or ["it said nothing"]
        raise Unmakeable(f"{' '.join(command)[:80]}: {said[-1][:300]}")
    return done.stdout


def newer(target: Path, sources: Iterable[Path]) -> bool:
    """Whether the target is there and newer than all of these."""
    return target.exists() and all(each.stat().st_mtime <= target.stat().st_mtime for each in sources)


def host_packages() -> bool:
    """What runs on this host, installed where it is missing."""
    wanted = [package for file, package in HOST_PACKAGES.items() if not Path(file).exists()]
    if wanted or subprocess.run([PYTHON, "-c", "import venv, ensurepip"], capture_output=True).returncode:
        wanted.append("python3-venv")
    if not wanted:
        return False
    run("apt-get", "update", "-qq")
    os.environ["DEBIAN_FRONTEND"] = "noninteractive"
    run(*INSTALL, *wanted)
    return True


def version() -> str:
    """Of the kernel that is unpacked."""
    return next((KERNEL / "boot").glob("vmlinuz-*")).name.partition("-")[2]


def kernel() -> bool:
    """Debian's kernel of the day, unpacked and not installed; its headers, installed."""
    if not (PLACE / "vmlinuz").exists():
        run("apt-get", "update", "-qq")
        depends = run("apt-cache", "depends", "linux-image-amd64")
        name = next(line.split()[-1] for line in depends.splitlines() if "Depends: linux-image-" in line)
        shutil.rmtree(KERNEL, ignore_errors=True)
        run("apt-get", "download", "-q", name, cwd=PLACE)
        package = next(PLACE.glob(f"{name}_*.deb"))
        run("dpkg-deb", "-x", str(package), str(KERNEL))
        package.unlink()
        run("depmod", "-b", str(KERNEL), version())
        shutil.copy(KERNEL / "boot" / f"vmlinuz-{version()}", PLACE / "vmlinuz")
    elif headers().exists():
        return False
    run(*INSTALL, headers().name)
    return True


def headers() -> Path:
    """Where the headers of that kernel are installed."""
    return Path("/usr/src") / f"linux-headers-{version()}"


def modules() -> bool:
    """fabsim.ko and the stand-ins, and NVML's library."""
    library = ROOT / "tests" / "nvml" / "nvml.c"
    sources = [library, *(LAB / "fabsim").iterdir()]
    if newer(OBJECTS / "fabsim.ko", sources):
        return False
    work = PLACE / "fabsim"
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(LAB / "fabsim", work)
    run("make", "-s", "-C", str(headers()), f"M={work}", "modules")
    OBJECTS.mkdir(exist_ok=True)
    made = ("-o", str(OBJECTS / "libnvidia-ml.so.1"), f'-DANSWERS="{NVML_ANSWERS}"', str(library))
    run("gcc", "-O2", "-shared", "-fPIC", *made)
    for each in work.glob("*.ko"):
        run("strip", "-g", "-o", str(OBJECTS / each.name), str(each))
    return True


def dependencies(names: Iterable[str]) -> list[Path]:
    """Files of kernel modules and of all that they need, in the order of loading."""
    found: dict[Path, None] = {}
    for name in names:
        for line in run("modprobe", "-d", str(KERNEL), "-S", version(), "--show-depends", name).splitlines():
            kind, path, *_ = line.split()
            if kind == "insmod":
                found[Path(path)] = None
    return list(found)


def root_disk() -> bool:
    """Debian with systemd, udev and the RDMA tools."""
    made_of = PLACE / "root.packages"
    if ROOT_DISK.exists() and made_of.exists() and made_of.read_text() == GUEST_PACKAGES:
        return False
    folder = PLACE / "root"
    shutil.rmtree(folder, ignore_errors=True)
    lists = Path("/etc/apt/sources.list.d/debian.sources")
    lists = lists if lists.exists() else Path("/etc/apt/sources.list")
    include = ",".join(GUEST_PACKAGES.split())
    run("mmdebstrap", "--variant=minbase", "--mode=root", f"--include={include}", "", str(folder), str(lists))
    for waste in ("var/cache/apt", "var/lib/apt/lists", "usr/share/doc", "usr/share/man", "usr/share/locale"):
        shutil.rmtree(folder / waste, ignore_errors=True)
    for each in ON_DEMAND:
        (folder / "etc/systemd/system/multi-user.target.wants" / f"{each}.service").unlink()
    squashed(folder, ROOT_DISK)
    made_of.write_text(GUEST_PACKAGES)
    shutil.rmtree(folder)
    return True


def squashed(folder: Path, disk: Path) -> None:
    """A folder as a squashfs."""
    made = disk.with_suffix(".new")
    run("mksquashfs", str(folder), str(made), *shlex.split("-comp lz4 -noappend -quiet -no-progress -all-root"))
    made.replace(disk)


def initrd() -> bool:
    """busybox and the modules that the root needs."""
    if newer(INITRD, [LAB / "inside" / "init.sh", LAB / "dmar.py", PLACE / "vmlinuz"]):
        return False
    work = PLACE / "initrd"
    shutil.rmtree(work, ignore_errors=True)
    for each in ("bin", "proc", "sys", "dev", "modules"):
        (work / each).mkdir(parents=True)
    shutil.copy("/usr/bin/busybox", work / "bin")
    shutil.copy(LAB / "inside" / "init.sh", work / "init")
    (work / "init").chmod(0o755)
    files = dependencies(BOOT_MODULES)
    for path in files:
        shutil.copy(path, work / "modules")
    (work / "modules" / "order").write_text("".join(f"{path.name}\n" for path in files))
    run("sh", "-c", f"cd {work} && find . | cpio -o -H newc --quiet | gzip -1 > {work}.gz")
    INITRD.write_bytes(dmar.archive() + Path(f"{work}.gz").read_bytes())
    shutil.rmtree(work)
    return True


def ours(environment: Path) -> None:
    """The second disk: the wheel of this tree, installed, our modules and what is laid over the guest's root."""
    work = PLACE / "ours"
    overlay = work / "overlay"
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(LAB / "inside" / "overlay", overlay, symlinks=True)
    units = overlay / "etc" / "systemd" / "system"
    (units / "multi-user.target.wants").mkdir(parents=True, exist_ok=True)
    for name in ("lab", "nvidia-fabricmanager", "nvidia-persistenced"):
        (units / "multi-user.target.wants" / f"{name}.service").symlink_to(f"../{name}.service")
    for name in MASKED:
        (units / name).symlink_to("/dev/null")
    for unit in (ROOT / "systemd").iterdir():
        shutil.copy(unit, units)
    for path in dependencies(GUEST_MODULES):
        target = overlay / "usr" / path.relative_to(KERNEL)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    for path in (KERNEL / "lib" / "modules" / version()).glob("modules.*"):
        shutil.copy(path, overlay / "usr" / path.relative_to(KERNEL))
    run("depmod", "-b", str(overlay / "usr"), version())
    (overlay / "lab").mkdir()
    shutil.copy(LAB / "inside" / "agent.py", overlay / "lab")
    shutil.copytree(OBJECTS, overlay / "lab" / "objects")
    libraries = overlay / "usr" / "lib" / "x86_64-linux-gnu"
    libraries.mkdir(parents=True, exist_ok=True)
    shutil.copy(OBJECTS / "libnvidia-ml.so.1", libraries)
    (overlay / "opt").mkdir()
    shutil.copytree(environment, overlay / "opt" / "fabricscope", symlinks=True)
    squashed(work, OUR_DISK)


def installed() -> Path:
    """The wheel of this tree, built and installed into an environment as an operator would, to be moved to /opt."""
    folder = PLACE / "fabricscope"
    if not (folder / "bin" / "pip").exists():
        run(PYTHON, "-m", "venv", str(folder))
    shutil.rmtree(PLACE / "wheel", ignore_errors=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "--quiet", "--disable-pip-version-check"]
    run(*pip, "wheel", "--no-deps", "--wheel-dir", str(PLACE / "wheel"), str(ROOT))
    wheel = next((PLACE / "wheel").glob("*.whl"))
    run(*pip, "install", "--upgrade", str(wheel))
    run(*pip, "install", "--force-reinstall", "--no-deps", str(wheel))
    script = folder / "bin" / "fabricscope"
    script.write_text("#!/opt/fabricscope/bin/python3\n" + script.read_text().partition("\n")[2])
    return folder


if __name__ == "__main__":
    reason = unsuited()
    if reason:
        print(f"lab: skipped: {reason}")
        raise SystemExit(0)
    try:
        setup()
    except (Unmakeable, OSError) as error:
        print(f"lab: cannot be set up here: {error}", file=sys.stderr)
        raise SystemExit(1) from error
