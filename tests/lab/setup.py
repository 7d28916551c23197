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
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.lab.place import (
    INITRD,
    KERNEL,
    LAB,
    NVML_ANSWERS,
    OBJECTS,
    PLACE,
    PYTHON,
    ROOT,
    ROWS,
    Unmakeable,
    newer,
    run,
    unsuited,
    version,
)
from tests.lab.qemu import dmar
from tests.lab.qemu.disks import dependencies, installed, ours, root_disk

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
BOOT_MODULES = ("virtio_pci", "virtio_blk", "virtio_console", "squashfs", "overlay")
APT = shlex.split("apt-get -q -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3")
INSTALL = [*APT, "install", "-y", "-q", "--no-install-recommends"]


class Lacking(Unmakeable):
    """What it is made with is not there, and cannot be had: no fault of ours."""


def setup() -> None:
    """All of it. Raises Unmakeable."""
    began = time.monotonic()

    def report_seconds(what: str, step: Callable[[], bool]) -> None:
        if step():
            print(f"lab: {what} ({time.monotonic() - began:.0f} s)", flush=True)

    PLACE.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(ROWS, ignore_errors=True)
    report_seconds("packages of this host", host_packages)
    with ThreadPoolExecutor() as beside:  # each of these keeps one CPU busy for a minute
        root = beside.submit(report_seconds, "the guest's root", root_disk)
        environment = beside.submit(installed)
        report_seconds("Debian's kernel", kernel)
        report_seconds("our modules", modules)
        report_seconds("the initrd", initrd)
        root.result()
        environment.result()
    report_seconds("our disk", ours)
    from tests.lab.qemu.frozen import freeze  # what starts QEMU, which may be here only now

    report_seconds("a guest, booted once for all", freeze)
    print(f"lab: all of it ({time.monotonic() - began:.0f} s)", flush=True)


def host_packages() -> bool:
    """What runs on this host, installed where it is missing."""
    expected = [package for file, package in HOST_PACKAGES.items() if not Path(file).exists()]
    if expected or subprocess.run([PYTHON, "-c", "import venv, ensurepip"], capture_output=True).returncode:
        expected.append("python3-venv")
    if not expected:
        return False
    os.environ["DEBIAN_FRONTEND"] = "noninteractive"
    try:
        run(*APT, "update")
        run(*INSTALL, *expected)
    except Unmakeable as why:
        raise Lacking(f"{' '.join(expected)} cannot be installed: {why}") from why
    return True


def kernel() -> bool:
    """Debian's kernel of the day, unpacked and not installed; its headers, installed."""
    if not (PLACE / "vmlinuz").exists():
        run(*APT, "update")
        depends = run("apt-cache", "depends", "linux-image-amd64")
        name = next(line.split()[-1] for line in depends.splitlines() if "Depends: linux-image-" in line)
        shutil.rmtree(KERNEL, ignore_errors=True)
        run(*APT, "download", name, cwd=PLACE)
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
    result = ("-o", str(OBJECTS / "libnvidia-ml.so.1"), f'-DANSWERS="{NVML_ANSWERS}"', str(library))
    run("gcc", "-O2", "-shared", "-fPIC", *result)
    for path in work.glob("*.ko"):
        run("strip", "-g", "-o", str(OBJECTS / path.name), str(path))
    return True


def initrd() -> bool:
    """busybox and the modules that the root needs."""
    if newer(INITRD, [LAB / "inside" / "init.sh", LAB / "qemu" / "dmar.py", PLACE / "vmlinuz"]):
        return False
    work = PLACE / "initrd"
    shutil.rmtree(work, ignore_errors=True)
    for name in ("bin", "proc", "sys", "dev", "modules"):
        (work / name).mkdir(parents=True)
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


if __name__ == "__main__":
    reason = unsuited()
    try:
        if reason:
            raise Lacking(reason)
        setup()
    except Lacking as lacking:
        print(f"lab: skipped: {lacking}")
    except (Unmakeable, OSError) as error:
        print(f"lab: cannot be set up here: {error}", file=sys.stderr)
        raise SystemExit(1) from error
