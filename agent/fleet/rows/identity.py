"""What distinguishes a node and its devices from all others, as numbers: they are compared at once, of any kind."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b

from agent.fleet.known_duplicates import own_mac, placeholder, within_host
from agent.fleet.rows.device_fields import GpuFields, NetdevFields, NicFields
from agent.fleet.rows.report_fields import NodeFields

_MAC, _GUID, _IPOIB = 17, 19, 59  # letters; an address of IP over InfiniBand ends with the port's GUID
_LENGTHS = frozenset((_MAC, _GUID, _IPOIB))
_FILLED = frozenset((0x0300, 0xFFFE, 0xFFFF))  # what is in the middle of a GUID that was made of a MAC address
# one digit alone, as innocent.placeholder() has it: of numbers it is decided in a tenth of the time
_ALIKE = frozenset(int(digit * count, 16) for digit in "0123456789abcdef" for count in (12, 16))
_TOP = 1 << 63
_END = 2 * _TOP


def numbers(node: NodeFields, gpus: list[GpuFields], nics: list[NicFields], netdevs: list[NetdevFields]) -> set[int]:
    """64 bits each, none twice. Equal values have equal numbers; two others hardly ever.

    Values that are innocently on many nodes (agent/fleet/known_duplicates.py) have none.
    """
    numbers_of = {_of_address(address) for address in _addresses(nics, netdevs)}
    numbers_of.difference_update(_ALIKE)
    numbers_of.update(map(_of_text, _texts(node, gpus)))
    numbers_of.update(
        _of_text(address.partition("/")[0])
        for netdev in netdevs
        for address in netdev.addresses
        if not within_host(address, netdev.label)
    )
    return numbers_of


def _addresses(nics: list[NicFields], netdevs: list[NetdevFields]) -> Iterator[str]:
    """MAC addresses and GUIDs."""
    for nic in nics:
        if nic.node_guid:
            yield nic.node_guid
        for port in nic.ports:
            if port.port_guid:
                yield port.port_guid
    for netdev in netdevs:
        if netdev.mac and netdev.driver is not None and not own_mac(netdev.mac, netdev.driver, netdev.label):
            yield netdev.mac


def _texts(node: NodeFields, gpus: list[GpuFields]) -> Iterator[str]:
    for text in (node.serial, node.machine_id, *(gpu.serial for gpu in gpus), *(gpu.uuid for gpu in gpus)):
        if text and not placeholder(text):
            yield text


def _of_address(text: str) -> int:
    """A GUID that is made of a MAC address has the same as that, an address that is made of a GUID the same as that.

    >>> _of_address("b8:3f:d2:10:84:a7") == _of_address("b83f:d203:0010:84a7") == 0xB83FD21084A7
    True
    """
    length = len(text)
    if length not in _LENGTHS:
        return _of_text(text)
    try:
        number = int((text[-23:] if length == _IPOIB else text).replace(":", ""), 16)
    except ValueError:
        return _of_text(text)
    if not 0 <= number < _END:
        return _of_text(text)
    if length != _MAC and number >> 24 & 0xFFFF in _FILLED:
        return number >> 40 << 24 | number & 0xFFFFFF
    return number - _END if number >= _TOP else number


def _of_text(text: str) -> int:
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)
