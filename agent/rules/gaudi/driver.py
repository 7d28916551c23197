"""What habanalabs shows of itself: the releases of its modules, and resets of cards that it counts."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.model.gpu import Gpu
from agent.model.reasons import Reason
from agent.rules.context import RuleContext
from agent.rules.devices import find_function, kernel_log_evidence, unreachable_reason
from agent.rules.gaudi.cards import ACCEL, gaudi_cards
from agent.rules.rule import Fail, NotApplicable, Pass, Result, Unknown, rule

_MODULE = "habanalabs"
_RESETS = "hard_resets"


@rule("gaudi-modules-mixed")
def gaudi_modules_mixed(case: RuleContext) -> Iterator[Result]:
    loaded = {module.name: module.version for module in case.software.modules if module.name.startswith(_MODULE)}
    versions = {name: version for name, version in sorted(loaded.items()) if version}
    releases = {version.partition("-")[0] for version in versions.values()}  # behind it: the build of each module
    if len(loaded) < 2:
        yield NotApplicable(
            "node",
            Reason("nothing-to-compare", detail="fewer than two modules of habanalabs are loaded: nothing to compare"),
        )
    elif len(releases) > 1:
        yield _fail_mixed(versions)
    elif len(versions) < len(loaded):
        yield Unknown("node", Reason("not-shown", detail="a module of habanalabs shows no version"))
    else:
        yield Pass("node")


def _fail_mixed(versions: dict[str, str]) -> Fail:
    return Fail(
        subject="node",
        label="node",
        summary="modules of different releases of the Gaudi driver are loaded: "
        + ", ".join(f"{name} {version.partition('-')[0]}" for name, version in versions.items()),
        impact="The modules are built for each other: ports may not come up, or collectives fail after the upgrade.",
        evidence=tuple(
            Evidence(what=f"version of {name}", value=version, source=f"/sys/module/{name}/version")
            for name, version in versions.items()
        ),
        places=frozenset({"node"}),
    )


@rule("gaudi-resets")
def gaudi_resets(case: RuleContext) -> Iterator[Result]:
    for gpu in gaudi_cards(case):
        yield _judge_resets(case, gpu)


def _judge_resets(case: RuleContext, gpu: Gpu) -> Result:
    subject, absent = f"gpu:{gpu.id}", unreachable_reason(find_function(case, gpu))
    if absent or gpu.driver_state not in ("open", "error"):
        return NotApplicable(subject, absent or Reason("not-measured", detail="the driver does not offer it"))
    if _RESETS not in gpu.error_counts:
        return Unknown(subject, Reason("not-shown", detail="the driver shows no count of resets"))
    moved = case.moved(subject, _RESETS, gpu.error_counts)
    if case.not_counted or moved is None:
        return Unknown(subject, case.not_counted or case.not_moved(subject, _RESETS))
    if moved == 0:
        return Pass(subject)
    return Fail(
        subject=subject,
        label=gpu.label,
        summary=f"the driver reset the card {'once' if moved == 1 else f'{moved} times'} since the earlier sample",
        impact="Jobs on this card ended, and its memory was lost.",
        evidence=(
            Evidence(what="hard resets", value=f"+{moved}", source=f"{ACCEL}/*/device/hard_reset_cnt"),
            *kernel_log_evidence(case, gpu.id),
        ),
        places=frozenset({gpu.id}),
    )
