"""mlnx_qos as OFED prints it."""

import pytest

from probes.dcb.facts import Application
from probes.dcb.tools import parse_mlnx_qos
from probes.text import ParseError

DSCPS = "".join(
    f"\tprio:{priority} dscp:{''.join(f'{dscp:02},' for dscp in range(priority * 8 + 7, priority * 8 - 1, -1))}\n"
    for priority in range(8)
)
CLASSES = "".join(
    f"tc: {tc} ratelimit: {'10.0 Gbps' if tc == 5 else 'unlimited'}, tsa: {'ets, bw: 50%' if tc < 2 else 'strict'}\n"
    f"\t priority:  {tc}\n"
    for tc in range(8)
)
TEXT = f"""DCBX mode: OS controlled
Priority trust state: dscp
dscp2prio mapping:
{DSCPS}default priority:
Receive buffer size (bytes): 19872,220896,0,0,0,0,0,0,max_buffer_size=4151520
Cable len: 30
PFC configuration:
\tpriority    0   1   2   3   4   5   6   7
\tenabled     0   0   0   1   0   0   0   0
\tbuffer      0   0   0   1   0   0   0   0
{CLASSES}"""


def test_everything_that_it_says() -> None:
    said = parse_mlnx_qos(TEXT)

    assert (said.trust, said.dcbx_owner, said.delay) == ("dscp", "host", 30)
    assert said.pfc == (False, False, False, True, False, False, False, False)
    assert said.prio_buffer == (0, 0, 0, 1, 0, 0, 0, 0)
    assert said.buffer_bytes == (19872, 220896, 0, 0, 0, 0, 0, 0)
    assert said.applications is not None
    assert len(said.applications) == 64
    assert Application("dscp", 26, 3) in said.applications
    assert said.prio_tc == (0, 1, 2, 3, 4, 5, 6, 7)
    assert said.tc_tsa == ("ets", "ets", *["strict"] * 6)
    assert said.tc_bandwidth == (50, 50, 0, 0, 0, 0, 0, 0)
    assert said.max_rate_kbit_s == (0, 0, 0, 0, 0, 10_000_000, 0, 0)


def test_several_priorities_of_a_class() -> None:
    lines = ["tc: 0 ratelimit: unlimited, tsa: vendor", "\t priority:  0 1 2 3 4 5 6 7"]
    lines += [f"tc: {tc} ratelimit: unlimited, tsa: vendor" for tc in range(1, 8)]
    said = parse_mlnx_qos("\n".join(lines))

    assert said.prio_tc == (0,) * 8
    assert said.tc_bandwidth is None


def test_classes_without_a_priority_may_be_left_out() -> None:
    """Where each priority goes is told; what the other classes are is not."""
    rows = {0: (0, 1, 2, 4, 5, 7), 3: (3,), 6: (6,)}
    lines = [f"tc: {tc} ratelimit: unlimited, tsa: ets, bw: 33%" + "".join(f"\n\t priority:  {n}" for n in of)
             for tc, of in rows.items()]  # fmt: skip
    said = parse_mlnx_qos("\n".join(lines))

    assert said.prio_tc == (0, 0, 0, 3, 0, 0, 6, 0)
    assert (said.tc_tsa, said.tc_bandwidth, said.max_rate_kbit_s) == (None, None, None)
    with pytest.raises(ParseError):
        parse_mlnx_qos("\n".join(lines[:2]))


def test_firmware_and_pcp() -> None:
    said = parse_mlnx_qos("DCBX mode: Firmware controlled\nPriority trust state: pcp\n")
    assert (said.dcbx_owner, said.trust, said.applications, said.pfc) == ("firmware", "pcp", (), None)


def test_what_is_cut_is_not_known() -> None:
    said = parse_mlnx_qos(TEXT[: TEXT.index("tc: 4")])
    assert said.pfc is not None
    assert (said.prio_tc, said.tc_tsa, said.max_rate_kbit_s) == (None, None, None)


@pytest.mark.parametrize("text", ["", "Priority trust state is not supported on your system\n", "Device not found\n"])
def test_what_says_nothing_is_refused(text: str) -> None:
    with pytest.raises(ParseError):
        parse_mlnx_qos(text)
