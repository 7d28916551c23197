"""The running system: names and ids, kernel and command line, virtualization, container, boot, memory."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KernelFacts:
    """One running system. None: the source does not say."""

    hostname: str | None = None  # /proc/sys/kernel/hostname, /etc/hostname
    machine_id: str | None = None  # /etc/machine-id
    boot_id: str | None = None  # /proc/sys/kernel/random/boot_id
    kernel: str | None = None  # /proc/sys/kernel/osrelease, /proc/version
    os: str | None = None  # PRETTY_NAME of /etc/os-release
    arch: str | None = None  # "x86_64", "aarch64"
    cmdline: str | None = None  # /proc/cmdline
    virtualization: str | None = None  # kvm, vmware, xen, microsoft, amazon, google, ...; None: bare metal, or not known
    virtualization_known: bool = False
    container: str | None = None  # docker, podman, lxc, systemd-nspawn, kubernetes, ...
    uptime_seconds: float | None = None  # /proc/uptime
    memory_mib: int | None = None  # MemTotal of /proc/meminfo
