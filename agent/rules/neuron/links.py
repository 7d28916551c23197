"""Links between Neuron devices: stated by one end only, or missing from the torus of a full instance."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from agent.model.finding import Evidence
from agent.model.gpu import Gpu
from agent.model.reasons import Reason, quote_source
from agent.rules.applicability import AMAZON
from agent.rules.context import RuleContext
from agent.rules.devices import about_gpu, about_pair
from agent.rules.node_wide import merge_failures
from agent.rules.rule import NODE, Fail, Result, rule
from agent.rules.wording import join_labels

_SIDE = 4  # trn1.32xlarge and trn2.48xlarge: 16 devices as a torus of 4 by 4
_TORUS_INSTANCES = ("trn1.32xlarge", "trn1n.32xlarge", "trn2.48xlarge", "trn2n.48xlarge")
_FEW = 4  # pairs that are reported one by one


@rule("neuron-link-asymmetric")
def neuron_link_asymmetric(context: RuleContext) -> Iterator[Result]:
    devices = {gpu.index: gpu for gpu in context.topology.gpus if gpu.vendor == AMAZON and gpu.index is not None}
    unnumbered = [gpu for gpu in context.topology.gpus if gpu.vendor == AMAZON and gpu.index is None]
    for gpu in unnumbered:
        yield about_gpu(gpu).unknown(
            quote_source(gpu.driver_error)
            or context.why_probe_failed("gpu")
            or Reason("not-shown", detail="neuron-ls does not list it")
        )
    if len(devices) == 1 and not unnumbered:
        yield NODE.not_applicable("nothing-to-compare", detail="one Neuron device: it is connected to no other")
        return
    stated = {(number, link.link) for number, gpu in devices.items() for link in gpu.links}
    expected = stated | {(b, a) for a, b in stated} | _find_torus(context, stated)
    missing = {
        frozenset(pair) for pair in expected - stated if set(pair) <= devices.keys() and devices[pair[0]].links_known
    }
    for number, gpu in devices.items():
        if not gpu.links_known:
            yield about_gpu(gpu).unknown(
                quote_source(gpu.links_reason) or Reason("not-shown", detail="its links are not known")
            )
        elif not any(number in pair for pair in missing):
            yield about_gpu(gpu).passes()
    faults = [_fail(devices[a], devices[b], stated) for a, b in sorted(sorted(pair) for pair in missing)]
    common = frozenset.intersection(*missing) if len(missing) > 1 else frozenset[int]()
    if common:
        yield _fail_device(devices[min(common)], faults)
    elif len(faults) > _FEW:
        yield merge_failures(faults, f"links between {len(faults)} pairs of devices are missing")
    else:
        yield from faults


def _find_torus(context: RuleContext, stated: set[tuple[int, int]]) -> set[tuple[int, int]]:
    """The links of a full instance, by its type or where two thirds of them are stated: an older one is a chain."""
    links: set[tuple[int, int]] = set()
    for number in range(_SIDE * _SIDE):
        row, column = divmod(number, _SIDE)
        links |= {(number, row * _SIDE + (column + step) % _SIDE) for step in (1, -1)}
        links |= {(number, (row + step) % _SIDE * _SIDE + column) for step in (1, -1)}
    hidden = context.node.container or context.node.job_limit  # there numbers may be others
    is_whole = context.platform.confidence == "exact" and context.platform.profile in _TORUS_INSTANCES and not hidden
    return links if is_whole or 3 * len(links & stated) > 2 * len(links) else set()


def _fail_device(gpu: Gpu, faults: list[Fail]) -> Fail:
    whole = merge_failures(faults, "")
    return replace(
        whole,
        evidence=tuple(dict.fromkeys(whole.evidence)),
        subject=f"gpu:{gpu.id}",
        label=gpu.label,
        summary=f"{len(faults)} links of {gpu.label} are missing: {join_labels([fault.label for fault in faults])}",
    )


def _fail(a: Gpu, b: Gpu, stated: set[tuple[int, int]]) -> Fail:
    silent = [own for own, far in ((a, b), (b, a)) if (own.index, far.index) not in stated]
    who = "neither states it" if len(silent) == 2 else f"{silent[0].label} does not state it"
    return about_pair(a, b).fail(
        summary=f"the link between {a.label} and {b.label} is missing: {who}",
        impact="Collectives go around the missing link, or do not start.",
        remedy="Drain the instance, then stop and start it, so that it comes up on other hardware; report it to the "
        "provider. (costs a restart of the instance)",
        evidence=tuple(
            Evidence(
                f"connected devices of {gpu.label}",
                ", ".join(str(link.link) for link in gpu.links) or "none",
                "neuron-ls --json-output",
            )
            for gpu in (a, b)
        ),
    )
