"""What each sentence of the kernel about the host means: one row per code of `probes/kernel/host_sentences.py`."""

from agent.rules.host.meaning import Meaning

HOST_MEANINGS = {
    "task-hung": Meaning(
        "warning", "a tool or service of the devices hangs in the kernel",
        "What asks the same device hangs, too: monitoring, jobs as they start or end.", False, "medium", alone=False,
    ),
    "hung-in-driver": Meaning(
        "warning", "a program hangs in a driver or a file system",
        "The program cannot be ended, and what asks the same device hangs, too.", False, "medium", alone=False,
    ),
    "tool-crashed": Meaning(
        "warning", "a tool or service of the devices crashed",
        "A service that crashed does not do its work until it is started again.", False, "medium", alone=False,
    ),
    "kernel-panic": Meaning(
        "critical", "the kernel stopped (panic)", "The node went down, and all its jobs with it.", False, "medium",
    ),
    "host-hot": Meaning("critical", "the server is above its highest temperature", "It switches off.", False, "medium"),
    "machine-check": Meaning(
        "error", "a CPU reported a hardware error that was not corrected (machine check)",
        "The program on that CPU ends, or the node stops.", False, "medium",
    ),
    "bus-error": Meaning(
        "error", "the platform reported an error of the hardware that no device explains (NMI)", "The node may stop.",
        False, "medium",
    ),
    "memory-uncorrected": Meaning(
        "error", "the host's memory has an error that cannot be corrected",
        "The program that uses this memory ends, or the node stops.", False, "medium",
    ),
    "drive-failed": Meaning(
        "error", "a drive does not answer, or returns errors",
        "Programs that use its data wait or fail; if the system is on it, the node hangs.", False, "medium",
    ),
    "file-system-failed": Meaning(
        "error", "a file system reports errors, or is no longer written to", "Programs that write to it fail.",
        False, "medium",
    ),
    "kernel-oops": Meaning(
        "error", "the kernel met an error in its own code or in a driver",
        "The program ends or hangs, and what asks the same driver hangs, too.", False, "medium",
    ),
    "cpu-lockup": Meaning(
        "error", "a CPU did nothing else for many seconds (lockup)",
        "Programs and interrupts of this CPU wait: jobs hang, and links and file systems time out.", False, "medium",
    ),
    "interrupt-lost": Meaning(
        "warning", "the kernel switched off an interrupt that no driver wanted",
        "A device that shares it becomes slow or stops.", False, "medium",
    ),
    "out-of-memory": Meaning(
        "warning", "the memory of the host ran out, and the kernel ended a program",
        "That program ended, and its job with it; it may have been a service of the node.", False, "medium",
    ),
    "task-blocked": Meaning(
        "info", "a program waits in the kernel for minutes: for a drive, a file server, a lock or a device",
        "It cannot be ended while it waits.", False, "low",
    ),
    "memory-limit": Meaning(
        "info", "a job reached its limit of memory (cgroup), and the kernel ended a program of it", "That job ended.",
        False, "medium",
    ),
    "process-limit": Meaning(
        "info", "a job, or the node, reached its limit of processes or of open files",
        "What asked for one more ended with an error.", False, "medium",
    ),
    "memory-corrected": Meaning(
        "info", "the host's memory has errors that were corrected",
        "None as long as they are few: a module with many is about to fail.", False, "medium",
    ),
    "cpu-corrected": Meaning(
        "info", "a CPU reported hardware errors that were corrected", "None as long as they are few.", False, "medium",
    ),
    "earlier-error": Meaning(
        "info", "the firmware kept a hardware error of an earlier boot (BERT)", "It may be why that boot ended.",
        False, "low",
    ),
    "cpu-hot": Meaning(
        "info", "a CPU slows down because it is hot", "Programs on this CPU are slower while it is.", False, "medium",
    ),
    "hugepages": Meaning(
        "warning", "the kernel reserved fewer huge pages than asked for",
        "Programs that need huge pages do not start, or run slower.", False, "medium",
    ),
    "no-contiguous-memory": Meaning(
        "info", "the kernel found no free memory in one piece for a driver",
        "What asked for it fails, or takes smaller pieces.", False, "low",
    ),
    "clock-unstable": Meaning(
        "info", "the kernel no longer uses the clock of the CPU (TSC), and reads a slower one",
        "Programs that read the time often are slower.", False, "medium",
    ),
}  # fmt: skip
