"""Runs that go wrong half way: refused objects, an interrupt at every request, answers that never came, a limit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from agent.netbox.api import Client, Row
from agent.netbox.run import ApplyOptions, DevicePlacement, apply
from agent.outputs.inventory.node import build_desired
from agent.outputs.inventory.objects import DesiredNode
from tests.agent.netbox.conftest import House
from tests.agent.netbox.nodes import GPUS, changed, finding, linked, node, report_nodes
from tests.agent.netbox.server import Reply, Server
from tests.agent.outputs.export.given import H100, hostile
from tests.machines import scan_machine

NEVER = ApplyOptions()
WRITES = 13  # requests for the node below: one a kind


def full(house: House) -> DesiredNode:
    """A node with something of everything."""
    one = node(house, verdict="error", findings=[finding("aaaaaaaaaaaaaaa1")])
    return changed(one, cables=linked(f"leaf-{house.mark}"))


def seeded(house: House) -> None:
    """The node's device without a serial number, and the switch that it is cabled to."""
    house.device("gpu01")
    house.post("dcim/interfaces", device=house.device("leaf"), name="swp1", type="other")


def inside(server: Server) -> dict[str, list[str]]:
    """All that a NetBox holds, with names for numbers, in no order."""
    store = server.store
    return {path: sorted(str(_named(store.shown(path, row))) for row in store.rows(path)) for path in store.tables}


def _named(value: Any) -> Any:
    if isinstance(value, dict):
        numbers = ("id", "url", "object_id", "display", "assigned_object_id")
        return {name: _named(item) for name, item in value.items() if name not in numbers}
    return [_named(item) for item in value] if isinstance(value, list) else value


class Interrupted:
    """A client whose user presses Ctrl-C at one of its writes: before it, or when it was done."""

    def __init__(self, client: Client, at: int, after: bool) -> None:
        self._client, self._may_have_arrived, self._after = client, at, after

    def read(self, kind: str, **filters: Any) -> list[Row]:
        return self._client.read(kind, **filters)

    def create(self, kind: str, bodies: Sequence[Row]) -> list[int]:
        return list(self._write(self._client.create, kind, bodies))

    def update(self, kind: str, bodies: Sequence[Row]) -> None:
        self._write(self._client.update, kind, bodies)

    def delete(self, kind: str, ids: Sequence[int]) -> None:
        self._write(self._client.delete, kind, ids)

    def _write(self, do: Any, kind: str, what: Any) -> Any:
        self._may_have_arrived -= 1
        if self._may_have_arrived == 0 and not self._after:
            raise KeyboardInterrupt
        done = do(kind, what)
        if self._may_have_arrived == 0:
            raise KeyboardInterrupt
        return done


@pytest.mark.parametrize("at", range(1, WRITES + 1))
def test_an_interrupted_run_is_finished_by_the_next(server: Server, own: House, at: int) -> None:
    """Whichever request it ended at, and whether or not that was done: nothing is missing, nothing is there twice."""
    seeded(own)
    for after in (False, True):
        before = server.store.kept()
        server.requests.clear()
        whole = apply(own.client(), report_nodes(full(own)), NEVER)
        wanted, writes = inside(server), len(server.writes)
        server.store.restore(before)
        with pytest.raises(KeyboardInterrupt):
            apply(Interrupted(own.client(), at, after), report_nodes(full(own)), NEVER)

        resumed = apply(own.client(), report_nodes(full(own)), NEVER)

        assert (True, True, []) == (whole.in_step, resumed.in_step, resumed.failed)
        assert wanted == inside(server)
        server.store.restore(before)
        assert WRITES == writes


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize(
    "told",
    ["extras/tags", "dcim/module-bays", "dcim/modules", "dcim/mac-addresses", "dcim/cables", "extras/journal-entries"],
)
def test_a_request_whose_answer_never_came_is_looked_after(server: Server, own: House, told: str, after: bool) -> None:
    """Within the same run: NetBox is read again, and what is missing is made."""
    seeded(own)
    waited: list[float] = []
    server.trick(f"POST {told}", Reply(cut=True, after=after), Reply(504, after=after))

    done = apply(own.client(), report_nodes(full(own)), NEVER, wait=waited.append)

    assert (True, []) == (done.in_step, done.failed)
    assert [5.0] == waited if after else [5.0, 10.0] == waited
    assert 1 == len(server.store.rows("extras/journal-entries"))
    assert 5 == len(server.store.rows("dcim/modules")) == len(server.store.rows("dcim/module-bays"))
    assert 2 == len(server.store.rows("dcim/mac-addresses"))


