"""Every family of rules with its applicability. The rules themselves are the pages beside the code of each family.

A module of rules is imported where something of its kind is on the node: most nodes have no RoCE or no NVLink, and
importing costs more than the scan. Where a gate is shut, the checks of its rules state why. A module whose rules go
through GPUs, NICs or PCI functions is not imported either where there are none and nothing that lists them was read:
what a rule that looked at nothing answers, the engine states.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from types import MappingProxyType

import msgspec

from agent.rules import applicability
from agent.rules.context import RuleContext
from agent.rules.pages import family_names, read_declaration
from agent.rules.rule import Result, Rule, declared_rule, registered

Sees = Callable[[RuleContext], bool]
Gate = Callable[[RuleContext], Result | None]  # the answer of every rule where none of them need be asked


class Family(msgspec.Struct, frozen=True):
    """A package of rules; its pages name them, and the module of each."""

    name: str
    gate: Gate
    module_gates: Mapping[str, Gate] = MappingProxyType({})  # of modules that another gate leads to
    unlisted: Mapping[str, Sees] = MappingProxyType({})  # of modules whose rules look at nothing where this is so

    @property
    def rules(self) -> tuple[str, ...]:
        """The names of its rules, sorted."""
        return family_names()[self.name]


FAMILIES: tuple[Family, ...] = (
    Family(
        "pcie",
        applicability.always,
        {"counters": applicability.has_pcie_counters},
        {"slots": applicability.lists_no_function},
    ),
    Family(
        "gpu",
        applicability.always,
        dict.fromkeys(("health", "memory"), applicability.has_gpus),
        unlisted={
            **dict.fromkeys(("devices", "health", "memory"), applicability.lists_no_gpu),
            "p2p": applicability.shows_no_acs,
        },
    ),
    Family(
        "nvlink",
        applicability.has_nvlink,
        {"counters": applicability.has_device_counters},
        dict.fromkeys(("paths", "recoveries", "superchips"), applicability.lists_no_gpu),
    ),
    Family(
        "amd",
        applicability.has_amd_gpus,
        unlisted=dict.fromkeys(("partitions", "xgmi", "xgmi_ports"), applicability.lists_no_gpu),
    ),
    Family("gaudi", applicability.has_gaudi),
    Family("neuron", applicability.has_neuron, {"errors": applicability.has_neuron_events}),
    Family("ascend", applicability.has_ascend, {"events": applicability.has_npu_events}),
    Family("cxl", applicability.has_cxl, {"errors": applicability.has_cxl_events}),
    Family(
        "infiniband",
        applicability.has_infiniband,
        {"counters": applicability.has_infiniband_counters, "flaps": applicability.has_infiniband_flaps},
        {"links": applicability.lists_no_nic},
    ),
    Family(
        "roce",
        applicability.has_roce,
        {
            **dict.fromkeys(("counters", "congestion", "pause"), applicability.has_roce_counters),
            "flaps": applicability.has_roce_flaps,
        },
        dict.fromkeys(("interfaces", "links", "lossless", "pfc", "traffic_classes"), applicability.lists_no_port),
    ),
    Family("nic", applicability.always, {"optics": applicability.has_nics}, {"optics": applicability.shows_no_module}),
    Family("affinity", applicability.always),
    Family("gpudirect", applicability.has_gpudirect, {"rocm": applicability.has_amd_rails}),
    Family("nccl", applicability.has_gpus),
    Family("peers", applicability.has_peers, unlisted={"composition": applicability.lists_no_gpu}),
    Family(
        "host", applicability.always, {"profile": applicability.has_profile, "inventory": applicability.has_inventory}
    ),
)


def rules_for(context: RuleContext) -> list[Rule]:
    """The rules to judge a node with, in the order of families and names; a stand-in where a gate is shut."""
    chosen: list[Rule] = []
    for family in FAMILIES:
        answers = {gate: gate(context) for gate in {family.gate, *family.module_gates.values()}}
        unlisted = {module for module, is_unlisted in family.unlisted.items() if is_unlisted(context)}
        for name in family.rules:
            module = read_declaration(name).module
            gate = family.module_gates.get(module, family.gate)
            answer = answers[gate]
            if answer is not None:
                chosen.append(_stand_in(family, name, gate, answer))
            elif module in unlisted:
                chosen.append(_put_off(family, name))
            else:
                chosen.append(load_rule(family, name))
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


def _put_off(family: Family, name: str) -> Rule:
    """The rule, its module imported for a context that it judges something of: of a fragment one with more assumed."""
    is_unlisted = family.unlisted[read_declaration(name).module]

    def check(context: RuleContext) -> Iterator[Result]:
        if not is_unlisted(context):
            yield from load_rule(family, name).check(context)

    return declared_rule(name, check)


def _stand_in(family: Family, name: str, gate: Gate, answer: Result) -> Rule:
    """The answer of a shut gate; the rule where counters of a fragment are judged by their values."""

    def check(context: RuleContext) -> Iterator[Result]:
        if context.assumed_window and gate(context) is None:
            yield from load_rule(family, name).check(context)
        else:
            yield answer

    return declared_rule(name, check)
