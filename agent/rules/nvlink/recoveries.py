"""NVLinks that recovered far more often than the others: no second sample is needed for that."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.model.gpu import Gpu, GpuLink
from agent.model.reasons import Reason, quote_source
from agent.rules.applicability import has_gpus
from agent.rules.context import RuleContext
from agent.rules.devices import about_gpu, ask_nvidia_smi, find_function, is_nvidia, why_unreachable
from agent.rules.pages import read_limit
from agent.rules.rule import Fail, NotApplicable, Pass, Result, rule
from agent.rules.wording import count_of

_LEAST = read_limit("nvlink-recoveries-outlier.recoveries")
_TIMES = read_limit("nvlink-recoveries-outlier.times")
_OTHERS = 3  # that are needed to call one an outlier


@rule("nvlink-recoveries-outlier", gate=has_gpus)
def nvlink_recoveries_outlier(context: RuleContext) -> Iterator[Result]:
    counts: dict[tuple[str, int], int] = {}
    for gpu in context.topology.gpus:
        known = {link.link: count for link in gpu.links if (count := _count_recoveries(link)) is not None}
        counts |= {(gpu.id, link): count for link, count in known.items()}
        if not known:
            yield _explain_silence(context, gpu)
    for gpu in context.topology.gpus:
        for link in gpu.links:
            if (gpu.id, link.link) in counts:
                yield _judge_recoveries(context, gpu, link, counts)


def _explain_silence(context: RuleContext, gpu: Gpu) -> Result:
    about = about_gpu(gpu)
    if not is_nvidia(context, gpu):
        return about.not_applicable("no-such-device", detail="not of NVIDIA")
    if absent := why_unreachable(find_function(context, gpu)):
        return about.not_applicable(absent)
    if gpu.links_known and not gpu.links:
        return about.not_applicable(
            quote_source(gpu.links_reason, "no-such-device") or Reason("no-such-device", detail="no NVLink")
        )
    return about.unknown(
        quote_source(gpu.links_reason)
        or context.why_probe_failed("gpu")
        or Reason("undecided", detail="no recoveries of its NVLinks are reported")
    )


def _count_recoveries(link: GpuLink) -> int | None:
    """Recoveries since the driver was loaded: of NVLink 5, whether they succeeded or not; of older links."""
    errors = link.errors
    if "recoveries" in errors:
        return errors["recoveries"]
    parts = [errors[name] for name in ("recoveries_successful", "recoveries_failed") if name in errors]
    return sum(parts) if parts else errors.get("recovery")


def _judge_recoveries(context: RuleContext, gpu: Gpu, link: GpuLink, counts: dict[tuple[str, int], int]) -> Result:
    subject = f"link:{gpu.id}/{link.link}"
    count = counts[gpu.id, link.link]
    if count < context.threshold(_LEAST):
        return Pass(subject)
    others = [number for place, number in counts.items() if place != (gpu.id, link.link)]
    if len(others) < _OTHERS:
        return NotApplicable(subject, Reason("nothing-to-compare", detail="too few other links to compare it with"))
    usual_rate = sorted(others)[9 * len(others) // 10]
    if count <= context.threshold(_TIMES) * usual_rate:
        return Pass(subject)
    return Fail(
        subject=subject,
        label=f"{gpu.label} NVLink {link.link}",
        summary=f"{count_of(count, 'recoveries')} since the driver was loaded; nine in ten other links have "
        f"{usual_rate} or fewer",
        impact="The link degrades: each recovery stops its traffic for a moment, and one that fails ends the job.",
        evidence=(
            Evidence("recoveries", str(count), f"{ask_nvidia_smi('nvlink -e', gpu)} -l {link.link}"),
            Evidence(f"nine in ten of {len(others)} other links", f"{usual_rate} or fewer", "nvidia-smi nvlink -e"),
        ),
        ids=frozenset(f"{id_}/{link.link}" for id_ in filter(None, (gpu.id, gpu.pci))),
    )
