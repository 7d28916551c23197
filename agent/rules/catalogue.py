"""Every family of rules with its gates. The rules themselves are the pages beside the code of each family.

A module of rules is imported where something of its kind is on the node: most nodes have no RoCE or no NVLink, and
importing costs more than the scan. Where a gate is shut, the checks of its rules say why.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from types import MappingProxyType

import msgspec

from agent.rules import gates
from agent.rules.context import RuleContext
from agent.rules.pages import family_names, read_declaration
from agent.rules.rule import Result, Rule, declared_rule, registered

Gate = Callable[[RuleContext], Result | None]  # the answer of every rule where none of them need be asked


class Family(msgspec.Struct, frozen=True):
    """A package of rules; its pages name them, and the module of each."""

    name: str
    gate: Gate
    module_gates: Mapping[str, Gate] = MappingProxyType({})  # of modules that another gate leads to

    @property
    def rules(self) -> tuple[str, ...]:
        """The names of its rules, sorted."""
        return family_names()[self.name]


FAMILIES: tuple[Family, ...] = (
    Family("pcie", gates.always, {"counters": gates.has_device_counters}),
    Family("gpu", gates.always),
    Family("nvlink", gates.has_nvlink, {"counters": gates.has_device_counters}),
    Family("amd", gates.has_amd_gpus),
    Family("gaudi", gates.has_gaudi),
    Family("neuron", gates.has_neuron),
    Family("ascend", gates.has_ascend, {"events": gates.has_npu_events}),
    Family("cxl", gates.has_cxl),
    Family(
        "infiniband",
        gates.has_infiniband,
        {"counters": gates.has_infiniband_counters, "flaps": gates.has_infiniband_flaps},
    ),
    Family(
        "roce",
        gates.has_roce,
        {
            **dict.fromkeys(("counters", "congestion", "pause"), gates.has_roce_counters),
            "flaps": gates.has_roce_flaps,
        },
    ),
    Family("nic", gates.always, {"optics": gates.has_nics}),
    Family("affinity", gates.always),
    Family("gpudirect", gates.has_gpudirect, {"rocm": gates.has_amd_rails}),
    Family("nccl", gates.has_gpus),
    Family("peers", gates.has_peers),
    Family("host", gates.always, {"profile": gates.has_profile, "inventory": gates.has_inventory}),
)


def rules_for(case: RuleContext) -> list[Rule]:
    """The rules to judge a node with, in the order of families and names; a stand-in where a gate is shut."""
    chosen: list[Rule] = []
    for family in FAMILIES:
        answers = {gate: gate(case) for gate in {family.gate, *family.module_gates.values()}}
        for name in family.rules:
            gate = family.module_gates.get(read_declaration(name).module, family.gate)
            answer = answers[gate]
            chosen.append(load_rule(family, name) if answer is None else _stand_in(name, answer))
    return chosen


def load_rule(family: Family, name: str) -> Rule:
    """A rule, its module imported."""
    if name not in registered:
        importlib.import_module(f"agent.rules.{family.name}.{read_declaration(name).module}")
    return registered[name]


@cache
def every_rule() -> tuple[Rule, ...]:
    """The whole catalogue: for listings, pages and tests, not for a scan."""
    return tuple(load_rule(family, name) for family in FAMILIES for name in family.rules)


def names() -> frozenset[str]:
    """The names of all rules, without importing them."""
    return frozenset(name for family in FAMILIES for name in family.rules)


def _stand_in(name: str, answer: Result) -> Rule:
    def check(case: RuleContext) -> Iterator[Result]:
        yield answer

    return declared_rule(name, check)
