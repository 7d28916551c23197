"""What a service of the node states of a fault: fabric manager, subnet managers, IMEX, DCGM and others.

The sentences are rows of `probes/services/sentences.py`; here stands what each of them means.
"""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.reasons import Reason, quote_source
from agent.rules.context import RuleContext
from agent.rules.host.driver_sentences import Meaning
from agent.rules.rule import NODE, Result, rule

_NO_CUDA = "CUDA ends with error 802 on every GPU that is connected over NVSwitches."
SERVICE_MEANINGS = {
    "fm-version": Meaning(
        "critical", "the fabric manager and the driver are of different versions, so it ended", _NO_CUDA
    ),
    "fm-config": Meaning("critical", "an item of its configuration has no valid value, so it ended", _NO_CUDA),
    "no-umad": Meaning(
        "critical", "the kernel module ib_umad is not loaded, over which the NVLink switches are managed", _NO_CUDA
    ),
    "fm-topology": Meaning(
        "critical", "the driver offers a number of NVSwitches that no board has, so it ended", _NO_CUDA
    ),
    "fm-no-switch": Meaning("critical", "it found no NVSwitch and ended", _NO_CUDA),
    "switch-fatal": Meaning(
        "critical", "an NVSwitch reports a fatal error", "Jobs that use its NVLinks end; others may hang.", False
    ),
    "multicast": Meaning(
        "error", "it refused a multicast team (NVLS): a GPU in the request is not registered with it",
        "NCCL cannot use NVLS with these GPUs: jobs that ask for it end with a CUDA error.", False,
    ),
    "switch-error": Meaning("warning", "an NVSwitch reports an error that is not fatal", "Traffic goes on.", False),
    "imex-memory": Meaning(
        "error", "it could not allocate a reference to memory of another node",
        "Jobs of several trays cannot share GPU memory over NVLink.", False, "medium",
    ),
    "imex-address": Meaning(
        "error", "no address in its list of nodes belongs to this node, so it ended",
        "Jobs of several trays cannot share GPU memory over NVLink.",
    ),
    "sm-port-closed": Meaning("error", "it cannot open its own port", "The subnet is not managed from here."),
    "sm-routing": Meaning(
        "warning", "it does not route as configured, but by its default (Min Hop)",
        "Routes may be uneven: some links carry more than others.", False,
    ),
    "sm-partition-full": Meaning(
        "warning", "the partition table of a port is full", "That port is not in all of its partitions.", False,
    ),
    "numa-memory": Meaning(
        "error", "it cannot put the GPU's memory online as memory of the node",
        "Programs cannot use this memory from the CPU (GH200, GB200).", False, "medium",
    ),
    "ofed-load": Meaning("error", "a kernel module of the OFED was not loaded", "RDMA does not work on its devices."),
    "dcgm-second": Meaning("info", "another host engine runs already", "None: the first one does the work."),
    "sm-second": Meaning("warning", "another subnet manager uses this port already", "This one does nothing.", True),
    "sm-no-ports": Meaning("error", "it found no InfiniBand port on this node", "The subnet is not managed from here."),
    "sm-key": Meaning(
        "warning", "a subnet manager with another key is in the same subnet", "Two may manage it.", False
    ),
    "sm-duplicate-guid": Meaning(
        "error", "two nodes of the subnet have the same GUID", "Routes to both are wrong.", False
    ),
    "sm-errors": Meaning(
        "error", "it could not initialize the subnet without errors", "Some ports stay in INIT.", False, "medium"
    ),
    "sm-port-down": Meaning("error", "its own port is down", "The subnet is not managed from here.", False, "medium"),
    "no-devices": Meaning("error", "it cannot open the NVIDIA device files", "GPUs lose their state between jobs."),
    "library-missing": Meaning("warning", "a library of the driver is missing (libnvidia-cfg)", "It does not start."),
    "nvml-failed": Meaning("error", "DCGM cannot start NVML", "GPUs are not monitored.", True, "medium"),
    "ofed-modules": Meaning(
        "error", "the module of the kernel would be loaded in place of that of the installed OFED",
        "RDMA drivers of the OFED are not loaded after a kernel update.", True, "medium",
    ),
    "rshim-lockdown": Meaning(
        "warning", "the kernel is locked down, and rshim needs VFIO then", "No console of the DPU."
    ),
    "rshim-unreadable": Meaning("warning", "the DPU's registers cannot be read", "No console of the DPU.", False),
    "rshim-taken": Meaning("info", "another host or the BMC uses the DPU's rshim", "No console of the DPU from here."),
    "cuda-802": Meaning(
        "critical", "CUDA reports error 802: the system is not yet initialized",
        "No program uses the GPUs before the NVLink fabric is set up.", True, "medium", alone=False,
    ),
    "dcgm-failed": Meaning("warning", "DCGM did not start", "GPUs are not monitored.", alone=False),
    "failed": Meaning("warning", "it failed, and its log does not state why", "Its function is missing.", alone=False),
}  # fmt: skip
CONTEXT = frozenset({"pre-nvl5"})  # evidence of other sentences


@rule("service-reports-failure")
def service_reports_failure(context: RuleContext) -> Iterator[Result]:
    events = [event for event in context.events if event.kind == "service"]
    if events:
        from agent.rules.host.service_faults import judge_services  # lazy: most logs state none

        faults = list(judge_services(context, events))
        yield from faults
        if faults:
            return
    run, unread = context.probes.get("services"), context.why_probe_failed("services")
    if unread and unread.code in ("evidence-absent", "evidence-not-run"):
        yield NODE.not_applicable("not-measured", detail="no log and no state of a service is there")
    elif run and run.reason_code == "service-log-unread":
        yield NODE.unknown(unread or quote_source(run.reason) or Reason("not-read", fact="a log of a service"))
    else:
        yield NODE.unknown(unread) if unread else NODE.passes()
