"""How far a profile may be believed, and what a fault against it is worth."""

from __future__ import annotations

from agent.model.finding import Evidence
from agent.model.profile import Expected, Profile
from agent.rules.case import Case
from agent.rules.devices import lowered

NO_PROFILE = "no profile: this platform is not recognized, and --profile names none"


def severity_of(case: Case, expected: Expected, severity: str) -> str:
    """A value of low confidence gives info at most; one of medium, or a platform that is only likely, one step less."""
    if expected.confidence == "low":
        return "info"
    sure = expected.confidence == "high" and case.platform.confidence == "exact"
    return severity if sure else lowered(severity)


def evidence_of(profile: Profile, what: str, expected: Expected) -> Evidence:
    """What the profile says, and where it has it from."""
    return Evidence(what=f"{what}, profile {profile.name}", value=str(expected.value), source=expected.source)


def number_of(expected: Expected | None) -> int | None:
    """The value as a whole number; None where nothing is expected, or a word."""
    value = expected.value if expected else None
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
