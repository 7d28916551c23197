"""What the NetBox of the tests holds: rows by endpoint, and a device as plain data for comparisons without a NetBox."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from agent.netbox.changes import NetBoxChange
from agent.netbox.diff_modules import DeviceDiff
from agent.netbox.state import (
    ModuleBay,
    ModuleType,
    NestedRow,
    NetBoxChoice,
    NetBoxDevice,
    NetBoxInterface,
    NetBoxModule,
    NetBoxState,
)
from agent.outputs.inventory import objects
from tests.agent.netbox.rules import (
    TABLES,
    Refused,
    Row,
    check_together,
    check_unused,
    computed,
    errors,
    filters,
    hanging_on,
)


class Store:
    """All rows, with numbers that are never used twice."""

    def __init__(self) -> None:
        self.tables: dict[str, dict[int, Row]] = {path: {} for path in TABLES}
        self.last: dict[str, int] = dict.fromkeys(TABLES, 0)

    def rows(self, path: str) -> list[Row]:
        """As they are stored: links are numbers."""
        return list(self.tables[path].values())

    def create(self, path: str, body: Any) -> list[Row]:
        """All or none. Raises Refused, with the errors of each object where a list was sent."""
        bodies = body if isinstance(body, list) else [body]
        errors = [self._errors(path, None, each) for each in bodies]
        if any(errors):
            one_by_one = path == "dcim/devices"  # makes them in turn, and tells of the first that fails
            raise Refused(400, errors if isinstance(body, list) and not one_by_one else next(e for e in errors if e))
        before = self.kept()
        try:
            made = [self._stored(path, each) for each in bodies]
            check_together(self, path, made)
        except Refused:
            self.restore(before)
            raise
        return made

    def update(self, path: str, bodies: list[Row]) -> list[Row]:
        """In turn; ids that are not there are passed over. Raises Refused for the first that fails."""
        before = self.kept()
        done = []
        for body in sorted(bodies, key=lambda each: int(each["id"])):
            row = self.tables[path].get(body["id"])
            if row is None:
                continue
            wrong = self._errors(path, row, body)
            if wrong:
                self.restore(before)
                raise Refused(400, wrong)
            changed = self._meant(path, {name: value for name, value in body.items() if name != "id"})
            fields = {**row.get("custom_fields", {}), **changed.pop("custom_fields", {})}
            row.update(changed)
            if path == "dcim/devices":
                row["custom_fields"] = fields
            try:
                check_together(self, path, [row])
            except Refused:
                self.restore(before)
                raise
            done.append(row)
        return done

    def delete(self, path: str, ids: list[int]) -> None:
        """With all that hangs on them. Raises Refused where something protects them."""
        for number in ids:
            if number not in self.tables[path]:
                continue
            check_unused(self, path, number)
            for place, other in hanging_on(self, path, number):
                self.delete(place, [other])
            self.tables[path].pop(number, None)

    def found(self, path: str, query: dict[str, list[str]]) -> list[Row]:
        """Rows that every filter lets through; filters that there are not are no filters."""
        tests = [test for name, values in query.items() if (test := filters(self, path, name, values)) is not None]
        return [row for row in self.tables[path].values() if all(test(row) for test in tests)]

    def shown(self, path: str, row: Row) -> Row:
        """A row as NetBox's answer has it."""
        table = TABLES[path]
        said = {name: value for name, value in row.items() if name != "replicate_components"}
        for field, there in table.links.items():
            said[field] = self.brief(there, row.get(field))
        for field in ("type", "status", "kind"):
            if isinstance(said.get(field), str):
                said[field] = {"value": said[field], "label": said[field].title()}
        said["tags"] = [self.brief("extras/tags", number) for number in row.get("tags", ())]
        said["url"] = self._url(path, row["id"])
        return said | computed(self, path, row)

    def brief(self, path: str, number: int | None) -> Row | None:
        """A row as another one names it."""
        if number is None:
            return None
        row, table = self.tables[path][number], TABLES[path]
        fields = (*table.brief, "slug") if path == "extras/tags" else table.brief
        said = {
            name: self.brief(table.links[name], row[name]) if name in table.links else row.get(name) for name in fields
        }
        return {**said, "url": self._url(path, number), "display": str(row.get("name", number))}

    def _url(self, path: str, number: int) -> str:
        return f"http://127.0.0.1/api/{path}/{number}/"

    def _stored(self, path: str, body: Row) -> Row:
        table = TABLES[path]
        blank: Row = {name: None if name == "asset_tag" else "" for name in table.texts}
        blank |= dict.fromkeys(table.links) | dict.fromkeys(table.others)
        if path == "dcim/devices":
            blank["custom_fields"] = {}
        self.last[path] += 1
        row = {"id": self.last[path], "tags": [], **blank, **self._meant(path, body)}
        self.tables[path][row["id"]] = row
        return row

    def _meant(self, path: str, body: Row) -> Row:
        """What a body stands for: numbers for links, addresses in NetBox's own way of writing."""
        said = copy.deepcopy(body)
        for name, value in said.items():
            if isinstance(value, str) and name in TABLES[path].texts:
                said[name] = value.strip()
            if name in ("wwn", "mac_address") and value:
                said[name] = value.upper()
        if "tags" in said:
            by_slug = {row["slug"]: row["id"] for row in self.rows("extras/tags")}
            said["tags"] = [by_slug[each["slug"]] for each in said["tags"]]
        return said

    def _errors(self, path: str, row: Row | None, body: Row) -> Row:
        found: Row = {}
        for field, why in errors(self, path, row, body):
            found.setdefault(field, []).append(why)
        return found

    def kept(self) -> Any:
        """All rows, to come back to."""
        return copy.deepcopy(self.tables)

    def restore(self, before: Any) -> None:
        """As it was then."""
        self.tables = copy.deepcopy(before)

    def each(self, path: str, **same: Any) -> Iterator[Row]:
        """Rows with these values, as stored."""
        return (row for row in self.rows(path) if all(row.get(name) == value for name, value in same.items()))


