"""What a file shows of a machine whose probes no one can run: facts by probe, and the outcomes that come of them."""

from collections.abc import Iterable, Mapping
from typing import Any

from probes.named_tuple import NamedTuple
from probes.probe import Outcome, Probe, Status


class PreparsedFacts(NamedTuple):
    """Facts by the name of the probe that finds them on a host.

    `unsaid`: by probe, what the format leaves out: why its facts are not all, or why there are none.
    """

    facts: Mapping[str, Any]
    unsaid: Mapping[str, str]


class FactsSource:
    """A source that is already facts: nothing of it can be probed, timed out or recorded."""

    live = False
    observed_at = None

    def __init__(self, kind: str, path: str, format_name: str, facts: PreparsedFacts) -> None:
        self.kind = kind
        self.path = path
        self.format_name = format_name
        self.told = facts

    def outcomes(self, probes: Iterable[Probe]) -> list[Outcome]:
        """One outcome for each of these probes, in their order."""
        return [self._outcome(probe) for probe in probes]

    def _outcome(self, probe: Probe) -> Outcome:
        facts, unsaid = self.told.facts.get(probe.name), self.told.unsaid.get(probe.name)
        if facts is not None:
            status = Status.PARTIAL if unsaid else Status.OK
            return Outcome(probe.name, status, facts, unsaid, (self.path,), 0.0)
        if probe.fallback_for in self.told.facts:
            return Outcome(probe.name, Status.SKIPPED, None, f"{probe.fallback_for} answered", (), 0.0)
        reason = unsaid or f"{self.format_name} holds nothing of this"
        return Outcome(probe.name, Status.ABSENT, None, reason, (), 0.0)
