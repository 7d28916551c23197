"""What the placeholders of rows are filled with."""

from __future__ import annotations

import re

from agent.job.candidate import PossibleCause, name_hosts, name_ranks
from agent.job.evidence import Evidence, LineEvent
from agent.job.lines import strip_header
from probes.text import lazy_pattern


def collect_words(evidence: Evidence, candidate: PossibleCause, event: LineEvent) -> dict[str, str]:
    """What the placeholders of a row are filled with."""
    hosts = list(candidate.hosts)
    who = name_ranks(evidence, list(candidate.ranks), hosts)
    line = strip_header(event.line.text)[:200]
    groups = {name: value for name, value in event.groups.items() if value}
    if "peer" in groups and (host := evidence.ranks.find_host(groups["peer"])) is not None:
        groups["peer"] = f"{groups['peer'].partition('<')[0]} ({host})" if host not in groups["peer"] else host
    where = who if len(hosts) < 2 or len(candidate.ranks) < 2 else name_hosts(hosts)
    where = "the host" if who == "a process" else where
    return {
        "who": who,
        "ranks": who if candidate.ranks else "",
        "where": where,
        "host": name_hosts(hosts) if hosts else "the host",
        "text": line,
        "line": line,
        **groups,
    }


def fill(template: str, words: dict[str, str]) -> str:
    """A template with its placeholders; those that the line does not have are left out."""
    known = {name: value for name, value in words.items() if value}
    while (optional := _OPTIONAL.search(template)) is not None:  # the innermost first
        names = re.findall(r"\{(\w+)\}", optional[1])
        kept = optional[1] if known.keys() >= set(names) else ""
        template = template[: optional.start()] + kept + template[optional.end() :]
    filled = re.sub(r"( ?)\{(\w+)\}", lambda match: match[1] + known[match[2]] if match[2] in known else "", template)
    return filled.strip().rstrip(": ")


_OPTIONAL = lazy_pattern(r"\[\[((?:(?!\[\[|\]\]).)*)\]\]")
