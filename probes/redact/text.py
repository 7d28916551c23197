"""Identities in text: found by their shape or because they are known, and written again in the spelling they had.

Text is what a file, a command or an error states; bytes are looked at as Latin-1, so that none is changed but those.

The same value has the same pseudonym inside a capture, of the same shape, and no one can compute it again: the key is
random and never stored. What a value is made of is kept where topology hangs on it: a GUID made from a MAC is,
afterwards, the GUID made from that MAC's pseudonym; addresses of one subnet stay in one subnet.
"""

from __future__ import annotations

import hmac
import ipaddress
import re
import string
from collections.abc import Callable, Iterable

from probes.text import lazy_pattern

LOCAL, GROUP = 0x02, 0x01  # bits of a MAC's first byte
FLIPPED = b"\xff\xfe"  # EUI-64 of an interface identifier: the LOCAL bit is inverted
INFIXES = (b"\x03\x00", b"\xff\xff", FLIPPED)  # what vendors put into the middle of a MAC to make a GUID of it
CLASSES = (string.digits[1:], string.digits, string.ascii_uppercase, string.ascii_lowercase)
SMALL_INTERFACE = 1 << 16  # an interface identifier that someone chose: ::1
LINK_LOCAL = b"\xfe\x80" + bytes(6)
MAPPED = bytes(10) + b"\xff\xff"


