"""The running system, and which systems are virtual machines."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.catalogue import probe
from probes.kernel import system as kernel
from probes.kernel.system import (
    DMI_FIELDS,
    VirtualizationSigns,
    arch_of,
    detect_virtualization,
)
from probes.probe import Status, outcome_of
from tests.probes.machine import Machine

# The running system: where each name comes from, and what stands where the source is silent.


UBUNTU = {
    "/proc/sys/kernel/hostname": "hgx-01\n",
    "/proc/sys/kernel/osrelease": "6.8.0-49-generic\n",
    "/proc/sys/kernel/random/boot_id": "3f0d4a0e-6f2a-4b77-8f0e-3b9c1f6f7a10\n",
    "/proc/cmdline": "BOOT_IMAGE=/vmlinuz iommu=pt\n",
    "/proc/uptime": "86400.25 1000.00\n",
    "/proc/meminfo": "MemTotal:       2113421312 kB\nMemFree: 1 kB\n",
    "/proc/cpuinfo": "processor\t: 0\nflags\t\t: fpu lm\n",
    "/proc/1/cgroup": "0::/init.scope\n",
    "/etc/machine-id": "0123456789abcdef0123456789abcdef\n",
    "/etc/os-release": 'NAME="Ubuntu"\nPRETTY_NAME="Ubuntu 22.04.5 LTS"\n',
    "/sys/class/dmi/id/sys_vendor": "Supermicro\n",
}


def test_a_whole_system():
    """Every fact of a bare-metal host, and nothing missing."""
    outcome = outcome_of(probe("kernel"), Machine(live=True).put(UBUNTU))

    assert Status.OK == outcome.status
    assert (
        kernel.KernelFacts(
            hostname="hgx-01",
            machine_id="0123456789abcdef0123456789abcdef",
            boot_id="3f0d4a0e-6f2a-4b77-8f0e-3b9c1f6f7a10",
            kernel="6.8.0-49-generic",
            os="Ubuntu 22.04.5 LTS",
            arch="x86_64",
            cmdline="BOOT_IMAGE=/vmlinuz iommu=pt",
            virtualization=None,
            virtualization_known=True,
            container=None,
            uptime_seconds=86400.25,
            memory_mib=2063888,
        )
        == outcome.facts
    )


def test_silence_is_named():
    """A tree with nothing but a command line: the ids that it lacks stand in the reason."""
    outcome = outcome_of(probe("kernel"), Machine().put({"/proc/cmdline": "quiet\n"}))

    assert Status.PARTIAL == outcome.status
    assert "not in this source: hostname, machine_id, boot_id, kernel, arch" == outcome.reason
    assert not outcome.facts.virtualization_known


def test_no_file_at_all_is_absent():
    """Nothing that names a system: absent, not a system without a name."""
    assert Status.ABSENT == outcome_of(probe("kernel"), Machine()).status


def test_root_option_trusts_the_hosts_file_over_our_own_namespace():
    """With --root, /proc answers with the container's host name; /etc/hostname is the host's."""
    host = Machine(live=True).put({**UBUNTU, "/etc/hostname": "hgx-01\n", "/proc/sys/kernel/hostname": "pod-7f\n"})
    host.path = "/host"

    assert "hgx-01" == outcome_of(probe("kernel"), host).facts.hostname


def test_gathered_tree_is_named_by_its_note():
    """hwloc's gather notes the names beside the files; a live host's file of that name is not believed."""
    note = {"/proc/hwloc-nofile-info": "OSRelease: 5.3.0-rc7\nHostName: leonide\nArchitecture: x86_64\n"}
    gathered = outcome_of(probe("kernel"), Machine().put(note)).facts
    live = outcome_of(probe("kernel"), Machine(live=True).put({**UBUNTU, **note})).facts

    assert ("leonide", "5.3.0-rc7", "x86_64") == (gathered.hostname, gathered.kernel, gathered.arch)
    assert "hgx-01" == live.hostname


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"/run/systemd/container": "systemd-nspawn\n"}, "systemd-nspawn"),
        ({"/.dockerenv": ""}, "docker"),
        ({"/run/.containerenv": ""}, "podman"),
        ({"/.dockerenv": "", "/run/secrets/kubernetes.io/serviceaccount/token": "x"}, "kubernetes"),
        ({"/proc/1/cgroup": "0::/kubepods.slice/kubepods-besteffort.slice/cri-1.scope\n"}, "kubernetes"),
        ({"/proc/1/cgroup": "1:cpu:/lxc/web\n"}, "lxc"),
        ({"/.singularity.d/runscript": ""}, "apptainer"),
    ],
)
def test_containers(files: dict[str, str], expected: str):
    """Each container manager's trace, the orchestrator before the runtime."""
    assert expected == outcome_of(probe("kernel"), Machine(live=True).put({**UBUNTU, **files})).facts.container


