"""roce-marking-unset: nothing marks RDMA, or nothing that could be seen; and every guard alone."""

from __future__ import annotations

import msgspec
import pytest

from agent.model.node import NcclLibrary, NcclSetting
from agent.rules.roce.lossless import roce_marking_unset as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import changed_nic, changed_port, fails, probe, software
from tests.agent.rules.roce.qos import PORT, dcb_everywhere, facts, lost, nccl_sets, netdevs, roce, silent, traffic
from tests.agent.rules.rows import only


def unset():
    return nccl_sets(roce())


def seen(case, **changes):
    """The same machine with another view of NCCL."""
    return software(case, nccl=msgspec.structs.replace(case.software.nccl, **changes))


def test_nothing_marks_is_a_warning() -> None:
    """With the value that the lossless class needs, and how to declare it."""
    (fault,) = fails(rule, unset())

    assert ("node", "warning", "medium") == (fault.subject, fault.severity, fault.confidence)
    assert fault.summary.startswith(
        "nothing marks RDMA: NCCL sends DSCP 0, which is priority 0; PFC is on for priority 3"
    )
    assert fault.remedy.startswith("set NCCL_IB_TC=106 in /etc/nccl.conf")
    assert "roce_traffic_class = 106 below [facts]" in fault.remedy
    assert ("not set (DSCP 0)", "/etc/nccl.conf") == (fault.evidence[0].value, fault.evidence[0].source)


def test_lost_packets_make_it_an_error() -> None:
    """On the port that lost them."""
    found = {fault.subject: (fault.severity, fault.confidence) for fault in fails(rule, lost(unset()))}

    assert ("error", "high") == found[PORT]
    assert 3 == sum(("warning", "medium") == each for each in found.values())


@pytest.mark.parametrize(
    ("doubt", "word"),
    [
        pytest.param({"jobs": 2, "jobs_unread": 1}, "1 of 2 jobs", id="jobs unread"),
        pytest.param({"jobs": None}, "is not known", id="jobs not known"),
        pytest.param({"plugins": [NcclLibrary(path="/opt/libnccl-net.so")]}, "plugin may mark by itself", id="plugin"),
    ],
)
def test_what_was_not_seen_may_set_it(doubt, word: str) -> None:
    """Info, and roce-lossy does not say it."""
    (fault,) = fails(rule, seen(unset(), **doubt))

    assert ("info", "low") == (fault.severity, fault.confidence)
    assert word in fault.summary


def test_a_key_with_a_blank_sets_nothing() -> None:
    """NCCL takes the text before "=" as the name."""
    assert 1 == len(fails(rule, nccl_sets(roce(), **{"NCCL_IB_TC ": "106"})))


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        pytest.param(lambda c: facts(c, roce_mode="lossy"), NotApplicable, id="declared lossy"),
        pytest.param(lambda c: facts(c, roce_traffic_class=106), Pass, id="declared class"),
        pytest.param(lambda c: nccl_sets(c, NCCL_IB_TC="106"), Pass, id="set"),
        pytest.param(
            lambda c: seen(
                c, settings=[NcclSetting(key="NCCL_IB_TC", value="106", source="environment of pid 7 (a)", scope="job")]
            ),
            Pass,
            id="set by a job",
        ),
        pytest.param(lambda c: dcb_everywhere(c, pfc=only(0)), Pass, id="DSCP 0 is lossless"),
        pytest.param(lambda c: dcb_everywhere(c, dscp_prio={"0": 3}), Pass, id="the table sends DSCP 0 there"),
        pytest.param(lambda c: dcb_everywhere(c, trust="pcp"), Pass, id="trust PCP"),
        pytest.param(lambda c: dcb_everywhere(c, pfc=only()), Pass, id="PFC off"),
        pytest.param(lambda c: probe(c, "nccl", "denied"), Unknown, id="files not read"),
        pytest.param(lambda c: seen(c, searched=[]), Unknown, id="file not looked for"),
        pytest.param(lambda c: netdevs(c, qos=None), Unknown, id="DCB not known"),
    ],
)
def test_a_guard_keeps_it_silent(circumstance, kind) -> None:
    """The firing case and this circumstance."""
    silent(rule, circumstance(unset()), kind)


def test_guards_of_one_port() -> None:
    """A forced class, bytes that prove otherwise, storage."""
    assert 3 == len(fails(rule, changed_port(unset(), 1, traffic_class=106)))
    assert 3 == len(fails(rule, traffic(unset(), 3)))
    assert "info" in {fault.severity for fault in fails(rule, changed_nic(unset(), 1, role="storage"))}


def test_without_doubt_and_without_a_good_class_neither_is_told() -> None:
    """No DSCP leads to the lossless priority: there is no value to declare."""
    (fault,) = fails(rule, dcb_everywhere(unset(), dscp_prio={"0": 0}))

    assert "PFC is on for priority 3; the same on 4 ports" in fault.summary
    assert "NCCL_IB_TC=4 * DSCP + 2 of the lossless class" in fault.remedy
    assert "roce_traffic_class" not in fault.remedy
