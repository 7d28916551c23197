"""The table of `nvidia-smi` without options: two or three lines for each GPU, drivers R390 to R610.

A line has three columns: what the GPU is, its address and memory, its ECC count and use. With MIG a third line follows,
and the tables of MIG devices and processes are not read. A name that is longer than its column ends with "...".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from probes.gpu.facts import Gpu, GpuFacts, GpuHealth, normal_address
from probes.named_tuple import NamedTuple
from probes.text import check_length, lazy_pattern, parse_digits, require

MOST_GPUS = 64
_LIMIT_CHARACTERS = 1 << 20
LINE_CHARACTERS = 300  # a longer line is no row
_VERSIONS = lazy_pattern(
    r"^[ \t]*\| *NVIDIA-SMI +\S{1,20} +(?:(?:Driver|KMD) Version: +(?P<driver>[\d.]{3,20}))?"
    r"(?: +CUDA (?:UMD )?Version: +(?P<cuda>[\d.]{1,10}))?"
)
_FIRST = lazy_pattern(r" {0,4}(?P<index>\d{1,3}) +(?P<name>\S.{0,60}?)(?: +(?P<persistence>On|Off|N/A|ERR!))? *")
_PLACE = lazy_pattern(r" *(?P<address>[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[01][0-9A-Fa-f]\.[0-7]) +(?P<display>\S+) *")
_SENSORS = lazy_pattern(
    r" *(?P<fan>\d{1,3}%|N/A|ERR!|\[[^\]]{1,20}\]) +(?P<temperature>\d{1,3}C|N/A|ERR!) +(?P<state>P\d{1,2}|N/A|ERR!) +"
    r"(?P<power>\d{1,5}W|N/A|ERR!) */ *(?P<limit>\d{1,5}W|N/A|ERR!) *"
)
_MEMORY = lazy_pattern(r" *(?:\d{1,9}|N/A|ERR!)(?:Mi?B)? */ *(?P<total>\d{1,9})Mi?B *")
_MIG = {"Disabled": (False, False), "Enabled": (True, True), "Enabled*": (True, False), "Disabled*": (False, True)}
_ENDS = ("Processes:", "Compute processes:", "MIG devices:")
_LOST = {"gpu is lost": "GPU_IS_LOST", "gpu requires reset": "RESET_REQUIRED", "unknown error": "Unknown Error"}
_FAILED = "ERR!"
_COLUMNS = {
    "fan": "fan",
    "temperature": "temperature",
    "state": "performance state",
    "power": "power",
    "limit": "power limit",
    "ecc": "ECC errors",
}


def parse_table(text: str) -> tuple[GpuFacts, str | None]:
    r"""The GPUs of the table, and what is missing from it. Raises ParseError.

    >>> facts, missing = parse_table(
    ...     "| NVIDIA-SMI 390.30                 Driver Version: 390.30                    |\n"
    ...     "|   0  Tesla V100-SXM2...  On   | 00000000:06:00.0 Off |                    2 |\n"
    ...     "| N/A   36C    P0    45W / 300W |      0MiB / 16160MiB |      0%      Default |\n")
    >>> facts.driver_version, facts.gpus[0].address, facts.gpus[0].health.uncorrectable_volatile
    ('390.30', '0000:06:00.0', 2)
    """
    check_length(text, _LIMIT_CHARACTERS)
    gpus = [gpu for lines in _list_rows(text) if (gpu := _build_gpu(lines)) is not None]
    require(gpus, "no row of a GPU in the table of nvidia-smi")
    versions = next((match for line in text.splitlines() if (match := _VERSIONS.match(line[:LINE_CHARACTERS]))), None)
    facts = GpuFacts(
        gpus=tuple(gpus[:MOST_GPUS]),
        driver_version=versions["driver"] if versions else None,
        cuda_version=versions["cuda"] if versions else None,
    )
    ended = any(end in text for end in _ENDS) or text.rstrip().rpartition("\n")[2].lstrip().startswith("+")
    return facts, None if ended else "the table has no end"


class Unreadable(NamedTuple):
    """A GPU of which a column of the table is ERR!."""

    address: str
    columns: tuple[str, ...]  # what they hold: "fan", "power"
    line: str


def list_unreadable(text: str) -> list[Unreadable]:
    """GPUs of which the table shows ERR! where a sensor or a count belongs, and which the driver has not lost."""
    found = []
    for lines in list(_list_rows(text[:_LIMIT_CHARACTERS]))[:MOST_GPUS]:
        gpu = _build_gpu(lines)
        sensors = _SENSORS.fullmatch(lines[1][0]) if len(lines) > 1 else None
        states = {**(sensors.groupdict() if sensors else {}), "ecc": lines[0][2].strip()}
        failed = tuple(label for name, label in _COLUMNS.items() if states.get(name) == _FAILED)
        if gpu is not None and gpu.address and gpu.error is None and failed:
            line = "|".join(lines[0] if failed == (_COLUMNS["ecc"],) else lines[1])
            found.append(Unreadable(gpu.address, failed, " ".join(line.split())))
    return found


def _list_rows(text: str) -> Iterator[list[list[str]]]:
    """The lines of each GPU, as columns."""
    rows: list[list[str]] = []
    lines = text.splitlines()
    for line in lines if text.endswith(("\n", "\r")) else lines[:-1]:
        if any(end in line for end in _ENDS):
            break
        bare = line.strip()
        columns = bare.strip("|").split("|") if bare.startswith("|") and len(bare) < LINE_CHARACTERS else []
        is_first = len(columns) == 3 and _PLACE.fullmatch(columns[1]) is not None
        if is_first or len(columns) != 3 or "===" in bare:
            if rows:
                yield rows
            rows = [columns] if is_first else []
        elif rows and len(rows) < 3:
            rows.append(columns)
    if rows:
        yield rows


def _build_gpu(lines: Sequence[Sequence[str]]) -> Gpu | None:
    first, place = _FIRST.fullmatch(lines[0][0]), _PLACE.fullmatch(lines[0][1])
    if first is None or place is None:
        return None
    second = lines[1] if len(lines) > 1 else ("", "", "")
    memory, sensors = _MEMORY.fullmatch(second[1]), _SENSORS.fullmatch(second[0])
    mig = _MIG.get(lines[2][2].strip(), (None, None)) if len(lines) > 2 else (None, None)
    return Gpu(
        index=int(first["index"]),
        address=normal_address(place["address"]),
        name=first["name"] if first["name"] != _FAILED else None,
        memory_mib=int(memory["total"]) if memory else None,
        pstate=int(sensors["state"][1:]) if sensors and sensors["state"].startswith("P") else None,
        mig_current=mig[0],
        mig_pending=mig[1],
        health=_read_health(first["persistence"], lines[0][2].strip(), sensors["limit"] if sensors else ""),
        error=_find_loss(lines),
    )


def _read_health(persistence: str | None, ecc: str, limit: str) -> GpuHealth | None:
    """`Off` in the column of the count: ECC is off. With MIG it is `On` and no count."""
    count = parse_digits(ecc, 11)
    health = GpuHealth(
        persistence={"On": True, "Off": False}.get(persistence or ""),
        ecc=True if count is not None else {"Off": False, "On": True}.get(ecc),
        uncorrectable_volatile=count,
        power_limit_watts=float(limit.removesuffix("W")) if limit.endswith("W") else None,
    )
    return None if health == GpuHealth() else health


def _find_loss(lines: Sequence[Sequence[str]]) -> str | None:
    """The words by which the table states that the driver lost the GPU; ERR! for its memory, too."""
    cells = [cell.strip().lower() for line in lines for cell in line]
    word = next((word for words, word in _LOST.items() if any(words in cell for cell in cells)), None)
    return word or ("Unknown Error" if len(lines) > 1 and _FAILED in lines[1][1] else None)
