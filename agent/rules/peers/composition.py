"""A node whose GPUs are of one kind but for a few: an exchanged part of another model."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from agent.model.finding import Evidence
from agent.model.gpu import Gpu
from agent.model.reasons import Reason
from agent.rules.applicability import has_gpus
from agent.rules.context import RuleContext
from agent.rules.devices import (
    about_gpu,
    find_function,
    gpu_model,
    is_nvidia,
    is_virtual_gpu,
    why_unreachable,
)
from agent.rules.peers.parts import PeerPart
from agent.rules.peers.voting import vote
from agent.rules.rule import NODE, Fail, Result, rule
from agent.rules.wording import join_labels

_COMPUTE = ("0x0302", "0x1200")  # PCI classes without a display: a card for a screen is another thing
_ENOUGH = 4  # GPUs in which one can be the odd one out
_MANY = 7  # that fill the slots of a server but for one


@rule("gpu-model-mixed", gate=has_gpus)
def gpu_model_mixed(context: RuleContext) -> Iterator[Result]:
    groups: dict[tuple[str, str], list[Gpu]] = defaultdict(list)
    for gpu in context.topology.gpus:
        silent = _not_judged(context, gpu)
        if silent:
            yield silent
        else:
            groups[gpu.vendor or "", gpu.compute_capability or ""].append(gpu)
    for gpus in _join_single(groups):
        yield from _judge(context, gpus)


def _join_single(groups: Mapping[tuple[str, str], list[Gpu]]) -> list[list[Gpu]]:
    """One GPU of another generation among seven and more alike was not chosen: it is compared with them."""
    single = [key for key, gpus in groups.items() if len(gpus) == 1]
    main = [key for key, gpus in groups.items() if len(gpus) >= _MANY]
    joined = dict(groups)
    if len(single) == len(main) == 1 and single[0][0] == main[0][0]:
        joined[main[0]] = [*groups[main[0]], *joined.pop(single[0])]
    return list(joined.values())


def _not_judged(context: RuleContext, gpu: Gpu) -> Result | None:
    about, function = about_gpu(gpu), find_function(context, gpu)
    if context.profile and any(device.kind == "gpu" for device in context.profile.devices):
        return about.not_applicable("judged-elsewhere", detail="the profile states which GPU is where")
    if absent := why_unreachable(function):
        return about.not_applicable(absent)
    if is_virtual_gpu(gpu):
        return about.not_applicable("guest", detail="a virtual GPU")
    if function is not None and function.class_code and not function.class_code.startswith(_COMPUTE):
        return about.not_applicable("other-kind", detail="a display, or no GPU, by its PCI class")
    if gpu.name is None or (gpu.compute_capability is None and is_nvidia(context, gpu)):  # others have none
        return about.unknown("not-known", fact="its model or compute capability")
    if function is None or function.class_code is None:
        return about.unknown(context.why_bus_unread or Reason("not-known", fact="its PCI class"))
    return None


def _judge(context: RuleContext, gpus: Sequence[Gpu]) -> Iterator[Result]:
    models = [gpu_model(context, gpu) for gpu in gpus]
    if len(gpus) < _ENOUGH:
        alone = Reason("nothing-to-compare", detail="too few GPUs of its compute capability")
        yield from (about_gpu(gpu).not_applicable(alone) for gpu in gpus)
        return
    parts = [PeerPart("gpu", gpu.id, gpu.label, gpu, frozenset(), gpu.id, order=gpu.id) for gpu in gpus]
    verdict = vote(models, parts)
    is_mixed = verdict is not None and not verdict.halves and not verdict.pattern
    odd = {gpus[n].id for n in verdict.odd} if verdict and is_mixed else set()
    yield from (about_gpu(gpu).passes() for gpu in gpus if gpu.id not in odd)
    if odd:
        yield _fail([gpu for gpu in gpus if gpu.id in odd], [gpu for gpu in gpus if gpu.id not in odd])


def _fail(odd: Sequence[Gpu], usual: Sequence[Gpu]) -> Fail:
    single = len(odd) == 1
    names = join_labels(list(dict.fromkeys(gpu.name or "" for gpu in odd)))
    return (about_gpu(odd[0]) if single else NODE).fail(
        summary=f"{names}{'' if single else f' on {join_labels([gpu.label for gpu in odd])}'}; the other {len(usual)} "
        f"GPUs are {usual[0].name}",
        impact="Jobs on all GPUs are limited to the memory and speed of the weakest model, and may run out of memory "
        "there.",
        evidence=tuple(
            Evidence(f"model of {gpu.label}", gpu.name or "", "nvidia-smi -L") for gpu in (*odd, *usual[:1])
        ),
        cause="model",
        ids=frozenset(device for gpu in odd for device in (gpu.id, gpu.pci) if device),
    )