OURS = [NestedRow(id=1, name="fabricscope", slug="fabricscope")]
DEVICE, NVIDIA = NestedRow(id=7, name="gpu01"), NestedRow(id=1, name="NVIDIA", slug="nvidia")
H100 = ModuleType(id=5, manufacturer=NVIDIA, model="H100 80GB HBM3", tags=OURS)
GUESS = ModuleType(id=6, manufacturer=NVIDIA, model="H100 SXM5 80GB", tags=OURS)
NAMED = ModuleType(id=8, manufacturer=NVIDIA, model="HGX H100", part_number="H100 80GB HBM3")


def bay(number: int, name: str, ours: bool = True) -> ModuleBay:
    """A bay of the device."""
    return ModuleBay(id=number, device=DEVICE, name=name, tags=OURS if ours else [])


def module(number: int, in_bay: int, serial: str = "", ours: bool = True, **more: Any) -> NetBoxModule:
    """A GPU in a bay."""
    made = {"module_type": NestedRow(id=5, model="H100 80GB HBM3"), "tags": OURS if ours else []}
    return NetBoxModule(id=number, device=DEVICE, module_bay=NestedRow(id=in_bay), serial=serial, **{**made, **more})


def interface(number: int, name: str, ours: bool = True, **more: Any) -> NetBoxInterface:
    """An Ethernet port."""
    made = {"type": NetBoxChoice("100gbase-x-qsfp28"), "speed": 100_000_000, "module": NestedRow(id=3)}
    return NetBoxInterface(id=number, device=DEVICE, name=name, tags=OURS if ours else [], **{**made, **more})


def make_diff(
    one: objects.DesiredNode, prune: bool = False, types: tuple[ModuleType, ...] = (H100,), **has: Any
) -> DeviceDiff:
    """A node and what NetBox has of it."""
    holding = NetBoxState(device=NetBoxDevice(id=7, name="gpu01", serial="S"), **has)
    return DeviceDiff("#7", one, holding, types, prune)


def short(changes: list[NetBoxChange]) -> list[str]:
    """Changes in few words."""
    return [f"{c.action} {c.kind} {c.name}" + (f" {c.after}" if c.action == "update" else "") for c in changes]
