"""netlink and udev of this host: asked for real where they are, bounded, and only ever questions."""

from __future__ import annotations

import _socket as socket
import os
import struct
import sys
import time
import types

import pytest

from probes.host import netlink_socket as netlink
from probes.host import udev
from probes.host.interface import Absent, Failed, ReadError, TimedOut
from probes.host.netlink_socket import request_netlink
from probes.host.udev import Udev, properties, record, record_of
from probes.netlink import same_question, whole_messages

GETLINK, NEWLINK, DUMP = 18, 16, 0x301


def request(kind: int, flags: int, body: bytes = bytes(16)) -> bytes:
    return netlink.HEADER.pack(16 + len(body), kind, flags, 7, 0) + body


def test_a_dump_is_whole() -> None:
    """All interfaces of this network namespace, loopback among them; without the mark of its end."""
    result = list(whole_messages(request_netlink(0, request(GETLINK, DUMP))))

    assert {NEWLINK} == {kind for kind, _, _ in result}
    assert len(os.listdir("/sys/class/net")) == len(result)


def test_one_answer_is_enough_where_one_was_asked_for() -> None:
    """Interface 1, without a dump."""
    body = struct.pack("=BxHiII", 0, 0, 1, 0, 0)
    ((kind, _, message),) = whole_messages(request_netlink(0, request(GETLINK, 1, body)))

    assert NEWLINK == kind
    assert b"lo\0" in message


def test_an_error_is_a_reason() -> None:
    """No such interface: by the errno that the kernel gives."""
    with pytest.raises(ReadError) as caught:
        request_netlink(0, request(GETLINK, 1, struct.pack("=BxHiII", 0, 0, 999_999, 0, 0)))

    assert ("failed", "ENODEV") == (caught.value.status, caught.value.code)


def test_a_protocol_that_the_kernel_lacks_is_a_reason() -> None:
    """Not a traceback."""
    with pytest.raises(ReadError):
        request_netlink(31, request(GETLINK, 1), 0.3)


@pytest.mark.parametrize("kind", [16, 17, 19, 20, 24, 28])
def test_nothing_is_changed_by_a_question(kind: int) -> None:
    """RTM_NEW*, RTM_DEL* and RTM_SET* are refused before a socket is opened."""
    with pytest.raises(ValueError, match="is no question"):
        request_netlink(0, request(kind, 1))
    with pytest.raises(ValueError, match="16 bytes"):
        request_netlink(0, b"short")


class Kernel:
    """A socket whose kernel says what the test gives it."""

    def __init__(self, *datagrams: tuple[bytes, int]) -> None:
        self.datagrams = list(datagrams)

    def __call__(self, *_: object) -> Kernel:
        return self

    def close(self) -> None:
        pass

    def bind(self, _: object) -> None:
        pass

    def settimeout(self, _: float) -> None:
        pass

    def send(self, _: bytes) -> None:
        pass

    def recvfrom(self, _: int) -> tuple[bytes, tuple[int, int]]:
        if not self.datagrams:
            raise TimeoutError
        data, port = self.datagrams.pop(0)
        return data, (port, 0)


DONE = request(3, 2, bytes(4))


def answers(monkeypatch: pytest.MonkeyPatch, *datagrams: tuple[bytes, int]) -> None:
    monkeypatch.setattr(socket, "socket", Kernel(*datagrams))


def test_silence_is_timed_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A dump that stops in the middle is no part of an answer."""
    answers(monkeypatch, (request(NEWLINK, 2), 0))

    with pytest.raises(TimedOut):
        request_netlink(0, request(GETLINK, DUMP))


def test_only_the_kernel_is_listened_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other processes may send to our port."""
    answers(monkeypatch, (request(NEWLINK, 2, b"evil"), 4711), (request(NEWLINK, 2, b"good") + DONE, 0))

    assert request(NEWLINK, 2, b"good") == request_netlink(0, request(GETLINK, DUMP))


def test_a_dump_during_a_change_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """NLM_F_DUMP_INTR: the list is not of one moment. It is not repeated for ever."""
    torn = (request(NEWLINK, 0x12, b"torn") + DONE, 0)
    answers(monkeypatch, torn, (request(NEWLINK, 2, b"good") + DONE, 0))
    assert request(NEWLINK, 2, b"good") == request_netlink(0, request(GETLINK, DUMP))

    answers(monkeypatch, torn, torn, torn, torn)
    with pytest.raises(Failed, match="changed during each of 3"):
        request_netlink(0, request(GETLINK, DUMP))


