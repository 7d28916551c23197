"""Where fixture and kernel differ in an attribute that a capture reads, and why: the list that `test_tree` allows."""

from __future__ import annotations

_ENABLED = "the stand-in drivers bind and enable nothing"
_NEWER = "this kernel's list has names that the fixture's does not: each kernel adds some"
_GUEST = "the guest has one CPU, the described machine has more"
ORDER = "numbered in the order in which interfaces came"
_BESIDE = "no probe reads it; a capture takes it for later versions, the fixture does not have it"

EXCEPTIONS: dict[str, str] = {
    "enable": _ENABLED,
    "dma_mask_bits": _ENABLED,
    "power_state": _ENABLED + ": D0 is `unknown` until then",
    "aer_dev_fatal": _NEWER,
    "aer_dev_nonfatal": _NEWER,
    "local_cpulist": _GUEST,
    "net/ifindex": ORDER,
    "net/iflink": ORDER,
    "link/l0s_aspm": _BESIDE,
    "link/l1_aspm": _BESIDE,
    "power/runtime_active_time": _BESIDE,
    "power/runtime_suspended_time": _BESIDE,
    "reset_method": _BESIDE,
    "sriov_vf_device": _BESIDE,
    "sriov_vf_total_msix": _BESIDE,
    "net/addr_assign_type": _BESIDE,
    "net/gro_flush_timeout": _BESIDE,
    "net/name_assign_type": _BESIDE,
    "net/napi_defer_hard_irqs": _BESIDE,
    "net/queues/rx-0/rps_cpus": _BESIDE,
    "net/testing": _BESIDE,
    "net/threaded": _BESIDE,
}
