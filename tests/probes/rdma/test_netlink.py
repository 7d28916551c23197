"""RDMA netlink: requests and attributes against rdma/rdma_netlink.h, answers of fixture machines, saved outputs."""

from __future__ import annotations

import errno

import pytest

from fixtures.netlink import DONE, build_error
from probes import netlink
from probes.catalogue import probe
from probes.host.interface import Completed, Failed, ReadError, error_from_errno
from probes.host.live import LiveHost
from probes.netlink import attribute, request
from probes.probe import Status, outcome_of
from probes.rdma import netlink as rdma_netlink
from probes.rdma.netlink import GET, PORT_GET, SYSTEM_GET, NetlinkDevice, RdmaNetlinkFacts, parse_dev, question
from tests.machines import machine as fixture
from tests.probes.machine import Machine

U32 = rdma_netlink.U32


def device(index: int, name: str, protocol: str = "roce") -> bytes:
    result = (
        attribute(1, U32.pack(index)) + attribute(2, f"{name}\0".encode()) + attribute(67, f"{protocol}\0".encode())
    )
    return request(GET, 2, result)


def port(number: int, interface: str = "") -> bytes:
    result = attribute(1, U32.pack(0)) + attribute(3, U32.pack(number))
    return request(PORT_GET, 2, result + (attribute(51, f"{interface}\0".encode()) if interface else b""))


def machine(devices: bytes | ReadError, ports: bytes = b"", mode: bytes | None = b"\1") -> Machine:
    here = Machine(live=True)
    here.answers = {question(GET): devices, question(PORT_GET, 0): ports}
    here.answers[question(SYSTEM_GET)] = request(SYSTEM_GET, 0, attribute(66, mode) if mode is not None else b"")
    return here


def test_numbers_are_those_of_the_header() -> None:
    """As a C compiler gives them for RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_*)."""
    assert (GET, PORT_GET, SYSTEM_GET) == (5121, 5125, 5126)
    assert netlink.HEADER.unpack_from(question(GET))[1:3] == (5121, 0x301)
    assert netlink.HEADER.unpack_from(question(SYSTEM_GET))[1:3] == (5126, 0x1)
    assert question(PORT_GET, 7)[16:].hex() == "0800010007000000"


def test_a_whole_answer() -> None:
    outcome = outcome_of(probe("rdma_netlink"), machine(device(0, "mlx5_0") + DONE, port(1, "eth0") + port(2) + DONE))
    assert outcome.status is Status.OK
    assert outcome.facts == RdmaNetlinkFacts((NetlinkDevice("mlx5_0", "roce", ((1, "eth0"),)),), "shared")


@pytest.mark.parametrize(
    ("mode", "word"), [(b"\0", "exclusive"), (b"\1", "shared"), (b"\7", None), (b"", None), (None, None)]
)
def test_namespaces(mode: bytes | None, word: str | None) -> None:
    assert outcome_of(probe("rdma_netlink"), machine(DONE, mode=mode)).facts == RdmaNetlinkFacts((), word)


@pytest.mark.parametrize("protocol", ["ib", "roce", "iw", "opa", "usnic"])
def test_protocols(protocol: str) -> None:
    result = outcome_of(probe("rdma_netlink"), machine(device(0, "d", protocol))).facts
    assert result.devices[0].protocol == protocol


def test_a_protocol_of_next_year_is_not_known() -> None:
    assert outcome_of(probe("rdma_netlink"), machine(device(0, "d", "x"))).facts.devices[0].protocol is None


def test_without_ib_core_there_is_nothing() -> None:
    why = error_from_errno(OSError(errno.EPROTONOSUPPORT, ""), "netlink protocol 20, message 5121")
    outcome = outcome_of(probe("rdma_netlink"), machine(why))
    assert (outcome.status, "ib_core" in (outcome.reason or "")) == (Status.ABSENT, True)


def test_ports_that_do_not_answer_leave_the_device() -> None:
    outcome = outcome_of(probe("rdma_netlink"), machine(device(0, "mlx5_0"), build_error(errno.ENODEV)))
    assert (outcome.status, outcome.facts.devices) == (Status.PARTIAL, (NetlinkDevice("mlx5_0", "roce"),))


@pytest.mark.parametrize("answer", [b"\0" * 9, request(GET, 0, b"\3\0\1\0"), build_error(errno.EINVAL)])
def test_a_strange_answer_is_a_failure_with_a_reason(answer: bytes) -> None:
    assert outcome_of(probe("rdma_netlink"), machine(answer)).status is Status.FAILED


def test_devices_without_index_or_name_are_left_out() -> None:
    answer = request(GET, 0, attribute(2, b"a\0")) + request(GET, 0, attribute(1, U32.pack(1)))
    assert outcome_of(probe("rdma_netlink"), machine(answer)).facts.devices == ()


def test_saved_outputs_say_the_same() -> None:
    here = Machine()
    text = "0: mlx5_0: node_type ca protocol roce fw 28.43.2026\n1: siw0: node_type rnic\n"
    outputs = {("rdma", "system"): "netns exclusive copy-on-fork on\n", ("rdma", "dev"): text}
    here.outputs = {argv: Completed(argv, 0, text, "", 0.0) for argv, text in outputs.items()}
    devices = (NetlinkDevice("mlx5_0", "roce"), NetlinkDevice("siw0"))
    assert outcome_of(probe("rdma_netlink"), here).facts == RdmaNetlinkFacts(devices, "exclusive")


def test_other_text_names_no_device() -> None:
    assert parse_dev("Failed to open NETLINK_RDMA socket\n") == ()


def test_a_fixture_machine_answers() -> None:
    facts = outcome_of(probe("rdma_netlink"), fixture("8xl40s-pcie-2s-2xcx7-roce")).facts
    assert [(d.name, d.protocol, d.interfaces) for d in facts.devices] == [
        ("mlx5_0", "roce", ((1, "enp27s0np0"),)),
        ("mlx5_1", "roce", ((1, "enp155s0np0"),)),
    ]


def test_only_questions_pass_the_door() -> None:
    """5122 is RDMA_NLDEV_CMD_SET, 5127 SYS_SET."""
    for kind in (5122, 5123, 5127):
        with pytest.raises(ValueError, match="no question"):
            LiveHost().netlink(rdma_netlink.RDMA, request(kind, 1, b""))


def test_the_kernel_that_runs_here_answers_or_has_no_rdma() -> None:
    outcome = outcome_of(probe("rdma_netlink"), LiveHost())
    assert outcome.status in (Status.OK, Status.ABSENT), outcome.reason


def test_the_reason_of_a_refusal_is_kept() -> None:
    assert outcome_of(probe("rdma_netlink"), machine(Failed("why", "EIO"))).reason == "why"
