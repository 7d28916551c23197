"""`nvidia-smi nvlink -s`, `-e`, `-R` and `-c`: the NVLinks of each GPU, as lines below a line for the GPU.

```
GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-34bf77d1-c686-6821-79a8-32d326c5039c)
     Link 0: 26.562 GB/s                                  -s    <inactive> where the link is down
     Link 0: Replay Errors: 0                             -e    (NVLink 5 has other names: gpu.LINK_ERRORS)
     Link 0: Remote Device 00000008:00:00.0: Link 32      -R
     Link 0, P2P is supported: true                       -c
```

Instead of links there may be a sentence that states why there are none.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from probes.gpu.facts import LINK_ERRORS, Gpu, NvLink, find_address
from probes.named_tuple import NamedTuple
from probes.text import ParseError, check_length, first_line, lazy_pattern

_LIMIT_CHARACTERS = 4 << 20
_MOST_LINKS = 256
_LIMIT_LINE = 400  # no line of nvidia-smi is longer; what is, is not looked at
_GPU = lazy_pattern(r"GPU (\d{1,4}): ([^(]{1,200}?)(?: \(UUID: ([^)\s]{1,80})\))?", re.ASCII)
_LINK = lazy_pattern(r"Link (\d{1,3})[:,] (.+)", re.ASCII)
_SPEED = lazy_pattern(r"(\d{1,6}(?:\.\d{1,6})?) GB/s", re.ASCII)
_REMOTE = lazy_pattern(r"Remote Device ([0-9A-Fa-f:.]{12,20}): Link (\d{1,4})", re.ASCII)
_COUNTER = lazy_pattern(r"([A-Za-z][A-Za-z ]{1,60}): (\d{1,20})(?:e-(\d{1,4}))?", re.ASCII)
_CAPABILITY = lazy_pattern(r"([A-Za-z][\w ]{1,80}): (true|false)", re.ASCII)
_LINK_START = lazy_pattern(r"L(?:i(?:n(?:k\b|$)|$)|$)", re.ASCII)
_LINK_STATE = lazy_pattern(r"Link \d{1,3}: (?:\d{1,6}(?:\.\d{1,6})? GB/s|<\w{1,40}>)", re.ASCII)
_DOWN = lazy_pattern(r"<\w{1,40}>", re.ASCII)
_ALL_INACTIVE = "all links are inactive"
_CUTS = ("...", "[...]", "…")


class NvLinks(NamedTuple):
    """GPUs with index, name, UUID (where it is not masked) and what the text states of their links."""

    gpus: tuple[Gpu, ...]
    missing: str | None = None


def parse_status(text: str) -> NvLinks:
    r"""`-s`: state and speed. Raises ParseError.

    >>> said = parse_status("GPU 3: Tesla V100-SXM2-32GB (UUID: ...)\n\t Link 0: 25.781 GB/s\n\t Link 1: <inactive>\n")
    >>> [(link.link, link.state, link.speed_gbyte_s) for link in said.gpus[0].nvlinks]
    [(0, 'active', 25.781), (1, 'inactive', None)]
    """
    return _parse(text, _status)


def parse_errors(text: str) -> NvLinks:
    r"""`-e`: cumulative error counters. Traffic and FEC histograms are left out. Raises ParseError.

    >>> parse_errors("GPU 0: NVIDIA B200\n\t Link 0: Rx Errors: 4\n\t Link 0: Symbol BER: 15e-255\n"
    ...              ).gpus[0].nvlinks[0].errors
    {'receive': 4, 'symbol_ber_packed': 4095}
    """
    return _parse(text, _errors)


def parse_remotes(text: str) -> NvLinks:
    r"""`-R`: the far ends. Raises ParseError.

    >>> said = parse_remotes("GPU 5: NVIDIA A100\n\t Link 0: Remote Device 00000008:00:00.0: Link 32\n")
    >>> link = said.gpus[0].nvlinks[0]
    >>> link.remote_address, link.remote_link
    ('0008:00:00.0', 32)
    """
    return _parse(text, _remote)


def parse_capabilities(text: str) -> NvLinks:
    r"""`-c`: what each link can do. Raises ParseError.

    >>> parse_capabilities("GPU 0: NVIDIA H800\n\t Link 0, P2P is supported: true\n").gpus[0].nvlinks[0].capabilities
    {'P2P is supported': True}
    """
    return _parse(text, _capability)


Fact = Callable[[NvLink, str], "NvLink | None"]  # a link and one line of it -> the link with it; None: not understood


class _Section:
    __slots__ = ("gpu", "links", "misread", "sentences")

    def __init__(self, gpu: Gpu) -> None:
        self.gpu = gpu
        self.links: dict[int, NvLink] = {}
        self.sentences: list[str] = []
        self.misread: list[str] = []


def _parse(text: str, fact: Fact) -> NvLinks:
    check_length(text, _LIMIT_CHARACTERS)
    if not text.strip():  # seen on an H100 with NvLinkDisable=1; a file that was saved badly is empty, too
        raise ParseError("no output, as where the driver offers no NVLink")
    sections: list[_Section] = []
    cut = False
    lines = [line.strip() for line in text.splitlines()]
    if lines and not text.endswith(("\n", "\r")) and (lines[-1][-1:].isdigit() or lines[-1].startswith("GPU ")):
        lines[-1] = lines[-1] if lines[-1].endswith(")") else ""  # a number or a name may be cut
    for line in lines:
        if not line or len(line) > _LIMIT_LINE:
            continue
        if heading := _GPU.fullmatch(line):
            index, name, uuid = heading.groups()
            sections.append(_Section(Gpu(index=int(index), name=name, uuid=_whole(uuid))))
        elif line in _CUTS:
            cut = True
        elif sections:
            _take(sections[-1], line, fact)
    if not sections:
        raise ParseError(f"no GPU; it begins with: {first_line(text)}")
    notes = ["its author cut the text"] if cut else []
    if fact is _status:
        _add_inactive_links(sections)
        if ended_at := _drop_links_of_cut(sections, text):
            notes.append(ended_at)
    notes += [f"GPU{one.gpu.index}: {one.misread[0]!r} is not understood" for one in sections if one.misread]
    return NvLinks(tuple(map(_gpu, sections)), "; ".join(notes) or None)


def _take(section: _Section, line: str, fact: Fact) -> None:
    match = _LINK.fullmatch(line)
    if match is None:
        section.sentences.append(line[:200])
        return
    number, text = int(match[1]), match[2].strip()
    known = section.links.get(number, NvLink(number, "unknown"))
    updated = known if _DOWN.fullmatch(text) and fact is not _status else fact(known, text)
    if updated is None or number >= _MOST_LINKS:
        section.misread.append(line[:80])
    else:
        section.links[number] = updated


def _add_inactive_links(sections: list[_Section]) -> None:
    """The links of a GPU of which it states that all are inactive: those that every other GPU of its model has."""
    for section in sections:
        if not section.links and any(_ALL_INACTIVE in sentence.lower() for sentence in section.sentences):
            alike = [set(one.links) for one in sections if one.links and one.gpu.name == section.gpu.name]
            if alike and all(numbers == alike[0] for numbers in alike):
                section.links = {number: NvLink(number, "inactive") for number in sorted(alike[0])}


def _drop_links_of_cut(sections: list[_Section], text: str) -> str | None:
    """Leave out the links of the last GPU, and return why, where the text may end before its last link: how many it
    has is not known then. They stay where one is down: that is true however the text goes on."""
    last = sections[-1]
    others = [len(one.links) for one in sections[:-1] if one.gpu.name == last.gpu.name]
    rest = "" if text.endswith(("\n", "\r")) else text.splitlines()[-1].strip()
    within_line = bool(_LINK_START.match(rest)) and not _LINK_STATE.fullmatch(rest)
    if not last.links or not (within_line or len(last.links) < max(others, default=0)):
        return None
    if any(link.state != "active" for link in last.links.values()):
        return None
    why = f"the text may end early: it has {len(last.links)} links of GPU{last.gpu.index}"
    last.links, last.sentences = {}, [why]
    return why


def _gpu(section: _Section) -> Gpu:
    """A GPU without links carries the sentence that is in their place, and what that means."""
    if section.links:
        links = tuple(section.links[number] for number in sorted(section.links))
        return section.gpu._replace(nvlink_supported=True, nvlinks=links)
    reason = section.sentences[0] if section.sentences else "nvidia-smi reports nothing of its links"
    text = reason.lower()
    supported = None
    if "does not have or support nvlink" in text:
        supported = False
    elif _ALL_INACTIVE in text:
        supported = True
    return section.gpu._replace(nvlink_supported=supported, nvlink_reason=reason)


def _status(link: NvLink, text: str) -> NvLink | None:
    if speed := _SPEED.fullmatch(text):
        return link._replace(state="active", speed_gbyte_s=float(speed[1]))
    if _DOWN.fullmatch(text):
        word = text[1:-1].lower()
        return link._replace(state=word if word in ("inactive", "sleep") else "unknown")
    return None


def _errors(link: NvLink, text: str) -> NvLink | None:
    counter = _COUNTER.fullmatch(text)
    name = LINK_ERRORS.get(counter[1]) if counter else None
    if counter is None or name is None:
        return link  # traffic, FEC buckets, N/A: nothing of ours
    number = int(counter[2])
    if counter[3]:
        number = number << 8 | int(counter[3])
    return link._replace(errors={**(link.errors or {}), name: number})


def _remote(link: NvLink, text: str) -> NvLink | None:
    far = _REMOTE.fullmatch(text)
    address = find_address(far[1]) if far else None
    return link._replace(remote_address=address, remote_link=int(far[2])) if far and address else None


def _capability(link: NvLink, text: str) -> NvLink | None:
    known = _CAPABILITY.fullmatch(text)
    return link._replace(capabilities={**(link.capabilities or {}), known[1]: known[2] == "true"}) if known else None


def _whole(uuid: str | None) -> str | None:
    return None if uuid is None or ".." in uuid else uuid
