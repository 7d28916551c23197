"""Causes of tests/matrix that the guest shows at the same time, each on its own device: one scan judges them all."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

import msgspec

from fixtures.loader import merge_tables, read_table
from fixtures.machine import Machine
from fixtures.machine import parse_machine as described
from tests.matrix.cases import Cause, causes, filled

IB, ROCE = "8xh100-sxm-2s-8xcx7-ib-4nvsw", "8xh200-sxm-2s-16xcx7-roce-4nvsw"
SMALL = "8xl40s-pcie-2s-2xcx7-roce"
PLACE = re.compile(r"(\{(?:[a-z]+:)?)((?:gpu|rail|storage)\d+)\}")

LINK = (
    "cd /sys/bus/pci/devices/{at}; "
    "echo $(<current_link_speed) x$(<current_link_width) of $(<max_link_speed) x$(<max_link_width)"
)
PAYLOAD = "lspci -vvs {at} | grep -m1 'MaxPayload .* bytes, MaxReadReq'"
ACS = "lspci -vvs {at} | grep ACSCtl"
RETRAINED = "lspci -vvs {at} | grep -m1 BWMgmt"
ERRORS = "cd /sys/bus/pci/devices/{at}; grep -Hv ' 0$' aer_dev_*"
PORT = "cd /sys/bus/pci/devices/{at}/infiniband/*/ports/1; echo $(<state), $(<phys_state), $(<rate)"
COUNTS = (
    "cd /sys/bus/pci/devices/{at}/infiniband/*/ports/1; "
    "grep -Hv '^0$' counters/* hw_counters/* 2>/dev/null | grep -vE '_data|_packets|lifespan' | head -5"
)
GIDS = "cat /sys/bus/pci/devices/{at}/infiniband/*/ports/1/gid_attrs/types/* 2>/dev/null | sort | uniq -c"
PFC = "dcb pfc show dev {netdev} prio-pfc"
APP = "dcb app show dev {netdev} dscp-prio | tr ' ' '\\n' | grep -E '^26:' || echo no DSCP 26"
PAUSE = "ethtool -a {netdev} | grep X:"
STATISTICS = "ethtool -S {netdev} | grep -E 'pause_storm|pause_duration' | grep -v ': 0$'"
MTU = "echo mtu $(</sys/class/net/{netdev}/mtu); cat /sys/bus/pci/devices/{at}/infiniband/*/ports/1/state"
FIRMWARE = "cat /sys/bus/pci/devices/{at}/infiniband/*/fw_ver"
NVML = "grep -c . /run/nvml-answers"


class Scenario(NamedTuple):
    """A cause, moved to devices of its own, and how the kernel shows it: a shell line for its first device."""

    name: str
    cause: Cause
    witness: str


class Batch(NamedTuple):
    """Scenarios of one machine that one scan judges. `later`: the second of two scans with state."""

    shape: str
    scenarios: list[Scenario]

    @property
    def later(self) -> bool:
        """Whether one of them is reported by what moved since an earlier run."""
        return any(scenario.cause.earlier is not None for scenario in self.scenarios)

    @property
    def overlay(self) -> dict[str, Any]:
        """All of them, over the machine."""
        table: dict[str, Any] = {}
        for scenario in self.scenarios:
            table = merge_tables(table, filled(scenario.cause.overlay, self.shape))
        return table

    @property
    def config(self) -> dict[str, Any]:
        """The operator's configuration."""
        table: dict[str, Any] = {}
        for scenario in self.scenarios:
            table = merge_tables(table, scenario.cause.config)
        return table

    @property
    def finds(self) -> list[tuple[str, str, str]]:
        """Everything above info that the report is to hold."""
        return sorted(result for scenario in self.scenarios for result in filled(scenario.cause.finds, self.shape))


def moved(name: str, witness: str = "", **places: str) -> Scenario:
    """A cause on other devices: `rail0="rail3"`."""
    text = json.dumps(msgspec.to_builtins(causes()[name]))
    text = PLACE.sub(lambda result: f"{result[1]}{places.get(result[2], result[2])}}}", text)
    return Scenario(name, msgspec.convert(json.loads(text), Cause), witness)


def machine(shape: str, overlay: dict[str, Any] | None = None) -> Machine:
    """A described machine, with an overlay whose placeholders are filled in."""
    return described(merge_tables(read_table("hosts", shape), filled(overlay or {}, shape)), shape)


BATCHES = {
    "links": Batch(
        IB,
        [
            moved("pcie/gpu-at-x8", LINK),
            moved("pcie/gpu-at-gen3", LINK, gpu1="gpu3"),
            moved("pcie/switch-uplink-at-x4", LINK),
            moved("pcie/switch-uplink-at-gen3", LINK, rail2="rail4"),
            moved("pcie/rail-sends-too-large", PAYLOAD, rail0="rail5"),
            moved("pcie/read-requests-of-512", PAYLOAD, rail0="rail6"),
            moved("pcie/retrained-once", RETRAINED, rail0="rail6"),
            moved("pcie/rail-all-ones", LINK, rail0="rail7"),
            moved("pcie/bar1-of-256-mib", NVML, gpu0="gpu6"),
            moved("gpudirect/acs-on-one-port", ACS),
            moved("gpudirect/acs-source-validation-only", ACS, gpu1="gpu5"),
            moved("nvlink/one-link-inactive", NVML, gpu1="gpu7"),
        ],
    ),
    "ports": Batch(
        IB,
        [
            moved("infiniband/no-signal", PORT),
            moved("infiniband/port-disabled", PORT),
            moved("infiniband/two-lanes-of-four", PORT, rail0="rail2"),
            moved("infiniband/a-generation-back", PORT, rail0="rail3"),
            moved("infiniband/firmware-of-one-rail", FIRMWARE, rail0="rail4"),
            moved("infiniband_runtime/cable-goes-bad", COUNTS, rail0="rail5"),
            moved("infiniband_runtime/link-flaps", COUNTS, rail0="rail6"),
            moved("device_runtime/gpu-fatal-error", ERRORS),
            moved("device_runtime/gpu-riser-goes-bad", ERRORS, gpu1="gpu2"),
            moved("device_runtime/port-above-a-rail-sees-errors", ERRORS, rail0="rail7"),
        ],
    ),
    "unmanaged": Batch(IB, [moved("infiniband/no-subnet-manager", PORT)]),
    "classes": Batch(
        ROCE,
        [
            moved("roce/pfc-off-one-rail", PFC),
            moved("roce/pfc-on-another-class", PFC, rail0="rail2"),
            moved("roce/table-without-our-dscp", APP, rail0="rail4"),
            moved("roce/trust-lost-one-rail", APP, rail0="rail6"),
            moved("roce_links/mtu-of-one-rail", MTU, rail0="rail8"),
            moved("roce_links/no-carrier", PORT, rail0="rail10"),
            moved("machine/no-roce-v2", GIDS, rail1="rail12"),
            moved("roce_runtime/packets-lost-in-the-fabric", COUNTS, rail0="rail14"),
            moved("roce_runtime/pause-storm", STATISTICS, rail0="rail13"),
            moved("roce_runtime/switch-pauses-one-rail", STATISTICS, rail0="rail15"),
        ],
    ),
    "lossy": Batch(ROCE, [moved("roce/pfc-off-by-design", PFC)]),
    "pause": Batch(ROCE, [moved("roce/global-pause", PAUSE)]),
}
