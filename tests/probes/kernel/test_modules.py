"""Modules: loaded or not known, the NVIDIA driver's two kinds, and whose RDMA stack it is."""

from __future__ import annotations

import pytest

from probes.catalogue import probe
from probes.host.interface import Completed
from probes.kernel.modules import (
    KernelModule,
    NvidiaGpu,
    rdma_stack,
)
from probes.probe import Status, outcome_of
from probes.sources.memory import SymlinkNode
from tests.probes.machine import Machine

LOADED = (
    "nvidia_peermem 16384 0 - Live 0x0000000000000000\n"
    "mlx5_ib 475136 0 - Live 0x0\n"
    "ib_core 491520 3 nvidia_peermem,mlx5_ib,ib_uverbs, Live 0x0\n"
    "ext4 1000000 1 - Live 0x0\n"
    "nvidia 56598528 2 nvidia_uvm,nvidia_peermem, Live 0x0 (PO)\n"
    "gdrdrv 24576 -1 - Unloading 0x0\n"
)
OPEN = (
    "NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  580.82.07  Release Build  (dvs-builder@U16)\n"
    "GCC version:  gcc version 13.3.0 (Ubuntu)\n"
)


def hopper(version: str = "24.10-1.1.4") -> Machine:
    """An 8-GPU node's modules with OFED."""
    host = Machine().put({"/proc/modules": LOADED, "/proc/driver/nvidia/version": OPEN})
    host.put({f"/sys/module/{name}/refcnt": "0\n" for name in ("ib_core", "mlx5_core", "mlx5_ib", "nvidia", "ext4")})
    host.put({"/sys/module/mlx5_core/version": f"{version}\n", "/sys/module/nvidia/version": "580.82.07\n"})
    host.put(
        {"/sys/kernel/mm/memory_peers/nv_mem/version": "1.3\n", "/proc/driver/nvidia/params": "MapRegistersEarly: 0\n"}
    )
    return host.put({"/proc/driver/nvidia/gpus/0000:1B:00.0/information": "Model: \t\t NVIDIA H100 80GB HBM3\n"})


def test_modules_of_interest_with_versions_and_users():
    """Only GPU and RDMA modules; one that is being unloaded is not loaded."""
    outcome = outcome_of(probe("modules"), hopper())
    result = {module.name: module for module in outcome.facts.modules}

    assert Status.OK == outcome.status
    assert ["ib_core", "mlx5_core", "mlx5_ib", "nvidia", "nvidia_peermem"] == list(result)
    assert ("ib_uverbs", "mlx5_ib", "nvidia_peermem") == result["ib_core"].users
    assert "580.82.07" == result["nvidia"].version


def test_driver_and_peer_memory():
    """The open driver by its own words; GPUs in lower case; who may register GPU memory."""
    facts = outcome_of(probe("modules"), hopper()).facts

    assert ("580.82.07", True) == (facts.nvidia_version, facts.nvidia_open)
    assert ("0000:1b:00.0",) == facts.nvidia_gpus
    assert ("nv_mem",) == facts.peer_memory_clients
    assert {"MapRegistersEarly": "0"} == facts.nvidia_params
    assert {"0000:1b:00.0": NvidiaGpu("NVIDIA H100 80GB HBM3")} == facts.nvidia_held


@pytest.mark.parametrize(
    ("loaded", "known", "expected"),
    [
        (
            [KernelModule("mlx5_core", "24.10-1.1.4"), KernelModule("ib_core", "24.10-1.1.4")],
            True,
            ("ofed", "24.10-1.1.4"),
        ),
        ([KernelModule("mlx5_core", "5.8-1.1.2")], True, ("ofed", "5.8-1.1.2")),
        ([KernelModule("mlx5_core", "5.0-0")], True, ("inbox", None)),
        ([KernelModule("mlx5_core", "5.14.0-427.13.1.el9_4.x86_64")], True, ("inbox", None)),
        ([KernelModule("mlx5_core")], True, ("inbox", None)),
        ([KernelModule("mlx5_core"), KernelModule("mlx_compat")], True, ("ofed", None)),
        ([KernelModule("nvidia", "570.86.15")], True, ("unknown", None)),
        ([KernelModule("mlx5_core")], False, ("unknown", None)),
    ],
)
def test_whose_rdma_stack(loaded: list[KernelModule], known: bool, expected: tuple[str, str | None]):
    """OFED by its numbering or its compatibility module; the kernel's own otherwise; unknown without evidence."""
    assert expected == rdma_stack(loaded, known)