def test_an_endless_answer_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the limit of bytes, as at the limit of time."""
    monkeypatch.setattr(netlink, "REPLY_LIMIT_BYTES", 10_000)
    answers(monkeypatch, *[(request(NEWLINK, 2, bytes(3000)), 0)] * 10)

    with pytest.raises(Failed, match="an answer of more than"):
        request_netlink(0, request(GETLINK, DUMP))


@pytest.mark.parametrize("data", [b"", b"\x05\0\0\0", bytes(40), b"\xff" * 64, request(NEWLINK, 2)[:-1]])
def test_malformed_messages_end_the_list(data: bytes) -> None:
    """No length of a message leads past its end, or nowhere."""
    began = time.process_time()

    assert [] == list(whole_messages(data))
    assert time.process_time() - began < 1


def test_a_question_is_found_again_by_what_it_asks() -> None:
    """Whatever its sequence number and port."""
    one, other = request(GETLINK, DUMP), bytearray(request(GETLINK, DUMP))
    other[8:16] = b"whatever"

    assert same_question(one) == same_question(bytes(other))
    assert same_question(one) != same_question(request(GETLINK, 1))


def test_a_device_has_one_record() -> None:
    """Buses and classes; nothing else names a device."""
    assert "/run/udev/data/+pci:0000:19:00.0" == record_of("/sys/bus/pci/devices/0000:19:00.0")
    assert "/run/udev/data/+infiniband:mlx5_0" == record_of("/sys/class/infiniband/mlx5_0/")
    for path in ("/sys", "/", "", "/sys/devices/pci0000:00/0000:00:00.0", "/sys/bus/pci/drivers/nvidia"):
        with pytest.raises(Absent):
            record_of(path)


def test_properties_survive_their_record() -> None:
    """Equals signs, empty values and foreign letters too."""
    answer = {"ID_MODEL": "a=b = c", "EMPTY": "", "NAME": "é"}

    assert answer == properties(record(answer).decode())


def test_without_udev_nothing_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    """A container without /run/udev."""
    monkeypatch.setattr(udev.os.path, "isdir", lambda _: False)
    monkeypatch.setitem(sys.modules, "pyudev", None)

    with pytest.raises(Absent, match="no udev runs here"):
        Udev().properties("/sys/bus/pci/devices/0000:19:00.0")


def test_udev_that_cannot_be_used_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pyudev, no libudev, an unknown device, a library that fails."""
    monkeypatch.setattr(udev.os.path, "isdir", lambda _: True)
    path = "/sys/bus/pci/devices/0000:19:00.0"
    for error, kind in ((LookupError, Absent), (OSError, Failed), (ValueError, Failed)):
        monkeypatch.setitem(sys.modules, "pyudev", stand_in(error))
        with pytest.raises(kind):
            Udev().properties(path)
    monkeypatch.setitem(sys.modules, "pyudev", None)
    with pytest.raises(Absent, match="pyudev cannot be used"):
        Udev().properties(path)


def test_udev_is_asked_once_for_its_context(monkeypatch: pytest.MonkeyPatch) -> None:
    """And answers with text in one line each."""
    monkeypatch.setattr(udev.os.path, "isdir", lambda _: True)
    library = stand_in(None)
    monkeypatch.setitem(sys.modules, "pyudev", library)
    request = Udev()

    for _ in range(3):
        assert {"ID_MODEL_FROM_DATABASE": "GH100 [H100]"} == request.properties("/sys/bus/pci/devices/0000:19:00.0")
    assert 1 == library.contexts


def stand_in(error: type[Exception] | None) -> types.ModuleType:
    """A pyudev as far as it is used."""
    library = types.ModuleType("pyudev")
    library.contexts = 0
    library.DeviceNotFoundError = LookupError

    def context() -> object:
        library.contexts += 1
        return object()

    def from_sys_path(_context: object, _path: str) -> object:
        if error is not None:
            raise error("no")
        return types.SimpleNamespace(properties={"ID_MODEL_FROM_DATABASE": "GH100\n[H100]"})

    library.Context = context
    library.Devices = types.SimpleNamespace(from_sys_path=from_sys_path)
    return library
