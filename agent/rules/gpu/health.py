"""Clocks, power and persistence of GPUs: what makes one slower than it could be."""

from __future__ import annotations

from agent.model.finding import Evidence
from agent.model.gpu import Gpu, GpuHealth
from agent.model.reasons import Reason, quote_source
from agent.rules.context import RuleContext
from agent.rules.devices import (
    about_gpu,
    ask_nvidia_smi,
    find_function,
    gpu_model,
    is_consumer,
    is_nvidia,
    list_gpus,
    why_unreachable,
)
from agent.rules.node_wide import on_all
from agent.rules.pages import read_limit
from agent.rules.rule import Fail, Result, rule
from agent.rules.wording import find_majority


def read_health(context: RuleContext, gpu: Gpu) -> GpuHealth | Result:
    """What the driver reports of a GPU's health, or why it does not."""
    about = about_gpu(gpu)
    if not is_nvidia(context, gpu):
        return about.not_applicable("no-such-device", detail="not of NVIDIA")
    if absent := why_unreachable(find_function(context, gpu)):
        return about.not_applicable(absent)
    if gpu.driver_state in ("no_driver", "vfio", "not_open", "error"):
        return about.not_applicable("not-measured", detail="the driver does not offer it")
    if gpu.virtualization == "vgpu":
        return about.not_applicable("guest", detail="a vGPU: its host decides")
    if gpu.health is None:
        return about.unknown(
            context.why_probe_failed("gpu") or quote_source(gpu.driver_error) or Reason("not-reported", fact="it")
        )
    return gpu.health


def smi_source(gpu: Gpu, section: str) -> str:
    """The command that shows a section of one GPU."""
    return ask_nvidia_smi(f"-q -d {section}", gpu)


def gpu_ids(gpu: Gpu, part: str = "") -> frozenset[str]:
    """The ids of a GPU, or those of a part of it ("/memory")."""
    return frozenset(subject + part for subject in (gpu.id, gpu.pci) if subject)


def read_siblings(context: RuleContext, gpu: Gpu) -> dict[str, GpuHealth]:
    """What the driver reports of the other GPUs of its model, by label."""
    model = gpu_model(context, gpu)
    others = [other for other in context.topology.gpus if other is not gpu and gpu_model(context, other) == model]
    reported = ((other.label, read_health(context, other)) for other in others)
    return {label: health for label, health in reported if isinstance(health, GpuHealth)}


# The most severe first: severity, how people call it, what is to be looked at
_SLOWDOWNS = {
    "hw_power_brake_slowdown": ("error", "power brake", "gpu-power"),
    "hw_thermal_slowdown": ("error", "hardware thermal slowdown", "gpu-hot"),
    "hw_slowdown": ("error", "hardware slowdown", "gpu-power"),
    "sw_thermal_slowdown": ("warning", "software thermal slowdown", "gpu-hot"),
}


@rule("gpu-throttled", each=list_gpus, merge=on_all("the clocks of all GPUs are reduced"))
def gpu_throttled(context: RuleContext, gpu: Gpu) -> Result:
    about, health = about_gpu(gpu), read_health(context, gpu)
    if not isinstance(health, GpuHealth):
        return health
    if health.clock_limits is None:
        return about.unknown("not-reported", fact="why its clocks are as they are")
    active = [name for name in _SLOWDOWNS if name in health.clock_limits]
    if not active:
        return about.passes()
    if active[0] != "hw_slowdown":
        active = [name for name in active if name != "hw_slowdown"]  # the driver sets it with either of the others
    severity, _, situation = _SLOWDOWNS[active[0]]
    names = ", ".join(_SLOWDOWNS[name][1] for name in active)
    now, most = health.sm_clock_mhz, health.sm_clock_max_mhz
    clock = f"{now} of {most} MHz" if now and most and now < most else None
    return about.fail(
        summary=f"clocks are reduced: {names}" + (f"; SM clock {clock}" if clock else ""),
        impact="A job runs at the speed of its slowest GPU" + (f", this one computes at {clock}." if clock else "."),
        evidence=(Evidence("clocks event reasons", names, smi_source(gpu, "PERFORMANCE")),),
        severity=severity,
        cause=active[0],
        situation=situation,
    )


_SHARE = read_limit("gpu-power-limited.share")


@rule("gpu-power-limited", each=list_gpus, merge=on_all("the power limit of all GPUs is below their default"))
def gpu_power_limited(context: RuleContext, gpu: Gpu) -> Result:
    about, health = about_gpu(gpu), read_health(context, gpu)
    if not isinstance(health, GpuHealth):
        return health
    if is_consumer(context, gpu):
        return about.not_applicable("by-design", detail="a consumer card: its owner chooses its limit")
    limit = _find_limit(health)
    others = (_find_limit(health) for health in read_siblings(context, gpu).values())
    known = [watts for watts in others if watts is not None]
    default = health.power_limit_default_watts or find_majority(known)
    if limit is None or default is None:
        return about.unknown("not-reported", fact="its power limit, or what it should be")
    share = context.threshold(_SHARE)
    if limit >= share * default:
        return about.passes()
    most = max(known, default=limit)
    limits = limit, health.power_limit_requested_watts
    return _fail_power_limited(gpu, limits, default, most if limit < share * most else None)


def _find_limit(health: GpuHealth) -> float | None:
    """The limit in force, else the one that the driver was asked for: it is in force or above it."""
    return health.power_limit_requested_watts if health.power_limit_watts is None else health.power_limit_watts


