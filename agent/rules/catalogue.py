"""Every rule by family, in the order in which they are judged and listed. A test finds what is not here.

A family's rules are imported where something of its kind is on the node: most nodes have no RoCE or no NVLink, and a
hundred modules cost more than the scan. Where a gate is shut, the checks of its rules say why.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple

from agent.rules import gates
from agent.rules.case import Case
from agent.rules.rule import Answer, Rule


class Family(NamedTuple):
    """A package of rules: `agent/rules/NAME/catalogue.py` holds them as `RULES`, in this order."""

    name: str
    gate: Callable[[Case], Answer | None]  # the answer of every rule where none of them need be asked
    rules: tuple[str, ...]


FAMILIES: tuple[Family, ...] = (
    Family(
        "pcie",
        gates.always,
        (
            "pcie-device-gone",
            "pcie-width-downgraded",
            "pcie-speed-downgraded",
            "pcie-path-bottleneck",
            "pcie-link-down",
            "pcie-ends-disagree",
            "pcie-slot-limits-card",
            "pcie-slower-than-siblings",
            "pcie-nic-starved",
            "pcie-uplink-oversubscribed",
            "pcie-mps-mismatch",
            "pcie-mps-small",
            "pcie-mps-uneven",
            "pcie-tags-off",
            "pcie-aspm-on",
            "pci-driver-missing",
            "pcie-containment",
        ),
    ),
    Family(
        "gpu", gates.always, ("gpu-missing", "gpu-xid", "gpu-siblings-differ", "gpu-recovery-needed", "gpu-p2p-blocked")
    ),
    Family(
        "nvlink",
        gates.nvlink,
        (
            "nvlink-inactive",
            "nvlink-asymmetric",
            "nvlink-speed-low",
            "nvlink-matrix-uneven",
            "nvlink-path-missing",
            "nvlink-bandwidth-mode-reduced",
            "nvlink-unused-by-mig",
            "nvlink-claimed",
            "nvlink-disabled",
            "fabric-manager-down",
            "fabric-manager-mismatch",
            "fabric-incomplete",
            "fabric-unhealthy",
            "fabric-clique-mixed",
            "nvls-unavailable",
            "imex-down",
            "imex-channel-denied",
            "c2c-down",
            "gpu-ats-off",
            "gpu-memory-numa-missing",
        ),
    ),
    Family(
        "infiniband",
        gates.infiniband,
        (
            "ib-port-down",
            "ib-no-sm",
            "ib-rate-degraded",
            "ib-rate-mixed",
            "ib-pkey-mismatch",
            "ib-ar-disabled",
            "ib-sharp-not-ready",
            "ib-counter-saturated",
            "ib-sm-changed",
            "ib-rate-unparsed",
            "ib-limited-pf",
            "ib-subnet-mixed",
            "ib-pkey-limited",
        ),
    ),
    Family(
        "roce",
        gates.roce,
        (
            "roce-lossy",
            "roce-pfc-off",
            "roce-class-mismatch",
            "roce-trust-pcp-untagged",
            "roce-marking-unset",
            "roce-nccl-tc-suspect",
            "roce-pfc-multi",
            "roce-pfc-on-cnp-or-default",
            "roce-global-pause",
            "roce-pause-and-pfc",
            "roce-pfc-nic-asymmetry",
            "roce-pfc-switch-mismatch",
            "roce-dcbx-firmware-owned",
            "roce-headroom-small",
            "roce-prio2buffer-shared",
            "roce-ets-starved",
            "roce-tc-rate-limited",
            "roce-vlan-no-egress-map",
            "roce-dcb-unreadable",
            "roce-ecn-off",
            "roce-cnp-class",
            "roce-mtu-small",
            "roce-mtu-mismatch",
            "roce-gid-v1-only",
            "roce-no-ip",
            "roce-gid-index-wrong",
            "roce-nccl-gid-default-old",
            "roce-default-mode-v1",
            "roce-netdev-missing",
            "roce-lag-on-rails",
            "roce-lag-broken",
            "roce-speed-degraded",
            "roce-link-down",
            "roce-fec-wrong",
        ),
    ),
    Family("optics", gates.nics, ("roce-module-fault", "roce-optics-power")),
    Family(
        "roce_runtime",
        gates.roce_runtime,
        (
            "roce-link-flap",
            "roce-fec-ber",
            "roce-rt-retrans",
            "roce-rt-ack-timeout",
            "roce-rt-retry-exceeded",
            "roce-rt-rnr",
            "roce-rt-duplicates",
            "roce-rt-rx-discards",
            "roce-rt-pause-received",
            "roce-rt-pause-sent",
            "roce-rt-pause-storm",
            "roce-rt-pause-unanswered",
            "roce-rt-icrc",
            "roce-rt-crc",
            "roce-rt-adaptive-retrans",
            "roce-rt-class-usage",
            "roce-rt-host-bound",
            "roce-rt-congested",
            "roce-cnp-ignored",
            "roce-rt-soft-loss",
        ),
    ),
    Family(
        "infiniband_runtime",
        gates.infiniband_runtime,
        (
            "ib-link-flap",
            "ib-symbol-errors",
            "ib-link-recovery",
            "ib-rcv-errors",
            "ib-link-integrity",
            "ib-xmit-discards",
            "ib-xmit-wait",
            "ib-vl15-dropped",
            "ib-constraint-errors",
            "ib-hwcounter-transport",
        ),
    ),
    Family(
        "device_runtime",
        gates.device_runtime,
        (
            "pcie-errors-uncorrectable",
            "pcie-errors-correctable",
            "pcie-replays",
            "pcie-recoveries",
            "nvlink-errors",
            "c2c-errors",
        ),
    ),
    Family("nic", gates.always, ("nic-fw-mixed", "ib-mixed-linklayer", "ofed-inbox-mix")),
    Family("affinity", gates.always, ("affinity-gpu-far-from-nic", "numa-unknown")),
    Family(
        "gpudirect",
        gates.gpudirect,
        (
            "gdr-no-path",
            "gdr-mrrs-small",
            "gdr-relaxed-ordering-off",
            "gdr-bar1-small",
            "gdr-peermem-broken",
            "gdr-acs-on-path",
            "gdr-iommu-translated",
            "gdr-ats-vm",
            "gdr-acs-directnic",
            "gdr-iommu-group-directnic",
            "gdr-datadirect-missing",
            "gdr-dmabuf-prereq",
            "gdr-legacy-nv-peer-mem",
            "gdr-topology-hidden",
            "gdr-nic-gpu-ratio",
            "gdr-netns-exclusive",
            "gdr-soft-rdma",
        ),
    ),
    Family(
        "profile",
        gates.profiled,
        ("device-count-low", "nvswitch-missing", "gpu-module-missing", "profile-differs"),
    ),
    Family("inventory", gates.remembered, ("inventory-lost",)),
    Family(
        "nccl",
        gates.gpus,
        (
            "gdr-disabled-by-env",
            "gdr-nccl-conf-syntax",
            "gdr-nccl-conf-shadowed",
            "gdr-nccl-hca-mismatch",
            "gdr-nccl-socket-ifname",
            "gdr-nccl-debug-leftover",
            "nccl-topo-file-stale",
            "gdr-memlock-low",
            "gdr-devnodes-missing",
            "gdr-shm-small",
            "gdr-ibgda-regkey",
            "gdr-gdrcopy-missing",
            "gdr-gds-not-ready",
            "gdr-efa-stack",
        ),
    ),
    Family("host", gates.always, ("probe-hung",)),
)


def rules_for(case: Case) -> list[Rule]:
    """The rules to judge a node with: whole families, or a stand-in for each rule whose family's gate is shut."""
    chosen: list[Rule] = []
    for family in FAMILIES:
        answer = family.gate(case)
        chosen += rules_of(family) if answer is None else [_stand_in(name, answer) for name in family.rules]
    return chosen


@cache
def rules_of(family: Family) -> tuple[Rule, ...]:
    """A family's rules, imported."""
    rules: tuple[Rule, ...] = importlib.import_module(f"agent.rules.{family.name}.catalogue").RULES
    return rules


@cache
def every_rule() -> tuple[Rule, ...]:
    """The whole catalogue: for listings, pages and tests, not for a scan."""
    return tuple(rule for family in FAMILIES for rule in rules_of(family))


def names() -> frozenset[str]:
    """The names of all rules, without importing them."""
    return frozenset(name for family in FAMILIES for name in family.rules)


def _stand_in(name: str, answer: Answer) -> Rule:
    def check(case: Case) -> Iterator[Answer]:
        yield answer

    return Rule(name, "info", check, essential=False, needs=(), absorbs=(), references=(), docstring="")
