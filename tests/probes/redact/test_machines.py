"""A redacted capture of every fixture machine, and of this host: nobody is named, and nothing else is different."""

from __future__ import annotations

import base64
import ipaddress
import json
import re
import struct
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.diagnose import ScanPlan, diagnose
from agent.model.report import Report
from agent.reports import encode_report
from fixtures import build, identifiers
from probes.capture.extras import record_extras
from probes.capture.writer import write_capture
from probes.host.recording import Recording
from probes.redact.redact import redact_recording
from probes.redact.text import TextRedactor
from probes.sources.open_source import open_source
from tests.machines import SOME_HOSTS, machine, still

SHORT_HOST = 4  # a name of fewer characters is written anew only where it is known to be one


@pytest.mark.parametrize("shape", SOME_HOSTS)
def test_nothing_names_a_fixture_machine(shape: str, tmp_path: Path) -> None:
    """No identity of it is anywhere in the capture, in any spelling; the report differs in identities alone."""
    host = machine(shape)
    report, recording = diagnose(host, ScanPlan(record=True))
    assert recording is not None
    record_extras(recording, host, 30)
    new, texts = redact_recording(recording)
    write_capture(new, str(tmp_path / "c.tar"))
    again, _ = diagnose(open_source(str(tmp_path / "c.tar"), None), ScanPlan())
    described = build.build_capture(shape).machine

    assert [] == left(
        tmp_path / "c.tar",
        [*identities(recording, report), described.hostname, *made_up(described.hostname, recording)],
    )
    assert same_but_for_names(report, texts) == plain(again)


def test_the_search_finds_what_is_there(tmp_path: Path) -> None:
    """In a capture that is not redacted: every identity, of every kind."""
    host = machine("8xh200-sxm-2s-16xcx7-roce-4nvsw")
    report, recording = diagnose(host, ScanPlan(record=True))
    assert recording is not None
    write_capture(recording, str(tmp_path / "c.tar"))
    originals = set(identities(recording, report))
    result = {line.rsplit(" as ", 1)[0] for line in left(tmp_path / "c.tar", iter(originals))}
    kinds = (
        r"GPU-.*",
        r"\d{13}",
        r"[0-9a-f]{2}(:[0-9a-f]{2}){5}",
        r"([0-9a-f]{4}:){3}[0-9a-f]{4}",
        r"10(\.\d+){3}",
        r"[0-9a-f]{32}",
    )

    assert set() == originals - result
    assert [] == [kind for kind in kinds if not any(re.fullmatch(kind, value) for value in result)]


@pytest.mark.usefixtures("real_commands")
def test_nothing_names_this_host(tmp_path: Path) -> None:
    """The same, live."""
    host = open_source(None, None)
    report, recording = diagnose(host, ScanPlan(record=True))
    assert recording is not None
    record_extras(recording, host, 30)
    new, texts = redact_recording(recording)
    write_capture(new, str(tmp_path / "c.tar"))
    again, _ = diagnose(open_source(str(tmp_path / "c.tar"), None), ScanPlan())

    assert [] == left(tmp_path / "c.tar", identities(recording, report))
    assert same_but_for_names(report, texts, "capture") == plain(again)


def identities(recording: Recording, report: Report) -> Iterator[str]:
    """Whatever stands in the fields of a report, and in the files of a host, that hold identities."""
    result = {report.node.hostname, report.node.machine_id, report.node.boot_id, report.node.serial}
    result |= {chassis.serial for chassis in [report.node.chassis] if chassis}
    topology = report.topology
    result |= {value for gpu in topology.gpus for value in (gpu.uuid, gpu.serial)}
    result |= {function.serial for function in topology.pci}
    result |= {netdev.module.serial for netdev in topology.netdevs if netdev.module}
    result |= {value for nic in topology.nics for value in (nic.node_guid, nic.system_image_guid)}
    result |= {port.port_guid for nic in topology.nics for port in nic.ports}
    result |= {gid.gid for nic in topology.nics for port in nic.ports for gid in port.gids}
    result |= {netdev.mac for netdev in topology.netdevs}
    result |= {address.partition("/")[0] for netdev in topology.netdevs for address in netdev.addresses}
    for path, content in recording.files.items():
        if path.endswith(("_guid", "/product_serial", "/chassis_serial", "/hostname", "/perm_hwaddr")) or (
            "/net/" in path and path.endswith("/address")
        ):
            result.add(content.decode().strip())
    return (item for item in result if item and len(item) >= SHORT_HOST and is_an_identity(item))


