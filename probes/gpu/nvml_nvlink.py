"""NVLinks of one GPU through NVML, and what kind of path they make between two GPUs.

Field ids and their scopes: nvml.h, NVML_FI_DEV_NVLINK_*; of a per-link field the scope is the link number.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from probes.gpu.facts import Gpu, NvLink, find_address
from probes.gpu.nvml_enums import BLACKWELL, HOPPER, NVLINK_REMOTE_KINDS, NVLINK_STATES, NVLINK_VERSIONS
from probes.named_tuple import NamedTuple

_COUNT, _SPEED_OF_ALL = 91, 90  # of the GPU
_REMOTE_LINK, _SPEED, _STATE = 146, 164, 165  # of a link
_NO_MORE_LINKS = 256  # of a GPU, in any year
_MOST_LINKS = 36  # NVML_NVLINK_MAX_LINKS: how far to look where the driver gives no count

# names as in gpu.LINK_ERRORS; 161-163 exist up to Hopper, the others from Blackwell on
_ERRORS: Mapping[int, str] = {161: "replay", 162: "recovery", 163: "crc"}
_ERRORS_NVLINK5: Mapping[int, str] = {
    206: "malformed_packets",
    207: "buffer_overruns",
    208: "receive",
    209: "receive_remote",
    210: "receive_general",
    211: "local_link_integrity",
    212: "transmit_discards",
    213: "recoveries_successful",
    214: "recoveries_failed",
    215: "recoveries",
    219: "effective",
    220: "effective_ber_packed",
    221: "symbol",
    222: "symbol_ber_packed",
}
# nvmlNvLinkErrorCounter_t, for drivers before R520, which have no 161-163
_ERROR_COUNTERS: Mapping[int, str] = {0: "replay", 1: "recovery", 2: "crc_flit", 3: "crc_data"}

Fields = Mapping[tuple[int, int], int | float]


class NvmlQueryProtocol(Protocol):
    """A survivor of failing NVML calls: `probes.gpu.nvml.NvmlQuery`."""

    code: str | None

    def __call__(self, function: str, *arguments: Any) -> Any:
        """The answer of one call, or None."""

    def fields(self, index: int, ids: list[tuple[int, int]]) -> Fields:
        """Field values by (id, scope); a field that failed is left out."""


class NvLinkReading(NamedTuple):
    """`supported`: False where the GPU has no NVLink, None where that is not known; then `reason` states why."""

    supported: bool | None
    reason: str | None = None
    links: tuple[NvLink, ...] = ()


def plausible_count(count: object, most: int) -> int | None:
    """How many there are, as the driver states, or None: what it states is no number, or more than there can be.

    >>> plausible_count(18, 256), plausible_count(2**31, 256), plausible_count(-1, 256), plausible_count(None, 256)
    (18, None, None, None)
    """
    return int(count) if isinstance(count, (int, float)) and 0 <= count <= most else None


def nvlinks(
    ask: NvmlQueryProtocol, index: int, architecture: int | None, mig: bool | None, virtualization: str | None
) -> NvLinkReading:
    """Every NVLink of one GPU. Under MIG and in a vGPU the driver refuses to answer, which is not "has none"."""
    if mig:
        return NvLinkReading(None, "NVLink queries are not supported for devices in MIG mode")
    count = plausible_count(ask.fields(index, [(_COUNT, 0)]).get((_COUNT, 0)), _NO_MORE_LINKS)
    if count == 0:
        return NvLinkReading(False, "the GPU has no NVLink (link count 0)")
    states = _states(ask, index, architecture, count)
    if states:
        return NvLinkReading(True, None, _links(ask, index, architecture, states))
    if virtualization == "vgpu":
        return NvLinkReading(None, "a vGPU does not report NVLinks")
    if count is None and ask.code in ("NOT_SUPPORTED", "INVALID_ARGUMENT"):
        return NvLinkReading(False, f"NVML: link 0 is {ask.code}")
    return NvLinkReading(None, f"nvmlDeviceGetNvLinkState: {ask.code or 'not recorded'}")


def pair_kind(a: Gpu, b: Gpu, p2p_nvlink: str | None, gpus: Iterable[Gpu]) -> str | None:
    """ "NV<n>", as nvidia-smi topo -m counts: n links straight to the other GPU; or, through NVSwitches, all links
    into the switches that both can use. None where NVLink does not join the two.

    NVML names no path through a switch. It is inferred, and only where P2P over NVLink is OK between the two: from
    the active links whose far end is no GPU and no CPU of this host. (Where the driver hides the switches, far ends
    have no address at all.) On such platforms nvidia-smi shows the full count of a GPU's links for every pair.
    """
    straight = min((n for n in (_links_to(a, b.address), _links_to(b, a.address)) if n), default=0)
    if straight:
        return f"NV{straight}"
    if p2p_nvlink != "OK":
        return None
    known = {gpu.address for gpu in gpus if gpu.address}
    switched = min(_links_to_switches(a, known), _links_to_switches(b, known))
    return f"NV{switched}" if switched else None


def _links_to(gpu: Gpu, address: str | None) -> int:
    return sum(1 for link in gpu.nvlinks if address and link.remote_address == address and _is_up(link))


def _links_to_switches(gpu: Gpu, gpus: set[str]) -> int:
    ends = [link for link in gpu.nvlinks if _is_up(link) and link.remote_kind not in ("gpu", "cpu")]
    return sum(1 for link in ends if link.remote_address not in gpus)


def _is_up(link: NvLink) -> bool:
    return link.state in ("active", "sleep")


def _states(ask: NvmlQueryProtocol, index: int, architecture: int | None, count: int | None) -> dict[int, str]:
    """State by link. NCCL asks by field from Hopper on, and by call before: so do we, and the other way after that.

    Without a count, links are asked for until the driver states that there is no such link.
    """
    answers: Fields = {}
    if architecture is None or architecture >= HOPPER:
        answers = ask.fields(index, [(_STATE, link) for link in range(count or _MOST_LINKS)])
    if answers:
        here = range(count) if count else [link for _, link in answers]
        return {link: _state(answers.get((_STATE, link))) for link in here}
    states: dict[int, str] = {}
    for link in range(count or _MOST_LINKS):
        number = ask("nvmlDeviceGetNvLinkState", index, link)
        if number is None and (count is None or not states):
            break
        states[link] = _state(number)
    return states


def _state(number: int | float | None) -> str:
    return "unknown" if number is None else NVLINK_STATES.get(int(number), "unknown")


def _links(
    ask: NvmlQueryProtocol, index: int, architecture: int | None, states: Mapping[int, str]
) -> tuple[NvLink, ...]:
    counters = _ERRORS_NVLINK5 if architecture is not None and architecture >= BLACKWELL else _ERRORS
    of_links = [(field, link) for link in states for field in (_SPEED, _REMOTE_LINK, *counters)]
    answers = ask.fields(index, [(_SPEED_OF_ALL, 0), *of_links])
    return tuple(
        _link(ask, index, link, state, answers, _errors(ask, index, link, counters, answers))
        for link, state in states.items()
    )


def _link(
    ask: NvmlQueryProtocol, index: int, link: int, state: str, answers: Fields, errors: Mapping[str, int] | None
) -> NvLink:
    up = state in ("active", "sleep")
    version = ask("nvmlDeviceGetNvLinkVersion", index, link)
    kind = ask("nvmlDeviceGetNvLinkRemoteDeviceType", index, link) if up else None
    remote = answers.get((_REMOTE_LINK, link)) if up else None
    speed_mbyte_s = answers.get((_SPEED, link), answers.get((_SPEED_OF_ALL, 0))) if up else None
    return NvLink(
        link=link,
        state=state,
        version=NVLINK_VERSIONS.get(version) if version else None,
        speed_gbyte_s=speed_mbyte_s / 1000 if speed_mbyte_s else None,
        remote_kind=None if kind is None else NVLINK_REMOTE_KINDS.get(kind, "unknown"),
        remote_address=_remote_address(ask("nvmlDeviceGetNvLinkRemotePciInfo_v2", index, link)) if up else None,
        remote_link=None if remote is None else int(remote),
        errors=errors,
    )


def _errors(
    ask: NvmlQueryProtocol, index: int, link: int, counters: Mapping[int, str], answers: Fields
) -> dict[str, int] | None:
    errors = {name: int(answers[field, link]) for field, name in counters.items() if (field, link) in answers}
    if not errors and counters is _ERRORS:
        counters_read = {
            name: ask("nvmlDeviceGetNvLinkErrorCounter", index, link, at) for at, name in _ERROR_COUNTERS.items()
        }
        errors = {name: number for name, number in counters_read.items() if number is not None}
    return errors or None


def _remote_address(pci: Mapping[str, Any] | None) -> str | None:
    """None where the driver hides the far end: it then gives all ones, which is no address, or all zeros."""
    address = find_address(pci["busId"]) if pci else None
    return None if address is None or address == "0000:00:00.0" or address.startswith("ffffffff:") else address
