"""Locked memory of services, and device nodes."""

from __future__ import annotations

from functools import partial

import pytest

from probes.catalogue import probe
from probes.host.interface import Denied
from probes.probe import Status, outcome_of
from probes.system.limits import bytes_of, parse_exempt, parse_limits, parse_pam, parse_unit
from tests.probes.machine import Machine, read_facts

GROUP = "/sys/fs/cgroup/system.slice/slurmd.service/cgroup.procs"
LIMITS = f"Limit\n{'Max locked memory':<26}{'8388608':<21}{'unlimited':<21}bytes\n"


facts = partial(read_facts, "limits")


def test_a_running_service_has_its_process_s_limit() -> None:
    """The soft one; what its unit says is not asked then."""
    host = Machine(live=True).put(
        {GROUP: "77\n78\n", "/proc/77/limits": LIMITS, "/proc/77/status": "CapEff:\t1ffffffffff\n"}
    )
    host.put({"/usr/lib/systemd/system/slurmd.service": "[Service]\nLimitMEMLOCK=infinity\n"})

    assert (("slurmd.service", "8388608", True, False),) == facts(host).services


def test_a_stopped_service_has_its_unit_s() -> None:
    """The strongest folder's unit, then drop-ins by name."""
    host = Machine(live=True).put(
        {
            "/usr/lib/systemd/system/slurmd.service": "[Service]\nLimitMEMLOCK=infinity\n",
            "/usr/lib/systemd/system/slurmd.service.d/50-a.conf": "[Service]\nLimitMEMLOCK=64K\n",
            "/etc/systemd/system/slurmd.service.d/10-b.conf": "[Service]\nLimitMEMLOCK=1M\n",
            "/etc/systemd/system/slurmd.service.d/note.txt": "LimitMEMLOCK=1\n",
        }
    )

    assert (("slurmd.service", "65536", None, False),) == facts(host).services


def test_pam_s_lines() -> None:
    """KiB; what is no number is left out."""
    text = "* soft memlock unlimited\n@hpc - memlock 64\n* hard nofile 1\n* hard memlock many # x\n"

    assert [("f:1 * soft", "unlimited"), ("f:2 @hpc -", "65536")] == [row[:2] for row in parse_pam(text, "f")]
    host = Machine(live=True).put({"/etc/security/limits.d/x.conf": text, "/etc/security/limits.d/x.bak": text})
    assert 2 == len(facts(host).users)


@pytest.mark.parametrize(
    ("value", "read"),
    [("infinity", "unlimited"), ("64K", "65536"), ("2G", str(2 << 30)), ("7", "7"), ("x", None), ("1T", str(1 << 40))],
)
def test_systemd_s_sizes(value: str, read: str | None) -> None:
    """Powers of 1024."""
    assert read == bytes_of(value)


def test_texts_that_say_nothing() -> None:
    """None, not 0."""
    assert None is parse_limits("Max open files 1 1 files\n")
    assert None is parse_exempt("Name: x\n")
    assert None is parse_unit(["[Service]\nLimitNOFILE=1\n"])
    assert "65536" == parse_unit(["[Service]\nLimitMEMLOCK=64K:infinity\n"])


def nodes(host: Machine) -> tuple[str, ...] | None:
    return facts(host).device_nodes


def test_device_nodes() -> None:
    """Those of GPUs and RDMA, and no others."""
    host = Machine(live=True).put(
        {
            "/dev/nvidia0": "",
            "/dev/infiniband/uverbs0": "",
            "/dev/sda": "",
            "/dev/nvidia-caps-imex-channels/channel0": "",
        }
    )

    assert {"nvidia0", "infiniband/uverbs0", "nvidia-caps-imex-channels/channel0"} <= set(nodes(host) or ())
    assert "sda" not in (nodes(host) or ())


def test_a_folder_that_may_not_be_listed_makes_them_unknown() -> None:
    """Fewer nodes than there are would be a fault that is none."""
    host = Machine(live=True).put(
        {"/dev/nvidia0": "", "/dev/infiniband/uverbs0": "", GROUP: "77\n", "/proc/77/limits": LIMITS}
    )
    host.refused["/dev/infiniband"] = Denied("no", "EACCES")

    assert None is nodes(host)


def test_a_tree_has_no_device_nodes() -> None:
    """Its /dev is that of who made it, if any."""
    host = Machine().put({"/dev/nvidia0": "", "/etc/security/limits.conf": "* - memlock 64\n"})

    assert None is nodes(host)
    assert Status.ABSENT == outcome_of(probe("limits"), Machine()).status
