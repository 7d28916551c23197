"""What an operator's silence is for: its rule, its device, its time; and that it hides nothing else."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from agent.model.finding import Finding, Silenced, Summary
from agent.rules.context import RuleContext, Settings, Silence
from agent.rules.engine import judge
from agent.rules.fingerprints import fingerprint
from agent.rules.node_wide import merge_failures
from agent.rules.rule import Fail, Rule
from tests.agent.rules.build import changed_netdev, changed_port, gpu_id, nic_id, server

GPU, NIC = gpu_id(1), nic_id(1)
OF_GPU = Fail(subject=f"gpu:{GPU}", label="GPU1", summary="s", impact="i", ids=frozenset({GPU}))
OF_PORT = replace(OF_GPU, subject=f"port:{NIC}/1", label="mlx5_1/1 (eth1)", ids=frozenset({NIC}))
OF_PAIR = replace(OF_GPU, subject=f"pair:{GPU}+{NIC}", label="GPU1 - mlx5_1")
OF_NODE = replace(OF_GPU, subject="node", label="node")
OF_NETDEV = replace(OF_GPU, subject=f"netdev:{NIC}", label="eth1", ids=frozenset({NIC}))


def rule(name: str, *faults: Fail, severity: str = "error", absorbs: tuple[str, ...] = ()) -> Rule:
    """A rule that reports these faults."""

    def check(context: RuleContext) -> Iterator[Fail]:
        yield from faults

    return Rule(name, severity, "", (), absorbs=absorbs, check=check)


def judged(rules: list[Rule], *silences: Silence, **changes: object) -> tuple[list[Finding], Summary]:
    """Findings and summary of an Ethernet server with these silences."""
    context = replace(server(ethernet=True), observed_at="2026-03-31T23:59:59Z", settings=Settings(silences=silences))
    return judge(replace(context, **changes), rules)[1:]


def rows(findings: list[Finding]) -> list[tuple[str, str, str, bool]]:
    """Rule, subject, severity, and whether it is silenced."""
    return [(f.rule, f.subject.partition(":")[0], f.severity, f.silenced is not None) for f in findings]


def test_a_silenced_finding_counts_in_no_verdict() -> None:
    """It is listed last, with the reason, and counted by itself."""
    known = Silence("known", "riser ordered", "GPU1", "2026-03-31", "OPS-1")
    findings, summary = judged([rule("known", OF_GPU, severity="critical"), rule("new", OF_GPU)], known)

    assert [("new", "gpu", "error", False), ("known", "gpu", "critical", True)] == rows(findings)
    assert Silenced(until="2026-03-31", reason="riser ordered", ticket="OPS-1") == findings[1].silenced
    assert ("error", 1, {"info": 0, "warning": 0, "error": 1, "critical": 0}) == (
        summary.verdict,
        summary.silenced,
        summary.counts,
    )
    assert "ok" == judged([rule("known", OF_GPU)], known)[1].verdict


@pytest.mark.parametrize(
    ("until", "observed", "silenced"),
    [
        ("2026-03-31", "2026-03-31T23:59:59Z", True),
        ("2026-03-31", "2026-04-01T00:00:00Z", False),
        ("2026-03-31", None, False),
        (None, None, True),
    ],
)
def test_a_silence_ends_with_its_last_day(until: str | None, observed: str | None, silenced: bool) -> None:
    """At a time that is not known only one without an end is in force."""
    findings, summary = judged([rule("r", OF_GPU)], Silence("r", "x", until=until), observed_at=observed)

    assert silenced == bool(findings[0].silenced)
    assert ("ok" if silenced else "error", silenced) == (summary.verdict, summary.silenced)


@pytest.mark.parametrize(
    ("fault", "names"),
    [
        (OF_GPU, (GPU, f"gpu:{GPU}", "GPU1", None)),
        (OF_PORT, (NIC, f"{NIC}/1", "mlx5_1", "mlx5_1/1 (eth1)", "eth1")),
        (OF_NETDEV, (NIC, "eth1", "mlx5_1")),
        (OF_PAIR, ("GPU1 - mlx5_1", f"{GPU}+{NIC}")),
        (OF_NODE, ("node",)),
        (replace(OF_GPU, subject="pci:0000:ff:00.0"), ("0000:ff:00.0",)),
        (replace(OF_GPU, subject=f"link:{GPU}/3", label="GPU1 link 3"), ("GPU1", GPU, f"{GPU}/3")),
        (replace(OF_NETDEV, subject="netdev:0000:ff:00.0/9", label="eth9"), ("0000:ff:00.0",)),
        (OF_GPU, (fingerprint("r", OF_GPU, server()),)),
    ],
)
def test_a_device_by_every_name_that_it_has(fault: Fail, names: tuple[str | None, ...]) -> None:
    """And not by another one's."""
    for name in names:
        assert judged([rule("r", fault)], Silence("r", "x", name))[0][0].silenced, name
    for name in ("GPU0", "mlx5_0", "eth0", "r", "", nic_id(0), fault.subject.partition(":")[0]):
        assert name == fault.subject or not judged([rule("r", fault)], Silence("r", "x", name))[0][0].silenced, name


def test_one_device_is_not_the_pair() -> None:
    """A fault of two devices may be the other one's."""
    for name in ("GPU1", "mlx5_1", GPU, NIC):
        assert not judged([rule("r", OF_PAIR)], Silence("r", "x", name))[0][0].silenced


def test_an_interface_has_the_name_that_it_has_now() -> None:
    """By its row, not by the label of the finding."""
    context = changed_netdev(server(ethernet=True), 1, label="ens1f0np0")
    findings, _ = judged([rule("r", OF_NETDEV)], Silence("r", "x", "ens1f0np0"), topology=context.topology)

    assert findings[0].silenced


