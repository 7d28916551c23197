"""Sentences of the kernel about the host itself: its CPUs, memory, drives, file systems and programs.

Files of Linux (6.12), where no other is named.
"""

from probes.kernel.sentence import DRIVER, TOOLS, row

_MODULES = "nvidia|nvidia_uvm|nvidia_fs|amdgpu|mlx5_core|mlx5_ib|ib_core|ib_uverbs|bnxt_re|irdma|efa|habanalabs|neuron"
_MCE = r"\[Hardware Error\]: CPU (?P<cpu>\d{1,5}): Machine Check(?: Exception)?: [0-9a-f]{1,16} Bank \d{1,3}: "
_MCA = r"\[Hardware Error\]: CPU:(?P<cpu>\d{1,5}) \([0-9a-f:]{3,12}\) MC\d{1,3}_STATUS\["
_BLOCK = r"(?P<name>nvme\d{1,3}(?:c\d{1,3})?n\d{1,3}|sd[a-z]{1,3}|vd[a-z]{1,3})"
_KILLED = r"[Kk]ill(?:ed)? process \d{1,10} \((?P<task>[^)]{1,40})\)"

HOST = (
    row(DRIVER, "kernel-panic", "kernel", "Kernel panic - not syncing",
        r"(?<!end )Kernel panic - not syncing: (?P<what>[^\n]{1,100})", "Linux kernel/panic.c"),
    row(DRIVER, "machine-check", "mce", "Machine Check", _MCE + r"[abef][0-9a-f]{15}",  # bit 61: not corrected
        "Linux x86 mce/core.c"),
    row(DRIVER, "cpu-corrected", "mce", "Machine Check", _MCE + r"[89cd][0-9a-f]{15}", "Linux x86 mce/core.c"),
    row(DRIVER, "machine-check", "edac_mce_amd", "_STATUS[", _MCA + r"[^|\]]{1,8}\|UE\|", "Linux edac/mce_amd.c"),
    row(DRIVER, "cpu-corrected", "edac_mce_amd", "_STATUS[", _MCA + r"[^|\]]{1,8}\|(?:CE|-)\|", "Linux edac/mce_amd.c"),
    row(DRIVER, "machine-check", "mce", "Machine check: ", r"\[Hardware Error\]: (?P<what>Machine check: [^\n]{3,60})",
        "Linux x86 mce/core.c"),
    row(DRIVER, "cpu-corrected", "mce", "Machine check events logged",
        r"mce: \[Hardware Error\]: Machine check events logged", "Linux x86 mce/core.c"),
    row(DRIVER, "cpu-lockup", "kernel", "lockup",
        r"BUG: (?:soft lockup - CPU#(?P<cpu>\d{1,5}) stuck for \d{1,6}s! \[(?P<task>[^:\]]{1,40})|workqueue lockup - "
        r"pool)",
        "Linux kernel/watchdog.c, workqueue.c"),
    row(DRIVER, "cpu-lockup", "kernel", "hard LOCKUP", r"Watchdog detected hard LOCKUP on cpu (?P<cpu>\d{1,5})",
        "Linux kernel/watchdog.c"),
    row(DRIVER, "cpu-lockup", "kernel", "stall",
        r"INFO: rcu_\w{1,40} (?:self-)?detected (?:expedited )?stalls? on CPU", "Linux kernel/rcu/tree_stall.h"),
    row(DRIVER, "cpu-lockup", "kernel", "kthread starved", r"\brcu_\w{1,40} kthread starved for \d{1,12} jiffies",
        "Linux kernel/rcu/tree_stall.h"),
    row(DRIVER, "kernel-oops", "kernel", "BUG: ",
        r"BUG: (?P<what>unable to handle [\w ]{1,40}|kernel NULL pointer dereference|Bad (?:page state|rss-counter)|"
        r"scheduling while atomic)", "Linux x86 mm/fault.c, mm/page_alloc.c"),
    row(DRIVER, "kernel-oops", "kernel", "kernel BUG at", r"(?P<what>kernel BUG at [\w./-]{1,80}:\d{1,6})!",
        "Linux lib/bug.c"),
    row(DRIVER, "kernel-oops", "kernel", "Oops: ",
        r"(?P<what>Oops: (?:general protection fault|invalid opcode|\d{4}|[0-9a-f]{16})|Internal error: Oops: )",
        "Linux x86 kernel/dumpstack.c, arm64 kernel/traps.c"),
    row(DRIVER, "task-hung", "kernel", "blocked for more than",
        rf"INFO: task (?P<task>{TOOLS}):\d{{1,10}} blocked for more than \d{{1,7}} seconds",
        "Linux kernel/hung_task.c"),
    row(DRIVER, "tool-crashed", "kernel", "segfault at",
        rf"(?P<task>{TOOLS})\[\d{{1,10}}\]: segfault at ", "Linux arch/x86/mm/fault.c"),
    row(DRIVER, "tool-crashed", "kernel", "traps: ",
        rf"traps: (?P<task>{TOOLS})\[\d{{1,10}}\] (?:general protection|trap )", "Linux arch/x86/kernel/traps.c"),
    row(DRIVER, "memory-uncorrected", "edac", "EDAC MC",
        r"EDAC MC(?P<controller>\d{1,3}): \d{1,9} UE (?P<what>.{0,80}? on \S{1,80})", "Linux drivers/edac/edac_mc.c"),
    row(DRIVER, "memory-corrected", "edac", "EDAC MC",
        r"EDAC MC(?P<controller>\d{1,3}): \d{1,9} CE (?P<what>.{0,80}? on \S{1,80})", "Linux drivers/edac/edac_mc.c"),
    row(DRIVER, "memory-uncorrected", "kernel", "Memory failure: ",
        r"Memory failure: 0x[0-9a-f]{1,16}: (?:recovery action for |Sending SIGBUS to |Killing |forcibly killing |"
        r"unhandlable page|memory outside kernel control)", "Linux mm/memory-failure.c"),
    row(DRIVER, "memory-uncorrected", "mce", "emory error",
        r"\bUncorrected (?:hardware )?memory error in (?:user-access|page)|\bMemory error not recovered",
        "Linux x86 mce/core.c"),
    row(DRIVER, "memory-corrected", "kernel", "oft offlin",
        r"Soft offline: 0x[0-9a-f]{1,16}: |soft[ _]offline: 0x", "Linux mm/memory-failure.c"),
    row(DRIVER, "earlier-error", "bert", "BERT: ", r"BERT: Error records from previous boot", "Linux acpi/apei/bert.c"),
    row(DRIVER, "bus-error", "kernel", "NMI: ", r"NMI: (?P<what>PCI system error \(SERR\)|IOCK error)",
        "Linux x86 kernel/nmi.c"),
    row(DRIVER, "cpu-hot", "mce", "emperature",
        r"CPU\d{1,5}: (?P<what>Core|Package) temperature (?:is )?above threshold",
        "Linux 2.6.30 to 6.12 thermal/intel/therm_throt.c"),
    row(DRIVER, "host-hot", "thermal", "critical temperature reached", r"\bcritical temperature reached\b",
        "Linux thermal/thermal_core.c"),
    row(DRIVER, "drive-failed", "nvme", "nvme nvme",
        r"nvme (?P<name>nvme\d{1,3}): (?:controller is down; will reset|I/O .{0,80}timeout, (?:aborting|reset|disable)|"
        r"Device not ready; abort|Removing after probe failure|Disabling device after reset failure|Device shutdown "
        r"incomplete|(?:frozen|failure) state error detected)", "Linux nvme/host/pci.c, core.c"),
    row(DRIVER, "drive-failed", "block", "dev ",
        rf"(?:blk_update_request: |\b)(?P<what>I/O|critical (?:medium|target|space allocation)) error, dev {_BLOCK}, ",
        "Linux block/blk-core.c"),
    row(DRIVER, "drive-failed", "block", "Buffer I/O error", rf"Buffer I/O error on dev(?:ice)? {_BLOCK}",
        "Linux fs/buffer.c"),
    row(DRIVER, "drive-failed", "md", "Disk failure on",
        r"md/raid\w{0,6}:\w{1,20}: Disk failure on (?P<name>\w{1,40}), disabling device", "Linux md/raid1.c, raid10.c"),
    row(DRIVER, "file-system-failed", "ext4", "EXT4-fs ",
        r"EXT4-fs(?: error| \(\S{1,40}\): Remounting filesystem read-only|.{1,60}previous I/O error to superblock)",
        "Linux fs/ext4/super.c"),
    row(DRIVER, "file-system-failed", "xfs", "XFS (",
        r"XFS \((?P<name>[\w-]{1,60})\): .{0,80}(?:[Ss]hutting down filesystem|has been shut down|log I/O error|"
        r"[Mm]etadata (?:I/O [Ee]rror|[Cc]orruption)|Corruption (?:of|detected)|Internal error)",
        "Linux fs/xfs/xfs_fsops.c, xfs_error.c"),
    row(DRIVER, "memory-limit", "kernel", "emory cgroup out of memory", r"Memory cgroup out of memory: " + _KILLED,
        "Linux mm/oom_kill.c"),
    row(DRIVER, "out-of-memory", "kernel", "Out of memory", r"\bOut of memory(?: \([\w ]{1,40}\))?: " + _KILLED,
        "Linux mm/oom_kill.c"),
    row(DRIVER, "out-of-memory", "kernel", "no killable processes",
        r"(?:Out of memory|System is deadlocked on memory).{0,10}no killable processes", "Linux mm/oom_kill.c"),
    row(DRIVER, "process-limit", "kernel", "rejected by pids controller",
        r"cgroup: fork rejected by pids controller in (?P<what>\S{1,120})", "Linux kernel/cgroup/pids.c"),
    row(DRIVER, "process-limit", "kernel", "file-max limit", r"VFS: (?P<what>file-max limit \d{1,20}) reached",
        "Linux fs/file_table.c"),
    row(DRIVER, "no-contiguous-memory", "kernel", "page allocation failure",
        r"(?P<task>\S{1,40}): page allocation failure: order:(?P<order>\d{1,2}), ", "Linux mm/page_alloc.c"),
    row(DRIVER, "interrupt-lost", "kernel", " cared", r"irq (?P<irq>\d{1,6}): no\w{3,5} cared",
        "Linux kernel/irq/spurious.c"),
    row(DRIVER, "clock-unstable", "kernel", "unstable", r"Marking (?:clocksource '?tsc'?(?:-early'?)? as|TSC) unstable",
        "Linux kernel/time/clocksource.c, x86 kernel/tsc.c"),
    row(DRIVER, "hugepages", "kernel", "HugeTLB: allocating",
        r"HugeTLB: allocating (?P<asked>\d{1,9}) of page size .{1,40}failed\. +Only allocated (?P<got>\d{1,9})",
        "Linux mm/hugetlb.c"),
    row(DRIVER, "module-symbols", "kernel", " symbol ",
        rf"(?P<module>{_MODULES}): "
        r"(?:Unknown symbol|disagrees about version of symbol) (?P<symbol>\w{1,80})", "Linux kernel/module/main.c"),
    row(DRIVER, "module-foreign", "kernel", " symbol ",  # of storage and others that use RDMA
        r"\b(?P<module>(?!nvidia_peermem|nv_peer_mem)[a-z]\w{2,40}): (?:Unknown|disagrees about version of) symbol "
        r"(?P<symbol>(?:__)?(?:ib|rdma|iw|mlx5)_\w{1,80})", "Linux kernel/module/main.c"),
    row(DRIVER, "module-kernel", "kernel", "version magic",
        r"(?P<module>nvidia|amdgpu|mlx5_core|mlx5_ib|bnxt_re|irdma|efa|habanalabs|neuron): version magic "
        r"'(?P<built>[^']{1,80})' should be '(?P<running>[^']{1,80})'", "Linux kernel/module/main.c"),
    row(DRIVER, "module-unsigned", "kernel", "odule",
        r"Loading of (?:unsigned module|module with (?:unavailable key|unsupported crypto)) is rejected"
        r"|Lockdown: \S{1,40}: unsigned module loading is restricted", "Linux kernel/module/signing.c"),
)  # fmt: skip
