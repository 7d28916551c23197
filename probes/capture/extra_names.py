"""What a capture holds beyond what probes ask: an allow-list of names, with why a later version may ask for them.

A name is here only if reading it changes nothing, sends nothing to firmware in bulk, and describes the machine, not
of its users. Never here: `resource*`, `rom`, `vpd`, `config` (the probe reads what it needs of them), any counter (a
fabric manager's functions must not be asked for theirs, and the probe recognizes these), `sriov_numvfs` (waits
for a driver that is stuck), process lists, environments, mounts, anything below /home or /root.
"""

from __future__ import annotations

from probes.host.files import NEVER_READ
from probes.named_tuple import NamedTuple

FORBIDDEN = (
    "resource*",
    "rom",
    "vpd",
    "config",
    "*counters*",
    "*statistics*",
    "sriov_numvfs",
    "environ",
    "remove",
    "rescan",
    *NEVER_READ,
)


class ExtraFile(NamedTuple):
    """Files of the folders that a pattern names; "*" matches within one part of a path, as in the shell."""

    folder: str
    wanted: str  # names with a blank between them
    why: str

    @property
    def names(self) -> tuple[str, ...]:
        """Each name by itself."""
        return tuple(self.wanted.split())


class ExtraGroup(NamedTuple):
    """Rows that are read by one child: what hangs in one group takes no other along."""

    name: str
    rows: tuple[ExtraFile, ...]


_PCI, _NET, _IB = "/sys/bus/pci/devices/*", "/sys/class/net/*", "/sys/class/infiniband/*"
_CPU, _NODE = "/sys/devices/system/cpu", "/sys/devices/system/node"


