"""What a tool prints in place of its output: it found no device, no driver, or a library that does not fit.

Sources: ROCm/rocm_smi_lib python_smi_tools/rocm_smi.py, ROCm/amdsmi amdsmi_cli, rocminfo.cc; linux-rdma/rdma-core
libibverbs (init.c, examples/devinfo.c), librdmacm (examples/rping.c) and infiniband-diags (ibstat.c, sminfo.c),
linux-rdma/perftest; openucx/ucx uct/ib/base/ib_md.c, ucp/core/ucp_context.c; NVIDIA/gdrcopy tests/; kmod
tools/modprobe.c; libfabric util/info.c; Mellanox/k8s-rdma-shared-dev-plugin pkg/resources;
k8snetworkplumbingwg/ib-sriov-cni and sriov-network-operator; Mellanox/mstflint; CUDA 13 driver_types.h, PyTorch 2
torch/csrc/cuda/Module.cpp, torch/cuda/__init__.py.
The sources of npu-smi and neuron-ls are closed: public threads.
"""

from __future__ import annotations

import re

from probes.named_tuple import NamedTuple
from probes.text import ParseError, check_length, lazy_pattern
from probes.tool_reports.facts import ToolReport

_LIMIT_LINE = 4000
_LIMIT_TEXT = 400
_SHOWN = 160
_MOST_LINES = 64  # of one sentence that are looked at

_MARGIN = r"[ \t]{0,40}"
_WORDS = r".{0,1500}?"  # of a log or a program before the sentence
_MODULES = r"nvidia[a-z_-]*|amdgpu|amdkfd|mlx[45]_\w+|ib_\w+|bnxt_\w+|irdma|ice|efa|ena|habanalabs\w*|neuron"
_RDMA_MODULES = r"mlx[45]_\w+|ib_\w+|rdma_\w+|bnxt_re|irdma|efa"
_DEVICE = r"(?P<what>[a-zA-Z][\w.-]{1,40})"


class ToolError(NamedTuple):
    """A sentence, and what it means. `needle` is a part of it, `line` the pattern of the line up to it, from its begin;
    groups are details."""

    tool: str
    code: str
    needle: str
    line: str


_STATUSES = (  # of a completion, as libibverbs numbers them
    ("completion-memory", "4|8|10"),
    ("completion-request", "9|11"),
    ("completion-local", "[123]"),
)
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


def _error(tool: str, code: str, needle: str, *, before: str = _MARGIN, after: str = "") -> ToolError:
    return ToolError(tool, code, needle, f"{before}{re.escape(needle)}{after}")


