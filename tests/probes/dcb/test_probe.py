"""DCB of interfaces: what drivers answer or refuse, OFED's sysfs, saved outputs, what marks traffic."""

from __future__ import annotations

import errno
from functools import partial

import pytest

from fixtures import dcb as made
from fixtures.description import QosSpec
from fixtures.netlink import build_error, build_link
from probes import netlink
from probes.catalogue import probe
from probes.dcb import netlink as dcb_netlink
from probes.dcb import probe as dcb
from probes.dcb.facts import DcbInterface, TrafficMarking
from probes.host.interface import Completed, Failed, ReadError, error_from_errno
from probes.host.live import LiveHost
from probes.netlink import attribute, request
from probes.probe import Status, outcome_of
from probes.sources.memory import SymlinkNode
from tests.probes.dcb.test_tools import PFC, TEXT
from tests.probes.machine import Machine, read_facts

NAME, MAC, PCI = "ens1f0np0", "b8:3f:d2:00:00:01", "0000:1a:00.0"
DEVICE = f"/sys/devices/pci0000:15/0000:15:01.0/{PCI}"
FOLDER = f"{DEVICE}/net/{NAME}"
ON_3 = (False, False, False, True, False, False, False, False)
RDMA = "/sys/class/infiniband/mlx5_0"


def machine(answer: bytes | ReadError | None, *, live: bool = True, kind: int = 1, **texts: str) -> Machine:
    """One port of a ConnectX. `texts`: files below its folder, "/" written "__"."""
    here = Machine(live=live).put(
        {
            f"/sys/class/net/{NAME}": SymlinkNode(f"../../devices/pci0000:15/0000:15:01.0/{PCI}/net/{NAME}"),
            f"/sys/bus/pci/devices/{PCI}": SymlinkNode(f"../../../devices/pci0000:15/0000:15:01.0/{PCI}"),
            f"{DEVICE}/power/runtime_status": "active\n",
            f"{FOLDER}/ifindex": "4\n",
            f"{FOLDER}/address": f"{MAC}\n",
            **{f"{FOLDER}/{path.replace('__', '/')}": text for path, text in texts.items()},
        }
    )
    here.answers[netlink.links_request()] = build_link(4, NAME, mac=MAC, type=kind)
    if answer is not None:
        here.answers[dcb_netlink.question(NAME, dcb_netlink.IEEE_GET)] = answer
    return here


def qos(**words: object) -> bytes:
    return made.build_reply(NAME, QosSpec(**words))  # type: ignore[arg-type]


facts = partial(read_facts, "dcb")


def row(here: Machine) -> DcbInterface:
    (one,) = facts(here).interfaces
    return one


def test_a_driver_answers() -> None:
    outcome = outcome_of(probe("dcb"), machine(qos(pfc=[3], trust="dscp")))
    (one,) = outcome.facts.interfaces

    assert outcome.status is Status.OK
    assert "DCB netlink RTM_GETDCB" in outcome.sources
    assert (one.name, one.pci, one.reason) == (NAME, PCI, None)
    assert [result.source for result in one.said] == ["DCB netlink"]
    assert one.said[0].pfc == ON_3


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (errno.EOPNOTSUPP, "the driver has no DCB here (EOPNOTSUPP)"),
        (errno.ENODEV, "ENODEV: no such interface in this network namespace"),
        (errno.EPERM, "EPERM: netlink protocol 0, message 78: Operation not permitted"),
    ],
)
def test_a_refusal_is_a_reason_of_that_interface(code: int, reason: str) -> None:
    one = row(machine(error_from_errno(OSError(code, ""), "netlink protocol 0, message 78")))
    assert (one.said, one.reason) == ((), reason)


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"\0" * 7,
        build_error(errno.EOPNOTSUPP),
        request(dcb_netlink.GET_DCB, 0, b""),
        request(dcb_netlink.GET_DCB, 0, bytes(4) + attribute(dcb_netlink.IEEE, attribute(dcb_netlink.PFC, b"short"))),
        request(dcb_netlink.GET_DCB + 1, 0, bytes(4)),
    ],
)
def test_a_strange_answer_is_a_reason(answer: bytes) -> None:
    one = row(machine(answer))
    assert one.said == ()
    assert one.reason


def test_who_sets_dcb_is_asked_where_the_answer_does_not_say() -> None:
    here = machine(qos(missing=["dcbx"]))
    body = dcb_netlink.HEAD.pack(0, 22, 0) + attribute(dcb_netlink.DCBX, b"\x04")
    here.answers[dcb_netlink.question(NAME, dcb_netlink.GET_DCBX)] = request(dcb_netlink.GET_DCB, 0, body)
    assert row(here).said[0].dcbx == ("cee",)


def test_cee_is_asked_where_ieee_says_nothing() -> None:
    here = machine(qos(missing=["pfc", "ets"]))
    priorities = b"".join(attribute(number, bytes([int(number == 4)])) for number in range(1, 9))
    body = attribute(dcb_netlink.CEE, attribute(dcb_netlink.CEE_PFC, priorities))
    head = dcb_netlink.HEAD.pack(0, 26, 0)
    here.answers[dcb_netlink.question(NAME, dcb_netlink.CEE_GET)] = request(dcb_netlink.GET_DCB, 0, head + body)
    assert row(here).said[0].pfc == ON_3


