"""Untrusted text made fit for lines, and moments as seconds: what several forms need."""

from __future__ import annotations

import re
from datetime import datetime, timezone

from agent.model.report import Report
from agent.outputs.text.lines import clean

LIMIT = 200  # characters of one name or sentence: host names, models and summaries are far shorter


def line(text: str, limit: int = LIMIT) -> str:
    """One printable line of at most `limit` characters.

    >>> line("mlx5_0\\nevil 1", 8)
    'mlx5_0?…'
    """
    said = clean(text)
    return said if len(said) <= limit else said[: limit - 1] + "…"


def moment(report: Report) -> datetime | None:
    """When the host was as the report shows it; None where the report does not say."""
    try:
        said = datetime.fromisoformat((report.observed_at or report.generated_at).replace("Z", "+00:00"))
    except ValueError:
        return None
    return said if said.tzinfo else said.replace(tzinfo=timezone.utc)


def known(**fields: object) -> dict[str, str]:
    """The fields that are known, as text.

    >>> known(vendor="NVIDIA", serial=None, minor=0)
    {'vendor': 'NVIDIA', 'minor': '0'}
    """
    return {name: str(value) for name, value in fields.items() if value is not None}


def cpu_numbers(cpulist: str | None) -> list[int]:
    """The processors of a cpulist, ascending; none where it is no cpulist.

    >>> cpu_numbers("8,0-2"), cpu_numbers("0-"), cpu_numbers(None)
    ([0, 1, 2, 8], [], [])
    """
    found: set[int] = set()
    for part in (cpulist or "").split(","):
        span = re.fullmatch(r"(\d{1,5})(?:-(\d{1,5}))?", part, re.ASCII)
        if span is None:
            return []
        found |= set(range(int(span[1]), int(span[2] or span[1]) + 1))
    return sorted(found)
