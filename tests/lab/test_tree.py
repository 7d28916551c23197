"""The tree that a real kernel shows for a description is the fixture written for it, in all that a probe reads."""

from __future__ import annotations

import base64
import io
import re
import tarfile

import pytest

from fixtures.build import build
from fixtures.machine import load
from fixtures.net import interfaces
from fixtures.rdma import devices
from tests.lab.conftest import Told
from tests.lab.described import shown
from tests.lab.exceptions import EXCEPTIONS
from tests.lab.guest import SCAN, Guest
from tests.lab.test_causes import IB, ROCE

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("real_commands"), pytest.mark.timeout(900)]


@pytest.mark.parametrize("shape", [IB, ROCE])
def test_the_kernel_s_tree_is_the_fixture(guest: Guest, told: Told, shape: str) -> None:
    """Every file that a capture of the guest holds of a described function; what differs has its reason."""
    guest.show(load(shape))
    kernel = captured(guest, shape)
    tree = build(shape).tree
    fixture = {path: content for path, content in tree.files.items() if path in kernel}
    absent = {path for path in kernel if path not in tree.files and path not in tree.refusals}
    differing = {attribute(path) for path, content in fixture.items() if kernel[path].strip() != content.strip()}

    found = differing | {attribute(path) for path in absent}
    assert len(fixture) > 1000
    shown_first = {
        attribute(path): (path[-70:], kernel[path][:60], tree.files.get(path)) for path in {*fixture, *absent}
    }
    assert [] == [(name, shown_first[name]) for name in sorted(found - EXCEPTIONS.keys())]
    told(
        f"The kernel's tree against the fixture, {shape}",
        f"{len(kernel)} files that probes read",
        f"{len(found)} attributes differ, with reasons below",
    )


def captured(guest: Guest, shape: str) -> dict[str, bytes]:
    """Files of a capture that belong to described functions, with RDMA devices called as the fixture calls them."""
    guest.must(SCAN, "capture", "-o", "/run/lab.tar.gz", "--timeout", "120", "--quiet")
    data = base64.b64decode(guest.must("base64", "/run/lab.tar.gz"))
    machine = load(shape)
    named = {node.address: name for _, node, _, name in devices(machine)}
    ours = {node.address for node in shown(machine)}
    ports = {name for _, node, name, _ in interfaces(machine) if node.address in ours}
    found = {}
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
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
            found[path] = file.read()
    return found


def attribute(path: str) -> str:
    """What a file tells, without whose it is: "current_link_width", "infiniband/ports/gids"."""
    rest = re.sub(r"^.*/[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]/", "", path)
    rest = re.sub(r"^(net|infiniband)/[^/]+", r"\1", rest)
    return re.sub(r"/\d+(?=/|$)", "", rest)