GROUPS = (
    ExtraGroup(
        "pci files",
        (
            ExtraFile(
                _PCI,
                "aer_rootport_total_err_cor aer_rootport_total_err_fatal aer_rootport_total_err_nonfatal",
                "AER totals of a root port",
            ),
            ExtraFile(
                _PCI,
                "ari_enabled d3cold_allowed dma_mask_bits enable msi_bus reset_method",
                "what is switched off, and how it may be reset",
            ),
            ExtraFile(_PCI, "acpi_index index label modalias", "the firmware's names of slots and trays"),
            ExtraFile(
                _PCI,
                "sriov_drivers_autoprobe sriov_offset sriov_stride sriov_vf_device sriov_vf_total_msix",
                "virtual functions that are not visible",
            ),
            ExtraFile(
                _PCI,
                "power/control power/runtime_active_time power/runtime_suspended_time",
                "a device that sleeps too much",
            ),
            ExtraFile(f"{_PCI}/link", "clkpm l0s_aspm l1_aspm l1_1_aspm l1_2_aspm", "power management of links"),
            ExtraFile(f"{_PCI}/firmware_node", "hid path uid", "ACPI's name of the slot"),
        ),
    ),
    ExtraGroup(
        "network files",
        (
            ExtraFile(
                _NET,
                "addr_assign_type address dev_id dev_port duplex iflink link_mode name_assign_type",
                "how it got its name and address",
            ),
            ExtraFile(_NET, "phys_port_id phys_port_name phys_switch_id", "which ports are one card's"),
            ExtraFile(_NET, "speed testing threaded tx_queue_len gro_flush_timeout napi_defer_hard_irqs", "tuning"),
            ExtraFile(
                f"{_NET}/bonding",
                "ad_select all_slaves_active lacp_rate mii_status min_links primary slaves",
                "bonds that are half there",
            ),
            ExtraFile(
                f"{_NET}/bonding_slave",
                "ad_aggregator_id mii_status perm_hwaddr state",
                "which member of a bond is out",
            ),
            ExtraFile(f"{_NET}/queues/rx-*", "rps_cpus", "on which processors packets are handled"),
            ExtraFile(
                f"{_NET}/ecn/roce_*",
                "cnp_802p_prio cnp_dscp min_time_between_cnps",
                "congestion control of RoCE (OFED)",
            ),
            ExtraFile(f"{_NET}/ecn/roce_*/enable", "0 1 2 3 4 5 6 7", "congestion control of RoCE by priority (OFED)"),
        ),
    ),
    ExtraGroup(
        "infiniband files",
        (
            ExtraFile(_IB, "hw_rev", "the revision of the adapter"),
            ExtraFile(f"{_IB}/ports/*", "cap_mask has_smi lid_mask_count sm_sl", "what the subnet manager gave it"),
            ExtraFile(f"{_IB}/tc/*", "traffic_class", "the traffic class that is forced on RoCE (OFED)"),
            ExtraFile(f"{_IB}/ttl/*", "ttl", "hops that RoCE packets may take (OFED)"),
        ),
    ),
    ExtraGroup(
        "processor files",
        (
            ExtraFile(
                _CPU,
                "isolated nohz_full offline online possible present smt/active smt/control",
                "processors that are held back",
            ),
            ExtraFile(f"{_CPU}/cpufreq", "boost", "clocks that are held back"),
            ExtraFile(f"{_CPU}/intel_pstate", "max_perf_pct min_perf_pct no_turbo status", "clocks that are held back"),
            ExtraFile(f"{_CPU}/amd_pstate", "status", "clocks that are held back"),
            ExtraFile(
                f"{_CPU}/cpuidle", "current_driver current_governor current_governor_ro", "latency of sleep states"
            ),
            ExtraFile(f"{_CPU}/cpu0/cpuidle/state*", "disable latency name", "latency of sleep states"),
            ExtraFile(
                f"{_CPU}/cpu*/cpufreq",
                "energy_performance_preference scaling_driver scaling_governor scaling_max_freq",
                "a processor that runs slower than the others",
            ),
            ExtraFile(_NODE, "has_cpu has_memory online possible", "nodes without memory or processors"),
            ExtraFile(f"{_NODE}/node*", "cpulist distance meminfo numastat", "memory that runs out on one node"),
            ExtraFile(f"{_NODE}/node*/hugepages/*", "free_hugepages nr_hugepages", "huge pages of one node"),
            ExtraFile("/sys/kernel/mm/hugepages/*", "free_hugepages nr_hugepages", "huge pages"),
            ExtraFile("/sys/kernel/mm/transparent_hugepage", "defrag enabled", "huge pages"),
        ),
    ),
    ExtraGroup(
        "software files",
        (
            ExtraFile("/sys/module/*", "version", "which driver is loaded"),
            ExtraFile("/sys/module/pcie_aspm/parameters", "policy", "power management of links"),
            ExtraFile(
                "/sys/module/nvidia_peermem/parameters", "peerdirect_support persistent_api_support", "GPUDirect RDMA"
            ),
            ExtraFile("/proc", "interrupts version", "which processor a device interrupts"),
            ExtraFile("/proc/driver/nvidia", "registry", "registry keys of the driver"),
            ExtraFile("/proc/driver/nvidia-fs", "modules peer_affinity peer_distance version", "GPUDirect Storage"),
            ExtraFile("/proc/sys/kernel", "numa_balancing perf_event_paranoid tainted", "settings that cost speed"),
            ExtraFile(
                "/proc/sys/net/core",
                "netdev_max_backlog rmem_default rmem_max wmem_default wmem_max",
                "buffers of sockets",
            ),
            ExtraFile(
                "/proc/sys/net/ipv4/conf/*",
                "arp_announce arp_filter arp_ignore rp_filter",
                "several rails in one subnet",
            ),
            ExtraFile(
                "/proc/sys/vm",
                "max_map_count nr_hugepages overcommit_memory swappiness zone_reclaim_mode",
                "memory policy",
            ),
            ExtraFile("/etc", "dgx-release mlnx-release nccl.conf", "what the machine's maker and administrator set"),
            ExtraFile("/etc/modprobe.d", "*.conf", "options of drivers"),
            ExtraFile("/usr/lib/modprobe.d", "*nvidia*.conf *mlx*.conf", "options of drivers"),
            ExtraFile("/usr/share/nvidia/nvswitch", "fabricmanager.cfg", "how the fabric manager is set up"),
        ),
    ),
)
