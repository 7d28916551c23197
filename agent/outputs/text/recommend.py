"""What `recommend` answers, as text: predictions, what bounds them, repairs, settings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agent.model.labels import group_by_key
from agent.model.prediction import Bound, PlatformComparison, Prediction, Recommendation, SettingAdvice
from agent.outputs.grouping import describe_loss
from agent.outputs.text.lines import BLANK, Line, join_cells, make_heading, make_line, wrap_all, wrap_paragraph

_NAMES = {
    "all_reduce": "all-reduce",
    "all_gather": "all-gather",
    "reduce_scatter": "reduce-scatter",
    "all_to_all": "all-to-all",
    "sendrecv": "send/receive",
}
_MOST_REPAIRS = 20  # that are printed
_LESS_ROOM = ("NCCL chooses", "range", "size")  # columns that a narrow terminal does not have, in this order
_NUMBERS = ("nodes", "as it is", "healthy")  # columns of numbers
_UNITS = (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10))


def render_recommendation(answer: Recommendation, width: int, everything: bool = False) -> list[Line]:
    """The answer for a width in columns; with `everything` also what needs no setting, and why."""
    lines = [make_line((answer.machine, "bold"))]
    if answer.assumed:
        lines += wrap_paragraph(f"assumed: {'; '.join(answer.assumed)}", width)
    if answer.missing:
        lines += wrap_paragraph(f"missing in the report: {', '.join(answer.missing)}", width, style="warning")
    lines += [BLANK, make_heading("What it reaches (bus bandwidth as nccl-tests prints it, GB/s)")]
    if any(row.busbw_gbyte_s is not None for row in answer.predictions):
        lines += _prediction_table(answer.predictions, width)
    else:
        lines += [make_line("  Not predicted.")]
    lines += _bound_lines(answer.predictions, width)
    if answer.repairs:
        lines += [BLANK, make_heading("Repair first")]
        lines += wrap_all(answer.summary, width, "  ", None)
        for repair in answer.repairs[:_MOST_REPAIRS]:
            cost = describe_loss(repair.percent, repair.collective, repair.nodes)
            place = f"{repair.host}  {repair.device}" if repair.host else repair.device
            lines += [make_line((f"  {place}  {repair.rule}", "error")), *wrap_paragraph(cost, width, indent="    ")]
            if repair.until:
                lines += wrap_paragraph(f"until repaired: {repair.until}", width, indent="    ")
        more = len(answer.repairs) - _MOST_REPAIRS
        lines += [make_line(f"  and {more} more that cost less")] if more > 0 else []
    lines += [BLANK, make_heading("Settings")]
    lines += _setting_lines(answer, width, everything)
    if answer.platform is not None and everything:
        lines += _platform_lines(answer.platform, width)
    lines += _placement_lines(answer, width)
    return lines


def _platform_lines(platform: PlatformComparison, width: int) -> Iterator[Line]:
    text = f"for comparison only, what NVIDIA validates on {platform.platform} ({platform.source})"
    parts = [("same here", platform.same), ("different here", platform.differs), ("not set here", platform.not_set)]
    text += ": " + "; ".join(f"{name}: {', '.join(settings)}" for name, settings in parts if settings)
    yield from wrap_paragraph(text, width, indent="    ", first="  - ")


def _placement_lines(answer: Recommendation, width: int) -> Iterator[Line]:
    """One line a rank; of a job the order of its nodes."""
    if answer.placement or answer.node_order:
        yield BLANK
        yield make_heading(
            "Ranks (local rank = index with CUDA_DEVICE_ORDER=PCI_BUS_ID)" if answer.placement else "Nodes"
        )
    named = [", ".join(place.rails) or "no rail of its own" for place in answer.placement]
    gpu_width, rail_width = (max(map(len, names), default=0) for names in ([p.gpu for p in answer.placement], named))
    for place, rails in zip(answer.placement, named, strict=True):
        cpus = f"  CPUs {place.cpus}" if place.cpus else ""
        numa = "?" if place.numa_node is None else place.numa_node
        yield make_line(f"  {place.local_rank:3}  {place.gpu:{gpu_width}}  {rails:{rail_width}}  NUMA {numa}{cpus}")
    for text in answer.node_order:
        yield from wrap_paragraph(text, width, indent="    ")


def format_size(size: int) -> str:
    """A size in the largest unit that divides it.

    >>> format_size(1 << 30), format_size(1000)
    ('1 GiB', '1000 B')
    """
    return next((f"{size // unit} {name}" for name, unit in _UNITS if size >= unit and not size % unit), f"{size} B")


def describe_bound(bound: Bound) -> str:
    """What sets a bandwidth, in words."""
    kinds = {
        "nic": "the NICs",
        "pcie": "PCIe",
        "nvlink": "NVLink",
        "nvls": "NVLink (NVLS)",
        "xgmi": "xGMI",
        "hccs": "HCCS",
    }
    name = kinds.get(bound.kind, bound.kind)
    if bound.device is None:
        return name
    part = {"pcie": "the PCIe link", "nic": "the port", "nvlink": "the NVLinks"}.get(bound.kind, name)
    return f"{part} of {bound.device}" + (f" on {bound.host}" if bound.host else "")


def _prediction_table(rows: Sequence[Prediction], width: int) -> Iterator[Line]:
    """A narrow terminal has no room for all of it."""
    both = len({row.case for row in rows}) > 1
    heads = ["as it is", "healthy"] if both else ["healthy"]
    table = [["collective", "size", "nodes", *heads, "range", "NCCL chooses", "bound"]]
    for key, alike in group_by_key(((row.collective, row.size_bytes, row.nodes), row) for row in rows).items():
        cases = {row.case: row for row in alike}
        healthy = cases.get("healthy") or alike[0]
        case = cases.get("as_is", healthy)
        as_it_is = [_figure(cases["as_is"])] if both and "as_is" in cases else []
        table.append(
            [
                _NAMES.get(key[0], key[0]), format_size(key[1]), str(key[2]), *as_it_is, _figure(healthy),
                "" if case.range_gbyte_s is None else "{:.0f}-{:.0f}".format(*case.range_gbyte_s),
                _choice(case), describe_bound(case.bound) if case.bound else "",
            ]
        )  # fmt: skip
    for name in _LESS_ROOM:
        if sum(map(max, zip(*([len(text) + 2 for text in row] for row in table), strict=True))) <= width:
            break
        at = table[0].index(name)
        table = [[*row[:at], *row[at + 1 :]] for row in table]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    numbers = {at for at, head in enumerate(table[0]) if head in _NUMBERS}
    for number, row in enumerate(table):
        yield make_line((f"  {join_cells(row, widths, numbers)}", "dim" if number == 0 else ""))


def _figure(row: Prediction) -> str:
    return "-" if row.busbw_gbyte_s is None else f"{row.busbw_gbyte_s:.0f}"


def _choice(row: Prediction) -> str:
    if row.algorithm is None:
        return ""
    return f"{row.algorithm} {row.protocol}, {row.channels} x {row.channel_gbyte_s:g}"


def _bound_lines(rows: Sequence[Prediction], width: int) -> Iterator[Line]:
    notes = group_by_key((row.note, _NAMES.get(row.collective, row.collective)) for row in rows if row.note)
    yield from wrap_all((f"{', '.join(dict.fromkeys(names))}: {note}" for note, names in notes.items()), width)
    worst = _worst_loss(rows)
    if worst is not None:
        bound, have, healthy = worst
        text = f"{describe_bound(bound)} caps {_NAMES.get(have.collective, have.collective)} on {have.nodes} nodes at "
        lost = 100 * (1 - (have.busbw_gbyte_s or 0.0) / (healthy.busbw_gbyte_s or 1.0))
        text += (
            f"{have.busbw_gbyte_s:.0f} of {healthy.busbw_gbyte_s:.0f} GB/s: -{lost:.0f}% for every job with this node"
        )
        text += "; inside the node nothing is lost" if _is_whole_inside(rows) else ""
        yield from wrap_paragraph(text[0].upper() + text[1:] + ".", width, style="error")


def _is_whole_inside(rows: Sequence[Prediction]) -> bool:
    """Whether one node by itself reaches what it should."""
    figures = {(row.collective, row.size_bytes, row.case): row.busbw_gbyte_s for row in rows if row.nodes == 1}
    return bool(figures) and all(
        figures.get((collective, size, "healthy")) == busbw for (collective, size, _), busbw in figures.items()
    )


def _worst_loss(rows: Sequence[Prediction]) -> tuple[Bound, Prediction, Prediction] | None:
    """The row that loses most against the healthy machine, where one device is the reason."""
    healthy = {(row.collective, row.size_bytes, row.nodes): row for row in rows if row.case == "healthy"}
    losses: list[tuple[float, int, Bound, Prediction, Prediction]] = []
    for row in rows:
        best = healthy.get((row.collective, row.size_bytes, row.nodes))
        if row.case != "as_is" or best is None or not best.busbw_gbyte_s or row.busbw_gbyte_s is None or row.nodes == 1:
            continue
        if row.bound is not None and row.bound.device and row.busbw_gbyte_s < 0.99 * best.busbw_gbyte_s:
            losses.append((row.busbw_gbyte_s / best.busbw_gbyte_s, len(losses), row.bound, row, best))
    return min(losses)[2:] if losses else None


def _setting_lines(answer: Recommendation, width: int, everything: bool) -> Iterator[Line]:
    if not answer.settings:
        yield make_line("  Set nothing." + (" Repair first." if answer.repairs else ""))
    for setting in answer.settings:
        yield from _advice_lines(setting, width)
    for row in answer.not_needed if everything else ():
        yield from wrap_paragraph(f"{row.name}: not needed, {row.reason}", width, indent="    ", first="  - ")


def _advice_lines(setting: SettingAdvice, width: int) -> Iterator[Line]:
    title = f"{setting.name}={setting.value}" if setting.value is not None else f"remove {setting.name}"
    yield make_line(("  " + title, "warning"))
    for name, text in (
        ("without it", setting.default),
        ("why here", setting.reason),
        ("evidence", "; ".join(setting.evidence)),
        ("gain", setting.gain),
        ("verify", setting.verify),
        ("remove it", setting.remove),
    ):
        yield from wrap_paragraph(text, width, indent=" " * 16, first=f"    {name:12}")
