"""What is a difference and what is not, whichever way round the reports are given."""

from __future__ import annotations

import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.diff import diff
from agent.diff.ledger import GROUPS, KINDS, Change, Diff
from agent.diff.page import page
from agent.model.gpu import Gpu
from agent.model.nic import Fec, Netdev, Nic, Qos
from agent.model.node import Module
from agent.model.report import Report
from agent.outputs.text.lines import to_plain_text
from agent.reports import encode_report
from fixtures.machine import base_of
from tests.agent.diff.changed import HGX, PCIE, ROCE, changed, renamed, renumbered, rows, shuffled
from tests.machines import HOSTS, SOME_FAULTS, scan_machine
from tests.texts import read_fields

UNREAD = ("pci", "lspci", "nvml", "nvidia_smi")
LATER = {"observed_at": "2026-01-15T09:00:00Z"}


def told(made: Diff) -> list[str]:
    """Each change in a few words."""
    return [f"{c.group} {c.kind} {c.what} {'|'.join(p.label for p in c.subjects)}" for c in made.changes]


def only(made: Diff) -> Change:
    """The one change there is."""
    assert 1 == len(made.changes), told(made)
    return made.changes[0]


@pytest.mark.parametrize("shape", HOSTS)
def test_a_machine_is_the_same_as_itself(shape: str) -> None:
    """Whatever order its rows stand in."""
    report = scan_machine(shape)

    assert [] == diff(report, report).changes
    assert [] == diff(report, shuffled(report, random.Random(3).shuffle)).changes
    assert "no differences" in to_plain_text(page(diff(report, report)))


def test_load_time_and_traffic_are_no_difference() -> None:
    """Neither is a slower link of an idle GPU."""
    report = scan_machine(PCIE)

    def busy(netdev: Netdev) -> Netdev:
        return msgspec.structs.replace(netdev, counters={k: v + 7 for k, v in netdev.counters.items() if "bytes" in k})

    def resting(gpu: Gpu) -> Gpu:
        return msgspec.structs.replace(gpu, pstate="P8")

    later = rows(rows(report, "netdevs", busy), "gpus", resting)
    later = changed(later, **LATER, generated_at="2026-01-15T09:00:01Z", duration_seconds=9.0, node__uptime_seconds=5.0)

    assert [] == diff(report, later).changes


@pytest.mark.parametrize("fault", SOME_FAULTS)
def test_the_other_way_round_is_the_reverse(fault: str) -> None:
    """What is gone one way is new the other; what is lost is gained; values change places."""
    healthy, faulty = scan_machine(base_of(fault)), scan_machine("", fault)
    turned = {"gone": "new", "new": "gone", "lost": "gained", "gained": "lost"}

    def facts(made: Diff, reverse: bool) -> list[str]:
        collected = []
        for c in made.changes:
            kind = turned.get(c.kind, c.kind) if reverse else c.kind
            old, new = (c.new, c.old) if reverse else (c.old, c.new)
            ends = sorted(repr((p.new, p.old) if reverse else (p.old, p.new)) for p in c.subjects)
            collected += [f"{c.group} {kind} {c.what} {old} {new} {end}" for end in ends]
        return sorted(collected)

    assert facts(diff(healthy, faulty), reverse=False) == facts(diff(faulty, healthy), reverse=True)


def test_a_card_in_another_slot_is_one_move() -> None:
    """Both of its functions, with the old place and the new."""
    old = scan_machine(ROCE)
    nic = next(n for n in old.topology.nics if n.pci == "0000:2e:00.0")
    new = renamed(old, {"0000:2e:00": "0000:f4:00"})
    new = rows(new, "pci", lambda f: msgspec.structs.replace(f, parent="0000:00:00.0") if "f4:00" in f.id else f)

    change = next(c for c in diff(old, new).changes if c.group == "devices")
    assert ("moved", "nic") == (change.kind, change.what)
    assert [nic.label] == [p.label for p in change.subjects]
    assert "0000:2e:00" in str(change.old)
    assert "0000:f4:00" in str(change.new)
    assert 1 == sum(c.group == "devices" for c in diff(old, new).changes)