def test_a_netbox_that_never_answers_a_request_ends_the_run(server: Server, own: House) -> None:
    """What was done before stays, and is said."""
    seeded(own)
    server.trick("POST dcim/modules", *[Reply(504)] * 99)

    done = apply(own.client(), report_nodes(full(own)), NEVER, wait=lambda _: None)

    assert done.broken is not None
    assert "POST modules: 504" in done.broken
    assert not done.in_step
    assert 5 == sum(change.kind == "module bay" for change in done.done)


def test_a_netbox_that_goes_away_between_two_looks(server: Server, own: House) -> None:
    """Also then what was done is told."""
    seeded(own)
    server.trick("POST dcim/modules", Reply(504))
    left = [2]  # of the lists of devices, by serial and by name; then nobody answers

    def gone(request: Any) -> Reply | None:
        left[0] -= request.told == "GET dcim/devices"
        return Reply(503) if left[0] < -1 and request.method == "GET" else None

    server.tricks.append(gone)
    done = apply(own.client(), report_nodes(full(own)), NEVER, wait=lambda _: None)

    assert "503" in (done.broken or "")
    assert done.done


def test_one_refused_object_keeps_no_other_from_being_made(server: Server, own: House) -> None:
    """NetBox refuses the whole request; it names the object, and the rest goes without it."""
    device = own.device("gpu01", serial=node(own).serial)
    own.post("dcim/interfaces", device=device, name="ens1f1np1", type="virtual")

    done = apply(own.client(), report_nodes(node(own)), NEVER)

    assert [
        ("interface", "ens1f1np1", "Interface with this Device and Name already exists."),
        ("MAC address", "ens1f1np1", "needs interface ens1f1np1, which is not there"),
        ("interface", "ens1f1np1", "needs MAC address ens1f1np1, which is not there"),
    ] == [(item.change.kind, item.change.name, item.why) for item in done.failed]
    assert {"ens1f0np0", "ens1f1np1", "ibp26s0"} == {row["name"] for row in server.store.rows("dcim/interfaces")}
    assert not done.in_step


def test_a_refusal_that_names_no_object_is_found_out_one_by_one(server: Server, own: House) -> None:
    """As NetBox does where its database refuses: a bay that somebody else just filled."""
    device = own.device("gpu01", serial=node(own).serial)
    maker = own.post("dcim/manufacturers", name="NVIDIA", slug="nvidia")["id"]
    kind = own.post("dcim/module-types", manufacturer=maker, model="A")["id"]
    taken: list[int] = []

    def filled(request: Any) -> Reply | None:
        if request.told == "POST dcim/modules" and not taken:
            bay = next(server.store.each("dcim/module-bays", name=GPUS[1]))
            body = {"device": device, "module_bay": bay["id"], "module_type": kind}
            taken.append(server.store.create("dcim/modules", body)[0]["id"])
        return None

    server.tricks.append(filled)
    done = apply(own.client(), report_nodes(node(own)), NEVER)

    assert [GPUS[1]] == [item.change.name for item in done.failed]
    assert "duplicate key value" in done.failed[0].why
    assert 5 == len(server.store.rows("dcim/modules"))


def test_without_the_right_to_make_custom_fields_all_else_is_done(server: Server, own: House) -> None:
    """Each refused kind is told with the reason, and what needs it."""
    server.denied.add("POST extras/custom-fields")
    own.device("gpu01", serial=node(own).serial)

    done = apply(own.client(), report_nodes(node(own)), NEVER)

    whys = [item.why for item in done.failed]
    assert [True, True] == ["do not have permission" in why for why in whys[:2]]
    assert ["needs custom field fabricscope_verdict, which is not there"] == whys[2:]
    assert 5 == len(server.store.rows("dcim/modules"))


