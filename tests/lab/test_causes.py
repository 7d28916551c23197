"""Causes of tests/matrix as a real kernel shows them: one description, the same findings, none on the healthy twin."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fixtures.machine import Machine
from fixtures.machine import machine as described
from fixtures.reading import merged, toml
from tests.lab.conftest import Told, above_info
from tests.lab.guest import UPTIME_SECONDS, Guest
from tests.matrix.cases import Cause, causes, filled

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("real_commands"), pytest.mark.timeout(900)]

IB, ROCE = "8xh100-sxm-2s-8xcx7-ib-4nvsw", "8xh200-sxm-2s-16xcx7-roce-4nvsw"
LINK = (
    "cd /sys/bus/pci/devices/{at}; "
    "echo $(<current_link_speed) x$(<current_link_width) of $(<max_link_speed) x$(<max_link_width)"
)
PAYLOAD = "lspci -vvs {at} | grep -m1 'MaxPayload .* bytes, MaxReadReq'"
ACS = "lspci -vvs {at} | grep ACSCtl"
PORT = "cd /sys/bus/pci/devices/{at}/infiniband/*/ports/1; echo $(<state), $(<phys_state), $(<rate)"
COUNTS = (
    "cd /sys/bus/pci/devices/{at}/infiniband/*/ports/1; "
    "grep -Hv '^0$' counters/* hw_counters/* 2>/dev/null | grep -vE '_data|_packets|lifespan' | head -5"
)
GIDS = "cat /sys/bus/pci/devices/{at}/infiniband/*/ports/1/gid_attrs/types/* 2>/dev/null | sort | uniq -c"
PFC = "dcb pfc show dev {netdev} prio-pfc"
APP = "dcb app show dev {netdev} dscp-prio | tr ' ' '\\n' | grep -E '^26:'"
PAUSE = "ethtool -a {netdev} | grep X:"
MTU = "echo mtu $(</sys/class/net/{netdev}/mtu); cat /sys/bus/pci/devices/{at}/infiniband/*/ports/1/state"
FIRMWARE = "cat /sys/bus/pci/devices/{at}/infiniband/*/fw_ver"
SCENARIOS: list[tuple[str, str, str]] = [  # machine, cause, how the kernel shows it
    (IB, "pcie/gpu-at-x8", LINK),
    (IB, "pcie/gpu-at-gen3", LINK),
    (IB, "pcie/switch-uplink-at-x4", LINK),
    (IB, "pcie/rail-sends-too-large", PAYLOAD),
    (IB, "pcie/retrained-once", "lspci -vvs {at} | grep -m1 BWMgmt"),
    (IB, "pcie/rail-all-ones", LINK),
    (IB, "gpudirect/acs-on-one-port", ACS),
    (IB, "gpudirect/acs-source-validation-only", ACS),
    (IB, "infiniband/no-signal", PORT),
    (IB, "infiniband/port-disabled", PORT),
    (IB, "infiniband/no-subnet-manager", PORT),
    (IB, "infiniband/two-lanes-of-four", PORT),
    (IB, "infiniband/a-generation-back", PORT),
    (IB, "infiniband/firmware-of-one-rail", FIRMWARE),
    (IB, "infiniband_runtime/cable-goes-bad", COUNTS),
    (IB, "infiniband_runtime/link-flaps", COUNTS),
    (ROCE, "roce/pfc-off-one-rail", PFC),
    (ROCE, "roce/pfc-off-by-design", PFC),
    (ROCE, "roce/pfc-on-another-class", PFC),
    (ROCE, "roce/table-without-our-dscp", APP),
    (ROCE, "roce/trust-lost-one-rail", APP),
    (ROCE, "roce/global-pause", PAUSE),
    (ROCE, "roce_links/mtu-of-one-rail", MTU),
    (ROCE, "roce_links/no-carrier", PORT),
    (ROCE, "machine/no-roce-v2", GIDS),
    (ROCE, "roce_runtime/packets-lost-in-the-fabric", COUNTS),
]  # fmt: skip


def machine(shape: str, overlay: dict[str, Any] | None = None) -> Machine:
    """A described machine, with an overlay whose placeholders are filled in."""
    return described(merged(toml("hosts", shape), filled(overlay or {}, shape)), shape)


def shown(guest: Guest, wanted: Machine) -> None:
    """The guest shows it: as a change of what is shown where it is the same machine."""
    if guest.shown is not None and guest.shown.shape == wanted.shape:
        guest.become(wanted)
    else:
        guest.show(machine(wanted.shape))
        guest.become(wanted)


@pytest.mark.parametrize("shape", [IB, ROCE])
def test_the_healthy_machine_is_silent(guest: Guest, told: Told, shape: str) -> None:
    """Nothing is said above info, no probe fails, and every function that was described is there."""
    wanted = machine(shape)
    guest.show(wanted)
    report = guest.scan()

    assert [] == above_info(report)
    assert [] == [run for run in report["probes"] if run["status"] in ("failed", "timed_out")]
    functions = {row["id"] for row in report["topology"]["pci"]}
    there = {node.address for node in wanted.nodes if node.root_bus != "0000:00"}
    assert there <= functions
    told(f"the healthy machine, {shape}", f"{len(functions)} PCI functions", "nothing")


@pytest.mark.parametrize(("shape", "name", "witness"), SCENARIOS, ids=[each[1] for each in SCENARIOS])
def test_a_cause_is_found_once_and_by_name(guest: Guest, told: Told, shape: str, name: str, witness: str) -> None:
    """What the fixture machine gives, the kernel gives: these findings, and nothing else above info."""
    cause = causes()[name]
    at = next(iter(filled(cause.overlay, shape)["device"]))
    report = seen(guest, cause, shape)
    netdev = next((each["label"] for each in report["topology"]["netdevs"] if each["pci"] == at), "")
    kernel = guest.run("bash", "-c", witness.format(at=at, netdev=netdev)).out
    findings = above_info(report)

    assert sorted(filled(cause.finds, shape)) == findings
    infos = {(each["rule"], each["subject"]) for each in report["findings"] if each["severity"] == "info"}
    assert set(filled(cause.informs, shape)) <= infos
    said = [f"{each['summary']}" for each in report["findings"] if each["severity"] != "info"]
    told(cause.about, kernel, "; ".join(said) or "nothing above info")


def seen(guest: Guest, cause: Cause, shape: str) -> dict[str, Any]:
    """The report of the guest with this cause; where it is one of time, the second of two scans with state."""
    options = []
    if cause.config:
        pairs = [(section, *pair) for section, keys in cause.config.items() for pair in keys.items()]
        lines = [f"{section}.{key} = {json.dumps(value)}" for section, key, value in pairs]
        guest.must("tee", "/run/config.toml", text="\n".join(lines) + "\n")
        options += ["--config", "/run/config.toml"]
    if cause.earlier is None:
        shown(guest, machine(shape, cause.overlay))
        return guest.scan(*options)
    guest.shell("rm -rf /run/state")
    options += ["--state-dir", "/run/state"]
    shown(guest, machine(shape, cause.earlier))
    guest.scan(*options)
    shown(guest, machine(shape, cause.overlay))
    return guest.scan(*options, uptime=UPTIME_SECONDS + cause.seconds)
