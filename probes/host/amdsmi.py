"""The live side of the `amdsmi` library: what it states of GPUs and pairs, in the form of `amd-smi ... --json`.

The library comes with ROCm; nothing depends on it. Only getters are called, none of which clears a counter.
ROCm/amdsmi, py-interface/amdsmi_interface.py.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import time
from collections.abc import Callable
from typing import Any

from probes.host.interface import Absent, Completed, Failed

MOST_GPUS = 256


def ask_library(argv: tuple[str, ...]) -> Completed:
    """All that is asked of it, in one go. Raises Absent, Failed."""
    started = time.monotonic()
    with contextlib.redirect_stdout(io.StringIO()):  # it prints where it does not find its shared library
        try:
            library: Any = importlib.import_module("amdsmi")
        except Exception as error:  # noqa: BLE001 - beside ImportError whatever loading a shared library may end with
            raise Absent(f"the Python module amdsmi cannot be used ({type(error).__name__}: {error})") from None
        try:
            library.amdsmi_init()
        except library.AmdSmiException as error:
            raise Failed(f"amdsmi_init: {error}") from None
        try:
            document = json.dumps({"gpu_data": _describe(library)})
        except library.AmdSmiException as error:
            raise Failed(f"amdsmi: {error}") from None
        finally:
            with contextlib.suppress(library.AmdSmiException):
                library.amdsmi_shut_down()
    return Completed(argv, 0, document, "", time.monotonic() - started)


def _describe(library: Any) -> list[dict[str, Any]]:
    handles = library.amdsmi_get_processor_handles()[:MOST_GPUS]
    addresses = [library.amdsmi_get_gpu_device_bdf(handle) for handle in handles]
    rows = []
    for number, handle in enumerate(handles):

        def ask(function: str, *more: Any, one: Any = handle) -> Any:
            """None where the library, the driver or the GPU does not have it."""
            getter: Callable[..., Any] | None = getattr(library, function, None)
            try:
                return getter(one, *more) if getter else None
            except library.AmdSmiException:
                return None

        rows.append(
            {
                "gpu": number,
                "bdf": addresses[number],
                "partition_id": (ask("amdsmi_get_gpu_kfd_info") or {}).get("current_partition_id"),
                "asic": ask("amdsmi_get_gpu_asic_info"),
                "driver": {"version": (ask("amdsmi_get_gpu_driver_info") or {}).get("driver_version")},
                "partition": {
                    "compute_partition": ask("amdsmi_get_gpu_compute_partition"),
                    "memory_partition": ask("amdsmi_get_gpu_memory_partition"),
                },
                "links": [
                    _describe_link(library, ask, peer, addresses[peer], other)
                    for peer, other in enumerate(handles)
                    if peer != number
                ],
            }
        )
    return rows


def _describe_link(library: Any, ask: Callable[..., Any], peer: int, address: str, other: Any) -> dict[str, Any]:
    kind = (ask("amdsmi_topo_get_link_type", other) or {}).get("type")
    link: dict[str, Any] = {"gpu": peer, "bdf": address}
    numbers = _link_kinds(library)
    if kind in numbers:
        link["link_type"] = numbers[kind]
    if (weight := ask("amdsmi_topo_get_link_weight", other)) is not None:
        link["weight"] = weight
    if bandwidth := ask("amdsmi_get_minmax_bandwidth_between_processors", other):
        link["bandwidth"] = f"{bandwidth.get('min_bandwidth')}-{bandwidth.get('max_bandwidth')}"
    return link


def _link_kinds(library: Any) -> dict[Any, str]:
    """Older releases answer with numbers of AmdSmiIoLinkType, and have the other enumeration in another order."""
    enum = getattr(library, "AmdSmiIoLinkType", None) or getattr(library, "AmdSmiLinkType", None)
    names = {"XGMI": ("XGMI", "AMDSMI_LINK_TYPE_XGMI"), "PCIE": ("PCIEXPRESS", "AMDSMI_LINK_TYPE_PCIE")}
    return {
        int(member): word
        for word, of in names.items()
        for name in of
        if (member := getattr(enum, name, None)) is not None
    }
