"""The guest's two disks: Debian, and what is ours."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.lab.place import KERNEL, LAB, OBJECTS, OUR_DISK, PLACE, PYTHON, ROOT, ROOT_DISK, newer, run, version

ENVIRONMENT, WHEEL = PLACE / "fabricscope", PLACE / "wheel"
GUEST_PACKAGES = (
    "systemd-sysv udev dbus kmod iproute2 ethtool pciutils python3 rdma-core ibverbs-providers ibverbs-utils perftest "
    "rdmacm-utils lldpd"
)
ON_DEMAND = ("lldpd",)  # services that a scenario starts
GUEST_MODULES = shlex.split(
    "ib_core ib_uverbs ib_umad rdma_cm rdma_ucm rdma_rxe dummy veth virtio_net sch_netem crc32_generic fuse aer_inject"
)
MASKED = shlex.split(  # services that a boot takes seconds for, and that no scenario needs
    "e2scrub_reap.service systemd-logind.service dbus.service dbus.socket systemd-user-sessions.service "
    "systemd-update-utmp.service systemd-update-utmp-runlevel.service systemd-random-seed.service rdma-ndd.service "
    "systemd-remount-fs.service dev-hugepages.mount dev-mqueue.mount sys-kernel-debug.mount sys-kernel-tracing.mount "
    "modprobe@.service getty.target systemd-binfmt.service systemd-journal-flush.service "
    "apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer fstrim.timer "
    "systemd-tmpfiles-clean.timer "  # a guest that goes on after days is behind with all of them
    "rdma-load-modules@rdma.service rdma-load-modules@roce.service rdma-load-modules@infiniband.service"
)


def dependencies(names: Iterable[str]) -> list[Path]:
    """Files of kernel modules and of all that they need, in the order of loading."""
    result: dict[Path, None] = {}
    for name in names:
        for line in run("modprobe", "-d", str(KERNEL), "-S", version(), "--show-depends", name).splitlines():
            kind, path, *_ = line.split()
            if kind == "insmod":
                result[Path(path)] = None
    return list(result)


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
    run(
        "mmdebstrap",
        "--variant=minbase",
        "--mode=root",
        '--aptopt=Acquire::Retries "3"',
        f"--include={include}",
        "",
        str(folder),
        str(lists),
    )
    for waste in ("var/cache/apt", "var/lib/apt/lists", "usr/share/doc", "usr/share/man", "usr/share/locale"):
        shutil.rmtree(folder / waste, ignore_errors=True)
    for name in ON_DEMAND:
        (folder / "etc/systemd/system/multi-user.target.wants" / f"{name}.service").unlink()
    squashed(folder, ROOT_DISK)
    made_of.write_text(GUEST_PACKAGES)
    shutil.rmtree(folder)
    return True


def squashed(folder: Path, disk: Path) -> None:
    """A folder as a squashfs."""
    result = disk.with_suffix(".new")
    run("mksquashfs", str(folder), str(result), *shlex.split("-comp lz4 -noappend -quiet -no-progress -all-root"))
    result.replace(disk)


def ours() -> bool:
    """The second disk: the wheel of this tree, installed, our modules and what is laid over the guest's root."""
    made_of = [*WHEEL.glob("*.whl"), *OBJECTS.iterdir(), PLACE / "vmlinuz", Path(__file__)]
    if newer(OUR_DISK, [*made_of, *below(LAB / "inside"), *below(ROOT / "systemd")]):
        return False
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
    shutil.copytree(ENVIRONMENT, overlay / "opt" / "fabricscope", symlinks=True)
    squashed(work, OUR_DISK)
    return True


def installed() -> bool:
    """The wheel of this tree, built and installed into an environment as an operator would, to be moved to /opt."""
    script = ENVIRONMENT / "bin" / "fabricscope"
    sources = [ROOT / "pyproject.toml", ROOT / "fabricscope.py", *below(ROOT / "agent"), *below(ROOT / "probes")]
    if script.exists() and newer(next(WHEEL.glob("*.whl"), WHEEL / "none"), sources):
        return False
    if not (ENVIRONMENT / "bin" / "pip").exists():
        run(PYTHON, "-m", "venv", str(ENVIRONMENT))
    shutil.rmtree(WHEEL, ignore_errors=True)
    pip = [str(ENVIRONMENT / "bin" / "python"), "-m", "pip", "--quiet", "--disable-pip-version-check"]
    run(*pip, "wheel", "--no-deps", "--wheel-dir", str(WHEEL), str(ROOT))
    wheel = next(WHEEL.glob("*.whl"))
    script.unlink(missing_ok=True)  # it is written last
    run(*pip, "install", "--upgrade", str(wheel))
    run(*pip, "install", "--force-reinstall", "--no-deps", str(wheel))
    script.write_text("#!/opt/fabricscope/bin/python3\n" + script.read_text().partition("\n")[2])
    return True


def below(folder: Path) -> Iterator[Path]:
    """The folder and all that it holds, but for what Python left there."""
    yield folder
    for path in folder.rglob("*"):
        if "__pycache__" not in path.parts:
            yield path
