"""What habanalabs shows of itself: the releases of its modules, and resets of cards that it counts."""

from __future__ import annotations

from agent.model.finding import Evidence
from agent.model.gpu import Gpu
from agent.model.reasons import Reason
from agent.rules.context import RuleContext
from agent.rules.devices import about_gpu, find_function, kernel_log_evidence, why_unreachable
from agent.rules.gaudi.cards import ACCEL, gaudi_cards
from agent.rules.rule import NODE, Fail, Result, rule

_MODULE = "habanalabs"
_RESETS = "hard_resets"


@rule("gaudi-modules-mixed")
def gaudi_modules_mixed(context: RuleContext) -> Result:
    loaded = {module.name: module.version for module in context.software.modules if module.name.startswith(_MODULE)}
    versions = {name: version for name, version in sorted(loaded.items()) if version}
    releases = {version.partition("-")[0] for version in versions.values()}  # behind it: the build of each module
    if len(loaded) < 2:
        return NODE.not_applicable(
            "nothing-to-compare", detail="fewer than two modules of habanalabs are loaded: nothing to compare"
        )
    if len(releases) > 1:
        return _fail_mixed(versions)
    if len(versions) < len(loaded):
        return NODE.unknown("not-shown", detail="a module of habanalabs shows no version")
    return NODE.passes()


def _fail_mixed(versions: dict[str, str]) -> Fail:
    return NODE.fail(
        summary="modules of different releases of the Gaudi driver are loaded: "
        + ", ".join(f"{name} {version.partition('-')[0]}" for name, version in versions.items()),
        impact="The modules are built for each other: ports may not come up, or collectives fail after the upgrade.",
        evidence=tuple(
            Evidence(f"version of {name}", version, f"/sys/module/{name}/version") for name, version in versions.items()
        ),
    )


@rule("gaudi-resets", each=gaudi_cards)
def gaudi_resets(context: RuleContext, gpu: Gpu) -> Result:
    about, absent = about_gpu(gpu), why_unreachable(find_function(context, gpu))
    if absent or gpu.driver_state not in ("open", "error"):
        return about.not_applicable(absent or Reason("not-measured", detail="the driver does not offer it"))
    if _RESETS not in gpu.error_counts:
        return about.unknown("not-shown", detail="the driver shows no count of resets")
    moved = context.counter_delta(about.subject, _RESETS, gpu.error_counts)
    if context.why_not_counted or moved is None:
        return about.unknown(context.why_not_counted or context.why_no_delta(about.subject, _RESETS))
    if moved == 0:
        return about.passes()
    return about.fail(
        summary=f"the driver reset the card {'once' if moved == 1 else f'{moved} times'} since the earlier sample",
        impact="Jobs on this card ended, and its memory was lost.",
        evidence=(
            Evidence("hard resets", f"+{moved}", f"{ACCEL}/*/device/hard_reset_cnt"),
            *kernel_log_evidence(context, gpu.id),
        ),
    )
