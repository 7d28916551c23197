"""Libraries of the fabric that a program does not find, as `ldd` lists them (glibc elf/rtld.c)."""

from __future__ import annotations

from probes.text import ParseError, lazy_pattern
from probes.tool_reports.facts import ToolReport, state_fault
from probes.tool_reports.lines import short_lines

_LIMIT_LINE, _SHOWN = 400, 8
_ROW = lazy_pattern(r"[> \t]*(?P<name>lib[\w.+-]{1,60}\.so[\w.]{0,16}) => not found[ \t]*")
_OF_FABRIC = lazy_pattern(
    r"lib(?:uc[pmsts]|ucc|ibverbs|ibumad|ibmad|rdmacm|mlx[45]|efa|bnxt_re|irdma|ionic|fabric|nccl|rccl|nvshmem|sharp|"
    r"hcoll|cuda|cudart|nvidia|amdhip|hsa|hccl|ascend|hcl|Synapse|nrt|oneccl|ccl|psm2|knem|xpmem)[\w-]{0,24}\."
)


def list_missing_libraries(text: str) -> list[ToolReport]:
    """One report with the libraries of NICs, GPUs and collectives that were not found. Raises ParseError.

    >>> rows = "\\tlibucp.so.0 => not found\\n\\tlibm.so.6 => /lib64/libm.so.6 (0x00007f)\\n"
    >>> [report.detail for report in list_missing_libraries(rows)]
    [(('what', 'libucp.so.0'),)]
    """
    rows = [line for line in short_lines(text, _LIMIT_LINE) if " => " in line]
    if not rows:
        raise ParseError("no row of ldd")
    missing = {match["name"]: line for line in rows if (match := _ROW.fullmatch(line))}
    names = [name for name in missing if _OF_FABRIC.match(name)]
    if not names:
        return []
    line = " ".join(missing[names[0]].split())
    return [state_fault("library-missing", None, ", ".join(names[:_SHOWN]), line)]
