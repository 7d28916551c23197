"""What the fleet's questions answered, in the page's words: each states which nodes, in which group, by how much."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from agent.fleet.cluster.answer import FabricRow, TopologyAnswer
from agent.fleet.cluster.cabling_faults import KINDS, CablingFault
from agent.fleet.cluster.fabric_kind import WORDS
from agent.fleet.hostlist import BadHostlist, unfold
from agent.fleet.page.scene import SEVERITY, Nodes, PageItem, Section
from agent.fleet.questions import deviations
from agent.fleet.questions import drift as drifts
from agent.fleet.questions import duplicates as twice
from agent.fleet.questions import findings as wrong
from agent.fleet.questions.outliers import Outliers
from agent.fleet.text.drift import describe_change, format_times
from agent.fleet.text.findings import count_class, describe_bandwidth_loss, describe_cost, describe_origin
from agent.fleet.text.outliers import describe_outlier
from agent.fleet.text.parts import count, number
from agent.model.labels import group_by_key


class NodeIndex:
    """Nodes by name, as the page numbers them."""

    def __init__(self, nodes: Nodes) -> None:
        self.nodes = nodes
        self._places = {name: at for at, name in enumerate(nodes.names)}
        self._having: dict[tuple[str, str], list[int]] | None = None

    def of(self, names: Iterable[str]) -> list[int]:
        """Sorted, without names that are no node of the dataset."""
        return sorted({self._places[name] for name in names if name in self._places})

    def of_hosts(self, names: Iterable[str]) -> list[int]:
        """The same by host names without the cluster's, as far as one node only has such a name."""
        short: dict[str, int | None] = {}
        for name, at in self._places.items():
            host = name.rpartition("/")[2]
            short[host] = None if host in short else at
        return sorted({place for name in names if (place := short.get(name)) is not None})

    def folded(self, text: str) -> list[int]:
        """Of a folded host list; none where a name is such that it cannot be unfolded."""
        try:
            return self.of(unfold(text))
        except BadHostlist:
            return []

    def having(self, rule: str, severity: str, classes: Iterable[str]) -> list[int]:
        """Nodes of these classes with such a finding."""
        if self._having is None:
            self._having = self._group_findings()
        labels = self.nodes.classes.labels
        wanted = {labels.index(hardware_class) for hardware_class in classes if hardware_class in labels}
        return [at for at in self._having.get((rule, severity), []) if self.nodes.classes.codes[at] in wanted]

    def _group_findings(self) -> dict[tuple[str, str], list[int]]:
        rule_sets = [
            sorted(
                {
                    (finding.rule, finding.severity)
                    for finding in map(self.nodes.found.__getitem__, these)
                    if not finding.silenced
                }
            )
            for these in self.nodes.found_sets
        ]
        nodes = enumerate(self.nodes.found_codes)
        return group_by_key((key, at) for at, code in nodes for key in (rule_sets[code] if code >= 0 else ()))


def build_findings(answer: wrong.Findings, numbers: NodeIndex) -> Section:
    """Above info; the rest is counted."""
    loud = [finding for finding in answer.findings if finding.severity != "info"]
    quiet = len(answer.findings) - len(loud)
    notes = [describe_bandwidth_loss(answer.lost)] if answer.lost else []
    notes += [f"{count(quiet, 'more note')}: fabricscope fleet findings."] if quiet else []
    return Section(
        title="Findings",
        anchor="findings",
        note=" ".join(notes),
        said=[_make_finding_item(group, numbers) for group in loud],
        empty="No node has a finding above info.",
    )  # fmt: skip