def test_a_port_has_the_names_of_its_interfaces() -> None:
    """Also of one that has no row of its own."""
    context = changed_port(server(ethernet=True), 1, netdevs=["bond7"])
    findings, _ = judged([rule("r", OF_PORT)], Silence("r", "x", "bond7"), topology=context.topology)

    assert findings[0].silenced


def test_another_rule_is_not_silenced() -> None:
    """Nor are other devices of the same rule."""
    other = replace(OF_GPU, subject=f"gpu:{gpu_id(2)}", label="GPU2", ids=frozenset({gpu_id(2)}))
    findings, _ = judged([rule("r", OF_GPU, other), rule("s", OF_GPU)], Silence("r", "x", "GPU1"))

    assert [("r", "gpu", "error", False), ("s", "gpu", "error", False), ("r", "gpu", "error", True)] == rows(findings)


CAUSE = rule("cause", OF_GPU, severity="warning", absorbs=("effect",))
EFFECT = rule("effect", OF_GPU, severity="critical")


def test_what_a_silenced_cause_explains_stands_by_itself() -> None:
    """Unless the entry is for that, too."""
    apart, summary = judged([CAUSE, EFFECT], Silence("cause", "x"))
    below, quiet = judged([CAUSE, EFFECT], Silence("cause", "x", all=True))

    assert [("effect", "gpu", "critical", False), ("cause", "gpu", "warning", True)] == rows(apart)
    assert "critical" == summary.verdict
    assert [("cause", "gpu", "critical", True)] == rows(below)
    assert [f"effect gpu:{GPU}"] == below[0].absorbs
    assert "ok" == quiet.verdict


def test_a_silenced_consequence_hides_no_cause() -> None:
    """The cause is another finding, as grave as what it explains."""
    assert [("cause", "gpu", "critical", False)] == rows(judged([CAUSE, EFFECT], Silence("effect", "x"))[0])


def test_a_chain_is_taken_apart_only_where_it_is_silenced() -> None:
    """Root, its consequence, and the last: silencing the middle one, which does not stand, changes nothing."""
    root = rule("root", OF_GPU, absorbs=("cause",))
    whole, _ = judged([root, CAUSE, EFFECT], Silence("cause", "x"))
    both, _ = judged([root, CAUSE, EFFECT], Silence("root", "x"), Silence("cause", "x"))

    assert [("root", "gpu", "critical", False)] == rows(whole)
    assert [
        ("effect", "gpu", "critical", False), ("root", "gpu", "error", True), ("cause", "gpu", "warning", True),
    ] == rows(both)  # fmt: skip


MERGED = merge_failures([OF_GPU, replace(OF_GPU, subject=f"gpu:{gpu_id(2)}", ids=frozenset({gpu_id(2)}))], "two")


@pytest.mark.parametrize(
    ("silences", "until"),
    [
        ([Silence("r", "x", GPU)], ""),
        ([Silence("r", "x", GPU), Silence("r", "y", gpu_id(2), "2026-05-01")], "2026-05-01"),
        ([Silence("r", "x", GPU, "2026-06-01"), Silence("r", "y", gpu_id(2), "2026-05-01")], "2026-05-01"),
        ([Silence("r", "x", GPU), Silence("r", "y", gpu_id(2))], None),
        ([Silence("r", "x", "node", "2026-07-01"), Silence("r", "y", GPU)], "2026-07-01"),
    ],
)
def test_a_finding_of_several_devices_needs_a_silence_of_each(silences: list[Silence], until: str | None) -> None:
    """Or one of the whole; it ends with the first of them."""
    findings, _ = judged([rule("r", MERGED)], *silences)

    assert (until != "") == bool(findings[0].silenced)
    assert not findings[0].silenced or until == findings[0].silenced.until


@pytest.mark.parametrize("both", [True, False])
def test_of_several_devices_all_entries_are_for_what_they_explain(both: bool) -> None:
    """Where one is not, it stands by itself."""
    cause = rule("cause", MERGED, severity="error", absorbs=("effect",))
    silences = [Silence("cause", "x", GPU, all=True), Silence("cause", "y", gpu_id(2), all=both)]
    findings, summary = judged([cause, EFFECT], *silences)

    assert ("ok" if both else "critical", 1) == (summary.verdict, summary.silenced)
    assert (1 if both else 2) == len(findings)


def test_a_part_that_stands_alone_is_taken_apart_too() -> None:
    """A finding of three devices of which another cause explains two."""
    parts = [
        replace(OF_GPU, subject=f"gpu:{gpu_id(n)}", label=f"GPU{n}", ids=frozenset({gpu_id(n)})) for n in (1, 2, 3)
    ]
    middle = rule("middle", merge_failures(parts, "three"), absorbs=("effect",))
    root = rule("root", merge_failures(parts[1:], "two"), absorbs=("middle",))
    findings, _ = judged([root, middle, EFFECT], Silence("middle", "x", "GPU1"))

    assert ("effect", "gpu", "critical", False) in rows(findings)
    assert ("middle", "gpu", "error", True) in rows(findings)


def test_a_silence_with_a_field_is_for_that_field_alone() -> None:
    """Of one rule for all fields of all parts; without a field it is for each of them."""
    rows_ = rule("r", replace(OF_GPU, field="gpu.vbios", cause="gpu.vbios"), replace(OF_GPU, field="gpu.ecc"))
    of_one, _ = judged([rows_], Silence("r", "x", field="gpu.vbios"))
    of_all, _ = judged([rows_], Silence("r", "x"))

    assert [("gpu.ecc", False), ("gpu.vbios", True)] == [(f.field, f.silenced is not None) for f in of_one]
    assert all(finding.silenced for finding in of_all)
