"""The AMD GPUs of a machine that can be judged, by model."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from agent.model.gpu import Gpu
from agent.model.reasons import Reason, quote_source
from agent.rules.context import RuleContext
from agent.rules.devices import about_gpu, find_device_id, find_function, report_no_gpu, why_unreachable
from agent.rules.rule import Result

# Modules whose board joins each GPU with each other one: MI300A, MI300X, MI308X, MI325X, MI350X, MI355X
FULL_MESH = frozenset({"0x74a0", "0x74a1", "0x74a2", "0x74a5", "0x75a0", "0x75a3"})
# Two GPUs in one module, which joins them: MI250X, MI250
PAIRED = frozenset({"0x7408", "0x740c"})
# Cards that a bridge joins, or that stand alone: MI60, MI50, MI100, MI210
BRIDGED = frozenset({"0x66a0", "0x66a1", "0x738c", "0x740f"})
NOT_OFFERED = ("vfio", "no_driver", "not_open", "error")
NO_HIVE = "0"
KFD = "/sys/class/kfd/kfd/topology/nodes"


def select_gpus(
    context: RuleContext, devices: frozenset[str] | None, known: Callable[[Gpu], bool]
) -> tuple[list[list[Gpu]], list[Result]]:
    """Groups of at least two GPUs of one model, and the answers for all other AMD GPUs.

    `devices`: PCI device ids that the rule is about; None: any. `known`: whether what is judged is known of a GPU.
    """
    groups: dict[str, list[Gpu]] = {}
    answers: list[Result] = list(report_no_gpu(context))
    for gpu in context.topology.gpus:
        device, answer = find_device_id(context, gpu), find_guard(context, gpu)
        if answer is not None:
            answers.append(answer)
        elif devices is not None and device not in devices:
            answers.append(about_gpu(gpu).not_applicable("other-kind", detail="a GPU that is joined in another way"))
        elif known(gpu):
            groups.setdefault(device, []).append(gpu)
        else:
            why = (
                context.why_probe_failed("gpu")
                or quote_source(gpu.driver_error)
                or Reason("not-shown", detail="the driver does not state it")
            )
            answers.append(about_gpu(gpu).unknown(why))
    alone = [group[0] for group in groups.values() if len(group) == 1]
    answers += [
        about_gpu(gpu).not_applicable("nothing-to-compare", detail="the only GPU of its model: nothing to compare with")
        for gpu in alone
    ]
    return [group for group in groups.values() if len(group) > 1], answers


def find_guard(context: RuleContext, gpu: Gpu) -> Result | None:
    """Why a GPU is not judged; None where it is."""
    about = about_gpu(gpu)
    absent = why_unreachable(find_function(context, gpu))
    if gpu.vendor != "AMD":
        return about.not_applicable("no-such-device", detail="not of AMD")
    if context.virtual_machine:
        return about.not_applicable("guest", detail="virtual machine: the hypervisor decides which GPU links it shows")
    if absent or gpu.driver_state in NOT_OFFERED:
        return about.not_applicable(absent or Reason("not-measured", detail="the driver does not offer it"))
    return None


def all_pass(gpus: list[Gpu]) -> Iterator[Result]:
    """Each as it should be."""
    return (about_gpu(gpu).passes() for gpu in gpus)
