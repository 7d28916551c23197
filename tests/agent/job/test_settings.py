"""Settings of a job, by the version that read them."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.job.settings import judge_name, judge_value
from tests.agent.job.jobs import answer, begin, info


@pytest.mark.parametrize(
    ("name", "version", "verdict", "meant"),
    [
        ("NCCL_IB_GID_INDEX", (2, 20), None, ""),
        ("NCCL_IB_GID_INDX", (2, 20), "misspelt", "NCCL_IB_GID_INDEX"),
        ("NCCL_GID_INDEX", None, "misspelt", "NCCL_IB_GID_INDEX"),
        ("NCCL_IB_HCAS", None, "misspelt", "NCCL_IB_HCA"),
        ("NCCL_IB_DEVICE", None, "misspelt", "NCCL_IB_HCA"),
        ("NCCL_SOCKET_IF_NAME", None, "misspelt", "NCCL_SOCKET_IFNAME"),
        ("NCCL_NVLS_DISABLE", None, "misspelt", "NCCL_NVLS_ENABLE, its opposite"),
        ("NCCL_PXN_ENABLE", None, "misspelt", "NCCL_PXN_DISABLE, its opposite"),
        ("NCCL_MNNVL_ENABLE", (2, 18), "too_new", "since 2.21"),
        ("NCCL_MNNVL", (2, 27), "removed", "2.20"),
        ("NCCL_IB_CUDA_SUPPORT", (2, 20), "removed", "NCCL_NET_GDR_LEVEL"),
        ("NCCL_FASTRAK_IFNAME", None, None, ""),
        ("NCCL_ASYNC_ERROR_HANDLING", None, None, ""),
        ("TORCH_NCCL_TRACE_BUFFER_SIZ", None, "misspelt", "TRACE_BUFFER_SIZE"),
        ("NCCL_MY_OWN_PLUGIN_KNOB", None, "unknown", "no setting"),
        ("UCX_ANYTHING", None, None, ""),
    ],
)
def test_names(name: str, version: tuple[int, int] | None, verdict: str | None, meant: str) -> None:
    """Known, misspelt, of another version, of others."""
    found = judge_name(name, version)

    assert verdict == (found[0] if found else None)
    assert meant in (found[1] if found else "")


@pytest.mark.parametrize(
    ("name", "value", "verdict"),
    [
        ("NCCL_IB_TIMEOUT", "22", None),
        ("NCCL_IB_TIMEOUT", "200", "out_of_range"),
        ("NCCL_IB_TIMEOUT", "25", "risky"),
        ("NCCL_IB_RETRY_CNT", "10", "out_of_range"),
        ("NCCL_IB_TC", "106", None),
        ("NCCL_IB_TC", "26", "out_of_range"),
        ("NCCL_IB_TC", "300", "out_of_range"),
        ("NCCL_DEBUG", "info", None),
        ("NCCL_DEBUG", "Debug", "out_of_range"),
        ("NCCL_DEBUG", "1", "out_of_range"),
        ("NCCL_ALGO", "Tree,Ring", "risky"),
        ("NCCL_ALGO", "Auto", "out_of_range"),
        ("NCCL_NET_GDR_LEVEL", "NODE", "out_of_range"),
        ("NCCL_NET_GDR_LEVEL", "PHB", None),
        ("NCCL_NET_GDR_LEVEL", "LOC", "risky"),
        ("NCCL_IB_HCA", "mlx5_0, mlx5_1", "out_of_range"),
        ("NCCL_IB_DISABLE", "1", "risky"),
        ("NCCL_IB_DISABLE", "0", None),
        ("TORCH_NCCL_ENABLE_MONITORING", "0", "risky"),
        ("NCCL_CROSS_NIC", "x", "out_of_range"),
    ],
)
def test_values(name: str, value: str, verdict: str | None) -> None:
    """In range, out of it, and dangerous."""
    found = judge_value(name, value, (2, 20))

    assert verdict == (found[0] if found else None)


def test_a_risk_depends_on_the_version() -> None:
    """One default was the other way round before 2.20."""
    assert judge_value("NCCL_IB_SPLIT_DATA_ON_QPS", "1", (2, 20)) is not None
    assert judge_value("NCCL_IB_SPLIT_DATA_ON_QPS", "1", (2, 18)) is None
    assert judge_value("NCCL_IB_GID_INDEX", "-1", (2, 20)) is not None
    assert judge_value("NCCL_IB_GID_INDEX", "-1", (2, 21)) is None


def test_where_settings_are_read(tmp_path: Path) -> None:
    """From the log's own lines, launch commands and job definitions; different values of ranks are uneven."""
    log = (
        begin(2) + info(0, "NCCL_PROTO set by environment to LL.") + info(1, "NCCL_PROTO set by environment to Simple")
    )
    log += "+ mpirun -np 2 -x NCCL_IB_TIMEOUT=200 -x NCCL_DEBUG=INFO ./train\n"
    log += 'export NCCL_IB_GID_INDX=3\n  - name: NCCL_NET_GDR_LEVEL\n    value: "NODE"\n'
    rows = {(row.name, row.value): row for row in answer(tmp_path, log=log).settings}

    assert "uneven" == rows["NCCL_PROTO", "LL"].verdict == rows["NCCL_PROTO", "Simple"].verdict
    assert ("out_of_range", "launch command") == (
        rows["NCCL_IB_TIMEOUT", "200"].verdict,
        rows["NCCL_IB_TIMEOUT", "200"].where,
    )
    assert "misspelt" == rows["NCCL_IB_GID_INDX", "3"].verdict
    assert ("out_of_range", "job definition") == (
        rows["NCCL_NET_GDR_LEVEL", "NODE"].verdict,
        rows["NCCL_NET_GDR_LEVEL", "NODE"].where,
    )
    assert ("ok", "environment of rank 0") == (rows["NCCL_DEBUG", "INFO"].verdict, rows["NCCL_PROTO", "LL"].where)