def test_without_the_tag_nothing_is_made(server: Server, own: House) -> None:
    """What carries no tag would be somebody else's for ever."""
    server.denied.add("POST extras/tags")
    own.device("gpu01", serial=node(own).serial)

    done = apply(own.client(), report_nodes(node(own)), NEVER)

    assert [] == server.store.rows("dcim/modules") + server.store.rows("dcim/module-bays")
    assert 1 == len(server.store.rows("dcim/manufacturers"))
    assert {"needs tag fabricscope, which is not there"} < {item.why for item in done.failed}


def test_more_changes_than_allowed_send_nothing(server: Server, own: House) -> None:
    """Not one request that changes something."""
    own.device("gpu01", serial=node(own).serial)
    server.requests.clear()

    done = apply(own.client(), report_nodes(node(own)), ApplyOptions(limit=5))

    assert [] == server.writes
    assert f"{len(done.plan.changes)} changes, and --limit-changes is 5" == done.stopped
    assert apply(own.client(), report_nodes(node(own)), ApplyOptions(limit=len(done.plan.changes))).in_step


def test_a_new_device_with_ports_of_its_type_is_read_before_they_are_made(server: Server, own: House) -> None:
    """A device type may bring interfaces along; the first look cannot know."""
    place = DevicePlacement(f"lab-{own.mark}", f"node-{own.mark}", f"xe-{own.mark}")

    def with_ports(request: Any) -> Reply | None:
        if request.told == "POST dcim/devices":
            reply = server.answer(request)
            body = {"device": reply.body[0]["id"], "name": "ens1f0np0", "type": "other"}
            server.store.create("dcim/interfaces", body)
            return reply
        return None

    server.tricks.append(with_ports)
    done = apply(own.client(), report_nodes(node(own)), ApplyOptions(create=place))

    assert (True, []) == (done.in_step, done.failed)
    assert 3 == len(server.store.rows("dcim/interfaces"))


def test_prune_keeps_a_bay_whose_module_could_not_be_deleted(server: Server, own: House) -> None:
    """NetBox would delete the module with its bay."""
    own.device("gpu01", serial=node(own).serial)
    apply(own.client(), report_nodes(node(own)), NEVER)
    server.denied.add("DELETE dcim/modules")

    done = apply(
        own.client(), report_nodes(changed(node(own), modules=node(own).modules[1:])), ApplyOptions(prune=True)
    )

    assert 5 == len(server.store.rows("dcim/modules")) == len(server.store.rows("dcim/module-bays"))
    assert [True, False] == ["permission" in item.why for item in done.failed]


def test_a_plan_asks_and_changes_nothing(server: Server, own: House) -> None:
    """GET, and no other verb."""
    from agent.netbox.run import plan

    seeded(own)
    server.requests.clear()

    assert plan(own.client(), report_nodes(full(own)), ApplyOptions(prune=True)).changes
    assert [] == server.writes


def test_requests_are_few(server: Server, own: House) -> None:
    """Twenty nodes: as many requests as one, but for what does not fit into one."""
    nodes = [node(own, f"n{at}") for at in range(20)]
    for each in nodes:
        own.device(each.name or "", serial=each.serial)
    server.requests.clear()

    assert apply(own.client(), report_nodes(*nodes), NEVER).in_step

    assert len(server.requests) < 50
    assert max(len(request.body) for request in server.writes if request.method == "POST") == 50


@pytest.mark.parametrize("names_only", [True, False])
def test_hostile_names_end_up_as_names(house: House, names_only: bool) -> None:
    """Quotes, tags, control characters, 2000 letters: cut and cleaned, in step the second time."""
    result = build_desired(hostile(scan_machine(H100), names_only))
    hostile_node = changed(result, name=f"evil-{house.mark}", serial=f"evil-{house.mark}")
    device = house.device("evil", serial=hostile_node.serial)

    done = apply(house.client(), report_nodes(hostile_node), NEVER, wait=lambda _: None)
    again = apply(house.client(), report_nodes(hostile_node), NEVER, wait=lambda _: None)

    assert ([], []) == ([(item.change.kind, item.why) for item in done.failed], again.done)
    assert hostile_node.modules
    assert len(hostile_node.modules) == len(house.rows("dcim/modules", device_id=device))
    for row in house.rows("extras/journal-entries", assigned_object_id=device, assigned_object_type="dcim.device"):
        assert "</gpu>" not in row["comments"].replace("`", "") or "`" in row["comments"]
