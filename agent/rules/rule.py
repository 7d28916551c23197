"""What a rule is: a small function over a `RuleContext`, and a page whose head declares it.

A rule yields one answer for every subject that it looks at: `Fail`, `Pass`, `Unknown` or `NotApplicable`. A subject
builds the answers about itself (`Subject`), so that a rule states it once. A rule reads nothing but the context; the
engine counts, folds and sorts.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import wraps
from typing import Any, TypeVar, overload

import msgspec

from agent.model.finding import SEVERITIES, Evidence
from agent.model.reasons import NotApplicableCode, Reason, UnknownCode
from agent.rules.context import RuleContext
from agent.rules.pages import Declaration, read_declaration, read_text


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
    ids: frozenset[str] = frozenset()
    explains_ids: frozenset[str] | None = None  # as a cause: the ids on which it explains others; None: `ids`
    explains_parts: bool = True  # as a cause: of these ids, every part too
    depends_on: Reason | None = None  # of a finding of low confidence: the context that is assumed
    parts: tuple[Any, ...] = ()  # of a finding for several devices: the Fail of each
    residue: tuple[Any, ...] = ()  # a Fail for each device that has more than all: reported where the rest is explained
    field: str = ""  # of a comparison with peers: the field that differs, "netdev.mtu"
    peers: frozenset[str] = frozenset()  # and the ids of those that have it as usual
    is_before_boot: bool = False  # logs of earlier boots show it


class Pass(msgspec.Struct, frozen=True):
    """Looked at, and as it should be."""

    subject: str


class Unknown(msgspec.Struct, frozen=True):
    """Could not be judged, and why; never shown as clean."""

    subject: str
    reason: Reason


class NotApplicable(msgspec.Struct, frozen=True):
    """A guard: the fault cannot exist here."""

    subject: str
    reason: Reason


Result = Fail | Pass | Unknown | NotApplicable
_RESULTS = (Fail, Pass, Unknown, NotApplicable)
_GRAVEST_FIRST = (Fail, Unknown, Pass, NotApplicable)
Check = Callable[[RuleContext], Iterator[Result]]
Gate = Callable[[RuleContext], Result | None]  # the answer where a family of rules has nothing to judge
Merge = Callable[[RuleContext, Sequence[Result]], Iterable[Fail]]  # of all answers about subjects their faults
S = TypeVar("S")


class Subject(msgspec.Struct, frozen=True):
    """What a rule judges. It builds the answers about itself; subclasses have `subject`, `label` and `ids`, which are
    those of a `Fail`, of their own, or those of another one."""

    @property
    def about(self) -> "Subject":
        """The subject that has its id, label and ids."""
        raise NotImplementedError

    @property
    def subject(self) -> str:
        """Its id, with its kind."""
        return self.about.subject

    @property
    def label(self) -> str:
        """The same for people."""
        return self.about.label

    @property
    def ids(self) -> frozenset[str]:
        """What a fault of it is about."""
        return self.about.ids

    def passes(self) -> Pass:
        """It is as it should be."""
        return Pass(self.subject)

    def unknown(self, why: Reason | UnknownCode, /, **parameters: str) -> Unknown:
        """It could not be judged: a reason, or its code and parameters."""
        return Unknown(self.subject, why if isinstance(why, Reason) else Reason(why, **parameters))

    def not_applicable(self, why: Reason | NotApplicableCode, /, **parameters: str) -> NotApplicable:
        """The fault cannot exist here: a reason, or its code and parameters."""
        return NotApplicable(self.subject, why if isinstance(why, Reason) else Reason(why, **parameters))

    def fail(
        self,
        summary: str,
        impact: str,
        *,
        label: str | None = None,
        remedy: str = "",
        values: tuple[tuple[str, str], ...] = (),
        evidence: tuple[Evidence, ...] = (),
        severity: str | None = None,
        confidence: str = "high",
        cause: str = "",
        situation: str = "",
        ids: frozenset[str] | None = None,
        explains_ids: frozenset[str] | None = None,
        explains_parts: bool = True,
        parts: tuple[Fail, ...] = (),
        field: str = "",
        peers: frozenset[str] = frozenset(),
    ) -> Fail:
        """A fault of it, as `Fail` describes; `label` and `ids` where they are not its own."""
        return Fail(
            self.subject,
            self.label if label is None else label,
            summary,
            impact,
            remedy,
            values,
            evidence,
            severity,
            confidence,
            cause,
            situation,
            self.ids if ids is None else ids,
            explains_ids,
            explains_parts,
            parts=parts,
            field=field,
            peers=peers,
        )


class NamedSubject(Subject, frozen=True):
    """A subject by its id and its label."""

    subject: str
    label: str
    ids: frozenset[str]


NODE = NamedSubject("node", "node", frozenset({"node"}))


class Rule(Declaration, frozen=True, kw_only=True):
    """One line of the catalogue: what the page declares, and the check."""

    check: Check

    @property
    def page(self) -> str:
        """What `explain` prints."""
        return read_text(self.name)

    @property
    def title(self) -> str:
        """The first line of the page."""
        return self.page.partition("\n")[0]


registered: dict[str, Rule] = {}  # of the modules that are imported


@overload
def rule(
    name: str, *, gate: Gate | None = None
) -> Callable[[Callable[[RuleContext], Result | Iterable[Result]]], Rule]: ...
@overload
def rule(
    name: str, *, each: Callable[[RuleContext], Iterable[S | Result]], merge: Merge | None = None
) -> Callable[[Callable[[S], Result] | Callable[[RuleContext, S], Result]], Rule]: ...
def rule(
    name: str,
    *,
    gate: Gate | None = None,
    each: Callable[[RuleContext], Iterable[Any]] | None = None,
    merge: Merge | None = None,
) -> Callable[[Callable[..., Any]], Rule]:
    """Make a rule of a function, which returns its answer, or all of them; the page of that name declares the rest.

    `gate`: the function is not asked where this has the answer.
    `each`: the function judges one subject of these at a time, by itself or with the context; what is an answer
    already stays as it is. `merge`: makes of what it answers the faults to report, which come last, as `on_all` does.
    """

    def register(judge: Callable[..., Any]) -> Rule:
        check = _judge_each(each, judge, merge) if each else _judge_node(judge, gate)
        return registered.setdefault(name, declared_rule(name, check))

    return register


def _judge_node(judge: Callable[[RuleContext], Result | Iterable[Result]], gate: Gate | None) -> Check:
    @wraps(judge)
    def check(context: RuleContext) -> Iterator[Result]:
        answer = (gate and gate(context)) or judge(context)
        return iter((answer,) if isinstance(answer, _RESULTS) else answer)

    return check


def _judge_each(
    each: Callable[[RuleContext], Iterable[Any]], judge: Callable[..., Result], merge: Merge | None
) -> Check:
    alone = judge.__code__.co_argcount == 1

    @wraps(judge)
    def check(context: RuleContext) -> Iterator[Result]:
        judged: list[Result] = []
        for subject in each(context):
            is_answer = type(subject) in _RESULTS  # faster than isinstance, thousands of times per scan
            answer = subject if is_answer else judge(subject) if alone else judge(context, subject)
            if merge and (not is_answer or isinstance(answer, Pass | Fail)):
                judged.append(answer)
            if not (merge and isinstance(answer, Fail)):
                yield answer
        if merge:
            yield from merge(context, judged)

    return check


def split_subjects(listed: Iterable[S | Result]) -> tuple[list[S], list[Result]]:
    """For rules that compare subjects with each other: those that are judged, and the answers about the others."""
    subjects: list[S] = []
    answers: list[Result] = []
    for each in listed:
        if isinstance(each, _RESULTS):
            answers.append(each)
        else:
            subjects.append(each)
    return subjects, answers


def gravest(answers: Iterable[Result]) -> Result:
    """Of several answers about one subject the one that counts: a fault, else what is unknown, else that it passes; of
    several of a kind the most severe, and the first."""
    return min(answers, key=_rank_answer)


def _rank_answer(answer: Result) -> tuple[int, int]:
    severity = answer.severity if isinstance(answer, Fail) else None
    return _GRAVEST_FIRST.index(type(answer)), -SEVERITIES.index(severity) if severity else 0


def declared_rule(name: str, check: Check) -> Rule:
    """A rule as its page declares it, with this check."""
    return Rule(*msgspec.structs.astuple(read_declaration(name)), check=check)