@pytest.mark.parametrize("shape", [HGX, ROCE, PCIE])
def test_other_bus_numbers_are_not_other_devices(shape: str) -> None:
    """All buses shifted by one: one line, and nothing else."""
    change = only(diff(scan_machine(shape), renumbered(scan_machine(shape), 1)))

    assert ("devices", "renumbered") == (change.group, change.kind)


def test_a_gpu_that_went_shifts_only_names() -> None:
    """The GPUs after it have other indices, and are the same by UUID."""
    old = scan_machine(HGX)
    lost = old.topology.gpus[2]
    labels = {f"GPU{k}": f"GPU{k - 1}" for k in range(3, 8)}
    new = rows(old, "pci", lambda f: None if f.id == lost.pci else f)
    new = rows(new, "gpus", lambda g: None if g.id == lost.id else g)
    new = rows(new, "gpus", lambda g: msgspec.structs.replace(g, label=labels.get(g.label, g.label)))
    new = rows(new, "paths", lambda p: None if lost.id in (p.a, p.b) else p)

    result = diff(old, new)
    assert ["devices gone gpu", "devices renamed gpu"] == [f"{c.group} {c.kind} {c.what}" for c in result.changes]
    assert [f"GPU2 ({lost.uuid})"] == [p.label for p in result.changes[0].subjects]
    assert 5 == len(result.changes[1].subjects)
    assert ("ok", ["GPU2"], []) == (result.new.verdict, result.new.missing, result.old.missing)
    assert ": 1 device is missing: GPU2 (verdict" in " ".join(to_plain_text(page(result, 200)).split())
    unread = [msgspec.structs.replace(p, status="denied") if p.name in UNREAD else p for p in new.probes]
    assert [] == diff(old, changed(new, probes=unread)).new.missing


def test_devices_that_only_got_a_name_are_the_same() -> None:
    """A source without ids of vendors, and one without PCI addresses of NICs, compared with one that has both."""
    whole = scan_machine(ROCE)
    bare = rows(whole, "pci", lambda f: msgspec.structs.replace(f, name=None, vendor=None, device=None))
    bare = rows(bare, "nics", lambda n: msgspec.structs.replace(n, id=n.label, pci=None, node_guid=None))

    for result in (diff(bare, whole), diff(whole, bare)):
        assert [] == [change for change in told(result) if change.startswith("devices")]


def test_a_swapped_card_is_replaced() -> None:
    """The same slot and model, another UUID."""
    old = scan_machine(HGX)
    uuid = old.topology.gpus[0].uuid or ""
    new = rows(old, "gpus", lambda g: msgspec.structs.replace(g, uuid="GPU-1", serial="1") if g.uuid == uuid else g)

    change = next(c for c in diff(old, new).changes if c.kind == "replaced")
    assert (uuid, "GPU-1") == (change.old, change.new)
    assert not [c for c in diff(old, new).changes if c.kind in ("gone", "new")]


def test_renamed_interfaces_are_the_same_interfaces() -> None:
    """udev gave other names: one line."""
    old = scan_machine(ROCE)
    new = rows(old, "netdevs", lambda n: msgspec.structs.replace(n, label=f"eth{n.label}") if n.pci else n)

    change = only(diff(old, new))
    assert ("renamed", "netdev") == (change.kind, change.what)


