"""`nvidia-smi -L`, and the sentences in which any nvidia-smi command says that a GPU or the driver cannot be had."""

from __future__ import annotations

import re

from probes.gpu.facts import Gpu, normal_address
from probes.text import Unparsable

_LIMIT_CHARACTERS = 1 << 20
_LIMIT_LINE = 400
_GPU = re.compile(r"GPU (\d{1,4}): (.{1,200}) \(UUID: (GPU-[0-9A-Fa-f-]{1,60})\)", re.ASCII)
_MIG = re.compile(r"MIG .{1,60}: \(UUID: (MIG-[0-9A-Za-z/-]{1,80})\)", re.ASCII)
_ADDRESS = r"[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[01][0-9A-Fa-f]\.[0-7]"
_LOST = re.compile(
    r"Unable to determine the device handle for GPU ?"
    rf"(?:(\d{{1,3}}): ?(?:({_ADDRESS}): ?)?|({_ADDRESS}): ?)(.{{1,100}})",
    re.ASCII | re.IGNORECASE,
)
# whole sentences of nvidia-smi where no command of it works
_REFUSALS = (
    "NVIDIA-SMI has failed because",
    "Failed to initialize NVML",
    "No devices were found",
    "couldn't find libnvidia-ml",
    "couldn't communicate with the NVIDIA driver",
)


def parse(text: str) -> tuple[Gpu, ...]:
    r"""GPUs with index, name, UUID and MIG instances. Raises Unparsable.

    >>> gpus = parse("GPU 0: NVIDIA H200 (UUID: GPU-6f3b5fe1-0000-0000-0000-000000000000)\n"
    ...              "  MIG 1g.18gb     Device  3: (UUID: MIG-6b8c26a5-286a-f440-4f76-3af4cf4108f1)\n")
    >>> gpus[0].index, gpus[0].name, gpus[0].mig_instances
    (0, 'NVIDIA H200', ('MIG-6b8c26a5-286a-f440-4f76-3af4cf4108f1',))
    """
    if len(text) > _LIMIT_CHARACTERS:
        raise Unparsable(f"longer than {_LIMIT_CHARACTERS} characters")
    found: list[tuple[int, str, str, list[str]]] = []
    for line in map(str.strip, text.splitlines()):
        if len(line) > _LIMIT_LINE:
            continue
        if gpu := _GPU.fullmatch(line):
            found.append((int(gpu[1]), gpu[2], gpu[3], []))
        elif found and (mig := _MIG.fullmatch(line)):
            found[-1][3].append(mig[1])
    if not found:
        first = next((line.strip() for line in text.splitlines() if line.strip()), "nothing")
        raise Unparsable(f"no GPU; it begins with: {first[:120]}")
    return tuple(Gpu(index=index, name=name, uuid=uuid, mig_instances=tuple(migs)) for index, name, uuid, migs in found)


def lost_gpus(text: str) -> tuple[Gpu, ...]:
    """GPUs that the driver knows and could not open, each with nvidia-smi's words as its error.

    >>> lost = lost_gpus("Unable to determine the device handle for GPU0000:CB:00.0: Unknown Error")[0]
    >>> lost.index, lost.address, lost.error
    (None, '0000:cb:00.0', 'Unknown Error')
    """
    found = []
    for line in text[:_LIMIT_CHARACTERS].splitlines():
        match = _LOST.search(line[:_LIMIT_LINE])
        if match:
            index, address = int(match[1]) if match[1] else None, match[2] or match[3]
            found.append(Gpu(index, normal_address(address) if address else None, error=match[4].strip()))
    return tuple(dict.fromkeys(found))


def refusal(text: str) -> str | None:
    """The sentence by which nvidia-smi says that it cannot work at all.

    >>> refusal("Failed to initialize NVML: Driver/library version mismatch\\n")
    'Failed to initialize NVML: Driver/library version mismatch'
    """
    lines = (line.strip() for line in text[:_LIMIT_CHARACTERS].splitlines())
    return next((line[:200] for line in lines if any(words in line for words in _REFUSALS)), None)
