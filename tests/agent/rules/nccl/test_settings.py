"""Which setting is in force, and what is not known; a setting that a job's log states is judged as the host's own."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from agent.model.node import NcclSetting
from agent.rules.nccl.hcas import active_ports, read_hca_filter, report_no_rails
from agent.rules.nccl.settings import (
    EffectiveSetting,
    effective_settings,
    is_surely_unset,
    parse_number,
    why_files_unread,
    why_jobs_unread,
)
from agent.rules.rule import NotApplicable, Unknown
from tests.agent.rules.build import changed_nic, changed_port, changed_ports, probe, server, topology
from tests.agent.rules.nccl.nccl_case import JOB, SYSTEM, USER, changed, jobs_hidden, lines, said, unread
from tests.machines import scan_text


def test_jobs_come_before_users_before_the_system() -> None:
    """Each is in force for somebody; the line is told."""
    context = said(server(1), {"NCCL_X": "0", "NCCL_A": "1"}, {"NCCL_A": "2"}, {"NCCL_A": "3"})

    known = [("3", JOB, "job"), ("2", f"{USER}:1", "user"), ("1", f"{SYSTEM}:2", "system")]
    assert [EffectiveSetting(*of_one) for of_one in known] == effective_settings(context, "NCCL_A")
    assert [] == effective_settings(context, "NCCL_B")
    assert [False, True, True] == [
        effective_setting.persistent for effective_setting in effective_settings(context, "NCCL_A")
    ]


def test_within_a_file_the_first_line_counts() -> None:
    """setenv without overwrite; by number, not by text."""
    rows = [*lines(SYSTEM, "system", {f"NCCL_{n}": "x" for n in range(10)}), *lines("/f", "user", {"NCCL_1": "y"})]
    later = NcclSetting(key="NCCL_1", value="z", source=f"{SYSTEM}:12")
    context = changed(server(1), settings=[later, *rows])

    assert ["y", "x"] == [effective_setting.value for effective_setting in effective_settings(context, "NCCL_1")]


def test_what_is_not_known() -> None:
    """Files, jobs, the probe itself."""
    context = said(server(1))

    assert is_surely_unset(context)
    assert "Permission denied" in (why_files_unread(unread(context)) or "")
    assert not is_surely_unset(unread(context))
    assert "which processes use a GPU is not known" == (why_jobs_unread(jobs_hidden(context)) or "")
    why = changed(jobs_hidden(context), jobs_hidden="root only")
    assert "which processes use a GPU is not known: root only" == why_jobs_unread(why)
    assert not is_surely_unset(jobs_hidden(context))
    assert "2 of 3 jobs" in (why_jobs_unread(changed(context, jobs=3, jobs_unread=2)) or "")
    assert None is why_jobs_unread(changed(context, jobs=3, jobs_unread=0))
    assert None is not why_files_unread(probe(context, "nccl", "failed", "broken"))
    assert None is not why_jobs_unread(probe(context, "nccl", "failed", "broken"))


@pytest.mark.parametrize(
    ("value", "read"),
    [
        ("106", 106),
        (" 106", 106),
        ("0x6A", 106),
        ("010", 8),
        ("0", 0),
        ("106 # x", 106),
        ("-1", -1),
        ("+7", 7),
        ('"106"', 0),
        ("Yes", 0),
        ("", None),
        ("9" * 19, None),
        ("9" * 30, None),
        (str(2**63 - 1), 2**63 - 1),
        (str(-(2**63)), -(2**63)),
        ("-01" + "0" * 21, -(2**63)),
        ("0" * 40, 0),
        ("0" * 40 + "17", 15),
        ("0x" + "0" * 40 + "6a", 106),
    ],
)
def test_numbers_are_read_as_strtoll_reads_them(value: str, read: int | None) -> None:
    """What is too large gives NCCL's default."""
    assert read == parse_number(value)


@pytest.mark.parametrize("value", [str(2**63), str(-(2**63) - 1), "0" * 40 + "7" * 40, "0x" + "f" * 40, "9" * 10_000])
def test_numbers_beyond_64_bits(value: str) -> None:
    """Bounded: nobody converts 10000 digits."""
    assert None is parse_number(value)


NAMES = ("mlx5_0", "mlx5_1", "mlx5_10", "eth0")


@pytest.mark.parametrize(
    ("value", "port", "taken"),
    [
        ("mlx5_1", 1, "mlx5_1 mlx5_10"),
        ("=mlx5_1", 1, "mlx5_1"),
        ("mlx5", 1, "mlx5_0 mlx5_1 mlx5_10"),
        ("^mlx5_1", 1, "mlx5_0 eth0"),
        ("^=mlx5_1", 1, "mlx5_0 mlx5_10 eth0"),
        ("=^mlx5_1", 1, ""),
        ("mlx5_0:1,eth", 1, "mlx5_0 eth0"),
        ("mlx5_0:2,eth", 1, "eth0"),
        ("mlx5_0:2,eth", 2, "mlx5_0 eth0"),
        ("mlx5_0:,x", 2, "mlx5_0"),
        ("mlx5_0:x", 1, ""),
        ("", 1, "mlx5_0 mlx5_1 mlx5_10 eth0"),
        (",,", 1, "mlx5_0 mlx5_1 mlx5_10 eth0"),
        ("^", 1, ""),
        (" mlx5_0", 1, ""),
        ("mlx5_0, mlx5_1", 1, "mlx5_0"),
        ("mlx5_0:1:2", 1, "mlx5_0"),
        (",mlx5_1", 1, "mlx5_1 mlx5_10"),
    ],
)
def test_a_list_takes_what_nccl_takes(value: str, port: int, taken: str) -> None:
    """By name and port."""
    assert taken.split() == [name for name in NAMES if read_hca_filter(value).takes(name, port)]


