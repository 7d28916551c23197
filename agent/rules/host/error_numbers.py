"""Numbers in lines of drivers: errors of Linux, and statuses of the NVIDIA driver, by their names.

Sources: Linux include/uapi/asm-generic/errno-base.h and errno.h; open-gpu-kernel-modules nvstatuscodes.h (names of the
statuses; the meaning is in our words only where the name is not enough).
"""

from __future__ import annotations

import re

_ERRNO = {
    1: ("EPERM", "not permitted"), 2: ("ENOENT", "no such file or object"), 4: ("EINTR", "interrupted"),
    5: ("EIO", "input or output error"), 6: ("ENXIO", "no such device or address"), 7: ("E2BIG", "list too long"),
    11: ("EAGAIN", "try again"), 12: ("ENOMEM", "out of memory"), 13: ("EACCES", "access denied"),
    14: ("EFAULT", "bad address"), 16: ("EBUSY", "device or resource busy"), 17: ("EEXIST", "exists already"),
    19: ("ENODEV", "no such device"), 22: ("EINVAL", "invalid argument"), 23: ("ENFILE", "too many open files"),
    24: ("EMFILE", "too many open files"), 28: ("ENOSPC", "no space or no free entry left"),
    34: ("ERANGE", "out of range"), 38: ("ENOSYS", "function not implemented"), 61: ("ENODATA", "no data"),
    62: ("ETIME", "timer expired"), 71: ("EPROTO", "protocol error"), 75: ("EOVERFLOW", "value too large"),
    95: ("EOPNOTSUPP", "not supported"), 98: ("EADDRINUSE", "address in use"),
    99: ("EADDRNOTAVAIL", "address not available"), 100: ("ENETDOWN", "network is down"),
    101: ("ENETUNREACH", "network unreachable"), 104: ("ECONNRESET", "connection reset"),
    105: ("ENOBUFS", "no buffers left"), 110: ("ETIMEDOUT", "timed out"), 111: ("ECONNREFUSED", "connection refused"),
    113: ("EHOSTUNREACH", "no route to host"), 116: ("ESTALE", "stale handle"),
    121: ("EREMOTEIO", "remote device error"),
    125: ("ECANCELED", "canceled"), 517: ("EPROBE_DEFER", "waits for another driver"),
}  # fmt: skip
_NV_STATUS = {
    0x01: "BROKEN_FB", 0x02: "BUFFER_TOO_SMALL", 0x03: "BUSY_RETRY", 0x05: "CARD_NOT_PRESENT", 0x0B: "ECC_ERROR",
    0x0E: "GPU_DMA_NOT_INITIALIZED", 0x0F: "GPU_IS_LOST", 0x10: "GPU_IN_FULLCHIP_RESET", 0x11: "GPU_NOT_FULL_POWER",
    0x12: "GPU_UUID_NOT_FOUND", 0x14: "I2C_ERROR", 0x17: "IN_USE", 0x1A: "INSUFFICIENT_RESOURCES",
    0x1B: "INSUFFICIENT_PERMISSIONS", 0x1C: "INSUFFICIENT_POWER", 0x1E: "INVALID_ADDRESS", 0x1F: "INVALID_ARGUMENT",
    0x21: "INVALID_CHANNEL", 0x22: "INVALID_CLASS", 0x23: "INVALID_CLIENT", 0x24: "INVALID_COMMAND",
    0x25: "INVALID_DATA", 0x26: "INVALID_DEVICE", 0x29: "INVALID_FLAGS", 0x31: "INVALID_OBJECT",
    0x33: "INVALID_OBJECT_HANDLE", 0x37: "INVALID_OFFSET", 0x38: "INVALID_OPERATION", 0x3B: "INVALID_PARAMETER",
    0x3D: "INVALID_POINTER", 0x3F: "INVALID_REQUEST", 0x40: "INVALID_STATE", 0x42: "INVALID_READ",
    0x45: "IRQ_NOT_FIRING", 0x47: "MEMORY_TRAINING_FAILED", 0x4A: "MISSING_TABLE_ENTRY", 0x4B: "MODULE_LOAD_FAILED",
    0x51: "NO_MEMORY", 0x54: "NOT_COMPATIBLE", 0x55: "NOT_READY", 0x56: "NOT_SUPPORTED", 0x57: "OBJECT_NOT_FOUND",
    0x59: "OPERATING_SYSTEM", 0x5B: "OUT_OF_RANGE", 0x5F: "PROTECTION_FAULT", 0x60: "RC_ERROR",
    0x61: "REJECTED_VBIOS", 0x62: "RESET_REQUIRED", 0x63: "STATE_IN_USE", 0x65: "TIMEOUT", 0x66: "TIMEOUT_RETRY",
    0x6A: "LIB_RM_VERSION_MISMATCH", 0x6B: "PRIV_SEC_VIOLATION", 0x6C: "GPU_IN_DEBUG_MODE",
    0x6D: "FEATURE_NOT_ENABLED", 0x6E: "RESOURCE_LOST", 0x6F: "PMU_NOT_READY", 0x70: "FLCN_ERROR",
    0x71: "FATAL_ERROR", 0x72: "MEMORY_ERROR", 0x74: "NVLINK_INIT_ERROR", 0x75: "NVLINK_MINION_ERROR",
    0x76: "NVLINK_CLOCK_ERROR", 0x77: "NVLINK_TRAINING_ERROR", 0x78: "NVLINK_CONFIGURATION_ERROR",
    0x79: "RISCV_ERROR", 0x7A: "FABRIC_MANAGER_NOT_PRESENT", 0x7F: "SECURE_BOOT_FAILED",
    0x81: "NVLINK_FABRIC_NOT_READY", 0x82: "NVLINK_FABRIC_FAILURE", 0x83: "GPU_MEMORY_ONLINING_FAILURE",
    0x84: "REDUCTION_MANAGER_NOT_AVAILABLE", 0x85: "THRESHOLD_CROSSED", 0x86: "RESOURCE_RETIREMENT_ERROR",
    0x87: "FABRIC_STATE_OUT_OF_SYNC", 0xFFFF: "GENERIC",
}  # fmt: skip
_NEGATIVE = re.compile(
    r"(?:\berr(?:or|no)?(?: code)?|\bret(?:urn(?:ed)?|val)?|\brc|\bstatus|\bresult|\bfailed|[:,(])"
    r"[ =:(]{0,3}-([0-9]{1,3})\b"
)
_STATUS = re.compile(r"\b(?:status|rc|error|err)(?:code)?[ =:(]{1,3}(?:0x)0*([0-9a-fA-F]{1,4})\b")
_NAMED = re.compile(r"\bNV_(?:ERR|WARN)_[A-Z_0-9]{3,50}\b")
_OF_NVIDIA = ("NVRM", "nvidia", "gdrdrv")


def explain_number(driver: str, text: str) -> str | None:
    """What the number of an error in a line is called; None where it has none that is known.

    >>> explain_number("mlx5_core", "mlx5_core 0000:3b:00.0: x failed, err(-12)")
    '-12 is ENOMEM: out of memory'
    >>> explain_number("NVRM", "NVRM: GPU0 x: could not y, status 0x00000062")
    '0x62 is NV_ERR_RESET_REQUIRED'
    >>> explain_number("mlx5_core", "mlx5_core 0000:3b:00.0: status 0x62")
    """
    if match := _NEGATIVE.search(text):
        name, words = _ERRNO.get(int(match[1]), ("", ""))
        if name:
            return f"-{match[1]} is {name}: {words}"
    if driver.startswith(_OF_NVIDIA) and not _NAMED.search(text) and (match := _STATUS.search(text)):
        status = _NV_STATUS.get(int(match[1], 16))
        return f"0x{int(match[1], 16):x} is NV_ERR_{status}" if status else None
    return None
