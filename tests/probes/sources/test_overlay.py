"""Changes over a host, what is gone is gone, the rest is the host's; files of /sys as grep, head and cat print them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from probes.host.interface import Absent, BadSource, Completed, Denied, Failed, ReadError
from probes.sources.dump import SavedOutputs
from probes.sources.memory import MemoryFiles, SymlinkNode
from probes.sources.open_source import open_source
from probes.sources.sysfs_lines import read_shown_files
from probes.sources.tree import TreeHost
from tests.machines import scan_text
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


# Files of /sys as grep, head and cat print them.


_PORTS = "/sys/class/infiniband/mlx5_{}/ports/1/{}"
_STATES = {0: "4: ACTIVE", 1: "4: ACTIVE", 2: "1: DOWN", 3: "4: ACTIVE"}


def _beside(down: str) -> str:
    lines = [f"{_PORTS.format(port, 'state')}:{state}\n" for port, state in _STATES.items()]
    return "".join(lines) + f"{_PORTS.format(2, 'phys_state')}:{down}\n"


def _above(down: str) -> str:
    files = {_PORTS.format(port, "state"): state for port, state in _STATES.items()}
    files[_PORTS.format(2, "phys_state")] = down
    return "\n".join(f"==> {path} <==\n{content}\n" for path, content in files.items())


def _loop(down: str) -> str:
    loop = f"root@n1:~# for i in 0 1 2 3; do cat {_PORTS.format('$i', 'state')}; done\n"
    command = f"root@n1:~# cat {_PORTS.format(2, 'phys_state')}\n"
    return loop + "".join(f"{state}\n" for state in _STATES.values()) + f"{command}{down}\n"


@pytest.mark.parametrize("write", [_beside, _above, _loop])
def test_a_port_that_is_down(write: Callable[[str], str], tmp_path: Path) -> None:
    """The states stand beside, or below, the paths of the files; a port that trains is one of InfiniBand."""
    findings = scan_text(tmp_path, write("2: Polling")).findings
    assert [(finding.rule, finding.label, finding.confidence) for finding in findings] == [
        ("ib-port-down", "mlx5_2/1", "low")
    ]


@pytest.mark.parametrize("down", ["3: Disabled", "5: LinkUp"])
def test_a_port_whose_link_layer_is_open(down: str, tmp_path: Path) -> None:
    """Such a state is no evidence of InfiniBand: no finding."""
    assert not scan_text(tmp_path, _beside(down)).findings


def test_an_error_is_no_content(tmp_path: Path) -> None:
    """What cat prints of a file that does not exist, alone and beside one that does."""
    path = _PORTS.format(0, "state")
    error = f"$ cat {path}\ncat: {path}: No such file or directory\n"
    (tmp_path / "notes.txt").write_text(error)
    with pytest.raises(BadSource, match="not recognized"):
        open_source(str(tmp_path / "notes.txt"))
    (tmp_path / "notes.txt").write_text(f"{error}$ cat {_PORTS.format(1, 'state')}\n4: ACTIVE\n")
    assert ["mlx5_1"] == open_source(str(tmp_path / "notes.txt")).listdir("/sys/class/infiniband")


def test_a_statistic_that_a_terminal_wrapped_between_name_and_number() -> None:
    text = "link mlx5_0/1 rx_write_requests 8 rx_atomic_requests\n0 out_of_buffer 7 packet_seq_err\n9 np_cnp_sent 3\n"
    files = read_shown_files(text)
    names = ("rx_write_requests", "rx_atomic_requests", "out_of_buffer", "packet_seq_err", "np_cnp_sent")

    folder = "/sys/class/infiniband/mlx5_0/ports/1/hw_counters"
    assert [b"8\n", b"0\n", b"7\n", b"9\n", b"3\n"] == [files.read(f"{folder}/{name}") for name in names]