TOOL_ERRORS = (  # the first that a text has counts: a library that does not fit explains that no device was found
    _error("rocm-smi", "amd-no-driver", "(amdgpu not found in modules)", before=r".{0,80}?"),
    _error("amd-smi", "amd-no-driver", "Unable to detect any GPU devices, check amdgpu", before=".{0,40}?"),
    _error("rocm-smi", "amd-no-gpu", "No AMD GPUs specified", before=r"[ \t]{0,40}(?:WARNING: )?"),
    _error("rocminfo", "amd-no-driver", "ROCk module is NOT loaded", before=".{0,40}?"),
    _error("npu-smi", "npu-no-driver", "dcmi module initialize failed", before=".{0,40}?"),
    _error("neuron-ls", "neuron-no-driver", "Failed to discover neuron devices", before=".{0,40}?"),
    _error(
        "ibv_devinfo",
        "verbs-abi",
        " does not support the kernel ABI of ",
        before=r"libibverbs: Warning: Driver (?P<driver>\w{2,20})",
        after=r"(?P<wants>\d{1,5})\b",
    ),
    _error(
        "ibv_devinfo",
        "verbs-no-provider",
        "libibverbs: Warning: couldn't load driver '",
        after=r"(?:\S{0,80}/)?(?!lib(?:vmw_pvrdma|rxe|siw)-)(?P<what>[\w.-]{2,60})'",  # no driver of a NIC: of none
    ),
    _error(
        "ibv_devinfo",
        "verbs-no-provider",
        "libibverbs: Warning: no userspace device-specific driver found for ",
        after=r"\S{0,60}/(?P<what>\w{2,20})",
    ),
    _error("ibv_devinfo", "verbs-no-device", "No IB devices found"),
    _error("ibv_devinfo", "verbs-no-device", "Failed to get IB devices list: "),
    _error("ib_write_bw", "verbs-no-device", "Unable to find the Infiniband/RoCE device"),
    _error(
        "ibstatus",
        "verbs-no-device",
        "sys files not found (/sys/class/infiniband/",
        before=r"Fatal error: {1,4}device '.{1,40}': ",
    ),
    _error("ibv_devinfo", "verbs-not-passed", "Failed to open device", before=""),
    _error(
        "ibstat",
        "verbs-device-gone",
        "stat of IB device '",
        before=r"ibpanic: \[\d{1,10}\] main: ",
        after=r"(?P<what>[\w.-]{2,40})' failed",
    ),
    _error("fi_info", "efa-no-device", "fi_getinfo: -61", after=r"\b", before=""),
    _error(
        "modprobe",
        "module-refused",
        "could not insert '",
        before=".{0,40}?",
        after=rf"(?P<what>(?:{_MODULES})': [\w ().]{{4,80}})",
    ),
    _error(
        "ibv_reg_mr",
        "memory-not-locked",
        "max locked memory",
        before=rf"{_WORDS}ibv_reg_mr\(.{{0,200}}?",
        after=r"(?:.{0,200}?\(current: (?P<what>\d{1,12} kbytes)\))?",
    ),
    _error(
        "ibv_reg_mr",
        "memory-not-locked",
        "libibverbs: Warning: RLIMIT_MEMLOCK is ",
        before=_WORDS,
        after=r"(?P<what>\d{1,12} bytes)",
    ),
    _error("ib_write_bw", "perftest-port", "Port number ", after=r"\d{1,3} state is (?!Active)(?P<what>\w{2,20})"),
    _error("ib_write_bw", "perftest-memory", "Couldn't allocate MR", after=r"\b"),
    _error("ib_write_bw", "perftest-queue", "Unable to create QP"),
    _error("ib_write_bw", "perftest-queue", "Couldn't get device attributes"),
    *(
        _error("ib_write_bw", code, needle, before=_WORDS, after=rf"{between}(?:{statuses})\b(?: \([\w ]{{4,40}}\))?)")
        for code, statuses in _STATUSES
        for needle, between in (("Failed ", "(?P<what>status "), ("CQE error, wr_id=", r"\d{1,20}, (?P<what>status="))
    ),
    _error("ib_write_bw", "perftest-not-ready", "Failed status 13", after=r"\b"),
    _error("ib_write_bw", "verbs-retries", "Failed status 12", after=r"\b"),
    _error("ib_write_bw", "verbs-retries", "Failed status transport retry counter exceeded (12)"),
    _error("ib_write_bw", "perftest-route", "Failed to modify QP ", after=r"(?:\w{1,12} )?to RTR"),
    _error("rping", "rdma-address", "RDMA_CM_EVENT_", before=_WORDS, after=r"(?P<what>ADDR_ERROR|ROUTE_ERROR)\b"),
    _error("rping", "rdma-address", "rdma_resolve_addr", before=_MARGIN, after=r": (?P<what>[A-Z][\w ]{4,60})"),
    _error("ib_write_bw", "rdma-address", "Received 10 times ADDR_ERROR"),
    _error("rping", "rdma-refused", "RDMA_CM_EVENT_", before=_WORDS, after=r"(?P<what>UNREACHABLE|REJECTED)\b"),
    _error(
        "ibping",
        "mad-unanswered",
        "_do_madrpc failed; dport (",
        before=r"ibwarn: \[\d{1,10}\] mad_rpc(?:_rmpp)?: ",
        after=r"(?P<what>[\w ;:.]{2,60})\)",
    ),
    _error("ibping", "mad-unanswered", "_do_madrpc: recv failed", before=r"ibwarn: \[\d{1,10}\] "),
    _error("ibping", "mad-unanswered", "can't resolve destination port", before=r"\w{3,20}: iberror: failed: "),
    _error(
        "ucx_info",
        "ucx-device",
        " is not available, please use one or more of: ",
        before=rf"{_WORDS}network device '{_DEVICE}(?::\d{{1,2}})?'",
    ),
    _error("ucx_info", "ucx-no-gdr", ": cuda GPUDirect RDMA is disabled", before=rf"{_WORDS}\bUCX +\w+ +{_DEVICE}"),
    _error(
        "mstflint",
        "firmware-tool",
        "-E- ",
        after=r"(?:Cannot|Failed to) open (?:D|d)evice:? ?(?P<what>\S{1,60}?\.? .{0,80}\bMFE_\w{2,40})",
    ),
    _error(
        "rxdm",
        "tcpx-gpus",
        "Number of GPUs detected in the PCI tree ",
        before=_WORDS,
        after=r"(?P<what>\d{1,3} is not equal to the actual number of GPUs reported by CUDA \d{1,3})",
    ),
    _error("mstflint", "firmware-psid", "-E- PSID mismatch. ", after=r"(?P<what>The PSID on flash .{4,120})"),
    _error("openibd", "stack-modules", "Module ", after=r"(?P<what>mlx5_\w{2,10}) does not exist, skipping"),
    _error(
        "openibd",
        "stack-failed",
        "HCA driver",
        before=rf"{_MARGIN}Loading (?P<what>[\w ]{{0,30}})",
        after=r"(?: and Access Layer)?:[ \t]{0,60}\[ {0,4}FAILED",
    ),
    _error("ofed-driver", "stack-modules", "No OFED driver found for kernel ", after=r"(?P<what>\d[\w.-]{2,60})"),
    _error("modprobe", "module-missing", "modprobe: FATAL: Module ", after=rf"(?P<what>{_RDMA_MODULES}) not found in "),
    _error("rdma-shared-dp", "rdma-netns", "incorrect RDMA subsystem network namespace", before=_WORDS),
    _error("ping", "no-answer", " Destination Host Unreachable", before=r"From \S{2,80}(?: \S{3,60})?:? .{0,30}?"),
    _error("nvshmem", "gdr-no-peermem", "neither nv_peer_mem, or nvidia_peermem detected", before=_WORDS),
    _error("nvshmem", "ibgda-failed", " is not enumerated as an mlx5 device", before=rf"{_WORDS}device {_DEVICE}"),
    _error("nvshmem", "ibgda-failed", "cannot allocate mlx5dv_devx_uar", before=_WORDS),
    _error("nvshmem", "ibgda-failed", "init failed for transport: IBGDA", before=_WORDS),
    _error("gdrcopy", "gdrcopy-unloaded", "gdr_open error: Is gdrdrv driver installed and loaded?"),
    _error("gdrcopy", "gdrcopy-unloaded", "unable to open GDR driver, is gdrdrv.ko loaded?", before=_WORDS),
    _error("gdsio", "gds-file", "GPUDirect Storage not supported on current file", before=_WORDS),
    _error("mooncake", "gid-none", "No suitable GID found on ", before=_WORDS, after=_DEVICE),
    _error(
        "mooncake",
        "gid-none",
        "Failed to query GID ",
        before=_WORDS,
        after=rf"\d{{1,3}} on {_DEVICE}/?: No data available",
    ),
    _error(
        "kubelet",
        "plugin-no-umad",
        "missing RDMA device spec for device ",
        before=_WORDS,
        after=r"(?P<device>[0-9a-f]{4}:[0-9a-f:.]{7}), RDMA device \\?\"(?P<what>\w{2,20})\\?\" not found",
    ),
    _error("kubelet", "cni-no-guid", " GUID is not valid", before=rf"{_WORDS}\bVF (?P<what>[\w.-]{{2,20}})"),
    _error(
        "kubelet",
        "cni-failed",
        "error adding container to network ",
        before=_WORDS,
        after=r"\\?\"(?P<what>[\w.-]{1,60}\\?\": .{4,120})",
    ),
    _error(
        "kubelet",
        "sriov-sync",
        "lastSyncError: ",
        before=_WORDS,
        after=r"(?![\"']{2}\s*$|null\b)(?P<what>\S.{3,120})",
    ),
    _error("CUDA", "cuda-versions", "unsupported display driver / cuda driver combination", before=_WORDS),
    _error(
        "CUDA", "cuda-compat", "forward compatibility was attempted on non", before=_WORDS, after="[- ]supported HW"
    ),
    _error("CUDA", "cuda-memory", "uncorrectable ECC error encountered", before=_WORDS),
    _error("CUDA", "cuda-nvlink", "ncorrectable NVLink error", before=_WORDS),
    _error("CUDA", "cuda-stack", "hardware stack error", before=_WORDS),
    _error("CUDA", "cuda-busy", "busy or unavailable", before=rf"{_WORDS}CUDA-capable device(?:\(s\) is/|s )are "),
    _error("CUDA", "cuda-no-device", "no CUDA-capable device is detected", before=_WORDS),
    _error("CUDA", "cuda-no-driver", "Found no NVIDIA driver on your system", before=_WORDS),
    _error("CUDA", "cuda-no-driver", "libcuda.so.1: cannot open", before=_WORDS),
    _error("CUDA", "cuda-too-old", "CUDA driver version is insufficient for CUDA runtime", before=_WORDS),
    _error(
        "CUDA",
        "cuda-too-old",
        "NVIDIA driver on your system is too old",
        before=_WORDS,
        after=r"(?:.{0,40}?found version (?P<what>\d{4,6}))?",
    ),
    _error("CUDA", "cuda-unknown", "CUDA unknown error - this may be due to", before=_WORDS),
    *(_error("CUDA", code, f"={number}({name})", before=_WORDS) for number, name, code in _CUDA_CODES),
    *(
        _error("CUDA", code, "cudaGetDeviceCount returned ", before=_WORDS, after=rf"{number}[ \t]*$")
        for number, _, code in _CUDA_CODES
    ),
    _error("sminfo", "umad-closed", "can't open UMAD port", before=r"(?:ibwarn: \[\d{1,10}\] )?mad_rpc_open_port: "),
    _error("sminfo", "sm-silent", "sminfo: iberror: failed: query", before=""),
)
# What a program in the background prints stands behind a prompt
_AT_PROMPT = r"(?:\[?[\w-]{1,40}@[\w.-]{1,64}[^\n$#%]{0,100}[$#%][ \t]{0,8})?"
_PATTERNS = tuple((error, lazy_pattern(_AT_PROMPT + error.line)) for error in TOOL_ERRORS)

