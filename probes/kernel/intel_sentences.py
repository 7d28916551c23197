"""Sentences of the drivers of Intel's GPUs, i915 and xe: cards alone, not the graphics inside a CPU (at 00:02.0).

Files of Linux (6.14) drivers/gpu/drm, and of intel-gpu-i915-backports where one is named.
"""

from probes.kernel.sentence import DRIVER, Sentence, row

_CARD = r"(?:i915|xe) (?P<bdf>(?!0000:00:02\.)[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]): "
_LINE = rf"{_CARD}(?:\[drm\] )?(?:\*ERROR\* )?(?:CRITICAL: )?(?:Tile\d{{1,2}}: )?(?:GT\d{{1,2}}: )?(?:GUC: )?"


def _intel(code: str, needle: str, pattern: str, source: str) -> Sentence:
    return row(DRIVER, code, "i915, xe", needle, _LINE + pattern, source)


INTEL: tuple[Sentence, ...] = (
    _intel("intel-wedged", "wedged", r"(?:Xe has declared device \S{1,40} as wedged|[^\n]{0,80}declaring it wedged)",
           "xe/xe_device.c, i915/gt/intel_gt.c"),
    _intel("intel-wedged", "in-flight rendering", r"GPU recovery timed out, cancelling all in-flight rendering",
           "i915/gt/intel_reset.c"),
    _intel("intel-wedged", "reset",
           r"(?:Failed to reset chip|Failed to initialise HW following reset|(?:GT )?reset failed)\b",
           "i915/gt/intel_reset.c, xe/xe_gt.c"),
    _intel("intel-survivability", "urvivability", r"[^\n]{0,60}\b[Ss]urvivability [Mm]ode\b(?! (?:not|is off))",
           "xe/xe_survivability_mode.c"),
    _intel("intel-firmware", "fetch failed",
           r"GuC firmware (?P<file>\S{1,80}): fetch failed (?:with error )?(?P<error>-\w{1,12})",
           "i915/gt/uc/intel_uc_fw.c, xe/xe_uc_fw.c"),
    _intel("intel-firmware", "uC ",
           r"(?P<what>GuC) (?:load failed|initialization failed|init failed|CT communication[^\n]{0,40}fail)",
           "i915/gt/uc/intel_guc_fw.c, xe/xe_guc.c"),
    _intel("intel-firmware", "Enabling uc failed", r"Enabling uc failed \((?P<error>-\d{1,5})\)",
           "i915/gt/uc/intel_uc.c"),
    _intel("intel-memory", "by firmware", r"(?:LMEM|VRAM) not initialized by firmware",
           "i915/intel_uncore.c, xe/xe_device.c"),
    _intel("intel-small-bar", "BAR", r"(?:Small BAR device|Using a reduced BAR size of (?P<what>\d{1,6} ?MiB))",
           "xe/xe_vram.c, i915/gt/intel_region_lmem.c"),
    _intel("intel-reset", "reset", r"Engine (?:memory CAT error|reset): engine_class=(?P<what>\w{2,8})",
           "xe/xe_guc_submit.c"),
    _intel("intel-reset", "esetting ", r"Resetting (?P<what>chip|[a-z]{3,5}\d) for ", "i915/gt/intel_reset.c"),
    _intel("intel-reset", "GPU HANG", r"GPU HANG: ecode \S{3,40}", "i915/i915_gpu_error.c"),
    _intel("intel-reset", "imedout job", r"Timedout job: seqno=", "xe/xe_guc_submit.c"),
    _intel("intel-page-fault", "Fault response", r"Fault response: Unsuccessful", "xe/xe_gt_pagefault.c"),
)  # fmt: skip
