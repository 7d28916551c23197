"""What a fault of a RoCE port is about; which ports are judged is rows of tests/matrix/rules/roce_counters.toml."""

from __future__ import annotations

from agent.rules.roce.counters import roce_rt_crc
from tests.agent.rules.build import changed_netdev, fails
from tests.agent.rules.moves import PORT, moved, roce

ERRORS = {"rx_crc_errors_phy": 10}


def test_a_fault_is_about_the_port_and_its_interface() -> None:
    """Told by the name of the port, found by either."""
    case = changed_netdev(roce(), 1, id="eth1 of 25:00.0")
    (fault,) = fails(roce_rt_crc, moved(case, "netdev:eth1 of 25:00.0", ERRORS))

    assert (PORT, "mlx5_1/1 (eth1)") == (fault.subject, fault.label)
    assert {"eth1 of 25:00.0", PORT.removeprefix("port:")} <= fault.places
