"""Pseudonyms: the same value has the same one inside a capture, of the same shape, and nobody can compute it again.

The key is random and never stored. What a value is made of is kept where topology hangs on it: a GUID made from a MAC
is, afterwards, the GUID made from that MAC's pseudonym; addresses of one subnet stay in one subnet.
"""

from __future__ import annotations

import hmac
import ipaddress
import string
from collections.abc import Callable

LOCAL, GROUP = 0x02, 0x01  # bits of a MAC's first byte
FLIPPED = b"\xff\xfe"  # EUI-64 of an interface identifier: the LOCAL bit is inverted
INFIXES = (b"\x03\x00", b"\xff\xff", FLIPPED)  # what vendors put into the middle of a MAC to make a GUID of it
CLASSES = (string.digits[1:], string.digits, string.ascii_uppercase, string.ascii_lowercase)
SMALL_INTERFACE = 1 << 16  # an interface identifier that somebody chose: ::1
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
            return self._kept("guid", value, lambda: _with_middle(self._bytes("guid", value)))
        mac = value[:3] + value[5:]
        flipped = infix == FLIPPED and (_flipped(mac) in self.macs or (mac not in self.macs and bool(mac[0] & LOCAL)))
        new = _flipped(self._mac(_flipped(mac))) if flipped else self._mac(mac)
        return new[:3] + infix + new[3:]

    def uuid(self, value: bytes) -> bytes:
        """Sixteen bytes; all alike (none, unknown) stay."""
        return value if len(set(value)) == 1 else self._kept("uuid", value, lambda: self._bytes("uuid", value)[:16])

    def ipv4(self, value: bytes) -> bytes:
        """Four bytes, in 10.0.0.0/8; addresses that share n bits after the first byte still do. Special ones stay."""
        address = ipaddress.IPv4Address(value)
        if address.is_loopback or address.is_multicast or address.is_unspecified or value[0] in (0, 255):
            return value
        rest = bytes(byte ^ self._bytes("ipv4", value[:i])[0] for i, byte in enumerate(value) if i)
        return self._kept("ipv4", value, lambda: b"\x0a" + rest)

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
        return self._kept_text("serial", text, lambda: self._alike(text))

    def host(self, text: str) -> str:
        """The name of a host, by its first label, whatever its case; its domain has a pseudonym of its own."""
        label, dot, domain = text.partition(".")
        name = self._kept_text(
            "host", label.lower(), lambda: f"host-{self._bytes('host', _raw(label.lower())).hex()[:6]}"
        )
        return name + (f".{self.domain(domain)}" if dot else "")

    def host_of_fabric(self, text: str) -> str:
        """The name of one of thousands of hosts and switches: longer, as no two may share one; a host that is known by
        its name elsewhere has the same here."""
        label = _raw(text.lower())
        if ("host", label) in self.given:
            return self.host(text)
        made = self._bytes("fabric", label).hex()[:12]
        return self._kept_text("fabric", text.lower(), lambda: f"host-{made}")

    def domain(self, text: str) -> str:
        """A domain's name."""
        lower = text.lower()
        return self._kept_text(
            "domain", lower, lambda: f"domain-{self._bytes('domain', _raw(lower)).hex()[:6]}.invalid"
        )

    def user(self, text: str) -> str:
        """The name of a person's account."""
        return self._kept_text("user", text, lambda: f"user-{self._bytes('user', _raw(text)).hex()[:6]}")

    def _mac(self, value: bytes) -> bytes:
        new = self._bytes("mac", value)[:6]
        return self._kept("mac", value, lambda: bytes([new[0] & ~GROUP | LOCAL]) + new[1:])

    def _alike(self, text: str) -> str:
        stream = self._bytes("serial", _raw(text)) * (len(text) // 32 + 1)
        return "".join(_one_of(character, byte) for character, byte in zip(text, stream, strict=False))

    def _bytes(self, kind: str, value: bytes) -> bytes:
        return hmac.digest(self._key, kind.encode() + b"\0" + value, "sha256")

    def _kept(self, kind: str, value: bytes, made: Callable[[], bytes]) -> bytes:
        known = self.given.get((kind, value))
        if known is None:
            known = self.given[kind, value] = made()
        return known

    def _kept_text(self, kind: str, text: str, made: Callable[[], str]) -> str:
        return self._kept(kind, _raw(text), lambda: _raw(made())).decode("utf-8", "surrogateescape")


def _raw(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _flipped(mac: bytes) -> bytes:
    return bytes([mac[0] ^ LOCAL]) + mac[1:]


def _with_middle(new: bytes) -> bytes:
    """A GUID that nobody takes for one that is made of a MAC."""
    return bytes([new[0] & ~GROUP | LOCAL]) + new[1:3] + b"\x5a\xa5" + new[5:8]


def _one_of(character: str, byte: int) -> str:
    characters = next((each for each in CLASSES if character in each), character)
    return characters[byte % len(characters)]
