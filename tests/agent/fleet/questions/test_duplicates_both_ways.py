"""By the numbers of nodes, or by the values of each kind: `fleet duplicates` answers the same."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.fleet.questions.duplicates import duplicates
from tests.agent.fleet.questions.nodes import asked, interface, node, port

VALUES = st.integers(0, 5)


@st.composite
def nodes(draw):
    made = []
    for n in range(draw(st.integers(2, 5))):
        guid, mac, address, text = (draw(VALUES) for _ in range(4))
        name = draw(st.sampled_from(["eth0", "docker0"]))
        driver = draw(st.sampled_from(["mlx5_core", "bridge", None]))
        guids = [
            f"0c42:a103:0000:{guid:04x}",
            "0000:0000:0000:0000",
            "ffff:ffff:ffff:ffff",
            "0c42:a1ff:fe00:0001",
            "x",
            "",
        ]
        made.append(
            node(
                f"n{n}",
                nics=[port(draw(st.integers(1, 3)), guids[guid])],
                netdevs=[interface(name, f"0c:42:a1:00:00:0{mac}", f"10.0.0.{address}/24", driver=driver)],
                gpus=[f"GPU-{draw(VALUES)}000", "N/A"],
                machine_id=["unknown", "a1b2", "c3d4", "\ud83d\ude00 id", "0000", "e5f6"][text],
            )
        )
    return made


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(reports=nodes())
def test_both_ways_give_the_same(tmp_path_factory, monkeypatch, reports):
    with asked(tmp_path_factory.mktemp("both"), *reports) as tables:
        by_numbers = duplicates(tables)
        with monkeypatch.context() as patched:
            patched.setattr("agent.fleet.questions.duplicates.MOST", -1)
            assert duplicates(tables) == by_numbers
