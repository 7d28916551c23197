"""What a tool prints in place of its output: it found no device, no driver, or a library that does not fit.

Sources: ROCm/rocm_smi_lib python_smi_tools/rocm_smi.py, ROCm/amdsmi amdsmi_cli, rocminfo.cc; linux-rdma/rdma-core
libibverbs (init.c, examples/devinfo.c) and infiniband-diags (sminfo.c), linux-rdma/perftest; openucx/ucx
uct/ib/base/ib_md.c; kmod tools/modprobe.c; libfabric util/info.c; CUDA 13 driver_types.h, PyTorch 2
torch/csrc/cuda/Module.cpp, torch/cuda/__init__.py. The sources of npu-smi and
neuron-ls are closed: public threads.
"""

from __future__ import annotations

import re

from probes.named_tuple import NamedTuple
from probes.text import ParseError, check_length, lazy_pattern
from probes.tool_reports.facts import ToolReport
from probes.tool_reports.lines import short_lines

_LIMIT_LINE = 1000


_MODULES = "nvidia[a-z_-]*|amdgpu|amdkfd|mlx[45]_\\w+|ib_\\w+|bnxt_\\w+|irdma|ice|efa|ena|habanalabs\\w*|neuron"


class _ToolError(NamedTuple):
    code: str
    needle: str
    pattern: re.Pattern[str] | None = None  # groups are details


_CUDA_CODES = (  # number and name of an error of CUDA, as its samples print them (helper_cuda.h)
    ("803", "cudaErrorSystemDriverMismatch", "cuda-versions"),
    ("804", "cudaErrorCompatNotSupportedOnDevice", "cuda-compat"),
    ("214", "cudaErrorECCUncorrectable", "cuda-memory"),
    ("220", "cudaErrorNvlinkUncorrectable", "cuda-nvlink"),
    ("46", "cudaErrorDevicesUnavailable", "cuda-busy"),
    ("35", "cudaErrorInsufficientDriver", "cuda-too-old"),
    ("100", "cudaErrorNoDevice", "cuda-no-device"),
    ("3", "cudaErrorInitializationError", "cuda-unknown"),
    ("999", "cudaErrorUnknown", "cuda-unknown"),
)
_TOOL_ERRORS = (  # the first that the text has; a library that does not fit explains that no device was found
    _ToolError("amd-no-driver", "amdgpu not found in modules"),
    _ToolError("amd-no-driver", "Unable to detect any GPU devices, check amdgpu"),
    _ToolError("amd-no-gpu", "No AMD GPUs specified"),
    _ToolError("amd-no-driver", "ROCk module is NOT loaded"),
    _ToolError("npu-no-driver", "dcmi module initialize failed"),
    _ToolError("neuron-no-driver", "Failed to discover neuron devices"),
    _ToolError(
        "verbs-abi",
        "does not support the kernel ABI",
        lazy_pattern(r"Driver (?P<driver>\w{2,20}) does not support the kernel ABI of (?P<wants>\d{1,5})\b"),
    ),
    _ToolError("verbs-no-device", "No IB devices found"),
    _ToolError("verbs-no-device", "Failed to get IB devices list"),
    _ToolError("verbs-no-device", "Unable to find the Infiniband/RoCE device"),
    _ToolError("verbs-retries", "Failed status 12: wr_id"),
    _ToolError("efa-no-device", "fi_getinfo: -61"),
    _ToolError(
        "module-refused",
        "could not insert '",
        lazy_pattern(rf"could not insert '(?P<what>(?:{_MODULES})': [\w ().]{{4,80}})"),
    ),
    _ToolError(
        "memory-not-locked",
        "max locked memory",
        lazy_pattern(r"\(current: (?P<what>\d{1,12} kbytes)\)"),
    ),
    _ToolError("memory-not-locked", "RLIMIT_MEMLOCK is ", lazy_pattern(r"RLIMIT_MEMLOCK is (?P<what>\d{1,12} bytes)")),
    _ToolError(
        "perftest-port", "Port number ", lazy_pattern(r"Port number \d{1,3} state is (?!Active)(?P<what>\w{2,20})")
    ),
    _ToolError("perftest-memory", "Couldn't allocate MR"),
    _ToolError("perftest-not-ready", "Failed status 13: wr_id "),
    _ToolError("perftest-route", "Failed to modify QP "),
    _ToolError(
        "mad-unanswered", "_do_madrpc failed", lazy_pattern(r"_do_madrpc failed; dport \((?P<what>[\w ;:.]{2,60})\)")
    ),
    _ToolError("cuda-versions", "unsupported display driver / cuda driver combination"),
    _ToolError("cuda-compat", "forward compatibility was attempted on non"),
    _ToolError("cuda-memory", "uncorrectable ECC error encountered"),
    _ToolError("cuda-nvlink", "ncorrectable NVLink error"),
    _ToolError("cuda-stack", "hardware stack error"),
    _ToolError("cuda-busy", "busy or unavailable"),
    _ToolError("cuda-no-device", "no CUDA-capable device is detected"),
    _ToolError("cuda-no-driver", "Found no NVIDIA driver on your system"),
    _ToolError("cuda-no-driver", "libcuda.so.1: cannot open"),
    _ToolError("cuda-too-old", "CUDA driver version is insufficient"),
    _ToolError("cuda-too-old", "driver on your system is too old", lazy_pattern(r"found version (?P<what>\d{4,6})")),
    _ToolError("cuda-unknown", "CUDA unknown error"),
    *(_ToolError(code, f"={number}({name})") for number, name, code in _CUDA_CODES),
    *(
        _ToolError(code, "cudaGetDeviceCount returned", lazy_pattern(rf"returned {number}\s*$"))
        for number, _, code in _CUDA_CODES
    ),
    _ToolError("umad-closed", "can't open UMAD port"),
    _ToolError("sm-silent", "sminfo: iberror: failed: query"),
)


_NO_ROW = lazy_pattern(  # of the short table of rocm-smi
    r"^(?P<heading>(?:Device|GPU) {1,8}\S[^\n]{0,200}GPU%)[ \t\r]*\n(?: {4,40}\([^\n]{0,200}\n)?"
    r"={40,200}\r?\n={40,200}\s",
    re.MULTILINE,
)


def list_tool_errors(text: str) -> list[ToolReport]:
    """The error of a tool that printed nothing else. Raises ParseError.

    >>> list_tool_errors("ERROR:root:Driver not initialized (amdgpu not found in modules)")[0].code
    'amd-no-driver'
    """
    if table := _NO_ROW.search(check_length(text)):
        return [ToolReport("amd-no-gpu", None, " ".join(table["heading"].split()), (("what", "its table has no row"),))]
    lines = short_lines(text, _LIMIT_LINE)
    for error in _TOOL_ERRORS:
        line = next((line for line in lines if error.needle in line), None)
        if line is None:
            continue
        match = error.pattern.search(line) if error.pattern else None
        if error.pattern and match is None:
            continue
        detail = tuple((name, value.replace("'", "")) for name, value in (match.groupdict() if match else {}).items())
        return [ToolReport(error.code, None, line.strip(), detail)]
    raise ParseError("no sentence of a tool that found nothing")
