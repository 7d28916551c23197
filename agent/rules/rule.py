"""What a rule is: a small function over a `RuleContext`, and a page whose head declares it.

A rule yields one answer for every subject that it looks at: `Fail`, `Pass`, `Unknown` or `NotApplicable`. It
reads nothing but the case; the engine counts, folds and sorts.
"""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from agent.model.finding import Evidence
from agent.model.reasons import Reason
from agent.rules.context import RuleContext
from agent.rules.pages import Threshold, read_declaration, read_text


class Fail(msgspec.Struct, frozen=True):
    """A fault, with everything that a person needs to trust it and to fix it."""

    subject: str  # "pci:0000:19:00.0", "gpu:..", "link:GPU-ID/7", "port:NIC-ID/1", "netdev:..", "pair:A+B", "node"
    label: str  # the same for people: "GPU3", "mlx5_0/1"
    summary: str  # what was seen, where, what was expected: "PCIe x8, capable of x16"
    impact: str  # what it costs; a number only where it is computed from this machine or cited
    remedy: str = ""  # only where a step of the page is REMEDY
    values: tuple[tuple[str, str], ...] = ()  # of words in capitals of the page's steps that are not of the device
    evidence: tuple[Evidence, ...] = ()
    severity: str | None = None  # None: the rule's own
    confidence: str = "high"
    cause: str = ""  # part of the fingerprint; no measured value, no index
    situation: str = ""  # the key of the steps on the rule's page that fit; "": by cause or form factor
    # Ids that this fault is about: two rules on one place may be one fault. "ID/7" is a part of ID: a link, a port.
    places: frozenset[str] = frozenset()
    covers: frozenset[str] | None = None  # as a cause: the ids on which it explains others; None: `places`
    covers_parts: bool = True  # as a cause: of these ids, every part too
    depends_on: Reason | None = None  # of a finding of low confidence: the context that is assumed
    parts: tuple[Any, ...] = ()  # of a finding for several devices: the Fail of each
    residue: tuple[Any, ...] = ()  # a Fail for each device that has more than all: stands where the rest is explained
    field: str = ""  # of a comparison with peers: the field that differs, "netdev.mtu"
    peers: frozenset[str] = frozenset()  # and the ids of those that have it as usual


class Pass(msgspec.Struct, frozen=True):
    """Looked at, and as it should be."""

    subject: str


class Unknown(msgspec.Struct, frozen=True):
    """Could not be judged, and why; never shown as clean."""

    subject: str
    reason: Reason


class NotApplicable(msgspec.Struct, frozen=True):
    """A guard says that the fault cannot exist here."""

    subject: str
    reason: Reason


Result = Fail | Pass | Unknown | NotApplicable
Check = Callable[[RuleContext], Iterator[Result]]


class Rule(msgspec.Struct, frozen=True):
    """One line of the catalogue: what the page declares, and the check."""

    name: str
    severity: str
    check: Check
    essential: bool  # the verdict is unknown where this rule is
    needs: tuple[str, ...]  # subjects without whose facts nothing can be decided; "pci|gpu": either
    absorbs: tuple[str, ...]  # rules whose finding on the same place is a consequence of this one
    references: tuple[str, ...]  # ids in the rule references: "PCIE-001"
    thresholds: tuple[Threshold, ...] = ()
    fields: tuple[str, ...] = ()  # that it judges: a difference among peers in one of them is the same fault

    @property
    def page(self) -> str:
        """What `explain` prints."""
        return read_text(self.name)

    @property
    def title(self) -> str:
        """The first line of the page."""
        return self.page.partition("\n")[0]


registered: dict[str, Rule] = {}  # of the modules that are imported


def rule(name: str) -> Callable[[Check], Rule]:
    """Make a rule of a function; the page of that name declares the rest."""

    def register(check: Check) -> Rule:
        return registered.setdefault(name, declared_rule(name, check))

    return register


def declared_rule(name: str, check: Check) -> Rule:
    """A rule as its page declares it, with this check."""
    head = read_declaration(name)
    return Rule(
        name,
        head.severity,
        check,
        head.essential,
        head.needs,
        head.absorbs,
        head.references,
        head.thresholds,
        head.fields,
    )