def list_silenced(numbers: NodeIndex) -> Section | None:
    """What nodes report as silenced, alike ones together; None: nothing."""
    alike = group_by_key(
        ((finding.rule, finding.severity, finding.silenced), at)
        for at, finding in enumerate(numbers.nodes.found)
        if finding.silenced is not None
    )
    if not alike:
        return None
    sets = [set(members) for members in numbers.nodes.found_sets]
    items = []
    for (rule, severity, why), members in sorted(alike.items(), key=lambda item: (-SEVERITY.get(item[0][1], 0), item)):
        having = [not these.isdisjoint(members) for these in sets]
        nodes = [at for at, code in enumerate(numbers.nodes.found_codes) if code >= 0 and having[code]]
        first = numbers.nodes.found[members[0]]
        words = first.summary or rule
        words = ("For example: " if len(nodes) > 1 and first.summary else "") + f"{words[:1].upper()}{words[1:]}"
        items.append(PageItem(words=words, about=rule, severity=severity, nodes=nodes, more=[("why", why)], quiet=True))
    return Section(
        title="Silenced",
        anchor="silenced",
        said=items,
        note="Not among the findings above. Verdicts are those of the nodes' own reports.",
    )


def build_outliers(answer: Outliers, numbers: NodeIndex) -> Section:
    """Nodes that differ from their class, then values that are mixed in a class."""
    items = [_make_outlier_item(outlier, numbers) for outlier in answer.outliers]
    items += [_make_mixed_item(mixed, numbers) for mixed in answer.mixed]
    items.sort(key=lambda item: item.group)
    few = sum(answer.too_few.values())
    note = f"{count(answer.compared_nodes, 'node')} compared within their hardware classes."
    note += f" {number(few)} not compared: too few nodes of their class." if few else ""
    return Section(title="Outliers", anchor="outliers", said=items, note=note, empty="No node differs from its class.")


def build_duplicates(answer: twice.Duplicates, numbers: NodeIndex) -> Section:
    """Identities that several nodes have."""
    items = [
        _make_item(
            duplicate.hosts,
            numbers,
            words=f"{duplicate.kind} {duplicate.value} is on {number(duplicate.nodes)} nodes",
            about="duplicate",
            more=[*_list_holders(duplicate.holders), *([("note", duplicate.note)] if duplicate.note else [])],
        )
        for duplicate in answer.duplicates
    ]
    note = " ".join(f"{reason[:1].upper()}{reason[1:]}." for reason in answer.not_judged)
    return Section(title="Duplicates", anchor="duplicates", said=items, note=note, empty="No duplicate identifiers.")


def build_drift(answer: drifts.Drift, numbers: NodeIndex, requested: bool) -> Section:
    """What changed, folded over nodes that changed alike; `requested`: the moment was given, not chosen here.

    A new dataset has one report of each node: its nodes are not silent since a moment that was chosen from these.
    """
    first = not requested and answer.silent_nodes * 2 > answer.compared_nodes
    items = [
        _make_item(hosts, numbers, words=f"{words} since {answer.since}", about="host")
        for hosts, words in (
            (answer.replaced, "Another machine by the same name"),
            (answer.reinstalled, "The same machine with another system"),
            (answer.added, "New in the dataset"),
            ("" if first else answer.silent, "No report"),
        )
        if hosts and not (hosts == answer.added and not answer.compared_nodes)
    ]
    items += [_make_change_item(change, numbers) for change in answer.changes]
    empty = f"Nothing changed since {answer.since}."
    if not answer.compared_nodes:
        empty = f"The dataset holds nothing from before {answer.since} to compare with."
    elif first:
        empty = "Most nodes have a single report: changes are shown from the second on."
    return Section(title="Changes", anchor="drift", said=items, note=f"Since {answer.since}.", empty=empty)


def build_cluster(answer: TopologyAnswer, numbers: NodeIndex, part: bool = False) -> Section:
    """What the fabrics are, and what breaks them. `part`: only what concerns nodes that are numbered."""
    several = len(answer.fabrics) > 1
    note = " ".join(_format_fabric(fabric, at if several else 0) for at, fabric in enumerate(answer.fabrics, 1))
    note += f" {answer.nvlink_words}." if answer.nvlink_words else ""
    known = bool(answer.fabrics)
    empty = "All cables follow the pattern." if known else "No switch is known: give --fabric FILE."
    items = [_break(fault, numbers) for fault in answer.breaks if not part or numbers.of(fault.hosts)]
    return Section(title="Cluster", anchor="cluster", said=items, note=note.strip(), empty=empty)