def is_an_identity(text: str) -> bool:
    """Zeros, loopback and what is every machine's own are none."""
    ordinary = ("::1", "127.0.0.1", "0.0.0.0", "localhost", "fe80:0000:0000:0000:0000:0000:0000:0000")
    return text not in ordinary and len(set(text) - set(":.-")) > 2 and text != "ff:ff:ff:ff:ff:ff"


def made_up(hostname: str, recording: Recording) -> Iterator[str]:
    """What fixtures/identifiers.py made for this machine, whether a report shows it or not."""
    functions = {
        match for path in recording.files for match in re.findall(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.\d", path)
    }
    for address in functions:
        yield from (identifiers.make_gpu_uuid(hostname, address), identifiers.make_serial(hostname, address))
        yield identifiers.make_serial(hostname, address, "module")
    yield identifiers.make_uuid(hostname, "boot")
    yield identifiers.make_uuid(hostname, "machine")


def left(capture: Path, originals: list[str] | Iterator[str]) -> list[str]:
    """The originals that stand in the capture, in any spelling: in names, links, contents, and inside base64."""
    parts: list[bytes] = []
    with tarfile.open(capture) as tar:
        for member in tar:
            parts += [member.name.encode(), member.linkname.encode()]
            file = tar.extractfile(member) if member.isreg() else None
            content = file.read() if file else b""
            parts.append(content)
            if member.name.startswith(("netlink/", "ethtool/")):
                parts.append(base64.b64decode(json.loads(content).get("reply", "")))
    whole = b"\n".join(parts)
    lower = whole.lower()
    return [
        f"{original} as {spelling!r}"
        for original in set(originals)
        for spelling in spellings(original)
        if (spelling in whole if isinstance(spelling, bytes) else spelling.encode() in lower)
    ]


def spellings(original: str) -> Iterator[str | bytes]:
    """Colons, dashes, none, groups of four, the bytes themselves both ways round, and the EUI-64 of a MAC."""
    text = original.lower()
    yield text
    if re.fullmatch(r"\d+(\.\d+){3}|[0-9a-f:]*::[0-9a-f:]*", text):
        yield from addresses(ipaddress.ip_address(text))
    digits = re.sub(r"[^0-9a-f]", "", text.removeprefix("gpu-"))
    bare = re.fullmatch(r"(?:gpu-)?[0-9a-f]+(?:[:-][0-9a-f]+)+|[0-9a-f]{32}", text) is not None
    if not bare or len(digits) not in (12, 16, 32):
        return
    every = [digits]
    if len(digits) == 12:
        flipped = f"{int(digits[:2], 16) ^ 2:02x}{digits[2:6]}fffe{digits[6:]}"
        every += [
            flipped,
            f"{digits[:6]}fffe{digits[6:]}",
            f"{digits[:6]}0300{digits[6:]}",
            f"{digits[:6]}ffff{digits[6:]}",
        ]
    if len(digits) == 32 and text.startswith("fe80"):
        every.append(digits[16:])
    for item in every:
        raw = bytes.fromhex(item)
        yield from (item, raw.hex(":"), raw.hex("-"), raw.hex(":", 2), raw.hex(" "), raw[::-1].hex(" "))
        if len(set(raw)) > 3:
            yield from (raw, raw[::-1])
        if len(item) == 32:
            yield f"{item[:8]}-{item[8:12]}-{item[12:16]}-{item[16:20]}-{item[20:]}"


def addresses(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> Iterator[str | bytes]:
    """Written out, in a GID, and as a netlink attribute (IFA_ADDRESS, IFA_LOCAL)."""
    raw = address.packed
    if address.version == 4:
        yield f":ffff:{raw[:2].hex()}:{raw[2:].hex()}"
    yield address.exploded
    yield from (struct.pack("=HH", 4 + len(raw), number) + raw for number in (1, 2))


def same_but_for_names(report: Report, texts: TextRedactor, kind: str | None = None) -> object:
    """The report with the same pseudonyms as the capture's."""
    table = json.loads(texts.text(encode_report(still(report)).decode()))
    if table["node"]["hostname"]:
        table["node"]["hostname"] = texts.names.host(report.node.hostname or "")
    if kind:
        table["source"]["kind"] = kind
    return settled(table)


def plain(report: Report) -> object:
    """The report as plain data."""
    return settled(json.loads(encode_report(still(report))))


def settled(table: dict[str, object]) -> object:
    """Without fingerprints, and without the order of addresses: both hang on the identities themselves."""
    text = re.sub(r'"fingerprint": ?"[0-9a-f]{16}"', '"fingerprint": ""', json.dumps(table))
    again = json.loads(text)
    for netdev in again["topology"]["netdevs"]:
        netdev["addresses"].sort()
    return again
