"""Error counts of Neuron devices, joined by the number that the driver and `neuron-ls` both have for a device."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from agent.model.gpu import Gpu
from probes.neuron.errors import NeuronErrors


def add_error_counts(gpus: Sequence[Gpu], errors: NeuronErrors) -> list[Gpu]:
    """GPUs with the counts of the device of their number."""
    return [_with_counts(gpu, errors) if gpu.vendor == "Amazon" else gpu for gpu in gpus]


def _with_counts(gpu: Gpu, errors: NeuronErrors) -> Gpu:
    counts = errors.devices.get(gpu.index, {}) if gpu.index is not None else {}
    return msgspec.structs.replace(gpu, error_counts=dict(sorted(counts.items())))