def test_nothing_is_made_up_where_neither_says_pfc() -> None:
    result = row(machine(qos(missing=["pfc", "ets"]))).said[0]
    assert (result.pfc, result.dcbx) == (None, ("host", "ieee"))


def test_a_sleeping_device_is_not_asked() -> None:
    here = machine(qos(pfc=[3]))
    here.put({f"{DEVICE}/power/runtime_status": "suspended\n"})
    assert outcome_of(probe("dcb"), here).status is Status.ABSENT
    assert not [path for path in here.asked if "/qos" in path or "/ecn" in path]


def test_infiniband_interfaces_are_not_asked() -> None:
    assert outcome_of(probe("dcb"), machine(qos(pfc=[3]), kind=32)).status is Status.ABSENT


def test_ofed_tells_trust_and_ecn() -> None:
    enabled = {f"ecn__roce_np__enable__{priority}": "1\n" if priority == 3 else "0\n" for priority in range(8)}
    files = {"qos__trust": "dscp\n", "qos__pfc": "0 0 0 1 0 0 0 0\n", "qos__prio2buffer": "0 0 0 1 0 0 0 0\n"}
    here = machine(qos(), **enabled, **files, ecn__roce_np__cnp_dscp="48\n", ecn__roce_np__cnp_802p_prio="6\n")
    one = row(here)

    assert [result.source for result in one.said] == ["DCB netlink", "qos/trust"]
    assert (one.said[1].trust, one.said[1].pfc, one.said[1].prio_buffer) == ("dscp", ON_3, (0, 0, 0, 1, 0, 0, 0, 0))
    assert one.ecn == {"np": ON_3}
    assert (one.cnp_dscp, one.cnp_priority) == (48, 6)


@pytest.mark.parametrize("text", ["", "x", "0 0 0", "0 0 0 2 0 0 0 0", "9" * 400])
def test_what_ofed_says_otherwise_is_not_known(text: str) -> None:
    one = row(machine(qos(), qos__pfc=text, qos__trust=text, ecn__roce_np__cnp_dscp=text, ecn__roce_np__enable__3=text))
    assert [result.source for result in one.said] == ["DCB netlink"]
    assert one.cnp_dscp is None
    assert one.ecn == {"np": (None,) * 8}


def test_saved_outputs_speak_where_no_kernel_does() -> None:
    here = machine(Failed("a dump holds no netlink answers"), live=False)
    for argv, text in ((("mlnx_qos", "-i", NAME), TEXT), (("dcb", "pfc", "show", "dev", NAME), PFC)):
        here.outputs[argv] = Completed(argv, 0, text, "", 0.0)
    one = row(here)

    assert [result.source for result in one.said] == ["mlnx_qos", "dcb"]
    assert one.reason == "a dump holds no netlink answers"


def test_a_saved_output_that_says_nothing_is_a_gap() -> None:
    here = machine(Failed("no"), live=False)
    argv = ("mlnx_qos", "-i", NAME)
    here.outputs[argv] = Completed(argv, 1, "Device not found", "", 0.0)
    outcome = outcome_of(probe("dcb"), here)
    assert (outcome.status, outcome.facts.interfaces[0].said) == (Status.PARTIAL, ())
    assert "mlnx_qos" in (outcome.reason or "")


def test_no_tool_is_run_on_a_live_host() -> None:
    here = machine(qos())
    argv = ("mlnx_qos", "-i", NAME)
    here.outputs[argv] = Completed(argv, 0, TEXT, "", 0.0)
    assert [result.source for result in row(here).said] == ["DCB netlink"]


@pytest.mark.parametrize(
    ("text", "forced"),
    [("Global tclass=106\n", 106), ("", None), ("tclass=3,src_ip=10.0.0.1\n", None), ("Global tclass=300", None)],
)
def test_a_forced_traffic_class(text: str, forced: int | None) -> None:
    here = machine(qos()).put({f"{RDMA}/tc/1/traffic_class": text})
    assert facts(here).markings == (TrafficMarking("mlx5_0", 1, forced),)


def test_rdma_cm_is_read_where_its_folder_is_there_already() -> None:
    here = machine(qos()).put({f"{RDMA}/fw_ver": "1\n", "/sys/class/infiniband/mlx5_1/fw_ver": "1\n"})
    here.put({f"{dcb.CONFIGURED}/mlx5_0/ports/1/default_roce_mode": "RoCE v2\n"})
    assert facts(here).markings == (TrafficMarking("mlx5_0", 1, None, "RoCE v2"),)


def test_the_kernel_that_runs_here_understands_the_question() -> None:
    """The loopback has no DCB, and says so with the right errno; a kernel without CONFIG_DCB answers the same."""
    with pytest.raises(Failed) as why:
        LiveHost().netlink(netlink.ROUTE, dcb_netlink.question("lo", dcb_netlink.IEEE_GET))
    assert why.value.code in dcb.NO_DCB


def test_an_interface_that_only_ip_names_has_its_saved_output() -> None:
    here = Machine()
    text = f"4: {NAME}: <BROADCAST,UP> mtu 9000\n"
    text += f"    link/ether {MAC} brd ff:ff:ff:ff:ff:ff parentbus pci parentdev {PCI} \n"
    for argv, result in ((("ip", "-d", "link"), text), (("mlnx_qos", "-i", NAME), TEXT)):
        here.outputs[argv] = Completed(argv, 0, result, "", 0.0)
    one = row(here)
    assert (one.name, one.pci, [result.source for result in one.said]) == (NAME, PCI, ["mlnx_qos"])