def test_ports_that_nccl_considers() -> None:
    """Active, InfiniBand or Ethernet, of a device that is here."""
    assert ["mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3"] == [active_port.name for active_port in active_ports(server())]
    named_by_people = changed_nic(server(), 1, label="NIC 1")
    assert ["mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3"] == [
        active_port.name for active_port in active_ports(named_by_people)
    ]
    for context in (
        changed_port(server(), 1, state="DOWN"),
        changed_port(server(), 1, link_layer="unspecified"),
        changed_nic(server(), 1, state="other_namespace"),
        changed_nic(server(), 1, rdma_device=None),
    ):
        assert ["mlx5_0", "mlx5_2", "mlx5_3"] == [active_port.name for active_port in active_ports(context)]


def test_a_name_stands_for_a_device_whatever_its_port() -> None:
    """Of interfaces nobody knows a port, either."""
    assert read_hca_filter("mlx5_0:2").takes("mlx5_0")
    assert ["mlx5_0"] == read_hca_filter("mlx5_0:2").matching(("mlx5_0", 2), NAMES)


def test_the_port_is_told_where_there_are_several() -> None:
    """mlx5_0 and mlx5_0:2."""
    (port,) = server(1).topology.nics[0].ports
    two = changed_nic(server(1), 0, ports=[port, msgspec.structs.replace(port, port=2)])

    assert ["mlx5_0"] == [active_port.label for active_port in active_ports(server(1))]
    assert ["mlx5_0:1", "mlx5_0:2"] == [active_port.label for active_port in active_ports(two)]


def test_a_node_whose_devices_nobody_saw() -> None:
    """No GPU, or nobody knows; no rail, or nobody knows: one answer."""
    bare = topology(server(), gpus=[])
    quiet = changed_ports(server(), state="DOWN")
    hidden = probe(quiet, "rdma", "failed", "x")

    assert NotApplicable("node", "no GPU") == report_no_rails(bare)
    assert NotApplicable("node", "no GPU") == report_no_rails(topology(bare, nics=[]))
    assert isinstance(report_no_rails(probe(bare, "pci", "failed", "x")), Unknown)
    assert NotApplicable("node", "no active RDMA rail") == report_no_rails(quiet)
    assert Unknown("node", "rdma: failed: x") == report_no_rails(hidden)
    assert NotApplicable("node", "no active RDMA rail") == report_no_rails(topology(hidden, nics=[]))
    assert report_no_rails(server()) is None


TOPOLOGY = (
    "$ nvidia-smi topo -m\n        GPU0    GPU1    CPU Affinity    NUMA Affinity\n"
    "GPU0     X      {0}    0-31    0\nGPU1    {0}     X      32-63   1\n"
)
LINKS = "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-11112222-3333-4444-5555-666677778888)\n\t Link 0: 26.562 GB/s\n"
STATED = "r4n2:811:811 [0] NCCL INFO {} set by environment to {}\n"


@pytest.mark.parametrize(
    "text",
    [
        TOPOLOGY.format("NV18") + "\n" + STATED.format("NCCL_P2P_LEVEL", "LOC"),
        LINKS + "\nNCCL_P2P_DISABLE set by environment to 1.\n",
    ],
    ids=["a matrix and a log", "links, and the sentence alone"],
)
def test_a_setting_that_switches_nvlink_off_is_found_beside_an_output_that_shows_nvlink(
    tmp_path: Path, text: str
) -> None:
    """Neither the output nor the log states a fault: both together do."""
    (finding,) = scan_text(tmp_path, text).findings

    assert ("gdr-disabled-by-env", "environment of the job") == (finding.rule, finding.evidence[0].source)
    assert finding.summary.startswith("NCCL_P2P_")


@pytest.mark.parametrize(
    "text",
    [
        TOPOLOGY.format("SYS") + "\n" + STATED.format("NCCL_P2P_LEVEL", "LOC"),
        TOPOLOGY.format("NV18")
        + "\n"
        + STATED.format("NCCL_P2P_LEVEL", "LOC")
        + STATED.format("NCCL_P2P_LEVEL", "NVL"),
        TOPOLOGY.format("NV18") + "\n" + STATED.format("NCCL_P2P_LEVEL", "NVL"),
    ],
    ids=["no NVLink", "two runs with two values", "a value that loses nothing"],
)
def test_a_setting_that_takes_nothing_away_is_no_finding(tmp_path: Path, text: str) -> None:
    """On PCIe alone the switch is often right, and of two values it is not known which run was slow."""
    assert [] == scan_text(tmp_path, text).findings