@pytest.mark.parametrize(
    ("files", "limit"),
    [
        ({}, None),
        ({"/proc/self/cgroup": "0::/user.slice/user-0.slice/session-1.scope\n"}, None),
        ({"/proc/self/cgroup": "5:devices:/slurm/uid_1000/job_4711/step_0/task_0\n"}, "Slurm job 4711"),
        ({"/proc/self/cgroup": "0::/system.slice/slurmstepd.scope/job_12/step_batch/user/task_0"}, "Slurm job 12"),
        ({"/proc/self/cgroup": "0::/system.slice/n1_slurmstepd.scope/job_12/step_0/user/task_0"}, "Slurm job 12"),
        ({"/proc/self/cgroup": "0::/system.slice/slurmd.service\n"}, None),  # the prolog
        ({"/proc/self/cgroup": "0::/system.slice/slurm_job_report.service\n"}, None),
        ({"/proc/self/cgroup": "0::/kubepods.slice/kubepods-pod1.slice/cri-1.scope\n"}, "a Kubernetes pod"),
        ({"/proc/self/uid_map": "         0          0 4294967295\n"}, None),
        ({"/proc/self/uid_map": "         0       1000          1\n"}, "a user namespace"),
        ({"/proc/self/uid_map": "0 1000 1\n1 100000 65536\n"}, "a user namespace"),
    ],
)
def test_limits_of_jobs(files: dict[str, str], limit: str | None):
    """What a scheduler or a namespace may hide, by files that every process may read."""
    assert limit == outcome_of(probe("kernel"), Machine(live=True).put({**UBUNTU, **files})).facts.job_limit


def test_another_root_is_not_where_this_process_runs():
    """The pod that looks at its host through /host: the limits of the pod are no limits of the host's files."""
    host = Machine(live=True).put({**UBUNTU, "/proc/self/uid_map": "0 1000 1\n"})
    host.path = "/host"

    assert outcome_of(probe("kernel"), host).facts.job_limit is None


def test_arm_kernel_is_known_by_its_release_or_processors():
    """Where no file names the architecture: the release's suffix, else the processors' own lines."""
    assert "aarch64" == arch_of("", "5.14.0-427.el9.aarch64")
    assert "aarch64" == arch_of("CPU architecture: 8\n", "6.8.0-1010-nvidia")
    assert arch_of("cpu\t\t: POWER9\n", "5.10.0") is None


# Which systems are virtual machines: the flag, the firmware, and clouds that rent whole machines too.


X86 = "processor\t: 0\nflags\t\t: fpu vme lm\n"
GUEST = "processor\t: 0\nflags\t\t: fpu vme hypervisor lm\n"
ARM = "processor\t: 0\nCPU implementer\t: 0x41\nCPU architecture: 8\n"


def firmware(vendor: str, product: str = "", **others: str) -> dict[str, str]:
    return {"sys_vendor": vendor, "product_name": product, **others}


