"""The tree that a real kernel shows for a description is the fixture written for it, in all that a probe reads."""

from __future__ import annotations

import io
import re
import tarfile
from typing import NamedTuple

import pytest
import zstandard

from fixtures.build import build_capture
from fixtures.machine import load_machine
from fixtures.net import list_interfaces
from fixtures.rdma import list_devices
from tests.lab.batches import IB, ROCE
from tests.lab.conftest import RecordRow
from tests.lab.exceptions import EXCEPTIONS, ORDER
from tests.lab.judging import Lab
from tests.lab.qemu.described import visible_functions

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("real_commands"), pytest.mark.timeout(900)]


class Compared(NamedTuple):
    """How many files were held against each other, and one of each attribute that differs: path, kernel, fixture."""

    files: int
    differing: dict[str, tuple[str, bytes, bytes | None]]


@pytest.mark.parametrize("shape", [IB, ROCE])
def test_the_kernel_s_tree_is_the_fixture(lab: Lab, record_row: RecordRow, shape: str) -> None:
    """Every file that a capture of the guest holds of a described function; what differs has its reason."""
    result = compared(lab, shape)

    assert result.files > 1000
    assert {} == {name: output for name, output in result.differing.items() if name not in EXCEPTIONS}
    record_row(
        f"The kernel's tree against the fixture, {shape}",
        f"{result.files} files that probes read",
        f"{len(result.differing)} attributes differ, with reasons below",
    )


@pytest.mark.parametrize("shape", [IB, ROCE])
def test_every_exception_is_needed(lab: Lab, shape: str) -> None:
    """An attribute that does not differ any more has no reason to be listed. Numbers may be the same by chance."""
    needed = {name for name, reason in EXCEPTIONS.items() if reason != ORDER}
    assert needed <= set(compared(lab, shape).differing)


def compared(lab: Lab, shape: str) -> Compared:
    """The kernel's tree beside the fixture's."""
    kernel = captured(lab.healthy(shape).capture, shape)
    tree = build_capture(shape).tree
    differing = {}
    for path, content in kernel.items():
        fixture = tree.files.get(path)
        if fixture is None and path in tree.refusals:
            continue
        if fixture is None or fixture.strip() != content.strip():
            differing[attribute(path)] = (path[-70:], content[:60], fixture and fixture[:60])
    return Compared(len(kernel), differing)


def captured(data: bytes, shape: str) -> dict[str, bytes]:
    """Files of a capture that belong to described functions, with RDMA devices called as the fixture calls them."""
    machine = load_machine(shape)
    named = {node.address: name for _, node, _, name in list_devices(machine)}
    ours = {node.address for node in visible_functions(machine)}
    ports = {name for _, node, name, _ in list_interfaces(machine) if node.address in ours}
    result = {}
    plain = zstandard.ZstdDecompressor().stream_reader(io.BytesIO(data)).read()
    with tarfile.open(fileobj=io.BytesIO(plain)) as archive:
        for member in archive:
            path = "/" + member.name.partition("files/")[2]
            place = re.findall(r"/([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])(?=/)", path)
            if not member.isfile() or not path.startswith("/sys/devices/pci") or not place or place[-1] not in ours:
                continue
            netdev = re.search(r"/net/([^/]+)/", path)
            if netdev and netdev[1] not in ports:
                continue
            path = re.sub(r"/infiniband/[^/]+/", f"/infiniband/{named.get(place[-1], '')}/", path)
            file = archive.extractfile(member)
            assert file
            result[path] = file.read()
    return result


def attribute(path: str) -> str:
    """What a file tells, without whose it is: "current_link_width", "infiniband/ports/gids"."""
    rest = re.sub(r"^.*/[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]/", "", path)
    rest = re.sub(r"^(net|infiniband)/[^/]+", r"\1", rest)
    return re.sub(r"/\d+(?=/|$)", "", rest)
