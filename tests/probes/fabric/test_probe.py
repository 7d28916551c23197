"""Saved outputs of a fabric: which are found, and that no live fabric is ever asked."""

from __future__ import annotations

import pytest

from probes.catalogue import probe
from probes.fabric.probe import outputs
from probes.probe import Status, outcome_of
from tests.probes.fabric.fabric_texts import EVERY, HCA0, LINKS, TOPOLOGY
from tests.probes.machine import Machine

PROBE = probe("ib_fabric")
IBSTAT = "CA 'ibp26s0'\n\tCA type: MT4129\n\tNumber of ports: 1\n"


def test_every_output_is_read_in_the_order_of_belief() -> None:
    """The sources are what a person can repeat."""
    host = Machine(kind="dump").says("iblinkinfo", stdout=LINKS).says("ibnetdiscover", stdout=TOPOLOGY)
    host.says("ibdiagnet2.db_csv", stdout=EVERY["ibdiagnet db_csv"])
    outcome = outcome_of(PROBE, host)

    assert (Status.OK, None) == (outcome.status, outcome.reason)
    assert ("ibnetdiscover", "iblinkinfo", "ibdiagnet2.db_csv") == outcome.sources
    assert list(outcome.sources) == [fact.source for fact in outcome.facts.saved]
    assert [4, 5, 5] == [len(fact.fabric.links) for fact in outcome.facts.saved]


def test_a_rail_has_an_output_of_its_own_in_a_sosreport() -> None:
    """sos asks by device and port; their names are those of sysfs, or of ibstat."""
    host = Machine(kind="sosreport").says("ibstat", stdout=IBSTAT)
    host.put({"/sys/class/infiniband/mlx5_0/node_guid": "b83f:d203:00aa:0010"})
    host.says("iblinkinfo", "-C", "mlx5_0", "-P", "1", stdout=LINKS)
    host.says("iblinkinfo", "-C", "ibp26s0", "-P", "2", stdout=LINKS)

    assert [("iblinkinfo", "-C", "mlx5_0", "-P", "1"), ("iblinkinfo", "-C", "ibp26s0", "-P", "2")] == list(
        outputs(host)
    )
    assert ("iblinkinfo -C mlx5_0 -P 1", "iblinkinfo -C ibp26s0 -P 2") == outcome_of(PROBE, host).sources


def test_a_live_fabric_is_never_asked() -> None:
    """The tools send management packets to every switch."""
    host = Machine(kind="live", live=True).says("ibnetdiscover", stdout=TOPOLOGY).says("iblinkinfo", stdout=LINKS)
    outcome = outcome_of(PROBE, host)

    assert [] == list(outputs(host))
    assert (Status.SKIPPED, ()) == (outcome.status, outcome.sources)
    assert "a live fabric is never queried" in str(outcome.reason)


def test_the_capture_of_a_live_host_says_the_same() -> None:
    """One of a dump holds what the dump held; a dump without an output lacks one."""
    of_dump = Machine(kind="capture").says("iblinkinfo", stdout=LINKS)

    assert Status.SKIPPED is outcome_of(PROBE, Machine(kind="capture")).status
    assert Status.OK is outcome_of(PROBE, of_dump).status
    assert Status.ABSENT is outcome_of(PROBE, Machine(kind="dump")).status


def test_a_node_whose_cables_are_pulled_has_no_links() -> None:
    """Its own adapters are the fabric: that is an answer."""
    alone = TOPOLOGY[TOPOLOGY.index("caguid=0xb83fd20300aa0010") :].split("\n")
    text = "# Topology file: generated on Tue Feb  3 14:02:06 2026\n" + "\n".join(alone[:2])
    outcome = outcome_of(PROBE, Machine(kind="dump").says("ibnetdiscover", stdout=text))

    assert (Status.OK, (), [HCA0]) == (
        outcome.status, outcome.facts.saved[0].fabric.links, list(outcome.facts.saved[0].fabric.nodes),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "status", "reason"),
    [
        (TOPOLOGY + "moan\n", Status.PARTIAL, "ibnetdiscover, line 43: not understood: 'moan'"),
        ("ibwarn: [7] mad_rpc_open_port: can't open UMAD port\n", Status.FAILED, "ibnetdiscover: is not recognized"),
        (
            "#\n# Topology file: generated on Tue Feb  3 14:02:06 2026\n#\n",
            Status.FAILED,
            "ibnetdiscover: contains no link",
        ),
        (f'Ca\t: 0x{HCA0} ports 1 "gpu-7 HCA-1"\n', Status.FAILED, "ibnetdiscover: contains no link"),
    ],
)
def test_what_is_not_understood_is_said(text: str, status: Status, reason: str) -> None:
    """In part, or as a whole."""
    outcome = outcome_of(PROBE, Machine(kind="dump").says("ibnetdiscover", stdout=text))

    assert status is outcome.status
    assert str(outcome.reason).startswith(reason)
