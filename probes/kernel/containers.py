"""What keeps parts of the host from this process: containers, jobs of a scheduler, user namespaces.

Sources: the paths of Slurm's cgroup plugins v1 and v2 (cgroup.conf(5)), user_namespaces(7), the folder that Apptainer
puts into every image.
"""

from __future__ import annotations

from probes.host_reader import HostReader
from probes.text import lazy_pattern

SERVICE_ACCOUNT = "/run/secrets/kubernetes.io/serviceaccount"
APPTAINER = "/.singularity.d"
_SLURM_JOB = lazy_pattern(r"/(?:slurm|[^/\n]{1,80}_slurmstepd\.scope)[^\n]{0,200}?/job_(\d{1,12})")


def container_of_cgroup(text: str) -> str | None:
    """The container manager that /proc/1/cgroup names; None: none, which on cgroup v2 is no evidence.

    >>> container_of_cgroup("12:cpuset:/kubepods/burstable/pod0b1c/4f2e")
    'kubernetes'
    """
    for word, name in (("kubepods", "kubernetes"), ("/docker", "docker"), ("libpod", "podman"), ("/lxc", "lxc")):
        if word in text:
            return name
    return None


def find_container(reader: HostReader) -> str | None:
    """Which container this runs in, by the files that container managers leave (systemd's CONTAINER_INTERFACE)."""
    manager = reader.first("/run/host/container-manager", "/run/systemd/container")
    if manager:
        return manager
    named = container_of_cgroup(reader.text("/proc/1/cgroup") or "")
    if named:
        return named
    if reader.is_there(SERVICE_ACCOUNT):
        return "kubernetes"
    if reader.text("/run/.containerenv") is not None:
        return "podman"
    if reader.text("/.dockerenv") is not None:
        return "docker"
    return "apptainer" if reader.is_there(APPTAINER) else None


def job_of_cgroup(text: str) -> str | None:
    """The job that /proc/self/cgroup names; a step may be given only some devices.

    >>> job_of_cgroup("0::/system.slice/slurmstepd.scope/job_4711/step_0/user/task_0")
    'Slurm job 4711'
    """
    match = _SLURM_JOB.search(text) if text else None
    if match:
        return f"Slurm job {match[1]}"
    return "a Kubernetes pod" if "kubepods" in text else None


def is_whole_uid_map(text: str) -> bool:
    """Whether a /proc/self/uid_map is that of the host's own user namespace.

    >>> is_whole_uid_map("         0          0 4294967295"), is_whole_uid_map("0 1000 1")
    (True, False)
    """
    return text.split() == ["0", "0", "4294967295"]


def find_job_limit(reader: HostReader) -> str | None:
    """What limits this process, as it runs on the host itself; other roots are not where this process is."""
    if reader.host.path is not None and reader.host.live:
        return None
    job = job_of_cgroup(reader.text("/proc/self/cgroup") or "")
    if job:
        return job
    uid_map = reader.text("/proc/self/uid_map")
    return "a user namespace" if uid_map and not is_whole_uid_map(uid_map) else None