_NO_ROW = lazy_pattern(  # of the short table of rocm-smi
    r"^(?P<heading>(?:Device|GPU) {1,8}\S[^\n]{0,200}GPU%)[ \t\r]*\n(?: {4,40}\([^\n]{0,200}\n)?"
    r"={40,200}\r?\n={40,200}\s",
    re.MULTILINE,
)


_LOGGED = (  # how programs begin a line that states an error: a severity, or the place in their source
    r"(?:[EF]\d{4} [\d:.]{8,16} |-E- |(?:[\w./-]{1,60}(?:\[\d{1,10}\])?: )?(?:error|fatal|panic): |"
    r".{0,120}?(?:\b(?:ERROR|FATAL|CRITICAL)\b|\blevel=(?:error|fatal)\b|"
    r"[\w/.-]{2,120}\.(?:c|cc|cpp|cu|go|rs|py):\d{1,6}\b))"
)
_ABOUT = (
    r"\b(?:mlx[45]_\w{1,20}|bnxt_re\w{0,8}|rdmap\w{1,12}|rocep\w{1,12}|irdma\w{0,8}|efa_\d{1,3}|ib[ps]?\d{1,3}\w{0,8}|"
    r"GPU ?\d{1,2}|HCA|RDMA|RoCE|InfiniBand|GID|QP|uverbs\d{0,3}|umad\d{0,3}|VF \w{1,8}|SR-?IOV|peermem|dma-?buf|"
    r"GPUDirect|NVLink)\b"
)
_FAILS = (
    r"(?i:\b(?:failed|fails|failure|cannot|can't|could not|couldn't|unable to|timed? ?out|refused|denied|mismatch|"
    r"unreachable|not (?:found|supported|available))\b)"
)
_WITHIN = r"[^\n]{0,600}?"
_UNEXPLAINED = lazy_pattern(rf"^(?={_LOGGED})(?={_WITHIN}{_ABOUT})(?={_WITHIN}{_FAILS})[^\n]{{1,600}}$", re.MULTILINE)


