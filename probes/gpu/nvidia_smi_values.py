"""What nvidia-smi's words mean: one GPU from its values, whichever format of `nvidia-smi -q` they were found in.

The text, the XML and the CSV print the same values under names of their own; each of their readers has a table from
the names below to its own, and this module makes the facts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from probes.gpu.facts import Gpu, GpuFabric, find_address
from probes.gpu.nvidia_smi_health import read_health
from probes.text import lazy_pattern

_NOTHING = {
    *("", "n/a", "none known", "not supported", "unknown", "unknown error", "err!", "insufficient permissions"),
    *("requested functionality has been deprecated", "function not found", "not available", "not found"),
}
_FAILED = {
    "gpu is lost": "GPU_IS_LOST",
    "gpu requires reset": "RESET_REQUIRED",
    "gpu requires restart": "RESET_REQUIRED",
}
_NUMBER = lazy_pattern(r"(\d{1,15})(?:\.\d{1,9})?x?(?: ?(?:%|MiB))?", re.ASCII)
_PSTATE = lazy_pattern(r"P(\d{1,2})", re.ASCII)
_ENABLED = {"enabled": True, "disabled": False}
_VIRTUALIZATIONS = {
    "none": "none",
    "pass-through": "passthrough",
    "vgpu": "vgpu",
    "host vgpu": "host_vgpu",
    "host vsga": "vsga",
}
_ADDRESSING_MODES = {"none": "none", "hmm": "hmm", "ats": "ats"}
_FABRIC_STATES = {
    "not supported": "not_supported",
    "not started": "not_started",
    "in progress": "in_progress",
    "completed": "completed",
}
_TRUE_FALSE = {"true": "true", "yes": "true", "false": "false", "no": "false"}


def gpu(values: Mapping[str, str], index: int | None = None, mig_instances: tuple[str, ...] = ()) -> Gpu:
    """One GPU. `values` holds nvidia-smi's texts by our names; a name that is not there was not reported.

    >>> said = gpu({"address": "00000000:19:00.0", "pstate": "P0", "link_width": "16x", "serial": "N/A"})
    >>> said.address, said.pstate, said.link_width, said.serial
    ('0000:19:00.0', 0, 16, None)
    """
    words = {name: word for name, text in values.items() if (word := meaning(text)) is not None}
    facts = {name: read(words[name]) for name, read in _READERS.items() if name in words}
    rollovers = number(words.get("rollovers", ""))
    return Gpu(
        **facts,
        index=index,
        mig_instances=mig_instances,
        pcie_counters=None if rollovers is None else {"replay_rollovers": rollovers},
        slot=words.get("slot") if "chassis_serial" in words else None,
        tray=words.get("tray") if "chassis_serial" in words else None,
        fabric=_fabric(words),
        health=read_health(words, facts.get("utilization_percent")),
        error=next((_FAILED[word] for text in values.values() if (word := _bare(text).lower()) in _FAILED), None),
    )


def meaning(text: str) -> str | None:
    """A value without its brackets; None where nvidia-smi has none, in whichever way it writes it.

    >>> [meaning(text) for text in ("P0", "N/A", "[N/A]", "[Unknown Error]")]
    ['P0', None, None, None]
    """
    word = _bare(text)
    return None if word.lower() in _NOTHING or word.lower() in _FAILED else word


def number(word: str) -> int | None:
    """A whole number with or without its unit; None for anything else.

    >>> [number(word) for word in ("16x", "81559 MiB", "0 %", "5", "lots")]
    [16, 81559, 0, 5, None]
    """
    match = _NUMBER.fullmatch(word)
    return int(match[1]) if match else None


def _bare(text: str) -> str:
    word = text.strip()
    return word[1:-1].strip() if word.startswith("[") and word.endswith("]") else word


def _pstate(word: str) -> int | None:
    match = _PSTATE.fullmatch(word)
    return int(match[1]) if match and int(match[1]) < 16 else None


def _slug(word: str) -> str:
    """ "Drain and Reset" as "drain_and_reset"."""
    return "_".join(re.findall(r"[a-z0-9]+", word.lower()))


# Facts by name: how the word of each is read
_READERS: Mapping[str, Callable[[str], Any]] = {
    **dict.fromkeys(("uuid", "serial", "name", "architecture", "compute_capability", "vbios", "chassis_serial"), str),
    **dict.fromkeys(("minor", "memory_mib", "bar1_mib", "module_id", "utilization_percent", "replays"), number),
    **dict.fromkeys(("link_generation", "link_width", "link_max_generation", "link_max_width"), number),
    **dict.fromkeys(("mig_current", "mig_pending", "c2c_enabled"), lambda word: _ENABLED.get(word.lower())),
    "address": find_address,
    "pstate": _pstate,
    "virtualization": lambda word: _VIRTUALIZATIONS.get(word.lower()),
    "addressing_mode": lambda word: _ADDRESSING_MODES.get(word.lower()),
    "recovery_action": _slug,
}


def _fabric(values: Mapping[str, str]) -> GpuFabric | None:
    """Fabric registration; None where the state is N/A, which is printed for "not supported" and for "no answer"."""
    state = _FABRIC_STATES.get(values.get("fabric_state", "").lower())
    if state is None:
        return None
    completed = state == "completed"
    return GpuFabric(
        state=state,
        status=_slug(values["fabric_status"]) if completed and "fabric_status" in values else None,
        clique=number(values["fabric_clique"]) if "fabric_clique" in values else None,
        cluster_uuid=values.get("fabric_uuid"),
        health=_health(values),
    )


def _health(values: Mapping[str, str]) -> dict[str, str] | None:
    """In the words of `nvml_words`; None where all are N/A. "Bandwidth: Full" is degraded_bandwidth "false"."""
    bandwidth = {"full": "false", "degraded": "true"}.get(values.get("health_bandwidth", "").lower())
    words = {
        "degraded_bandwidth": bandwidth,
        "route_recovery": _TRUE_FALSE.get(values.get("health_route_recovery", "").lower()),
        "route_unhealthy": _TRUE_FALSE.get(values.get("health_route_unhealthy", "").lower()),
        "access_timeout_recovery": _TRUE_FALSE.get(values.get("health_access_timeout", "").lower()),
        "incorrect_configuration": _slug(values["health_configuration"]) if "health_configuration" in values else None,
        "partition_assigned": _TRUE_FALSE.get(values.get("health_partition", "").lower()),
        "summary": _slug(values["health_summary"]) if "health_summary" in values else None,
    }
    return {name: word or "not_supported" for name, word in words.items()} if any(words.values()) else None
