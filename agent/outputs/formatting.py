"""Helpers of several export forms: one-line text, times, CPU lists, the NVLink domain."""

from __future__ import annotations

import re
from datetime import datetime, timezone

from agent.model.report import Report
from agent.outputs.text.lines import clean

LIMIT = 200  # characters of one name or sentence; real ones are far shorter


def clean_line(text: str, limit: int = LIMIT) -> str:
    """One printable line of at most `limit` characters.

    >>> clean_line("mlx5_0\\nevil 1", 8)
    'mlx5_0?…'
    """
    cleaned = clean(text)
    return cleaned if len(cleaned) <= limit else cleaned[: limit - 1] + "…"


def observation_time(report: Report) -> datetime | None:
    """When the host was observed; None if the report does not contain it."""
    try:
        time = datetime.fromisoformat((report.observed_at or report.generated_at).replace("Z", "+00:00"))
    except ValueError:
        return None
    return time if time.tzinfo else time.replace(tzinfo=timezone.utc)


def known_fields(**fields: object) -> dict[str, str]:
    """The known fields, as text.

    >>> known_fields(vendor="NVIDIA", serial=None, minor=0)
    {'vendor': 'NVIDIA', 'minor': '0'}
    """
    return {name: str(value) for name, value in fields.items() if value is not None}


def parse_cpulist(cpulist: str | None) -> list[int]:
    """The processors of a cpulist, ascending; empty for an invalid one.

    >>> parse_cpulist("8,0-2"), parse_cpulist("0-"), parse_cpulist(None)
    ([0, 1, 2, 8], [], [])
    """
    cpus: set[int] = set()
    for part in (cpulist or "").split(","):
        span = re.fullmatch(r"(\d{1,5})(?:-(\d{1,5}))?", part, re.ASCII)
        if span is None:
            return []
        cpus |= set(range(int(span[1]), int(span[2] or span[1]) + 1))
    return sorted(cpus)


_NO_CLUSTER = "00000000-0000-0000-0000-000000000000"  # NVLink does not leave this node


def nvlink_domain(report: Report) -> str | None:
    """ "ClusterUUID.CliqueId", in topograph's notation; None if GPUs differ or no fabric leaves the node."""
    domains = {
        (gpu.fabric.cluster_uuid, gpu.fabric.clique) if gpu.fabric else (None, None) for gpu in report.topology.gpus
    }
    cluster, clique = domains.pop() if len(domains) == 1 else (None, None)
    if cluster is None or clique is None or cluster == _NO_CLUSTER or not re.fullmatch(r"[0-9a-fA-F-]{36}", cluster):
        return None
    return f"{cluster}.{clique}"
