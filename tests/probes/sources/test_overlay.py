"""Changes over a host: what is changed answers anew, what is gone is gone, the rest is the host's."""

from __future__ import annotations

import pytest

from probes.host.interface import Absent, Completed, Denied, Failed, ReadError
from probes.sources.dump import SavedOutputs
from probes.sources.memory import MemoryFiles, SymlinkNode
from probes.sources.tree import TreeHost
from tests.probes.overlay import OverlayHost

DEVICE = "/sys/devices/pci0000:15/0000:19:00.0"
LINK = "/sys/bus/pci/devices/0000:19:00.0"


@pytest.fixture
def base() -> TreeHost:
    """One device, a saved output."""
    files = MemoryFiles()
    files.add(f"{DEVICE}/vendor", b"0x10de\n")
    files.add(f"{DEVICE}/current_link_width", b"16\n")
    files.add(LINK, SymlinkNode("../../../devices/pci0000:15/0000:19:00.0"))
    return TreeHost("tree", "x", files, SavedOutputs(MemoryFiles({"lsmod": b"Module Size Used by\n"})))


def test_a_changed_file_answers_by_all_its_names(base: TreeHost) -> None:
    """The change is named through the link; the real path shows it too, and its neighbours stay."""
    host = OverlayHost(base, {f"{LINK}/current_link_width": "8\n", f"{LINK}/power/runtime_status": b"suspended\n"})

    assert b"8\n" == host.read(f"{DEVICE}/current_link_width") == host.read(f"{LINK}/current_link_width")
    assert b"0x10de\n" == host.read(f"{LINK}/vendor")
    assert b"susp" == host.read(f"{LINK}/power/runtime_status", 4)
    assert ["current_link_width", "power", "vendor"] == host.listdir(LINK)
    assert {"vendor": b"0x10de\n", "current_link_width": b"8\n"} == host.attributes(
        LINK, ["vendor", "current_link_width", "nothing"]
    )
    assert ["runtime_status"] == host.listdir(f"{LINK}/power")
    with pytest.raises(Failed, match="a directory"):
        host.read(f"{LINK}/power")


def test_what_is_gone_is_gone(base: TreeHost) -> None:
    """A device that fell off: its link, and its folder with all that is below it."""
    host = OverlayHost(base, {LINK: None, DEVICE: None})

    assert [] == host.listdir("/sys/bus/pci/devices") == host.listdir("/sys/devices/pci0000:15")
    for ask in (host.read, host.readlink, host.resolve, host.listdir):
        for path in (LINK, DEVICE, f"{DEVICE}/vendor"):
            with pytest.raises(Absent, match=path):
                ask(path)
    with pytest.raises(Absent):
        host.attributes(LINK, ["vendor"])


def test_a_gone_file_is_left_out(base: TreeHost) -> None:
    """One attribute less, in every answer."""
    host = OverlayHost(base, {f"{LINK}/vendor": None})

    assert ["current_link_width"] == host.listdir(LINK)
    assert {} == host.attributes(LINK, ["vendor"])


def test_links_can_be_added_and_changed(base: TreeHost) -> None:
    """A driver bound, a device moved."""
    host = OverlayHost(
        base, {f"{LINK}/driver": SymlinkNode("/sys/bus/pci/drivers/nvidia"), "/sys/bus/pci/drivers/nvidia/x": "1"}
    )

    assert "/sys/bus/pci/drivers/nvidia" == host.readlink(f"{LINK}/driver") == host.resolve(f"{LINK}/driver")
    assert b"1" == host.read(f"{LINK}/driver/x")
    with pytest.raises(Absent, match="not a symbolic link"):
        host.readlink(f"{LINK}/vendor")


def test_refusals_can_be_laid_over(base: TreeHost) -> None:
    """A file that fails, a command that hangs, a call that is not supported."""
    broken = Failed("Input/output error", "EIO")
    host = OverlayHost(
        base, {f"{LINK}/vendor": broken}, {("lsmod",): Denied("no")}, {("nvmlDeviceGetSerial", 0): Failed("no", "X")}
    )

    assert {"vendor": broken} == host.attributes(LINK, ["vendor"])
    assert not host.has_output("lsmod")
    for ask in (
        lambda: host.run("lsmod"),
        lambda: host.nvml("nvmlDeviceGetSerial", 0),
        lambda: host.read(f"{LINK}/vendor"),
    ):
        with pytest.raises(ReadError):
            ask()


def test_commands_and_calls_can_be_laid_over(base: TreeHost) -> None:
    """What is not laid over is the base's."""
    whole = Completed(("ibstatus",), 1, "", "oh", 0.1)
    host = OverlayHost(base, {}, {("ibstat",): "CA 'mlx5_0'\n", ("ibstatus",): whole}, {("nvmlInit_v2",): None})

    assert ("CA 'mlx5_0'\n", whole) == (host.run("ibstat").stdout, host.run("ibstatus"))
    assert host.has_output("ibstat")
    assert host.has_output("lsmod")
    assert host.run("lsmod").stdout.startswith("Module")
    assert host.nvml("nvmlInit_v2") is None
    with pytest.raises(Absent):
        host.nvml("nvmlDeviceGetCount_v2")
    with pytest.raises(Absent):
        host.netlink(0, bytes(16))


def test_udev_records_can_be_laid_over(base: TreeHost) -> None:
    """As files of its database."""
    host = OverlayHost(base, {"/run/udev/data/+pci:0000:19:00.0": "E:ID_MODEL_FROM_DATABASE=GH100\n"})

    assert {"ID_MODEL_FROM_DATABASE": "GH100"} == host.udev(LINK)
    with pytest.raises(Absent):
        host.udev("/sys/class/net/eth0")