def find_unexplained(text: str) -> str | None:
    """A line in which a program states a failure of a device or of RDMA, that no sentence of the table is.

    >>> find_unexplained("E0102 11:22:33.123456 77 context.cc:9] Failed to open mlx5_3: timed out")
    'E0102 11:22:33.123456 77 context.cc:9] Failed to open mlx5_3: timed out'
    >>> find_unexplained("RDMA failed on our cluster, what can we do?")
    """
    match = _UNEXPLAINED.search(text)
    return match[0].strip() if match else None


_PINGED = lazy_pattern(r"^PING (?P<what>[\w.:-]{2,80})", re.MULTILINE)  # the line of the error names who states it


def list_tool_errors(text: str) -> list[ToolReport]:
    """The error of a tool that printed nothing else. Raises ParseError.

    >>> list_tool_errors("ERROR:root:Driver not initialized (amdgpu not found in modules)")[0].code
    'amd-no-driver'
    """
    if table := _NO_ROW.search(check_length(text)):
        return [ToolReport("amd-no-gpu", None, " ".join(table["heading"].split()), (("what", "its table has no row"),))]
    found = find_tool_error(text)
    if found is None and (line := find_unexplained(text)) is not None:
        shown = " ".join(line.split())[:_LIMIT_TEXT]
        return [ToolReport("unexplained-line", None, shown, (("what", shown[:_SHOWN]),))]
    if found is None:
        raise ParseError("no sentence of a tool that found nothing")
    error, match, line = found
    named = _PINGED.search(text) if error.tool == "ping" else match
    groups = named.groupdict() if named else {}
    detail = tuple((name, value.replace("'", "").strip()) for name, value in groups.items() if value)
    start = max(match.end() - _LIMIT_TEXT // 2, 0)
    return [ToolReport(error.code, None, " ".join(line[start:].split())[:_LIMIT_TEXT], detail)]


def find_tool_error(text: str) -> tuple[ToolError, re.Match[str], str] | None:
    """The first sentence of the table that is in a text, wherever it stands, and its line.

    >>> found = find_tool_error("root@n1:~# Port number 1 state is Down\\n")
    >>> found and (found[0].code, found[1]["what"])
    ('perftest-port', 'Down')
    """
    for error, pattern in _PATTERNS:
        at = text.find(error.needle)
        for _ in range(_MOST_LINES):
            if at < 0:
                break
            start, end = text.rfind("\n", 0, at) + 1, text.find("\n", at)
            line = text[start : end if end >= 0 else len(text)]
            if len(line) < _LIMIT_LINE and (match := pattern.match(line)):
                return error, match, line
            at = text.find(error.needle, end) if end >= 0 else -1
    return None