def test_two_hosts_are_compared_by_place() -> None:
    """Said at the top; UUIDs, GUIDs, MACs and addresses differ, as they have to."""
    old = scan_machine(HGX)
    new = changed(old, node__hostname="h100-02", node__machine_id="e" * 32, node__serial="2")
    new = rows(new, "gpus", lambda g: msgspec.structs.replace(g, uuid=f"{g.uuid}-2", serial=None))
    new = rows(new, "nics", lambda n: msgspec.structs.replace(n, node_guid=f"{n.node_guid}2"))
    new = rows(new, "pci", lambda f: msgspec.structs.replace(f, serial=None))
    new = rows(new, "netdevs", lambda n: msgspec.structs.replace(n, mac="00:00:00:00:00:01", addresses=["10.0.0.1/8"]))
    result = diff(old, new)

    assert not result.same_host
    assert "two hosts" in result.notes[0]
    assert [] == told(result)
    assert ["software changed kernel node"] == told(diff(old, changed(new, node__kernel="6.9.0")))
    assert ["software changed bios_version node"] == told(diff(old, changed(new, node__bios_version="9.9")))


def test_a_cloned_image_is_another_host() -> None:
    """The same machine id on two serial numbers is two machines."""
    old = scan_machine(HGX)

    assert not diff(old, changed(old, node__hostname="h100-02", node__serial="2")).same_host
    assert diff(old, changed(old, node__machine_id="e" * 32)).same_host


def test_counters_are_told_as_rates() -> None:
    """An error counter that grew, by the time between both scans; traffic is not told."""
    old = changed(scan_machine(HGX), observed_at="2026-01-15T08:00:00Z")

    def worse(nic: Nic) -> Nic:
        counters = nic.ports[0].counters | {"symbol_error": 360, "port_rcv_data": 1 << 40}
        return msgspec.structs.replace(nic, ports=[msgspec.structs.replace(nic.ports[0], counters=counters)])

    first = old.topology.nics[0].id
    new = changed(rows(old, "nics", lambda n: worse(n) if n.id == first else n), **LATER)
    change = only(diff(old, new))
    assert ("grew", "symbol_error", 0, 360, 0.1) == read_fields(change, "kind what old new per_second")
    assert [] == diff(new, old).changes
    assert "OLD was observed after NEW" in diff(new, old).notes[0]


def test_a_reboot_resets_counters() -> None:
    """Their values are of the new boot, and that is said; a counter that fell is a reset, too."""
    old = scan_machine(HGX)

    def broken(count: int) -> Report:
        def with_errors(nic: Nic) -> Nic:
            ports = [msgspec.structs.replace(p, counters=p.counters | {"link_downed": count}) for p in nic.ports]
            return msgspec.structs.replace(nic, ports=ports) if nic.label == "mlx5_0" else nic

        return rows(old, "nics", with_errors)

    rebooted = diff(broken(5), changed(broken(7), node__boot_id="f"))
    assert "restarted" in rebooted.notes[0]
    assert ["counters reset link_downed mlx5_0/1"] == told(rebooted)
    assert ["counters reset link_downed mlx5_0/1"] == told(diff(broken(5), broken(2)))
    assert [] == told(diff(broken(5), broken(0)))


def test_settings_and_software() -> None:
    """Each in its group, with what went and what came."""
    old = scan_machine(ROCE)
    words = (old.node.cmdline or "").split()
    new = changed(
        old,
        node__kernel="6.9.0",
        node__cmdline=" ".join([*words[:-1], "quiet"]),
        software__modules=[*old.software.modules, Module(name="nvme_rdma")],
        software__driver=msgspec.structs.replace(old.software.driver, version="580.1"),
    )
    new = rows(new, "nics", lambda n: msgspec.structs.replace(n, role="storage") if n.label == "mlx5_2" else n)
    result = diff(old, new)

    assert [
        "software changed driver version node",
        "software changed kernel node",
        "software new module nvme_rdma",
        "settings changed role mlx5_2",
        "settings changed cmdline node",
    ] == sorted(told(result), key=lambda line: (GROUPS.index(line.split()[0]), "cmdline" in line, line))
    assert ([words[-1]], ["quiet"]) == next((c.old, c.new) for c in result.changes if c.what == "cmdline")


