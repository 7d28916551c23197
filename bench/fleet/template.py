"""A scanned report made into a template: constant pieces of JSON, and slots for what differs from node to node."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import msgspec

from agent.model.report import Report
from agent.reports import encode_report
from bench.fleet.forms import Node, Recipe, fingerprint, replaced, seconds, usual_seconds, write

_OURS = re.compile(
    r"(?P<ipoib>fe:80:00:00:00:00:00:00:b8:3f:d2:03:00:[0-9a-f:]{8})"
    r"|(?P<gid>fe80:0000:0000:0000:b83f:d203:00[0-9a-f]{2}:[0-9a-f]{4})"
    r"|(?P<guid>b83f:d203:00[0-9a-f]{2}:[0-9a-f]{4})"
    r"|(?P<mac_of_guid>b8:3f:d2:03:00:[0-9a-f:]{8})"
    r"|(?P<dsn>b8-3f-d2-03-00-[0-9a-f-]{8})"
    r"|(?P<mac>b8:3f:d2:[0-9a-f:]{8})"
    r"|(?P<eui>fe80:0000:0000:0000:ba3f:d2ff:fe[0-9a-f]{2}:[0-9a-f]{4})"
    r"|(?P<eui_short>fe80::ba3f:d2ff:fe[0-9a-f]{2}:[0-9a-f]{1,4})"
    r"|(?P<uuid>GPU-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"
)
_MARK = re.compile(r"§([a-z-]+)\.(\d+)§")
_NUMBER = 7_700_000_000_000  # marks a number: nothing that a fixture says is as large, but bits on a wire
_MARKS = re.compile(r"§([a-z-]+)\.(\d+)§|\b77000000(\d{5})(?:\.5)?\b")
_COUNTERS = re.compile(r"(?:port_(?:rcv|xmit)_(?:data|packets)|unicast_(?:rcv|xmit)_packets|[rt]x_(?:bytes|packets))$")
_FAR = re.compile(r"\b(leaf|port)-of-rail-(\d+)\b")  # as platforms.py names the far end of a cable

Slot = tuple[str, int]

OWN_DOMAIN = "5f" * 16  # the NVLink domain of a fixture stands for that of its rack


class Keys:
    """Which device of a platform an original text is of: the same number in every template of the platform."""

    def __init__(self) -> None:
        self._known: dict[str, dict[str, int]] = {}

    def of(self, kind: str, original: str) -> int:
        """Its number; numbers are given in the order of first asking."""
        known = self._known.setdefault(kind, {})
        return known.setdefault(original, len(known))

    def knows(self, kind: str, original: str) -> bool:
        """Whether it was asked for already."""
        return original in self._known.get(kind, {})


class Template:
    """Constant pieces and slots by turns."""

    def __init__(self, report: Report, keys: Keys, recipes: list[Recipe]) -> None:
        marking = _Marking(keys)
        self._marked = encode_report(marking.marked(report))
        self._numbers, self._usual = marking.numbers, marking.usual
        self._recipes = [_recipe_marked(recipe, marking) for recipe in recipes]
        self._cuts: dict[bool, _Cut] = {}
        self.devices = {nic.id: str(nic.rdma_device) for nic in report.topology.nics}
        self.findings = [(finding.rule, finding.subject, finding.severity) for finding in report.findings]

    def render(self, node: Node, one_line: bool = False) -> str:
        """The report of a node, as the scan writes it, or on one line as NDJSON wants it."""
        cut = self._cuts.get(one_line)
        if cut is None:
            data = msgspec.json.format(self._marked, indent=-1) + b"\n" if one_line else self._marked
            cut = self._cuts[one_line] = _cut(data.decode(), self._numbers)
        values = [""] * cut.slots
        for form, keys, places in cut.groups:
            if form == "fingerprint":
                result = [fingerprint(node, self._recipes[key]) for key in keys]
            elif form == "seconds":
                result = replaced(node, form, keys, seconds(node, keys, [self._usual[key] for key in keys]))
            else:
                result = write(node, form, keys)
            for place, text in zip(places, result, strict=True):
                values[place] = text
        parts = [""] * (2 * len(cut.gaps) + 1)
        parts[::2] = cut.pieces
        parts[1::2] = [values[n] for n in cut.gaps]
        return "".join(parts)


class _Cut(NamedTuple):
    """A marked text in pieces. `gaps`: which slot is between two; `groups`: form, its keys, their slots."""

    pieces: list[str]
    gaps: list[int]
    groups: list[tuple[str, list[int], list[int]]]
    slots: int


def _cut(text: str, numbers: list[Slot]) -> _Cut:
    pieces, gaps, end = [], [], 0
    for result in _MARKS.finditer(text):
        form, key, count = result.groups()
        gaps.append(numbers[int(count)] if count is not None else (form, int(key)))
        pieces.append(text[end : result.start()])
        end = result.end()
    slots = sorted(set(gaps))
    order = {slot: n for n, slot in enumerate(slots)}
    groups = [
        (form, [key for item, key in slots if item == form], [order[slot] for slot in slots if slot[0] == form])
        for form in dict.fromkeys(form for form, _ in slots)
    ]
    return _Cut([*pieces, text[end:]], [order[slot] for slot in gaps], groups, len(slots))


class _Marking:
    """Puts marks into a report where a node's own texts and numbers go."""

    def __init__(self, keys: Keys) -> None:
        self.keys = keys
        self.numbers: list[Slot] = []
        self.usual: dict[int, float] = {}
        self.repeated: dict[str, str] = {}  # serial numbers, and their marks

    def marked(self, report: Report) -> Report:
        """The same report with marks; fingerprints are marked by the place of their finding."""
        tree: dict[str, Any] = msgspec.to_builtins(report)
        self._head(tree)
        self._topology(tree["topology"])
        tree["findings"] = self._told_again(tree["findings"])
        for n, finding in enumerate(tree["findings"]):
            finding["fingerprint"] = f"§fingerprint.{n}§"
        return msgspec.convert(self._texts(tree), Report)

    def text(self, text: str) -> str:
        """Marks instead of the identities that a text holds."""
        return _OURS.sub(self._mark, text)

    def _head(self, tree: dict[str, Any]) -> None:
        tree["generated_at"] = tree["observed_at"] = "§time.0§"
        tree["duration_seconds"] = self._number("total", 0, fraction=True)
        for n, run in enumerate(tree["probes"]):
            self.usual[n] = usual_seconds(run["name"], n) if run["status"] == "ok" else 0.002
            run["duration_seconds"] = self._number("seconds", n, fraction=True)
        node = tree["node"]
        for name, form in (("hostname", "hostname"), ("machine_id", "machine-id"), ("boot_id", "boot-id")):
            node[name] = node[name] and f"§{form}.0§"
        node["serial"] = self._repeated(node["serial"], "§serial.0§")
        rack = node["chassis"]["tray"] is not None
        node["chassis"]["serial"] = self._repeated(node["chassis"]["serial"], "§rack.0§" if rack else "§chassis.0§")
        if rack:
            node["chassis"] |= {"tray": "§tray.0§", "slot": "§slot.0§"}
        if node["uptime_seconds"] is not None:
            node["uptime_seconds"] = self._number("uptime", 0, fraction=True)

    def _told_again(self, value: Any) -> Any:
        """Findings repeat serial numbers and far ends of cables: where the part is, and in the steps of a fix."""
        if isinstance(value, str):
            for text, mark in self.repeated.items():
                value = re.sub(rf"(?<![\w.-]){re.escape(text)}(?![\w.-])", mark, value)
            return _FAR.sub(lambda found: f"§far-{'switch' if found[1] == 'leaf' else 'port'}.{found[2]}§", value)
        if isinstance(value, dict):
            return {name: self._told_again(item) for name, item in value.items()}
        return [self._told_again(item) for item in value] if isinstance(value, list) else value

    def _repeated(self, text: str | None, mark: str) -> str | None:
        if text:
            self.repeated[text] = mark
        return text and mark

    def _topology(self, topology: dict[str, Any]) -> None:
        for gpu in topology["gpus"]:
            if gpu["serial"]:
                key = self.keys.of("gpu-serial", gpu["serial"])
                gpu["serial"] = self._repeated(gpu["serial"], f"§gpu-serial.{key}§")
            if gpu["fabric"] and (gpu["fabric"]["cluster_uuid"] or "").replace("-", "") == OWN_DOMAIN:
                gpu["fabric"]["cluster_uuid"] = "§domain.0§"
        for nic in topology["nics"]:
            for port in nic["ports"]:
                self._port(nic, port)
        for netdev in topology["netdevs"]:
            self._netdev(netdev)

    def _port(self, nic: dict[str, Any], port: dict[str, Any]) -> None:
        rail = nic["role"] == "rail" or self.keys.knows("lid", nic["id"])  # whose GPU is lost is none any more
        if port["link_layer"] == "InfiniBand" and rail and port["state"] == "ACTIVE":
            port["lid"] = self._number("lid", self.keys.of("lid", nic["id"]))
        self._counters(port["counters"], f"{nic['id']}/{port['port']}")
        for gid in port["gids"]:
            head = gid["gid"].rpartition("ffff:")[0]
            if head == "0000:0000:0000:0000:0000:" and gid["netdev"]:
                gid["gid"] = f"{head}ffff:§ip-in-gid.{self.keys.of('ip', nic['id'])}§"

    def _netdev(self, netdev: dict[str, Any]) -> None:
        self._counters(netdev["counters"], netdev["id"])
        if netdev["module"] and netdev["module"]["serial"]:
            key = self.keys.of("module", netdev["module"]["serial"])
            netdev["module"]["serial"] = self._repeated(netdev["module"]["serial"], f"§module.{key}§")
        if netdev["pci"]:
            key = self.keys.of("ip", netdev["id"])
            whole = netdev["addresses"]
            netdev["addresses"] = [re.sub(r"^\d+\.\d+\.\d+\.\d+(?=/)", f"§ip.{key}§", address) for address in whole]
        far = netdev["neighbor"]
        if far and far["system"].startswith("leaf-of-rail-"):
            rail = int(far["system"].rpartition("-")[2])
            far |= {"system": f"§far-switch.{rail}§", "chassis": f"§far-chassis.{rail}§"}
            far |= {"port": f"§far-port.{rail}§", "port_description": f"§far-port.{rail}§"}

    def _counters(self, counters: dict[str, int], whose: str) -> None:
        for name, count in counters.items():
            if count and _COUNTERS.match(name):
                counters[name] = self._number("counter", self.keys.of("counter", f"{whose} {name}"))

    def _number(self, form: str, key: int, fraction: bool = False) -> Any:
        self.numbers.append((form, key))
        number = _NUMBER + len(self.numbers) - 1
        return number + 0.5 if fraction else number

    def _texts(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {name: self._texts(item) for name, item in value.items()}
        return [self._texts(item) for item in value] if isinstance(value, list) else value

    def _mark(self, found: re.Match[str]) -> str:
        kind, text = str(found.lastgroup), found.group()
        if kind == "uuid":
            return f"§uuid.{self.keys.of('uuid', text)}§"
        before = {
            "ipoib": "§prefix-in-mac.0§:",
            "gid": "§prefix.0§:",
            "eui": "fe80:0000:0000:0000:",
            "eui_short": "fe80::",
        }
        form = {"ipoib": "mac-of-guid", "gid": "guid"}.get(kind, kind).replace("_", "-")
        head, _, tail = text.rpartition(":")
        whole = head + tail.zfill(4) if kind == "eui_short" else text  # an address leaves leading zeros out
        digits = re.sub("[:-]", "", whole)[-6:]
        return f"{before.get(kind, '')}§{form}.{self.keys.of('number', digits)}§"


def _recipe_marked(recipe: Recipe, marking: _Marking) -> Recipe:
    """What its identity is made of, with slots for the node's own."""
    parts = _MARK.split(marking.text("".join(recipe.constants)))
    slots = [(form, int(key)) for form, key in zip(parts[1::3], parts[2::3], strict=True)]
    return recipe._replace(constants=parts[::3], slots=slots)
