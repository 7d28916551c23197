"""Rows of PCI functions, their links, GPUs and NVLinks. Tuples are in the order of the table, without the node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache

from agent.fleet.rows.device_fields import (
    FUNCTION_ROWS,
    GPU_ROWS,
    NVLINK_ROWS,
    FunctionFields,
    GpuFields,
    GpuLinkFields,
    LinkFields,
    NicFields,
    PathFields,
)
from agent.fleet.rows.row_columns import Row as Row
from agent.outputs.names import short_model
from agent.platforms.devices import find_device, is_accelerator, is_nvswitch

Counts = Mapping[str, int]
UP = ("active", "sleep")  # of a direct link
_UPPER_ENDS = ("root_port", "downstream")


def function_row(f: FunctionFields) -> Row:
    """A row of table pci."""
    acs = f.acs and (f.acs.capability or f.acs.control or None) and " ".join(f.acs.control)
    return FUNCTION_ROWS.row(f, acs=acs)


def link_row(f: FunctionFields) -> Row | None:
    """A row of table link; None for an upper end, whose link is reported by the function below."""
    link = f.link
    if link is None or f.port_type in _UPPER_ENDS:
        return None
    sure = link.quality.state == "conclusive"
    return (
        f.id,
        f.parent,
        _end(f),
        link.speed_gt_s,
        link.width,
        link.max_speed_gt_s,
        link.max_width,
        link.bandwidth_gbyte_s,
        link.quality.state,
        link.speed_gt_s if sure else None,
        link.width if sure else None,
        _describe_degraded(link) if sure else None,
    )


def aer(tables: Mapping[str, Mapping[str, int]] | None) -> Counts:
    """Counters of a function, as agent/model/counters.py names them."""
    return {f"{kind}.{name}": count for kind, row in (tables or {}).items() for name, count in row.items() if count}


def gpu_row(g: GpuFields, links: int, active: int) -> Row:
    """A row of table gpu. Links that are not known are no zero links; `active`: how many are up."""
    fabric = g.fabric
    return GPU_ROWS.row(
        g,
        mig=g.mig and g.mig.current,
        nvlinks=links if g.links_known else None,
        nvlinks_active=active if g.links_known else None,
        fabric_state=fabric and fabric.state,
        fabric_status=fabric and fabric.status,
        clique=fabric and fabric.clique,
        cluster_uuid=fabric and fabric.cluster_uuid,
    )


def nvlink_row(gpu: str, link: GpuLinkFields) -> Row:
    """A row of table nvlink."""
    far = link.remote
    return NVLINK_ROWS.row(
        link,
        gpu=gpu,
        remote_kind=far and far.kind,
        remote_id=far and far.id,
        remote_link=far and far.link,
        up=None if link.state in (None, "unknown") else link.state in UP,
    )


def path_row(path: PathFields, gpus: frozenset[str], nics: frozenset[str]) -> Row:
    """A row of table path."""
    kinds = ["gpu" if end in gpus else "nic" if end in nics else None for end in (path.a, path.b)]
    return path.a, path.b, *kinds, path.kind, path.pcie_kind, path.bandwidth_gbyte_s, path.limiting


def hardware_class(
    vendor: str | None, product: str | None, gpus: Iterable[tuple[str | None, str | None]], rails: list[NicFields]
) -> str:
    """What nodes have in common that should be alike: "Supermicro SYS-821GE-TNHR, 8x H200 SXM, 8x ConnectX-7
    (MT_0000000838)".

    GPUs by their PCI ids, whatever a driver calls them; a few of another model count as the model of most, so that a
    node with a wrong part stays among its peers. Rails by the board of most, with its model. Numbers are rounded up to
    an even one for the same reason: a node that lost a device. `gpus`: vendor and device id of each, or None and a
    name.
    """
    return _class(vendor, product, tuple(gpus), tuple([(nic.board_id, nic.model) for nic in rails]))


@lru_cache(1024)
def _class(
    vendor: str | None,
    product: str | None,
    gpus: tuple[tuple[str | None, str | None], ...],
    rails: tuple[tuple[str | None, str | None], ...],
) -> str:
    names = _merge_few(Counter(_name(*gpu) for gpu in gpus))
    parts = [" ".join(part.strip() for part in (vendor, product) if part and part.strip()) or "unknown product"]
    parts += [f"{_round_up(count)}x {name}" for name, count in sorted(names.items())]
    boards = Counter(board for board, _ in rails if board) or Counter(model for _, model in rails if model)
    if boards:
        board = min(boards, key=lambda board: (-boards[board], board or ""))
        model = short_model(next((model for name, model in sorted(rails, key=str) if model and name == board), None))
        named = f"{model} ({board})" if model else board
        parts.append(f"{_round_up(len(rails))}x {named}")
    return ", ".join(parts)


def _name(vendor: str | None, device: str | None) -> str:
    """Of a GPU; the second alone is the name that a source without PCI ids gives."""
    if vendor is None:
        return (device or "GPU").removeprefix("NVIDIA ")
    device_name = find_device(vendor, device)
    return device_name.name if device_name else f"{vendor[2:]}:{(device or '')[2:]}"


def _round_up(count: int) -> int:
    """
    >>> [_round_up(n) for n in (1, 3, 6, 7, 9, 10)]
    [1, 4, 6, 8, 10, 10]
    """
    return count + count % 2 if count > 1 else count


def _merge_few(names: Counter[str]) -> Counter[str]:
    """A quarter of a node's GPUs, and less, is of the model of most.

    >>> _merge_few(Counter(H100=7, H200=1)), _merge_few(Counter(A100=4, L40S=2))
    (Counter({'H100': 8}), Counter({'A100': 4, 'L40S': 2}))
    """
    ((most, many),) = names.most_common(1) or [("", 0)]
    others = names.total() - many
    return Counter({most: names.total()}) if 0 < 4 * others <= names.total() else names


@lru_cache(1024)
def list_models(gpus: tuple[tuple[str | None, str | None], ...]) -> str | None:
    """The model of a node's GPUs, of several how many of which; None: no GPU. `gpus`: as above.

    >>> list_models(((None, "B200"),) * 7), list_models(((None, "B200"),) * 7 + ((None, "H200"),))
    ('B200', '7x B200, 1x H200')
    """
    names = Counter(_name(*gpu) for gpu in gpus)
    if len(names) == 1:
        return next(iter(names))
    return ", ".join(f"{names[name]}x {name}" for name in sorted(names, key=lambda name: (-names[name], name))) or None


def _describe_degraded(link: LinkFields) -> str | None:
    parts = []
    if link.width is not None and link.max_width is not None and link.width < link.max_width:
        parts.append(f"x{link.width} of x{link.max_width}")
    if link.speed_gt_s is not None and link.max_speed_gt_s is not None and link.speed_gt_s < link.max_speed_gt_s:
        parts.append(f"{link.speed_gt_s:g} of {link.max_speed_gt_s:g} GT/s")
    return ", ".join(parts) or None


def _end(f: FunctionFields) -> str:
    if is_accelerator(f.vendor, f.device, f.class_code):
        return "gpu"
    if is_nvswitch(f.vendor, f.device, f.class_code):
        return "nvswitch"
    kind = (f.class_code or "")[:4]
    return "nic" if kind == "0x02" else "switch" if (f.class_code or "")[:6] == "0x0604" else "other"
