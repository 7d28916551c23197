"""ib-rate-unparsed: when it fires, when it must not, and every guard alone."""

from __future__ import annotations

import pytest

from agent.rules.infiniband.links import ib_rate_unparsed as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import answers, changed_nic, changed_port, changed_ports, fails, function, nic_id, server

NIC = nic_id(1)
PORT = f"port:{NIC}/1"
SDR = {"rate_gbit_s": 10.0, "speed": "SDR"}


def test_sdr_on_a_new_card_is_an_info() -> None:
    """The kernel and what it printed."""
    (fault,) = fails(rule, changed_port(server(), 1, **SDR))

    assert (PORT, "info") == (fault.subject, fault.severity)
    assert "10 Gb/s (4X SDR) on ConnectX-7: kernel 6.8.0-60-generic has no name for its speed" == fault.summary
    assert ["10 Gb/s (4X SDR)"] == [row.value for row in fault.evidence]


def test_the_same_on_every_port_is_one_finding() -> None:
    """It is the kernel's."""
    assert [("node", "info")] == [(f.subject, f.severity) for f in fails(rule, changed_ports(server(), **SDR))]


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        pytest.param(lambda c: changed_port(c, 1, state="DOWN"), NotApplicable, id="not active"),
        pytest.param(lambda c: changed_port(c, 1, rate_gbit_s=None), Unknown, id="rate not read"),
        pytest.param(lambda c: changed_port(c, 1, speed="NDR"), Pass, id="a speed with a name"),
        pytest.param(lambda c: function(c, NIC, device="0x1016"), Pass, id="an older card"),
        pytest.param(
            lambda c: function(changed_nic(c, 1, model=None), NIC, device=None), Unknown, id="which card is not known"
        ),
        pytest.param(
            lambda c: changed_port(function(changed_nic(c, 1, model=None), NIC, device=None), 1, speed="NDR"),
            Pass,
            id="a speed with a name, of whatever card",
        ),
        pytest.param(lambda c: changed_nic(c, 1, role="management"), NotApplicable, id="management"),
        pytest.param(lambda c: changed_nic(c, 1, limited="mezz internal"), NotApplicable, id="fabric manager's"),
    ],
)
def test_a_guard_keeps_it_silent(circumstance, kind) -> None:
    """The firing case and this circumstance: no fault, and the answer that the page promises."""
    case = circumstance(changed_port(server(), 1, **SDR))
    (answer,) = answers(rule, case, PORT)

    assert isinstance(answer, kind), answer
    assert [] == fails(rule, case)


@pytest.mark.parametrize(
    "circumstance",
    [
        pytest.param(lambda c: function(c, NIC, device="0x1017"), id="ConnectX-5, the first that is judged"),
        pytest.param(lambda c: function(changed_nic(c, 1, model="MT4129"), NIC, device=None), id="by its HCA type"),
    ],
)
def test_a_card_is_known_by_its_id_or_its_type(circumstance) -> None:
    """The HCA type is the device id in decimal."""
    assert [PORT] == [fault.subject for fault in fails(rule, circumstance(changed_port(server(), 1, **SDR)))]
