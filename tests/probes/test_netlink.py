"""The codec of netlink: what the kernel's headers lay down, and any bytes at all."""

from __future__ import annotations

import errno

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.netlink import build_error, build_link
from probes import netlink
from probes.netlink import NetlinkError, attribute, attributes, messages, request
from probes.text import ParseError


def test_requests_only_ask():
    """rtnetlink numbers its verbs NEW, DEL, GET, SET: every request of ours is a GET."""
    for message in (netlink.links_request(), netlink.addresses_request(), netlink.statistics_request(7)):
        length, kind, flags, _, _ = netlink.HEADER.unpack_from(message)

        assert len(message) == length
        assert 2 == kind % 4
        assert flags & 0x1


def test_dump_of_links_leaves_statistics_out():
    """Statistics in the dump would ask every driver, sleeping cards too."""
    body = netlink.links_request()[netlink.HEADER.size + netlink.LINK.size :]

    assert {29: b"\x08\0\0\0"} == attributes(body)


def test_refusal_names_the_errno():
    """An error of the kernel is told apart from bytes that are no message."""
    with pytest.raises(NetlinkError, match="EPERM"):
        messages(build_error(errno.EPERM))


def test_acknowledgement_is_no_message():
    """An error message with code 0 means that all is well."""
    assert [] == messages(build_error(0))


@pytest.mark.parametrize("cut", [1, 15, 17, 30])
def test_torn_message_is_the_declared_error(cut: int):
    """A reply that ends within a message is not read as a shorter one."""
    with pytest.raises(ParseError):
        messages(build_link(1, "lo")[:cut])


@given(st.lists(st.tuples(st.integers(1, 0x3FFF), st.binary(max_size=40))))
def test_attributes_survive_a_round_trip(said: list[tuple[int, bytes]]):
    """Whatever is encoded is decoded, padding and all."""
    data = b"".join(attribute(kind, value) for kind, value in said)

    assert said == list(netlink.iter_attributes(data))


@given(st.lists(st.binary(max_size=60)))
def test_messages_survive_a_round_trip(payloads: list[bytes]):
    """Messages joined as the host interface joins them: padded to four bytes."""
    sent = [request(16, 0, payload) for payload in payloads]
    read = messages(b"".join(message + bytes(-len(message) % 4) for message in sent))

    assert payloads == [message.payload for message in read]
