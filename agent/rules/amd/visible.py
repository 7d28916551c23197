"""Which GPUs a job asks for: two variables that count in different lists."""

from __future__ import annotations

import re

from agent.rules.context import RuleContext
from agent.rules.nccl.settings import EffectiveSetting, effective_settings, why_jobs_unread
from agent.rules.rule import NODE, Fail, Result, rule

_RUNTIME, _HIP = "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"
_NUMBERS = r"(?a)\d{1,3}(?:,\d{1,3})*"
_DEVICES = r"(?a)(?:\d{1,3}|GPU-[\w-]{1,60})(?:,(?:\d{1,3}|GPU-[\w-]{1,60}))*"


@rule("amd-visible-conflict")
def amd_visible_conflict(context: RuleContext) -> Result:
    if not any(gpu.vendor == "AMD" for gpu in context.topology.gpus):
        return NODE.not_applicable("no-such-device", detail="no GPU of AMD")
    inner = {setting.unit: setting for setting in effective_settings(context, _HIP)}
    both = [(one, inner[one.unit]) for one in effective_settings(context, _RUNTIME) if one.unit in inner]
    hidden = [(outer, hip) for outer, hip in both if _find_beyond(outer.value, hip.value)]
    why = why_jobs_unread(context)
    if hidden:
        return _fail(hidden)
    if why:
        return NODE.unknown(why)
    return NODE.passes()


def _find_beyond(outer: str, inner: str) -> str | None:
    """The first number that the runtime's list is too short for, counted from 0; None where all are in it.

    >>> _find_beyond("4,5,6,7", "4,5"), _find_beyond("4,5,6,7", "0,3"), _find_beyond("GPU-12ab", "1")
    ('4', None, '1')
    """
    outer, inner = outer.replace(" ", ""), inner.replace(" ", "")
    if not (re.fullmatch(_DEVICES, outer) and re.fullmatch(_NUMBERS, inner)):
        return None
    return next((number for number in inner.split(",") if int(number) > outer.count(",")), None)


def _fail(hidden: list[tuple[EffectiveSetting, EffectiveSetting]]) -> Fail:
    outer, inner = hidden[0]
    asked = inner.value.replace(" ", "").split(",")
    seen = asked.index(_find_beyond(outer.value, inner.value) or "")
    more = f"; {len(hidden)} processes have such settings" if len(hidden) > 1 else ""
    return NODE.fail(
        summary=f"{_HIP}={inner.value} counts among the GPUs that {_RUNTIME}={outer.value} leaves, from 0{more}",
        impact=f"HIP stops at the first number that does not exist: the process has {seen} of {len(asked)} GPUs.",
        values=inner.process,
        evidence=tuple(
            setting.evidence(key) for pair in hidden[:4] for key, setting in zip((_RUNTIME, _HIP), pair, strict=True)
        ),
        confidence="medium",  # a process may have changed its own variables since it began
    )
