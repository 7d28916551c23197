"""What the fleet's questions answered, in the page's words: each says which nodes, in which group, by how much."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from agent.fleet.cluster.answer import FabricRow, TopologyAnswer
from agent.fleet.cluster.cabling_faults import KINDS, Break
from agent.fleet.cluster.fabric_kind import WORDS
from agent.fleet.hostlist import BadHostlist, unfold
from agent.fleet.page.overview import number
from agent.fleet.page.scene import Nodes, Said, Section
from agent.fleet.questions import deviations
from agent.fleet.questions import drift as drifts
from agent.fleet.questions import duplicates as twice
from agent.fleet.questions import findings as wrong
from agent.fleet.questions.outliers import Outliers
from agent.fleet.text.findings import describe_cost, describe_lost
from agent.fleet.text.outliers import describe_outlier

NAMED = 3  # devices that a change is told of with


class Numbers:
    """Nodes by name, as the page numbers them."""

    def __init__(self, nodes: Nodes, class_names: Mapping[str, str] | None = None) -> None:
        self.nodes = nodes
        self._class_names = class_names or {}
        self._places = {name: at for at, name in enumerate(nodes.names)}
        self._having: dict[tuple[str, str], list[int]] | None = None

    def class_name(self, hardware_class: str) -> str:
        """The class by the name that people use."""
        return self._class_names.get(hardware_class, hardware_class)

    def of(self, names: Iterable[str]) -> list[int]:
        """Sorted, without names that are no node of the dataset."""
        return sorted({self._places[name] for name in names if name in self._places})

    def folded(self, text: str) -> list[int]:
        """Of a folded host list; none where a name is such that it cannot be unfolded."""
        try:
            return self.of(unfold(text))
        except BadHostlist:
            return []

    def having(self, rule: str, severity: str, classes: Iterable[str]) -> list[int]:
        """Nodes of these classes with such a finding."""
        if self._having is None:
            self._having = self._with_findings()
        labels = self.nodes.classes.labels
        wanted = {labels.index(each) for each in classes if each in labels}
        return [at for at in self._having.get((rule, severity), []) if self.nodes.classes.codes[at] in wanted]

    def _with_findings(self) -> dict[tuple[str, str], list[int]]:
        told = [
            sorted({(self.nodes.found[each].rule, self.nodes.found[each].severity) for each in these})
            for these in self.nodes.found_sets
        ]
        found: dict[tuple[str, str], list[int]] = {}
        for at, code in enumerate(self.nodes.found_codes):
            for key in told[code] if code >= 0 else ():
                found.setdefault(key, []).append(at)
        return found


def findings(answer: wrong.Findings, numbers: Numbers) -> Section:
    """Above info; the rest is counted."""
    loud = [each for each in answer.findings if each.severity != "info"]
    quiet = len(answer.findings) - len(loud)
    notes = [describe_lost(answer.lost)] if answer.lost else []
    notes += [f"{_count(quiet, 'more note')}: fabricscope fleet findings."] if quiet else []
    return Section(
        title="Findings", anchor="findings", note=" ".join(notes), said=[_found(each, numbers) for each in loud],
        empty="No node reports anything above info.",
    )  # fmt: skip


def outliers(answer: Outliers, numbers: Numbers) -> Section:
    """Nodes that differ from their class, then values that are mixed in a class."""
    said = [_outlier(each, numbers) for each in answer.outliers]
    said += [_mixed(each, numbers) for each in answer.mixed]
    said.sort(key=lambda each: each.group)
    few = sum(answer.too_few.values())
    note = f"{_count(answer.compared_nodes, 'node')} compared within their hardware classes."
    note += f" {number(few)} not compared: too few nodes of their class." if few else ""
    return Section(title="Outliers", anchor="outliers", said=said, note=note, empty="No node differs from its class.")


def duplicates(answer: twice.Duplicates, numbers: Numbers) -> Section:
    """Identities that several nodes have."""
    said = [
        _on(each.hosts, numbers, words=f"{each.kind} {each.value} is on {number(each.nodes)} nodes", about="duplicate",
            more=[*_holders(each.holders), *([("note", each.note)] if each.note else [])])
        for each in answer.duplicates
    ]  # fmt: skip
    note = " ".join(f"{each[:1].upper()}{each[1:]}." for each in answer.not_judged)
    return Section(title="Duplicates", anchor="duplicates", said=said, note=note, empty="No identity is on two nodes.")


def drift(answer: drifts.Drift, numbers: Numbers) -> Section:
    """What changed, folded over nodes that changed alike."""
    said = [
        _on(hosts, numbers, words=f"{words} since {answer.since}", about="host")
        for hosts, words in (
            (answer.replaced, "Another machine by the same name"),
            (answer.reinstalled, "The same machine with another system"),
            (answer.added, "New in the dataset"),
            (answer.silent, "No report"),
        )
        if hosts and not (hosts == answer.added and not answer.compared_nodes)
    ]
    said += [_changed(each, numbers) for each in answer.changes]
    empty = f"Nothing changed since {answer.since}."
    if not answer.compared_nodes:
        empty = f"The dataset holds nothing from before {answer.since} to compare with."
    return Section(title="Changes", anchor="drift", said=said, note=f"Since {answer.since}.", empty=empty)


def cluster(answer: TopologyAnswer, numbers: Numbers, part: bool = False) -> Section:
    """What the fabrics are, and what breaks them. `part`: only what concerns nodes that are numbered."""
    note = " ".join(_fabric(each) for each in answer.fabrics)
    note += f" {answer.nvlink_words}." if answer.nvlink_words else ""
    known = bool(answer.fabrics)
    empty = "Nothing breaks the pattern of the cables." if known else "No switch is known: give --fabric FILE."
    said = [_break(each, numbers) for each in answer.breaks if not part or numbers.of(each.hosts)]
    return Section(title="Cluster", anchor="cluster", said=said, note=note.strip(), empty=empty)


def _found(each: wrong.FindingGroup, numbers: Numbers) -> Said:
    names = [share.hardware_class for share in each.classes]
    nodes = numbers.having(each.rule, each.severity, names) if each.of_class else numbers.folded(each.hosts)
    more = [("on", ", ".join(each.labels))] if each.labels else []
    more += [("cost", describe_cost(each).removeprefix("costs "))] if each.cost_percent is not None else []
    more += [("share", "; ".join(_share(share, numbers) for share in each.classes[:4]))]
    more += [("fix", each.remedy)] if each.remedy else []
    words = each.summary or each.rule
    words = ("For example: " if each.nodes > 1 and each.summary else "") + f"{words[:1].upper()}{words[1:]}"
    return Said(
        words=words, about=each.rule, severity=each.severity, nodes=nodes, more=more, whole_class=each.of_class
    )  # fmt: skip


def _share(share: wrong.Share, numbers: Numbers) -> str:
    without = f" (all but {share.without})" if share.without else ""
    return f"{number(share.nodes)} of {_count(share.of, 'node')} of {numbers.class_name(share.hardware_class)}{without}"


def _outlier(each: deviations.Outlier, numbers: Numbers) -> Said:
    more = [("on", ", ".join(each.labels))] if each.labels else []
    more += [("with it", "; ".join(each.also))] if each.also else []
    more += [("in common", ", ".join(each.common))] if each.common else []
    said = _on(each.hosts, numbers, words=describe_outlier(each), about=each.attribute, more=more)
    return msgspec.structs.replace(said, group=numbers.class_name(each.hardware_class))


def _mixed(each: deviations.Mixed, numbers: Numbers) -> Said:
    values = ", ".join(f"{value} on {number(count)}" for value, count in each.values)
    what = f"{each.what[:1].upper()}{each.what[1:]}"
    words = f"{what} is mixed: {values} of {_count(each.of, each.one)}. No majority value, outliers not computed."
    return Said(words=words, about=each.attribute, group=numbers.class_name(each.hardware_class))


def _changed(each: drifts.DriftChange, numbers: Numbers) -> Said:
    what = each.what.replace("_", " ")
    thing = each.subject if each.things == each.nodes else f"{number(each.things)} x {each.subject}"
    if what in ("gone", "new"):
        told = f"{thing} {what}" + (f": {', '.join(each.labels)}" if 0 < len(each.labels) <= NAMED else "")
    elif what == "moved":
        told = f"{each.subject} moved from {each.old} to {each.new}"
    elif each.old is None or each.new is None:
        told = f"{thing}: {what} changed"
    else:
        told = (
            f"{thing}: {what} {each.old} became {each.new}"
            if what != each.subject
            else f"{what} {each.old} became {each.new}"
        )
    when = each.first if each.first == each.last else f"{each.first} to {each.last}"
    more = [("on", ", ".join(each.labels))] if each.labels else []
    more += [("noticed", when)] if when else []
    return _on(each.hosts, numbers, words=told, about="changed", more=more)


def _break(each: Break, numbers: Numbers) -> Said:
    nodes = numbers.of(each.hosts)
    more = [("switch ports", ", ".join(each.ports[:16]))] if each.ports else []
    more += [("compared", each.compared)] if each.compared else []
    more += [("fix", each.fix)] if each.fix else []
    return Said(words=each.text, about=KINDS.get(each.kind, each.kind), nodes=nodes, more=more)


def _fabric(each: FabricRow) -> str:
    over = f", {each.oversubscription:.3g}:1" if each.oversubscription else ""
    sure = "" if each.sure == "sure" else f" ({each.sure})"
    counts = f"{number(each.hosts)} hosts on {number(each.switches)} switches, {number(len(each.units))} scalable units"
    return f"{WORDS.get(each.kind, each.kind)}{over}{sure}: {counts}."


def _holders(holders: Sequence[twice.Holder]) -> Iterator[tuple[str, str]]:
    told = [f"{each.node} {each.label}" for each in holders if each.label]
    if told:
        yield "where", ", ".join(told)


def _on(hosts: str, numbers: Numbers, words: str, about: str, more: Sequence[tuple[str, str]] = ()) -> Said:
    """Of nodes that a host list names. Where it cannot be unfolded, it is shown as it is."""
    nodes = numbers.folded(hosts)
    return Said(words=words, about=about, nodes=nodes, more=[*([] if nodes else [("nodes", hosts)]), *more])


def _count(count: int, one: str) -> str:
    return f"{number(count)} {one}{'' if count == 1 else 's'}"