def test_gpus_of_the_driver_without_a_list_of_modules():
    """A tree with nothing but the driver's folder: facts, and the reason why no module is named."""
    host = Machine().put({"/proc/driver/nvidia/gpus/0035:05:00.0/information": "Model: NVIDIA L4\n"})
    outcome = outcome_of(probe("modules"), host)

    assert Status.PARTIAL == outcome.status
    assert ("0035:05:00.0",) == outcome.facts.nvidia_gpus
    assert not outcome.facts.modules_known


def test_nothing_is_absent():
    """No sign of modules at all: absent, not "none loaded"."""
    assert Status.ABSENT == outcome_of(probe("modules"), Machine()).status


def test_lsmod_names_modules_but_not_the_stack():
    """The fallback knows names and users; the RDMA stack stays unknown, with the reason."""
    host = Machine()
    text = "Module                  Size  Used by\nmlx5_core 1 0\nib_core 442368 2 rdma_cm,mlx5_ib\n"
    host.outputs[("lsmod",)] = Completed(("lsmod",), 0, text, "", 0.0)
    outcome = outcome_of(probe("lsmod"), host)

    assert Status.PARTIAL == outcome.status
    assert (KernelModule("ib_core", None, ("mlx5_ib", "rdma_cm")), KernelModule("mlx5_core")) == outcome.facts.modules
    assert "unknown" == outcome.facts.rdma_stack


def test_lsmod_that_fails_is_a_failure():
    """A non-zero exit or no list is no empty list."""
    host = Machine()
    host.outputs[("lsmod",)] = Completed(("lsmod",), 1, "", "lsmod: ERROR", 0.0)

    assert Status.FAILED == outcome_of(probe("lsmod"), host).status


LIBRARY = "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1"
DEPENDENCIES = "kernel/drivers/video/fbdev/nvidia/nvidiafb.ko:\nkernel/net/ib_core.ko:\n"


def unloaded(dep: str | None, library: str = "libnvidia-ml.so.580.82.07") -> Machine:
    """A host without the driver's module, and what is on disk of it."""
    host = Machine().put({"/proc/modules": "ext4 1000000 1 - Live 0x0\n", "/proc/sys/kernel/osrelease": "6.8.0-60\n"})
    host.put({"/var/lib/dkms/nvidia/580.82.07/source/dkms.conf": "", "/var/lib/dkms/nvidia/kernel-6.8/x": ""})
    if library:
        host.put({LIBRARY: SymlinkNode(library)})
    return host.put({"/lib/modules/6.8.0-60/modules.dep": dep}) if dep is not None else host


@pytest.mark.parametrize(
    ("line", "built"),
    [
        ("updates/dkms/nvidia.ko:\n", True),
        ("updates/dkms/nvidia.ko.zst: kernel/drivers/i2c/i2c-core.ko.zst\n", True),
        ("nvidia.ko.xz:\n", True),
        ("updates/dkms/nvidia-uvm.ko: updates/dkms/nvidia.ko\n", False),
        ("", False),
    ],
)
def test_what_is_installed_of_a_driver_that_is_not_loaded(line: str, built: bool) -> None:
    """Library, DKMS package, and whether the running kernel has the module: others name it as what they need."""
    facts = outcome_of(probe("modules"), unloaded(DEPENDENCIES + line)).facts

    assert ("580.82.07", ("580.82.07",), built) == (facts.nvidia_library, facts.nvidia_packages, facts.nvidia_built)


@pytest.mark.parametrize("library", ["", "libnvidia-ml.so.?", "/opt/libnvidia-ml.so", "libnvidia-ml.so.1"])
def test_a_library_of_another_name_has_no_version(library: str) -> None:
    """Nothing is taken for a version that is none."""
    assert outcome_of(probe("modules"), unloaded(None, library)).facts.nvidia_library is None


def test_the_long_list_of_modules_is_read_where_it_decides_alone() -> None:
    """Not where the driver is loaded, nor where nothing of it is installed."""
    loaded, nothing = hopper(), Machine().put({"/proc/modules": "ext4 1 1 - Live 0x0\n"})
    for host in (loaded, nothing):
        host.put({"/proc/sys/kernel/osrelease": "6.8.0-60\n", "/lib/modules/6.8.0-60/modules.dep": "nvidia.ko:\n"})

        assert outcome_of(probe("modules"), host).facts.nvidia_built is None


@pytest.mark.parametrize("release", ["", "6.8.0-60/modules", "6.8.0-61"])
def test_without_the_list_it_is_not_known(release: str) -> None:
    """No release, one that is a path, one without a folder."""
    host = unloaded("nvidia.ko:\n").put({"/proc/sys/kernel/osrelease": release})
    host.put({"/lib/modules/6.8.0-60/modules/modules.dep": "nvidia.ko:\n", "/lib/modules//modules.dep": "nvidia.ko:\n"})

    assert outcome_of(probe("modules"), host).facts.nvidia_built is None
