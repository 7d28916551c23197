"""Links between Neuron devices: stated by one end only, or missing from the torus of a full instance."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.model.gpu import Gpu
from agent.rules.context import RuleContext
from agent.rules.gates import AMAZON
from agent.rules.rule import Fail, NotApplicable, Pass, Result, Unknown, rule

_SIDE = 4  # trn1.32xlarge and trn2.48xlarge: 16 devices as a torus of 4 by 4


@rule("neuron-link-asymmetric")
def neuron_link_asymmetric(case: RuleContext) -> Iterator[Result]:
    devices = {gpu.index: gpu for gpu in case.topology.gpus if gpu.vendor == AMAZON and gpu.index is not None}
    unnumbered = [gpu for gpu in case.topology.gpus if gpu.vendor == AMAZON and gpu.index is None]
    for gpu in unnumbered:
        yield Unknown(f"gpu:{gpu.id}", gpu.driver_error or case.probe_failure("gpu") or "neuron-ls does not list it")
    if len(devices) == 1 and not unnumbered:
        yield NotApplicable("node", "one Neuron device: it is connected to no other")
        return
    stated = {(number, link.link) for number, gpu in devices.items() for link in gpu.links}
    expected = stated | {(b, a) for a, b in stated} | _torus(stated)
    missing = {
        frozenset(pair) for pair in expected - stated if set(pair) <= devices.keys() and _states_far_end(devices, pair)
    }
    for number, gpu in devices.items():
        if not gpu.links_known:
            yield Unknown(f"gpu:{gpu.id}", gpu.links_reason or "its links are not known")
        elif not any(number in pair for pair in missing):
            yield Pass(f"gpu:{gpu.id}")
    for a, b in sorted(sorted(pair) for pair in missing):
        yield _fail(devices[a], devices[b], stated)


def _states_far_end(devices: dict[int, Gpu], pair: tuple[int, int]) -> bool:
    """Whether the end that does not state the link states what it is connected to."""
    return devices[pair[0]].links_known


def _torus(stated: set[tuple[int, int]]) -> set[tuple[int, int]]:
    """The links of a full instance, where two thirds of them are stated: an older one of 16 devices is a chain."""
    links = set()
    for number in range(_SIDE * _SIDE):
        row, column = divmod(number, _SIDE)
        links |= {(number, row * _SIDE + (column + step) % _SIDE) for step in (1, -1)}
        links |= {(number, (row + step) % _SIDE * _SIDE + column) for step in (1, -1)}
    return links if 3 * len(links & stated) > 2 * len(links) else set()


def _fail(a: Gpu, b: Gpu, stated: set[tuple[int, int]]) -> Fail:
    silent = [own for own, far in ((a, b), (b, a)) if (own.index, far.index) not in stated]
    who = "neither states it" if len(silent) == 2 else f"{silent[0].label} does not state it"
    return Fail(
        subject=f"pair:{a.id}+{b.id}",
        label=f"{a.label} - {b.label}",
        summary=f"the link between {a.label} and {b.label} is missing: {who}",
        impact="Collectives go around the missing link, or do not start.",
        remedy="Stop and start the instance, so that it comes up on other hardware; report it to the provider.",
        evidence=tuple(
            Evidence(
                what=f"connected devices of {gpu.label}",
                value=", ".join(str(link.link) for link in gpu.links),
                source="neuron-ls --json-output",
            )
            for gpu in (a, b)
        ),
        places=frozenset({a.id, b.id}),
    )