def test_qos_is_compared_where_both_know_it() -> None:
    """Known on one side only is a fact gained, not a change of the host."""

    def with_qos(qos: Qos | None) -> Report:
        return rows(scan_machine(ROCE), "netdevs", lambda n: msgspec.structs.replace(n, qos=qos) if n.nic else n)

    assert "qos trust" == only(diff(with_qos(Qos(trust="dscp")), with_qos(Qos(trust="pcp")))).what
    assert ("gained", "qos") == (lambda c: (c.kind, c.what))(only(diff(with_qos(None), with_qos(Qos(trust="pcp")))))


def test_not_seen_is_not_gone() -> None:
    """Where the probe that would see interfaces did not answer, they are not called gone."""
    old = scan_machine(ROCE)
    runs = [msgspec.structs.replace(r, status="denied", reason="no") if r.name == "netdev" else r for r in old.probes]
    result = diff(old, changed(old, probes=runs, topology__netdevs=[]))

    assert not [c for c in result.changes if c.kind == "gone"]
    assert {"lost", "changed"} == {c.kind for c in result.changes}


def test_the_page_is_plain_text_whatever_the_host_is_called() -> None:
    """No escape sequence of a hostile report reaches a terminal."""
    old = scan_machine(HGX)
    text = to_plain_text(page(diff(old, changed(old, node__hostname="\x1b[31m", node__kernel="\x1b]0;x\x07"))))

    assert "\x1b" not in text
    assert "\x07" not in text


HEALTHY, FAULTY = encode_report(scan_machine(HGX)), encode_report(scan_machine("", "gpu-gone"))
VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(), st.text(max_size=20),
    st.sampled_from(["0000:19:00.0", "0000:00:00.0", "", "ok", "idle"]), st.lists(st.text(max_size=5), max_size=3),
)  # fmt: skip


@given(st.data())
def test_any_mutated_report_gives_a_diff_or_is_no_report(data: st.DataObject) -> None:
    """Circles among parents, two rows of one id, times that are none: a diff that can be printed, both ways."""
    document = msgspec.json.decode(data.draw(st.sampled_from([HEALTHY, FAULTY])))
    for _ in range(data.draw(st.integers(1, 12))):
        at = document
        while isinstance(at, (dict, list)) and at:
            keys = sorted(at) if isinstance(at, dict) else range(len(at))
            key = data.draw(st.sampled_from(list(keys)))
            inner = at[key]
            if not isinstance(inner, (dict, list)) or not inner or data.draw(st.integers(0, 9)) == 0:
                at[key] = data.draw(VALUES)
                break
            at = inner
    try:
        hostile = msgspec.convert(document, Report)
    except msgspec.ValidationError:
        return
    for result in (diff(scan_machine(HGX), hostile), diff(hostile, scan_machine(HGX))):
        assert all(c.group in GROUPS and c.kind in KINDS and c.subjects for c in result.changes)
        assert to_plain_text(page(result, 80))
        assert msgspec.json.encode(result)
    assert [] == diff(hostile, hostile).changes


def test_a_circle_of_parents_ends() -> None:
    """Two functions that are each other's parent."""
    old = scan_machine(HGX)
    a, b = old.topology.pci[0].id, old.topology.pci[1].id
    circle = rows(old, "pci", lambda f: msgspec.structs.replace(f, parent={a: b, b: a}.get(f.id, f.parent)))

    assert [] == diff(circle, circle).changes


def test_fec_and_negotiation_of_an_interface() -> None:
    """Field by field; without a signal there is no FEC that is active."""
    old = scan_machine(ROCE)

    def changed_to(**fields: object) -> list[str]:
        new = rows(old, "netdevs", lambda n: msgspec.structs.replace(n, **fields) if n.fec else n)
        return [change.what for change in diff(old, new).changes]

    assert ["fec active", "fec auto"] == changed_to(fec=Fec(active="off", auto=False, supported=["off"]))
    assert ["autoneg"] == changed_to(autoneg=False)
    assert ["operstate"] == changed_to(operstate="down", fec=Fec())
