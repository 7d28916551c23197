"""This machine: what the probes say of it, against what its own kernel prints. Only what everybody may read."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from probes.catalogue import probe
from probes.host.live import LiveHost
from probes.probe import Status, outcome_of
from probes.system import cpu

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the live host is a Linux host")


def test_interfaces_are_those_of_the_kernel():
    """Names as /proc/net/dev lists them; the loopback address is there."""
    outcome = outcome_of(probe("netdev"), LiveHost())
    listed = set(re.findall(r"^ *(\S+):", Path("/proc/net/dev").read_text(), re.MULTILINE))
    result = {dev.name: dev for dev in outcome.facts.netdevs}

    assert outcome.status in (Status.OK, Status.PARTIAL)
    assert listed == set(result)
    assert result["lo"].virtual
    if "rtnetlink RTM_GETADDR" in outcome.sources:
        assert "127.0.0.1/8" in result["lo"].addresses


def test_interfaces_agree_with_sysfs():
    """State, MTU and carrier counts: netlink's answer is sysfs's answer."""
    for dev in outcome_of(probe("netdev"), LiveHost()).facts.netdevs:
        folder = Path("/sys/class/net") / dev.name
        if not folder.is_dir():
            continue

        assert (folder / "operstate").read_text().strip() == dev.operstate
        assert int((folder / "mtu").read_text()) == dev.mtu
        assert int((folder / "carrier_changes").read_text()) == dev.carrier_changes


def test_system_agrees_with_proc():
    """Kernel, boot and memory as /proc prints them."""
    facts = outcome_of(probe("kernel"), LiveHost()).facts

    assert Path("/proc/sys/kernel/osrelease").read_text().strip() == facts.kernel
    assert Path("/proc/sys/kernel/random/boot_id").read_text().strip() == facts.boot_id
    assert 0 < facts.uptime_seconds <= float(Path("/proc/uptime").read_text().split()[0])
    assert f"{facts.memory_mib}" == str(int(Path("/proc/meminfo").read_text().split()[1]) // 1024)


def test_processors_agree_with_proc():
    """As many processors as /proc/cpuinfo has sections; every node's lie among them."""
    facts = outcome_of(probe("cpu"), LiveHost()).facts
    sections = len(re.findall(r"^processor\s*:", Path("/proc/cpuinfo").read_text(), re.MULTILINE))
    online = set(cpu.parse_cpulist(facts.online or ""))
    nodes = outcome_of(probe("numa"), LiveHost())

    assert sections == len(online)
    if nodes.facts is not None:
        assert online == {number for node in nodes.facts.nodes for number in cpu.parse_cpulist(node.cpus or "")}
