"""Identities in text: found by their shape or because they are known, and written anew in the spelling they had.

Text is what a file, a command or an error says; bytes are looked at as Latin-1, so that none is changed but those.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable

from probes.redact.pseudonyms import INFIXES, Pseudonyms

_HEX = "[0-9A-Fa-f]"
_SHAPES = re.compile(
    rf"(?P<uuid>(?<!{_HEX}){_HEX}{{8}}(?:-{_HEX}{{4}}){{3}}-{_HEX}{{12}}(?!{_HEX}))"
    rf"|(?P<pairs>(?<!{_HEX}){_HEX}{{2}}(?P<by>[:-]){_HEX}{{2}}(?:(?P=by){_HEX}{{2}}){{4,18}}(?!(?P=by)?{_HEX}))"
    rf"|(?P<groups>(?<![0-9A-Za-z.])(?:{_HEX}{{0,4}}:){{2,8}}(?:[0-9]{{1,3}}(?:\.[0-9]{{1,3}}){{3}}|{_HEX}{{1,4}})?(?!{_HEX}|\.[0-9]))"
    r"|(?P<ipv4>(?<![0-9A-Za-z.])[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?![0-9A-Za-z]|\.[0-9]))"
    rf"|(?P<run>{_HEX}{{12,}})"
)
_GUID_GROUPS = re.compile(rf"{_HEX}{{4}}(?::{_HEX}{{4}}){{3}}")
_IPV4, _MAC, _GUID, _UUID, _IPV6, _INFINIBAND = 4, 6, 8, 16, 16, 20  # bytes

FEW_BYTES = 3  # different ones in a round number


class Texts:
    """Writes texts anew. What is known stands in the sets; `words` are names and serials with their pseudonyms."""

    def __init__(self, names: Pseudonyms) -> None:
        self.names = names
        self.guids: set[bytes] = set()
        self.ipv4: set[bytes] = set()
        self.ipv6: set[bytes] = set()
        self.words: dict[str, str] = {}
        self._words: re.Pattern[str] | None = None

    def learn(self, text: str) -> None:
        """Every identity that its shape alone gives away."""
        for match in _SHAPES.finditer(text):
            if match["pairs"]:
                self.learn_hardware(bytes.fromhex(match["pairs"].replace(match["by"], "")))
            elif match["groups"]:
                self._learn_groups(match["groups"].rstrip(":") or "::")

    def learn_hardware(self, raw: bytes) -> None:
        """A MAC, a GUID, an address of IPoIB; others are not known."""
        if len(raw) == _MAC + 1:  # BOOTIF=01-b8-3f-d2-...: the hardware type, then the MAC
            raw = raw[1:]
        if len(raw) == _MAC and any(raw):
            self.names.macs.add(raw)
        elif len(raw) == _GUID:
            self.learn_guid(raw)
        elif len(raw) == _INFINIBAND:
            self.learn_address(raw[4:])

    def learn_guid(self, raw: bytes) -> None:
        """A GUID, unless it could as well be a number: those stand everywhere with sixteen digits."""
        if any(raw[:3]) and len(set(raw)) > FEW_BYTES:
            self.guids.add(raw)

    def learn_address(self, raw: bytes) -> None:
        """An IPv4 or IPv6 address, a GID."""
        if len(raw) == _IPV4:
            self.ipv4.add(raw)
        elif len(raw) == _IPV6:
            self.ipv6.add(raw)
            self.learn_guid(raw[8:])
            mapped = ipaddress.IPv6Address(raw).ipv4_mapped
            if mapped is not None:
                self.ipv4.add(mapped.packed)

    def know(self, words: dict[str, str]) -> None:
        """Names and serials, to be written anew wherever they stand as words."""
        self.words = {word.lower(): new for word, new in words.items()}
        longest_first = sorted(self.words, key=lambda word: (-len(word), word))
        joined = "|".join(map(re.escape, longest_first))
        self._words = re.compile(rf"(?<![0-9A-Za-z])(?:{joined})(?![0-9A-Za-z])", re.IGNORECASE) if joined else None

    def text(self, text: str) -> str:
        """The same text with pseudonyms."""
        if self._words is not None:
            text = self._words.sub(lambda match: self.words[match[0].lower()], text)
        return _SHAPES.sub(self._written, text)

    def content(self, content: bytes) -> bytes:
        """The same for a file's bytes."""
        return self.text(content.decode("latin-1")).encode("latin-1")

    def _learn_groups(self, text: str) -> None:
        if _GUID_GROUPS.fullmatch(text):
            self.learn_guid(bytes.fromhex(text.replace(":", "")))
        elif (raw := self._address(text)) is not None:
            self.learn_address(raw)

    def _address(self, text: str) -> bytes | None:
        """An IPv6 address: "0::" of a cgroup is none, unless it is known to be one."""
        raw = _ipv6(text)
        return raw if raw in self.ipv6 or any(len(group) > 2 for group in text.split(":")) else None

    def _written(self, match: re.Match[str]) -> str:
        text = match[0]
        kinds: dict[str, Callable[[str], str]] = {
            "uuid": self._uuid,
            "pairs": self._pairs,
            "groups": self._groups,
            "ipv4": self._ipv4,
            "run": self._run,
        }
        found = next(kind for kind in kinds if match[kind])
        return kinds[found](text)

    def _uuid(self, text: str) -> str:
        new = self.names.uuid(bytes.fromhex(text.replace("-", ""))).hex()
        return _cased("-".join((new[:8], new[8:12], new[12:16], new[16:20], new[20:])), text)

    def _pairs(self, text: str) -> str:
        raw = bytes.fromhex(text.replace(text[2], ""))
        if len(raw) == _MAC + 1:
            new = raw[:1] + self.names.mac(raw[1:])
        else:
            ways = {_MAC: self.names.mac, _GUID: self.names.guid, _INFINIBAND: self.names.infiniband}
            new = ways.get(len(raw), bytes)(raw)
        return _cased(new.hex(text[2]), text)

    def _groups(self, text: str) -> str:
        """A GUID or a GID in groups of four, an IPv6 address; a colon after it is no part of it."""
        bare = text[:-1] if text.endswith(":") and not text.endswith("::") else text
        if _GUID_GROUPS.fullmatch(bare):
            digits = self.names.guid(bytes.fromhex(bare.replace(":", ""))).hex()
            return _cased(":".join(digits[i : i + 4] for i in range(0, 16, 4)), bare) + text[len(bare) :]
        raw = self._address(bare)
        if raw is None or (hidden := self.names.ipv6(raw)) == raw:
            return text
        written = hidden.hex(":", 2) if len(bare) == 39 else _like(ipaddress.IPv6Address(hidden), bare)
        return _cased(written, bare) + text[len(bare) :]

    def _ipv4(self, text: str) -> str:
        """Only where it is known to be an address: versions look the same."""
        raw = _packed_ipv4(text)
        return text if raw is None or raw not in self.ipv4 else str(ipaddress.IPv4Address(self.names.ipv4(raw)))

    def _run(self, text: str) -> str:
        """Digits without anything between them: known values, and what is as long as a UUID."""
        size, odd = divmod(len(text), 2)
        raw = b"" if odd else bytes.fromhex(text)
        if size == _MAC and raw in self.names.macs:
            return _cased(self.names.mac(raw).hex(), text)
        if size == _GUID and (raw in self.guids or self._is_made_of_a_mac(raw)):
            return _cased(self.names.guid(raw).hex(), text)
        if size == _UUID and not odd:
            is_address = raw in self.ipv6 or raw.startswith(b"\xfe\x80" + bytes(6))
            return _cased((self.names.ipv6 if is_address else self.names.uuid)(raw).hex(), text)
        if size == _INFINIBAND and raw[4:] in self.ipv6:
            return _cased(self.names.infiniband(raw).hex(), text)
        return text

    def _is_made_of_a_mac(self, raw: bytes) -> bool:
        return raw[3:5] in INFIXES and raw[:3] + raw[5:] in self.names.macs


def addresses_in(text: str) -> Iterable[bytes]:
    """Whatever looks like an IPv4 address: for texts that hold such, as a kernel's command line."""
    found = (_packed_ipv4(match[0]) for match in _SHAPES.finditer(text) if match["ipv4"])
    return [raw for raw in found if raw is not None]


def _ipv6(text: str) -> bytes | None:
    try:
        return ipaddress.IPv6Address(text).packed
    except ValueError:
        return None


def _packed_ipv4(text: str) -> bytes | None:
    try:
        return ipaddress.IPv4Address(text).packed
    except ValueError:
        return None


def _like(new: ipaddress.IPv6Address, old: str) -> str:
    """Dotted at its end where the old one was; Python's own text of a mapped address is so only from 3.13 on."""
    if new.ipv4_mapped is None:
        return new.compressed
    high, low = new.packed[12:14], new.packed[14:]
    return (
        f"::ffff:{new.ipv4_mapped}"
        if "." in old
        else f"::ffff:{int.from_bytes(high, 'big'):x}:{int.from_bytes(low, 'big'):x}"
    )


def _cased(new: str, old: str) -> str:
    """In capitals where the old one was."""
    return new.upper() if old != old.lower() else new