def _fail_power_limited(gpu: Gpu, limits: tuple[float, float | None], default: float, most: float | None) -> Fail:
    limit, requested = limits
    comparison = f"; another GPU of its model has {most:g} W" if most is not None else ""
    return about_gpu(gpu).fail(
        summary=f"power limit {limit:g} W, default {default:g} W{comparison}",
        impact="Its clocks fall under load before those of the others, and a job runs at the pace of its slowest GPU."
        if comparison
        else "The GPUs of this node are slower under load than at their default; intended if it is your policy.",
        evidence=tuple(
            Evidence(what, f"{watts:g} W", smi_source(gpu, "POWER"))
            for what, watts in (("power limit in force", limit), ("requested power limit", requested))
            if watts is not None
        ),
        severity=None if comparison else "info",
        cause="differs" if comparison else "alike",
        situation="capped-outside" if requested is not None and limit < requested else "",
        values=(("WATTS", f"{default:g}"),),
    )


_SLOW = read_limit("gpu-clocks-limited.share")
_BUSY = read_limit("gpu-clocks-limited.busy_percent")
_BY_SETTING = "applications_clocks_setting"


@rule("gpu-clocks-limited", each=list_gpus, merge=on_all("the clocks of all GPUs are limited by a setting"))
def gpu_clocks_limited(context: RuleContext, gpu: Gpu) -> Result:
    about, health = about_gpu(gpu), read_health(context, gpu)
    if not isinstance(health, GpuHealth):
        return health
    if is_consumer(context, gpu):
        return about.not_applicable("by-design", detail="a consumer card: its owner chooses its clocks")
    set_mhz, default = health.application_clock_mhz, health.application_clock_default_mhz
    if set_mhz is not None and default is not None and set_mhz < default:
        differs = any((other.application_clock_mhz or 0) > set_mhz for other in read_siblings(context, gpu).values())
        return _fail_clocks(
            gpu, health, f"application clock set to {set_mhz} MHz, default {default} MHz", "set", differs
        )
    if health.clock_limits is None:
        return about.unknown("not-reported", fact="why its clocks are as they are")
    if _is_set(health):
        differs = any(_is_free(context, other) for other in read_siblings(context, gpu).values())
        return _fail_clocks(
            gpu, health, "clocks are limited by a setting (application or locked clocks)", "locked", differs
        )
    if _is_slow(context, health):
        clock = f"{health.sm_clock_mhz} of {health.sm_clock_max_mhz} MHz"
        return _fail_clocks(
            gpu, health, f"SM clock {clock} under load, and the driver names no reason", "clocks-unexplained", True
        )
    if "idle" in health.clock_limits and set_mhz is None:
        return about.unknown("link-inconclusive", detail="idle: a limit of its clocks shows under load")
    return about.passes()


def _is_set(health: GpuHealth) -> bool:
    """Whether a setting limits its clocks now, and it is not the application clock that it comes with."""
    own = health.application_clock_mhz, health.application_clock_default_mhz
    return _BY_SETTING in (health.clock_limits or ()) and (None in own or own[0] != own[1])


def _is_free(context: RuleContext, health: GpuHealth) -> bool:
    """Whether a GPU works, and no setting limits its clocks."""
    works = health.clock_limits is not None and "idle" not in health.clock_limits and _is_busy(context, health)
    return works and _BY_SETTING not in (health.clock_limits or ())


def _is_busy(context: RuleContext, health: GpuHealth) -> bool:
    return (health.utilization_percent or 0) >= context.threshold(_BUSY)


def _is_slow(context: RuleContext, health: GpuHealth) -> bool:
    now, most = health.sm_clock_mhz, health.sm_clock_max_mhz
    if health.clock_limits or not _is_busy(context, health) or now is None or most is None:
        return False
    return now < context.threshold(_SLOW) * most


def _fail_clocks(gpu: Gpu, health: GpuHealth, what: str, cause: str, differs: bool) -> Fail:
    return about_gpu(gpu).fail(
        summary=what,
        impact="A job runs at the speed of its slowest GPU, and this one is slower than it could be."
        if differs
        else "The GPUs are slower than they could be; this is intended if it is your policy.",
        evidence=(
            Evidence(
                "SM clock",
                f"{health.sm_clock_mhz} of {health.sm_clock_max_mhz} MHz",
                smi_source(gpu, "CLOCK,PERFORMANCE"),
            ),
        ),
        severity=None if differs else "info",
        cause=cause,
    )


@rule("gpu-persistence-off", each=list_gpus, merge=on_all("persistence mode is off"))
def gpu_persistence_off(context: RuleContext, gpu: Gpu) -> Result:
    about, health = about_gpu(gpu), read_health(context, gpu)
    if not isinstance(health, GpuHealth):
        return health
    gpus = [gpu for gpu in context.topology.gpus if not is_consumer(context, gpu)]
    if gpu not in gpus or len(gpus) < 2:
        return about.not_applicable(
            "nothing-to-compare", detail="a consumer card, or the only GPU: it starts fast enough"
        )
    if health.persistence is None:
        return about.unknown("not-reported", fact="its persistence mode")
    if health.persistence:
        return about.passes()
    return about.fail(
        summary="persistence mode is off",
        impact="The driver forgets settings and error counters of the GPU, and starts it again for each job: 1 to 3 s.",
        evidence=(Evidence("persistence mode", "Disabled", "nvidia-smi -q"),),
        cause="off",
    )
