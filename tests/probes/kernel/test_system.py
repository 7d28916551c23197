"""The running system: where each name comes from, and what stands where the source is silent."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.kernel import system as kernel
from probes.kernel.containers import container_of_cgroup
from probes.kernel.system import (
    arch_of,
    parse_gathered,
    parse_os_release,
    parse_uptime_seconds,
    parse_version,
)
from probes.probe import Status, outcome_of
from probes.text import ParseError
from tests.probes.system.system_machine import Machine

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
    outcome = outcome_of(kernel.PROBE, Machine(live=True).put(UBUNTU))

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
    outcome = outcome_of(kernel.PROBE, Machine().put({"/proc/cmdline": "quiet\n"}))

    assert Status.PARTIAL == outcome.status
    assert "not in this source: hostname, machine_id, boot_id, kernel, arch" == outcome.reason
    assert not outcome.facts.virtualization_known


def test_no_file_at_all_is_absent():
    """Nothing that names a system: absent, not a system without a name."""
    assert Status.ABSENT == outcome_of(kernel.PROBE, Machine()).status


def test_root_option_trusts_the_hosts_file_over_our_own_namespace():
    """With --root, /proc answers with the container's host name; /etc/hostname is the host's."""
    host = Machine(live=True).put({**UBUNTU, "/etc/hostname": "hgx-01\n", "/proc/sys/kernel/hostname": "pod-7f\n"})
    host.path = "/host"

    assert "hgx-01" == outcome_of(kernel.PROBE, host).facts.hostname


def test_gathered_tree_is_named_by_its_note():
    """hwloc's gather notes the names beside the files; a live host's file of that name is not believed."""
    note = {"/proc/hwloc-nofile-info": "OSRelease: 5.3.0-rc7\nHostName: leonide\nArchitecture: x86_64\n"}
    gathered = outcome_of(kernel.PROBE, Machine().put(note)).facts
    live = outcome_of(kernel.PROBE, Machine(live=True).put({**UBUNTU, **note})).facts

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
    assert expected == outcome_of(kernel.PROBE, Machine(live=True).put({**UBUNTU, **files})).facts.container


@pytest.mark.parametrize(
    ("files", "limit"),
    [
        ({}, None),
        ({"/proc/self/cgroup": "0::/user.slice/user-0.slice/session-1.scope\n"}, None),
        ({"/proc/self/cgroup": "5:devices:/slurm/uid_1000/job_4711/step_0/task_0\n"}, "Slurm job 4711"),
        ({"/proc/self/cgroup": "0::/system.slice/slurmstepd.scope/job_12/step_batch/user/task_0"}, "Slurm job 12"),
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
    assert limit == outcome_of(kernel.PROBE, Machine(live=True).put({**UBUNTU, **files})).facts.job_limit


def test_another_root_is_not_where_this_process_runs():
    """The pod that looks at its host through /host: the limits of the pod are no limits of the host's files."""
    host = Machine(live=True).put({**UBUNTU, "/proc/self/uid_map": "0 1000 1\n"})
    host.path = "/host"

    assert outcome_of(kernel.PROBE, host).facts.job_limit is None


def test_arm_kernel_is_known_by_its_release_or_processors():
    """Where no file names the architecture: the release's suffix, else the processors' own lines."""
    assert "aarch64" == arch_of("", "5.14.0-427.el9.aarch64")
    assert "aarch64" == arch_of("CPU architecture: 8\n", "6.8.0-1010-nvidia")
    assert arch_of("cpu\t\t: POWER9\n", "5.10.0") is None


@given(st.text())
def test_any_text_is_read_or_the_declared_error(text: str):
    """No text gives anything but facts or ParseError."""
    version, pretty = parse_version(text), parse_os_release(text)
    gathered, cgroup, arch = parse_gathered(text), container_of_cgroup(text), arch_of(text, text)
    try:
        seconds = parse_uptime_seconds(text)
    except ParseError:
        seconds = 0.0

    assert all(isinstance(said, str | None) for said in (version, pretty, cgroup, arch))
    assert all(gathered.values())
    assert 0 <= seconds < 1e12


@given(st.text(alphabet="PRETTY_NAME=\"'\\$ \n", max_size=60))
def test_any_quoting_is_read(text: str):
    """Odd quotes and backslashes give a text or none."""
    read = parse_os_release(text)

    assert read is None or read
