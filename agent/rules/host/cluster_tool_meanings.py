"""What codes mean that Kubernetes, Slurm, UFM, BMCs and the checks of a host state."""

from __future__ import annotations

from agent.rules.host.meaning import ToolMeaning
from agent.rules.host.network_tool_meanings import NO_TRAFFIC

_NO_GPU = "The container does not start, or has no GPU."
_FEWER = "Pods that ask for all devices of the node are not placed on it."
_NO_JOBS = "No job starts on it until it is repaired."
_WHEN = "What it means now depends on when it was, and on what was done since."
_NO_DOMAIN = "Jobs that use NVLink between nodes do not start."
_SLOWEST = "A job runs at the pace of its slowest part."
CLUSTER_MEANINGS = {
    "sheet-remap-failed": ToolMeaning(
        "error", "a table states that memory could not be repaired", "Jobs can meet the bad memory.", "rows", "low",
    ),
    "sheet-memory": ToolMeaning(
        "warning", "a table states uncorrectable errors of memory", "Each one ends the job that meets it.",
        "rows", "low",
    ),
    "sheet-uncorrected": ToolMeaning(
        "warning", "a table states errors that were not corrected", "Each one can end the job that meets it.",
        "sheet", "low",
    ),
    "sheet-pending": ToolMeaning(
        "warning", "a table states memory that waits for a reset to be repaired",
        "Until then jobs can meet the bad memory.", "rows", "low",
    ),
    "below-count": ToolMeaning(
        "warning", "fewer devices than there should be", "Jobs that need all of them do not start.",
        "below-count", "low",
    ),
    "below-width": ToolMeaning("warning", "fewer PCIe lanes than there should be", _SLOWEST, "below-pcie", "low"),
    "below-rate": ToolMeaning("warning", "a link is slower than it should be", _SLOWEST, "below-link", "low"),
    "below-bandwidth": ToolMeaning(
        "warning", "a measured bandwidth is below what it should be", _SLOWEST, "below-measured", "low",
    ),
    "sheet-state": ToolMeaning(
        "warning", "a table states a fault", "What it means depends on what the column is about.", "sheet", "low",
    ),
    "below-speed": ToolMeaning(
        "info", "a lower PCIe speed than it should be", f"Idle GPUs save power this way; under load: {_SLOWEST}",
        "below-pcie", "low",
    ),
    "sheet-down": ToolMeaning(
        "info", "a part is down, and most others are not", "It is a fault where the part is used.", "sheet", "low",
    ),
    "sheet-version": ToolMeaning(
        "info", "a version is not that of the others", "What it means depends on why it was left out.",
        "versions", "low",
    ),
    "sheet-setting": ToolMeaning(
        "info", "a setting is not that of the others",
        "Where both ends of a connection differ, large packets are lost, or it is slower.", "setting", "low",
    ),
    "bmc-leak": ToolMeaning(
        "critical", "the BMC states a leak of coolant", "The server is switched off, or must be.", "leak",
    ),
    "gpu-count": ToolMeaning(
        "error", "a health check finds another number of GPUs than the node has",
        "Jobs that need all GPUs do not start.", "missing",
    ),
    "check-xid": ToolMeaning("warning", "a check of the node found an Xid in the kernel log", _WHEN, "nhc", "low"),
    **{
        f"own-{name}": ToolMeaning(severity, "fabricscope found", "As its own text states it.", "own")
        for name, severity in (("critical", "critical"), ("error", "error"), ("warning", "warning"), ("note", "info"))
    },
    "check-failed": ToolMeaning(
        "warning", "a check of the node failed",
        "What it means depends on the check, which the line names; its limits are those of who wrote it.",
        "check", "low",
    ),
    "dra-missing": ToolMeaning(
        "error", "no driver is registered with the kubelet for devices that pods ask for (DRA)",
        "Pods with such a claim do not start on this node.", "dra",
    ),
    "slurm-gpu-lost": ToolMeaning(
        "error", "Slurm cannot read a GPU of the node", "No job that asks for it starts.", "missing",
    ),
    "fabric-refused": ToolMeaning(
        "error", "a GPU is not registered with its NVLink fabric, so the driver for ComputeDomains ended", _NO_DOMAIN,
        "fabric",
    ),
    "kube-no-healthy": ToolMeaning(
        "error", "the kubelet has no healthy device of a kind", "No pod on this node gets one.", "plugin",
    ),
    "ras-memory": ToolMeaning(
        "warning", "rasdaemon logged an uncorrected error of the host's memory", _WHEN, "bmc-host",
    ),
    "cxl-error": ToolMeaning(
        "error", "a CXL memory device had an uncorrectable error", "Programs with data on it end, or the host does.",
        "cxl",
    ),
    "cxl-poison": ToolMeaning(
        "warning", "a CXL memory device lists bad memory (poison)", "A program that reads this address ends.", "cxl",
    ),
    "cxl-refused": ToolMeaning(
        "warning", "a command of cxl could not set up memory", "The host does not use the memory that it was for.",
        "cxl-region", "low",
    ),
    "slurm-node-fail": ToolMeaning(
        "warning", "a job ended because a node of it failed",
        "Which node it was, the log of the controller and `sinfo -R` state.", "slurm", "low",
    ),
    "cloud-event": ToolMeaning(
        "warning", "the cloud plans to stop, move or restart an instance",
        "Jobs on it end then. A retirement stands for hardware that fails.", "cloud", "low",
    ),
    "cloud-host": ToolMeaning(
        "warning", "the host of an instance failed, and the cloud restarted the instance elsewhere",
        "Jobs on it ended at that time.", "cloud", "low",
    ),
    "kube-free": ToolMeaning(
        "info", "the scheduler finds too few free devices of a kind",
        "The pod waits. Either all are in use, or a node offers fewer than it has.", "scheduled", "low",
    ),
    "kube-event": ToolMeaning(
        "warning", "an event of Kubernetes states a fault of a device",
        "What it means depends on whether it still holds: events stay for an hour.", "event", "low",
    ),
    "ras-pcie": ToolMeaning("warning", "rasdaemon logged an uncorrected PCIe error", _WHEN, "bmc"),
    "ras-cpu": ToolMeaning("warning", "rasdaemon logged a machine check that was not corrected", _WHEN, "bmc-host"),
    "bmc-device": ToolMeaning("warning", "the BMC states errors of a device", _WHEN, "bmc", "low"),
    "bmc-watchdog": ToolMeaning(
        "warning", "the watchdog of the BMC restarted the host", "The host hung, and its jobs ended.",
        "bmc-host", "low",
    ),
    "bmc-firmware": ToolMeaning(
        "warning", "an update of firmware by the BMC failed",
        "The device has its old firmware, or waits for a recovery.", "bmc", "low",
    ),
    "bmc-unreachable": ToolMeaning(
        "info", "the BMC could not be asked", "Its log and sensors are not known; jobs are not affected.", "bmc-sensor",
    ),
    "ufm-link": ToolMeaning("warning", "UFM states a fault of a link", _WHEN, "wire", "low"),
    "ufm-node": ToolMeaning("warning", "UFM states a switch or node that does not answer", _WHEN, "subnet", "low"),
    "container-cgroup-access": ToolMeaning(
        "warning", "the runtime may not give a container access to devices (cgroup)", _NO_GPU, "cgroup",
    ),
    "container-image-files": ToolMeaning(
        "warning", "an image holds files of an NVIDIA driver", "The container does not start; others do.",
        "driver-files",
    ),
    "container-cdi-spec": ToolMeaning(
        "warning", "the list of devices for containers (CDI) could not be written or is not used", _NO_GPU, "runtime",
    ),
    "gpu-driver-other": ToolMeaning(
        "warning", "a GPU is bound to another driver than the plugin needs", _FEWER, "nouveau", "low",
    ),
    "plugin-failed": ToolMeaning(
        "error", "the device plugin did not start", "The node offers none of its devices.", "plugin",
    ),
    "plugin-unwatched": ToolMeaning(
        "warning", "the device plugin cannot watch the health of its devices", "A GPU that fails stays on offer.",
        "plugin", "low",
    ),
    "container-setup": ToolMeaning(
        "warning", "libnvidia-container could not set a container up", _NO_GPU, "runtime", "low",
    ),
    "operator-failed": ToolMeaning(
        "warning", "a validator of the GPU operator gave up", "The node offers no GPU.", "pod",
    ),
    "operator-waits": ToolMeaning(
        "info", "a validator of the GPU operator waits for the driver, or for devices",
        "The node offers no GPU until it is through. Each start of a node has these lines.", "pod", "low",
    ),
    "imex-waits": ToolMeaning(
        "info", "a ComputeDomain waits for its nodes",
        "Each start of one has these lines; where they stay, a node of the domain or its daemon is missing.",
        "imex", "low",
    ),
    "no-vf": ToolMeaning(
        "warning", "a network of pods has no virtual function left, or none was given to the pod",
        "The pod does not start.", "cni", "low",
    ),
    "ib-guid-manager": ToolMeaning(
        "warning", "ib-kubernetes could not set up a GUID",
        "Virtual functions of this pod have no partition: it does not communicate.", "vf-guid", "low",
    ),
    "imex-domain": ToolMeaning("warning", "a domain of IMEX is not ready", _NO_DOMAIN, "imex", "low"),
    "imex-missing": ToolMeaning("warning", "the IMEX daemon could not be run", _NO_DOMAIN, "imex"),
    "fabric-manager-off": ToolMeaning(
        "error", "a health check finds no running fabric manager",
        "CUDA ends with error 802 on boards with NVSwitches.", "fabric",
    ),
    "port-dropped": ToolMeaning(
        "warning", "a health check finds ports that are down, or were", "Jobs have a NIC less, or end at each drop.",
        "port",
    ),
    "peermem-unused": ToolMeaning(
        "info", "nvidia_peermem is not in use", "Where DMA-BUF is used instead, no action is needed.", "peermem", "low",
    ),
    "metric-sxid": ToolMeaning("warning", "a health check states an SXid of an NVSwitch", _WHEN, "nvlink", "low"),
    "slurm-hardware": ToolMeaning("warning", "Slurm's configuration does not fit what the node has", _NO_JOBS, "slurm"),
    "slurm-gres": ToolMeaning(
        "warning", "gres.conf does not fit the GPUs, or slurmd cannot detect them", _NO_JOBS, "gres",
    ),
    "slurm-rebooted": ToolMeaning("info", "Slurm states that a node rebooted", "Jobs on it ended.", "slurm", "low"),
    "slurm-prolog": ToolMeaning("warning", "a prolog failed, so that Slurm drains the node", _NO_JOBS, "slurm", "low"),
}  # fmt: skip
_NOW = "What it means depends on what the part shows now, which the source does not have."
MONITORING_MEANINGS = {
    "redfish-critical": ToolMeaning("warning", "the BMC rates a part as critical", _NOW, "redfish"),
    "redfish-lanes": ToolMeaning(
        "warning",
        "by the BMC, the PCIe link of a part has fewer lanes than it supports",
        "Less bandwidth between the part and the host. A slot may have fewer lanes by design.",
        "redfish",
        "low",
    ),
    "redfish-pcie-errors": ToolMeaning(
        "warning", "the BMC counts fatal PCIe errors of a part", "Jobs end when the link fails.", "redfish", "low"
    ),
    "stated-xid": ToolMeaning("warning", "a text names an Xid of the driver", _NOW, "xid", "low"),
    "alert-xid": ToolMeaning("warning", "an alert of monitoring states an Xid", _NOW, "alert", "low"),
    "alert-firing": ToolMeaning("warning", "an alert of monitoring fires", _NOW, "alert", "low"),
    "amd-unhealthy": ToolMeaning("warning", "the exporter of AMD rates the GPU as unhealthy", _NOW, "alert"),
    "redfish-warning": ToolMeaning("info", "the BMC rates a part with a warning", _NOW, "redfish", "low"),
    "redfish-speed": ToolMeaning(
        "info",
        "by the BMC, the PCIe link of a part is slower than it supports",
        "An idle GPU lowers the speed of its link. Under load it must have the speed that both ends support.",
        "redfish",
        "low",
    ),
    "redfish-link-down": ToolMeaning("info", "by the BMC, a port that is on has no link", NO_TRAFFIC, "no-link", "low"),
}