CASES = {
    "bare metal": (VirtualizationSigns(X86, firmware("Dell Inc.", "PowerEdge XE9680")), (None, True)),
    "AWS guest": (
        VirtualizationSigns(GUEST, firmware("Amazon EC2", "p5.48xlarge"), clocks="kvm-clock tsc"),
        ("amazon", True),
    ),
    "AWS metal": (VirtualizationSigns(X86, firmware("Amazon EC2", "p5.metal")), (None, True)),
    "AWS Arm guest": (VirtualizationSigns(ARM, firmware("Amazon EC2", "p6e-gb200.36xlarge")), ("amazon", True)),
    "AWS Arm metal": (VirtualizationSigns(ARM, firmware("Amazon EC2", "c7g.metal")), (None, True)),
    "Azure": (VirtualizationSigns(GUEST, firmware("Microsoft Corporation", "Virtual Machine")), ("microsoft", True)),
    "Microsoft's own hardware": (VirtualizationSigns(X86, firmware("Microsoft Corporation", "C2195")), (None, True)),
    "Google guest": (VirtualizationSigns(GUEST, firmware("Google", "Google Compute Engine")), ("google", True)),
    "Google metal": (VirtualizationSigns(X86, firmware("Google", "Google Compute Engine")), (None, True)),
    "Google Arm, of either kind": (
        VirtualizationSigns(ARM, firmware("Google", "Google Compute Engine")),
        (None, False),
    ),
    "other cloud's Arm, of either kind": (
        VirtualizationSigns(ARM, firmware("Alibaba Cloud", "Alibaba Cloud ECS")),
        (None, False),
    ),
    "QEMU on KVM": (
        VirtualizationSigns(GUEST, firmware("QEMU", "Standard PC (Q35)"), clocks="tsc kvm-clock"),
        ("kvm", True),
    ),
    "QEMU alone": (VirtualizationSigns(GUEST, firmware("QEMU", "Standard PC (Q35)"), clocks="tsc"), ("qemu", True)),
    "QEMU that hides the flag": (VirtualizationSigns(X86, firmware("QEMU", "Standard PC (Q35)")), ("qemu", True)),
    "VMware": (VirtualizationSigns(GUEST, firmware("VMware, Inc.", "VMware7,1")), ("vmware", True)),
    "CloudStack": (
        VirtualizationSigns(GUEST, firmware("Apache Software Foundation", "CloudStack KVM Hypervisor")),
        ("kvm", True),
    ),
    "VirtualBox": (VirtualizationSigns(GUEST, firmware("innotek GmbH", "VirtualBox")), ("oracle", True)),
    "guest without firmware": (VirtualizationSigns(GUEST, clocks="tsc kvm-clock"), ("kvm", True)),
    "guest that says nothing": (VirtualizationSigns(GUEST), ("vm-other", True)),
    "Xen guest": (VirtualizationSigns(GUEST, firmware("Xen", "HVM domU"), hypervisor="xen"), ("xen", True)),
    "Xen's own domain": (VirtualizationSigns(X86, hypervisor="xen", xen_capabilities="control_d\n"), (None, True)),
    "Grace on bare metal": (VirtualizationSigns(ARM, firmware("NVIDIA", "GB200 NVL")), (None, True)),
    "Arm guest by device tree": (VirtualizationSigns(ARM, device_tree="linux,kvm"), ("kvm", True)),
    "Arm that says nothing": (VirtualizationSigns(ARM), (None, False)),
    "POWER9 on bare metal": (
        VirtualizationSigns("cpu : POWER9\nplatform : PowerNV\nmachine : PowerNV 8335-GTW\n"),
        (None, True),
    ),
    "POWER partition": (
        VirtualizationSigns("cpu : POWER9\nplatform : pSeries\nmachine : CHRP IBM,9009\n"),
        ("powervm", True),
    ),
    "no processors' text, only firmware": (VirtualizationSigns(None, firmware("NVIDIA", "DGXA100")), (None, False)),
}


@pytest.mark.parametrize("name", CASES)
def test_each_kind_of_machine(name: str):
    """The hypervisor's name, and whether it is known at all."""
    signs, expected = CASES[name]

    assert expected == detect_virtualization(signs)


@given(
    st.none() | st.text(),
    st.dictionaries(st.sampled_from(DMI_FIELDS), st.text()),
    st.none() | st.text(),
    st.none() | st.sampled_from(["xen", ""]),
)
def test_a_name_is_always_known(cpuinfo: str | None, dmi: dict[str, str], clocks: str | None, hypervisor: str | None):
    """Whatever the texts are: no exception, and no name without knowledge."""
    name, known = detect_virtualization(VirtualizationSigns(cpuinfo, dmi, clocks, hypervisor))

    assert known or name is None