def _make_finding_item(group: wrong.FindingGroup, numbers: NodeIndex) -> PageItem:
    names = [share.hardware_class for share in group.classes]
    nodes = numbers.having(group.rule, group.severity, names) if group.of_class else numbers.folded(group.hosts)
    more = [("on", ", ".join(group.labels))] if group.labels else []
    more += [("cost", describe_cost(group))] if group.cost_percent is not None else []
    more += [("source", describe_origin(group))] if group.by_fleet else []
    more += [("share", "; ".join(_share(share, numbers) for share in group.classes[:4]))]
    more += [("fix", group.remedy)] if group.remedy else []
    words = group.summary or group.rule
    words = ("For example: " if group.nodes > 1 and group.summary else "") + f"{words[:1].upper()}{words[1:]}"
    return PageItem(
        words=words, about=group.rule, severity=group.severity, nodes=nodes, more=more, whole_class=group.of_class
    )  # fmt: skip


def _share(share: wrong.Share, numbers: NodeIndex) -> str:
    without = f" (all but {share.without})" if share.without else ""
    return f"{number(share.nodes)} of {count_class(share)} of {share.hardware_class}{without}"


def _make_outlier_item(outlier: deviations.Outlier, numbers: NodeIndex) -> PageItem:
    more = [("on", ", ".join(outlier.labels))] if outlier.labels else []
    more += [("with it", "; ".join(outlier.also))] if outlier.also else []
    more += [("in common", ", ".join(outlier.common))] if outlier.common else []
    item = _make_item(outlier.hosts, numbers, words=describe_outlier(outlier), about=outlier.attribute, more=more)
    return msgspec.structs.replace(item, group=outlier.hardware_class)


def _make_mixed_item(mixed: deviations.NoMajority, numbers: NodeIndex) -> PageItem:
    values = ", ".join(f"{value} on {number(count)}" for value, count in mixed.values)
    what = f"{mixed.what[:1].upper()}{mixed.what[1:]}"
    words = f"{what} is mixed: {values} of {count(mixed.of, mixed.one)}. No majority value, outliers not computed."
    return PageItem(words=words, about=mixed.attribute, group=mixed.hardware_class)


def _make_change_item(change: drifts.DriftChange, numbers: NodeIndex) -> PageItem:
    more = [("noticed", format_times(change))] if change.first else []
    return _make_item(change.hosts, numbers, words=describe_change(change), about="changed", more=more)


def _break(cable_break: CablingFault, numbers: NodeIndex) -> PageItem:
    nodes = numbers.of(cable_break.hosts)
    more = [("switch ports", ", ".join(cable_break.ports[:16]))] if cable_break.ports else []
    more += [("compared", cable_break.compared)] if cable_break.compared else []
    more += [("fix", cable_break.fix)] if cable_break.fix else []
    return PageItem(words=cable_break.text, about=KINDS.get(cable_break.kind, cable_break.kind), nodes=nodes, more=more)


def _format_fabric(row: FabricRow, place: int) -> str:
    over = f", {row.oversubscription:.3g}:1" if row.oversubscription else ""
    sure = "" if row.sure == "sure" else f" ({row.sure})"
    hosts, switches = count(row.hosts, "host"), count(row.switches, "switch")
    counts = f"{hosts} on {switches}, {count(len(row.units), 'scalable unit')}"
    name = f"Fabric {place}, " if place else ""
    return f"{name}{WORDS.get(row.kind, row.kind)}{over}{sure}: {counts}."


def _list_holders(holders: Sequence[twice.Holder]) -> Iterator[tuple[str, str]]:
    holder_texts = [f"{holder.node} {holder.label}" for holder in holders if holder.label]
    if holder_texts:
        yield "where", ", ".join(holder_texts)


def _make_item(
    hosts: str, numbers: NodeIndex, words: str, about: str, more: Sequence[tuple[str, str]] = ()
) -> PageItem:
    """Of nodes that a host list names. Where it cannot be unfolded, it is shown as it is."""
    nodes = numbers.folded(hosts)
    return PageItem(words=words, about=about, nodes=nodes, more=[*([] if nodes else [("nodes", hosts)]), *more])