class Pseudonyms:
    """Values to pseudonyms. Binary values are bytes in the order in which they are written.

    `macs` are the MACs that are known to be some: they decide how an identifier was made of one.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key
        self.macs: set[bytes] = set()
        self.given: dict[tuple[str, bytes], bytes] = {}

    def is_sound(self) -> bool:
        """Whether no two values share a pseudonym, and none is another's original: else another key is needed."""
        originals, new = set(self.given), {(kind, name) for (kind, _), name in self.given.items()}
        return len(new) == len(originals) and not originals & new

    def mac(self, value: bytes) -> bytes:
        """Six bytes, locally administered; none at all and group addresses stay."""
        return value if value[0] & GROUP or not any(value) else self._mac(value)

    def guid(self, value: bytes) -> bytes:
        """Eight bytes: a GUID, an interface identifier, a PCIe device serial number."""
        if len(set(value)) == 1:
            return value
        infix = value[3:5]
        if infix not in INFIXES:
            return self._pseudonym("guid", value, lambda: _with_middle(self._bytes("guid", value)))
        mac = value[:3] + value[5:]
        flipped = infix == FLIPPED and (_flip(mac) in self.macs or (mac not in self.macs and bool(mac[0] & LOCAL)))
        new = _flip(self._mac(_flip(mac))) if flipped else self._mac(mac)
        return new[:3] + infix + new[3:]

    def uuid(self, value: bytes) -> bytes:
        """Sixteen bytes; all alike (none, unknown) stay."""
        return (
            value if len(set(value)) == 1 else self._pseudonym("uuid", value, lambda: self._bytes("uuid", value)[:16])
        )

    def ipv4(self, value: bytes) -> bytes:
        """Four bytes, in 10.0.0.0/8; addresses that share n bits after the first byte still do. Special ones stay."""
        address = ipaddress.IPv4Address(value)
        if address.is_loopback or address.is_multicast or address.is_unspecified or value[0] in (0, 255):
            return value
        rest = bytes(byte ^ self._bytes("ipv4", value[:i])[0] for i, byte in enumerate(value) if i)
        return self._pseudonym("ipv4", value, lambda: b"\x0a" + rest)

    def ipv6(self, value: bytes) -> bytes:
        """Sixteen bytes: an IPv6 address or a GID. The interface part is a GUID's, or stays where it is a small number;
        the prefix keeps its kind, and subnets that share n bits still do."""
        if value.startswith(MAPPED):
            return MAPPED + self.ipv4(value[12:])
        address = ipaddress.IPv6Address(value)
        if address.is_loopback or address.is_multicast or address.is_unspecified:
            return value
        prefix, interface = value[:8], value[8:]
        if prefix != LINK_LOCAL:
            hidden = bytes(byte ^ self._bytes("ipv6", prefix[:i])[0] for i, byte in enumerate(prefix) if i > 1)
            prefix = prefix[:2] + hidden
        small = int.from_bytes(interface, "big") < SMALL_INTERFACE
        return prefix + (interface if small else self.guid(interface))

    def infiniband(self, value: bytes) -> bytes:
        """Twenty bytes: the hardware address of IPoIB, a queue pair's number and a GID."""
        return value[:4] + self.ipv6(value[4:])

    def serial(self, text: str) -> str:
        """As long, with digits for digits and letters for letters."""
        return self._pseudonym_text("serial", text, lambda: self._rewrite_alike(text))

    def host(self, text: str) -> str:
        """The name of a host, by its first label, whatever its case; its domain has a pseudonym of its own."""
        label, dot, domain = text.partition(".")
        name = self._pseudonym_text(
            "host", label.lower(), lambda: f"host-{self._bytes('host', _raw(label.lower())).hex()[:6]}"
        )
        return name + (f".{self.domain(domain)}" if dot else "")

    def host_of_fabric(self, text: str) -> str:
        """The name of one of thousands of hosts and switches: longer, as no two may share one; a host that is known by
        its name elsewhere has the same here."""
        label = _raw(text.lower())
        if ("host", label) in self.given:
            return self.host(text)
        digest = self._bytes("fabric", label).hex()[:12]
        return self._pseudonym_text("fabric", text.lower(), lambda: f"host-{digest}")

    def domain(self, text: str) -> str:
        """A domain's name."""
        lower = text.lower()
        return self._pseudonym_text(
            "domain", lower, lambda: f"domain-{self._bytes('domain', _raw(lower)).hex()[:6]}.invalid"
        )

    def user(self, text: str) -> str:
        """The name of a person's account."""
        return self._pseudonym_text("user", text, lambda: f"user-{self._bytes('user', _raw(text)).hex()[:6]}")

    def _mac(self, value: bytes) -> bytes:
        new = self._bytes("mac", value)[:6]
        return self._pseudonym("mac", value, lambda: bytes([new[0] & ~GROUP | LOCAL]) + new[1:])

    def _rewrite_alike(self, text: str) -> str:
        stream = self._bytes("serial", _raw(text)) * (len(text) // 32 + 1)
        return "".join(_one_of(character, byte) for character, byte in zip(text, stream, strict=False))

    def _bytes(self, kind: str, value: bytes) -> bytes:
        return hmac.digest(self._key, kind.encode() + b"\0" + value, "sha256")

    def _pseudonym(self, kind: str, value: bytes, make: Callable[[], bytes]) -> bytes:
        known = self.given.get((kind, value))
        if known is None:
            known = self.given[kind, value] = make()
        return known

    def _pseudonym_text(self, kind: str, text: str, make: Callable[[], str]) -> str:
        return self._pseudonym(kind, _raw(text), lambda: _raw(make())).decode("utf-8", "surrogateescape")


def _raw(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _flip(mac: bytes) -> bytes:
    return bytes([mac[0] ^ LOCAL]) + mac[1:]


def _with_middle(new: bytes) -> bytes:
    """A GUID that no one takes for one that is made of a MAC."""
    return bytes([new[0] & ~GROUP | LOCAL]) + new[1:3] + b"\x5a\xa5" + new[5:8]


def _one_of(character: str, byte: int) -> str:
    characters = next((class_ for class_ in CLASSES if character in class_), character)
    return characters[byte % len(characters)]


_HEX = "[0-9A-Fa-f]"
_SHAPES = lazy_pattern(
    rf"(?P<uuid>(?<!{_HEX}){_HEX}{{8}}(?:-{_HEX}{{4}}){{3}}-{_HEX}{{12}}(?!{_HEX}))"
    rf"|(?P<pairs>(?<!{_HEX}){_HEX}{{2}}(?P<by>[:-]){_HEX}{{2}}(?:(?P=by){_HEX}{{2}}){{4,18}}(?!(?P=by)?{_HEX}))"
    rf"|(?P<groups>(?<![0-9A-Za-z.])(?:{_HEX}{{0,4}}:){{2,8}}(?:[0-9]{{1,3}}(?:\.[0-9]{{1,3}}){{3}}|{_HEX}{{1,4}})?(?!{_HEX}|\.[0-9]))"
    r"|(?P<ipv4>(?<![0-9A-Za-z.])[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?![0-9A-Za-z]|\.[0-9]))"
    rf"|(?P<run>{_HEX}{{12,}})"
)
_GUID_GROUPS = lazy_pattern(rf"{_HEX}{{4}}(?::{_HEX}{{4}}){{3}}")
_IPV4, _MAC, _GUID, _UUID, _IPV6, _INFINIBAND = 4, 6, 8, 16, 16, 20  # bytes

FEW_BYTES = 3  # different ones in a round number


class TextRedactor:
    """Writes texts again. What is known is in the sets; `words` are names and serials with their pseudonyms."""

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
        """A GUID, unless it could as well be a number: those are everywhere with sixteen digits."""
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
        """Names and serials, to be written again wherever they stand as words."""
        self.words = {word.lower(): new for word, new in words.items()}
        longest_first = sorted(self.words, key=lambda word: (-len(word), word))
        joined = "|".join(map(re.escape, longest_first))
        self._words = re.compile(rf"(?<![0-9A-Za-z])(?:{joined})(?![0-9A-Za-z])", re.IGNORECASE) if joined else None

    def text(self, text: str) -> str:
        """The same text with pseudonyms."""
        if self._words is not None:
            text = self._words.sub(lambda match: self.words[match[0].lower()], text)
        return _SHAPES.sub(self._rewrite_match, text)

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

    def _rewrite_match(self, match: re.Match[str]) -> str:
        text = match[0]
        kinds: dict[str, Callable[[str], str]] = {
            "uuid": self._uuid,
            "pairs": self._pairs,
            "groups": self._groups,
            "ipv4": self._ipv4,
            "run": self._run,
        }
        matched = next(kind for kind in kinds if match[kind])
        return kinds[matched](text)

    def _uuid(self, text: str) -> str:
        new = self.names.uuid(bytes.fromhex(text.replace("-", ""))).hex()
        return _match_case("-".join((new[:8], new[8:12], new[12:16], new[16:20], new[20:])), text)

    def _pairs(self, text: str) -> str:
        raw = bytes.fromhex(text.replace(text[2], ""))
        if len(raw) == _MAC + 1:
            new = raw[:1] + self.names.mac(raw[1:])
        else:
            ways = {_MAC: self.names.mac, _GUID: self.names.guid, _INFINIBAND: self.names.infiniband}
            new = ways.get(len(raw), bytes)(raw)
        return _match_case(new.hex(text[2]), text)

    def _groups(self, text: str) -> str:
        """A GUID or a GID in groups of four, an IPv6 address; a colon after it is no part of it."""
        bare = text[:-1] if text.endswith(":") and not text.endswith("::") else text
        if _GUID_GROUPS.fullmatch(bare):
            digits = self.names.guid(bytes.fromhex(bare.replace(":", ""))).hex()
            return _match_case(":".join(digits[i : i + 4] for i in range(0, 16, 4)), bare) + text[len(bare) :]
        raw = self._address(bare)
        if raw is None or (hidden := self.names.ipv6(raw)) == raw:
            return text
        written = hidden.hex(":", 2) if len(bare) == 39 else _like(ipaddress.IPv6Address(hidden), bare)
        return _match_case(written, bare) + text[len(bare) :]

    def _ipv4(self, text: str) -> str:
        """Only where it is known to be an address: versions look the same."""
        raw = _packed_ipv4(text)
        return text if raw is None or raw not in self.ipv4 else str(ipaddress.IPv4Address(self.names.ipv4(raw)))

    def _run(self, text: str) -> str:
        """Digits without anything between them: known values, and what is as long as a UUID."""
        size, remainder = divmod(len(text), 2)
        raw = b"" if remainder else bytes.fromhex(text)
        if size == _MAC and raw in self.names.macs:
            return _match_case(self.names.mac(raw).hex(), text)
        if size == _GUID and (raw in self.guids or self._is_made_of_a_mac(raw)):
            return _match_case(self.names.guid(raw).hex(), text)
        if size == _UUID and not remainder:
            is_address = raw in self.ipv6 or raw.startswith(b"\xfe\x80" + bytes(6))
            return _match_case((self.names.ipv6 if is_address else self.names.uuid)(raw).hex(), text)
        if size == _INFINIBAND and raw[4:] in self.ipv6:
            return _match_case(self.names.infiniband(raw).hex(), text)
        return text

    def _is_made_of_a_mac(self, raw: bytes) -> bool:
        return raw[3:5] in INFIXES and raw[:3] + raw[5:] in self.names.macs


def addresses_in(text: str) -> Iterable[bytes]:
    """Whatever looks like an IPv4 address: for texts that hold such, as a kernel's command line."""
    addresses = (_packed_ipv4(match[0]) for match in _SHAPES.finditer(text) if match["ipv4"])
    return [raw for raw in addresses if raw is not None]


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


def _match_case(new: str, old: str) -> str:
    """In capitals where the old one was."""
    return new.upper() if old != old.lower() else new
