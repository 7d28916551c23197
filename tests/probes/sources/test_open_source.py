"""Sources are recognized by what they hold; what is not recognized is refused with one line."""

from __future__ import annotations

import gzip
import os
import re
import shutil
import tarfile
import time
from pathlib import Path

import pytest

from probes.capture.writer import write_capture
from probes.host.interface import Absent, BadSource
from probes.host.live import BOOT_ID, LiveHost, RootedHost
from probes.host.recording import Recording
from probes.sources.identify import LOOK_CHARACTERS, find_missing_name, identify_command
from probes.sources.open_source import open_source

TOPO = "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV18\t0-47\nGPU1\tNV18\t X \t48-95\n\nLegend:\n"


def tree(folder: Path) -> Path:
    (folder / "sys/bus/pci/devices").mkdir(parents=True)
    (folder / "etc").mkdir()
    (folder / "etc/os-release").write_text("ID=ubuntu\n")
    (folder / "etc/absolute").symlink_to("/etc/os-release")
    return folder


def tar_of(folder: Path, place: Path, name: str) -> Path:
    with tarfile.open(place, "w") as tar:
        tar.add(folder, arcname=name)
    return place


def test_nothing_said_is_this_host() -> None:
    """And only that one can be woken or hang."""
    host = open_source(None, None)

    assert isinstance(host, LiveHost)
    assert ("live", None, True) == (host.kind, host.path, host.live)


def test_a_tree_is_recognized_in_every_form(tmp_path: Path) -> None:
    """A folder, a tar of its content, a tar of the folder, a folder around the folder."""
    inner = tree(tmp_path / "outer" / "host-7")
    sources = [
        inner,
        tmp_path / "outer",
        tar_of(inner, tmp_path / "a.bin", "."),
        tar_of(inner, tmp_path / "b.bin", "host-7"),
        tar_of(inner, tmp_path / "c.bin", "./host-7"),
    ]

    for source in sources:
        host = open_source(str(source))
        assert ("tree", str(source), False) == (host.kind, host.path, host.live)
        assert b"ID=ubuntu\n" == host.read("/etc/absolute")
        assert [] == host.listdir("/sys/bus/pci/devices")
        for ask in (
            lambda h=host: h.nvml("nvmlInit_v2"),
            lambda h=host: h.netlink(0, b""),
            lambda h=host: h.run("lsmod"),
        ):
            with pytest.raises(Absent):
                ask()


def test_a_capture_is_recognized_in_every_form(tmp_path: Path) -> None:
    """Also where somebody unpacked it, or packed its folder."""
    write_capture(Recording(files={"/proc/uptime": b"1"}), str(tmp_path / "c"))
    write_capture(Recording(files={"/proc/uptime": b"1"}), str(tmp_path / "c.tar.zst"))
    (tmp_path / "around").mkdir()
    shutil.copytree(tmp_path / "c", tmp_path / "around/c")
    again = tar_of(tmp_path / "c", tmp_path / "again", "some/c")

    for source in (tmp_path / "c", tmp_path / "c.tar.zst", tmp_path / "around"):
        host = open_source(str(source))
        assert ("capture", b"1") == (host.kind, host.read("/proc/uptime"))
    with pytest.raises(BadSource, match="holds no source, but its folder c does"):
        open_source(str(again))


def test_a_dump_answers_commands(tmp_path: Path) -> None:
    """Saved outputs, by their names; options count as a set, and more of lspci serves for less."""
    (tmp_path / "nvidia-smi_topo_-m.txt").write_text(TOPO)
    (tmp_path / "lspci_-nnvvv").write_text("0000:00:00.0 Host bridge [0600]: x [8086:1]\n")
    (tmp_path / "nvidia-smi_--query-gpu_name_--format_csv").write_text("name\nH100\n")
    (tmp_path / "nvidia-smi_-x_-q").write_text("<nvidia_smi_log>\n")
    host = open_source(str(tmp_path))

    assert "dump" == host.kind
    assert (TOPO, 0, "") == (
        (done := host.run("nvidia-smi", "topo", "-m")).stdout,
        done.returncode,
        done.stderr,
    )
    assert host.has_output("lspci", "-D", "-nn", "-vvv")
    assert host.has_output("nvidia-smi", "-q", "-x")
    assert "name\nH100\n" == host.run("nvidia-smi", "--query-gpu").stdout
    for argv in (("nvidia-smi", "-q"), ("lspci", "-D", "-nn", "-xxxx"), ("ibstat",)):
        assert not host.has_output(*argv)
        with pytest.raises(Absent, match="no saved output"):
            host.run(*argv)
    with pytest.raises(Absent):
        host.listdir("/sys/bus/pci/devices")


def test_the_output_that_tells_most_is_taken(tmp_path: Path) -> None:
    """More -v before less, ids before none."""
    for options, text in (("-vv", "less"), ("-vvv", "no ids"), ("-nnvvv", "best"), ("-t", "tree")):
        (tmp_path / f"lspci_{options}.txt").write_text(f"00:00.0 Host bridge: {text}\n")

    assert "best" in open_source(str(tmp_path)).run("lspci", "-D", "-nn", "-vvv").stdout


def test_a_file_that_is_named_after_a_file_of_the_kernel_is_that_file(tmp_path: Path) -> None:
    (tmp_path / "cat_proc_cmdline.txt").write_text("BOOT_IMAGE=/vmlinuz iommu=pt\n")
    for device, rate in (("mlx5_0", "400 Gb/sec (4X NDR)"), ("mlx5_1", "200 Gb/sec (4X HDR)")):
        (tmp_path / f"cat_sys_class_infiniband_{device}_ports_1_rate.txt").write_text(f"{rate}\n")
    host = open_source(str(tmp_path))
    assert {file.read_as for file in host.saved.list_files()} == {"sysfs files"}
    assert host.read("/proc/cmdline") == b"BOOT_IMAGE=/vmlinuz iommu=pt\n"
    assert host.read("/sys/class/infiniband/mlx5_1/ports/1/rate") == b"200 Gb/sec (4X HDR)\n"


def test_parts_of_one_output_in_several_files(tmp_path: Path) -> None:
    """Each below its command, or in a file that is named after it; not where a command is in both."""
    (tmp_path / "hccn_link.txt").write_text("# hccn_tool -i 0 -link -g\nlink status: UP\n")
    (tmp_path / "hccn_speed.txt").write_text("# hccn_tool -i 0 -speed -g\nSpeed: 200000 Mb/s\n")
    (tmp_path / "hccn_later.txt").write_text("# hccn_tool -i 0 -link -g\nlink status: DOWN\n")
    for device, state in (("37:00.0", "Active"), ("37:00.1", "Polling")):
        (tmp_path / f"mlxlink_-d_{device}.txt").write_text(f"Operational Info\n----\nState : {state}\n")
    host = open_source(str(tmp_path))

    assert [file.name for file in host.saved.list_files() if file.read_as is None] == ["hccn_link.txt, line 1"]
    assert host.run("hccn_tool").stdout == (
        "$ hccn_tool -i 0 -link -g\nlink status: DOWN\n$ hccn_tool -i 0 -speed -g\nSpeed: 200000 Mb/s\n"
    )
    assert re.findall("-d .*|State.*", host.run("mlxlink").stdout) == [
        *("-d 37:00.0", "State : Active"), *("-d 37:00.1", "State : Polling"),
    ]  # fmt: skip


@pytest.mark.parametrize(("second", "devices"), [("mlx5_1", ["mlx5_0", "mlx5_1"]), ("mlx5_0", ["mlx5_0"])])
def test_a_file_for_each_device_of_one_command(second: str, devices: list[str], tmp_path: Path) -> None:
    """One output, unless a device is in two of them: another host, or another time."""
    for number, device in enumerate(("mlx5_0", second)):
        (tmp_path / f"ibstat_{number}.txt").write_text(f"CA '{device}'\n\tCA type: MT4129\n\tNumber of ports: 1\n")
    host = open_source(str(tmp_path))

    assert devices == re.findall("CA '(.*)'", host.run("ibstat").stdout)
    assert len(devices) == sum(file.read_as is not None for file in host.saved.list_files())


def test_a_tree_with_saved_outputs_answers_both(tmp_path: Path) -> None:
    """As people gather them."""
    tree(tmp_path)
    (tmp_path / "notes").write_text(TOPO)
    host = open_source(str(tmp_path))

    assert ("tree", TOPO) == (host.kind, host.run("nvidia-smi", "topo", "-m").stdout)


def test_a_single_file_is_recognized_by_what_it_holds(tmp_path: Path) -> None:
    """Where its name says nothing; a name that says it is believed."""
    (tmp_path / "paste.txt").write_text(TOPO)
    (tmp_path / "ibstat.txt").write_text("ibpanic: no CAs\n")
    by_content, by_name = open_source(str(tmp_path / "paste.txt")), open_source(str(tmp_path / "ibstat.txt"))

    assert ("dump", TOPO) == (by_content.kind, by_content.run("nvidia-smi", "topo", "-m").stdout)
    assert "ibpanic: no CAs\n" == by_name.run("ibstat").stdout
    assert not by_name.has_output("nvidia-smi", "topo", "-m")


@pytest.mark.parametrize(
    "date",
    [
        "[Mi Nov 25 10:00:00 2026] ",
        "[\u4e09 11\u6708 25 10:00:00 2026] ",
        "[mer. nov. 25 10:00:00 2026] ",
        "2026-11-25T10:00:00,123456+01:00 ",
        "",
    ],
)
def test_a_kernel_log_is_recognized_in_every_language(date: str, tmp_path: Path) -> None:
    """`dmesg -T` writes names of days and months as the locale has them."""
    text = f"{date}NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.\n"
    (tmp_path / "paste.txt").write_text(text)

    assert text == open_source(str(tmp_path / "paste.txt")).run("dmesg").stdout


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32", "utf-8"])
def test_a_byte_order_mark_says_how_an_output_was_saved(encoding: str, tmp_path: Path) -> None:
    """`nvidia-smi topo -m > file` of PowerShell writes UTF-16; Notepad puts a mark before UTF-8."""
    (tmp_path / "paste.txt").write_bytes(TOPO.encode(encoding))
    (tmp_path / "ibstat.txt").write_bytes("CA 'mlx5_0'\r\n".encode(encoding))
    by_content, by_name = open_source(str(tmp_path / "paste.txt")), open_source(str(tmp_path / "ibstat.txt"))

    assert TOPO == by_content.run("nvidia-smi", "topo", "-m").stdout
    assert "CA 'mlx5_0'\r\n" == by_name.run("ibstat").stdout


PORT = "Port 1:\n\tState: Down\n\tPhysical state: Disabled\n\tRate: 10\n\tLink layer: InfiniBand\n"


@pytest.mark.parametrize(
    "saved",
    [
        pytest.param(PORT.encode("utf-16-le"), id="UTF-16 without its mark"),
        pytest.param(PORT.encode("utf-16-be"), id="UTF-16 of the other order"),
        pytest.param(PORT.replace("\n", "\r").encode(), id="ends of lines of an old system"),
        pytest.param(PORT.replace("\n", "\u2028").encode(), id="ends of lines of an editor"),
        pytest.param(PORT.replace("\n", "\n\0\0").encode(), id="zeros, where a host crashed"),
        pytest.param(bytes(200_000) + PORT.encode(), id="zeros before it"),
        pytest.param(b"#" * 200_000 + b"\n" + PORT.encode(), id="a line of a progress bar"),
        pytest.param(PORT.replace("\t", "\u200f\t").encode(), id="marks of a direction"),
        pytest.param(PORT.replace(": ", "\uff1a").encode(), id="full-width colons"),
        pytest.param(
            PORT.replace("10", "\uff11\uff10").replace(" ", "\u3000").encode(), id="full-width digits, blanks"
        ),
        pytest.param("Gr\u00fc\u00dfe \u2013 hier:\n".encode("cp1252") + PORT.encode(), id="a code page"),
    ],
)
def test_a_text_is_read_whatever_an_editor_or_a_crash_made_of_it(saved: bytes, tmp_path: Path) -> None:
    """Other encodings, ends of lines and characters than those that the tool printed."""
    (tmp_path / "paste.txt").write_bytes(saved)
    text = open_source(str(tmp_path / "paste.txt")).run("ibstat").stdout

    assert PORT.split() == text[text.index("Port") :].split()


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"Dear all,\nplease find attached\n", "is not recognized: it is neither an archive"),
        (b"", "it is empty"),
        (b"$ lspci -vvv\nbash: lspci: command not found\n", "has the error of a shell in place of an output"),
        ("-bash: lspci: \u672a\u627e\u5230\u547d\u4ee4\n".encode(), "has the error of a shell in place of an output"),
        (b"sudo: nvidia-smi: Kommando nicht gefunden.\n", "has the error of a shell in place of an output"),
        (b"$ dmesg\ndmesg: read kernel buffer failed: Operation not permitted\n", "only root may read that"),
        (b'{"schema": "fabricscope.report/1", "node": {}}', "is a finished report of fabricscope"),
        (b"<!DOCTYPE html>\n<html><head><title>h - fabricscope</title>", "is a page for people, not a report"),
        (
            b"<!DOCTYPE html>\n<html><head><title>h - fabricscope</title></head><body><pre>\n$ dmesg -T\n"
            b"[Mon Jan 1 00:00:00 2024] NVRM: Xid (PCI:0000:03:00): 79, pid=1\n</pre>",
            "is a page for people, not a report",
        ),
        (b"<!DOCTYPE html>\n<html><head><title>News</title>", "is not recognized"),
        (os.urandom(3000), "is not recognized"),
        (gzip.compress(b"Dear all,", mtime=0), "cut short, or is not an archive"),
        (gzip.compress(bytes(range(256)) * 12, mtime=0), "is not recognized"),
        (b"\x1f\x8b\x08\x00", "damaged or cut short"),
        (b"\xfd7zXZ\x00", "damaged or cut short"),
    ],
)
def test_what_is_not_recognized_is_one_line(content: bytes, why: str, tmp_path: Path) -> None:
    """It names the file, and what was looked for."""
    place = tmp_path / "evidence"
    place.write_bytes(content)

    with pytest.raises(BadSource) as caught:
        open_source(str(place))

    assert str(caught.value).startswith(f"{place}: ")
    assert why in str(caught.value)
    assert "\n" not in str(caught.value)


def test_folders_that_are_no_source(tmp_path: Path) -> None:
    """Empty, of something else, or not there."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other/report.pdf").write_bytes(b"%PDF")

    for name, why in (
        ("empty", "it holds no source"),
        ("other", "it holds no source"),
        ("nothing", "No such file"),
    ):
        with pytest.raises(BadSource, match=why):
            open_source(str(tmp_path / name))


def test_a_folder_whose_one_folder_is_a_source_is_named(tmp_path: Path) -> None:
    """Beside files that are none; how to scan it is the hint. Beside an output it is named as not read."""
    inner = tmp_path / "issue 12" / "in"
    inner.mkdir(parents=True)
    (inner / "ibstat.txt").write_text("CA 'mlx5_0'\n\tCA type: MT4129\n")
    (inner.parent / "notes.json").write_text("{}\n")

    with pytest.raises(BadSource, match="holds no source, but its folder in does") as caught:
        open_source(str(inner.parent))
    assert caught.value.hint == f"`fabricscope scan --source '{inner}'`"

    (inner.parent / "lsmod.txt").write_text("Module                  Size  Used by\nnvidia 1 0\n")
    (inner.parent / "empty").mkdir()
    host = open_source(str(inner.parent))
    assert {file.name: file.reason for file in host.saved.list_files() if file.name in ("in", "empty")} == {
        "in": "is a folder of outputs, a source of its own",
        "empty": "is a folder",
    }


def test_a_link_in_a_source_does_not_lead_to_this_host(tmp_path: Path) -> None:
    """sys -> /sys would present this host as the other; so would a saved output that is a link."""
    (tmp_path / "sys").symlink_to("/sys")
    (tmp_path / "ibstat.txt").symlink_to("/etc/hostname")

    with pytest.raises(BadSource, match="not recognized"):
        open_source(str(tmp_path))


def test_root_and_source_exclude_each_other(tmp_path: Path) -> None:
    """Also a root that is no folder."""
    with pytest.raises(BadSource, match="exclude each other"):
        open_source(str(tmp_path), str(tmp_path))
    with pytest.raises(BadSource, match="is not a folder"):
        open_source(None, str(tmp_path / "nothing"))


def test_another_boot_gives_files_only(tmp_path: Path) -> None:
    """The running kernel's NVML and netlink are not that host's."""
    root = tree(tmp_path)
    with pytest.raises(Absent, match="does not show which kernel"):
        open_source(None, str(root)).nvml("nvmlInit_v2")
    (root / BOOT_ID[1:]).parent.mkdir(parents=True)
    (root / BOOT_ID[1:]).write_text("00000000-0000-0000-0000-000000000000\n")
    host = open_source(None, str(root))

    assert ("live", str(root), True) == (host.kind, host.path, host.live)
    assert b"ID=ubuntu\n" == host.read("/etc/absolute")
    for ask in (lambda: host.nvml("nvmlInit_v2"), lambda: host.netlink(0, bytes(16)), lambda: host.run("lsmod")):
        with pytest.raises(Absent, match="belongs to another boot"):
            ask()


def test_the_same_boot_mixes_in_the_running_kernel(tmp_path: Path) -> None:
    """As in a container that sees its host under /host."""
    root = tree(tmp_path)
    (root / BOOT_ID[1:]).parent.mkdir(parents=True)
    shutil.copy(BOOT_ID, root / BOOT_ID[1:])
    host = RootedHost(str(root))
    request = b"\x14\0\0\0\x12\0\x01\x03" + bytes(8) + b"\0\0\0\0"

    assert host.netlink(0, request)
    with pytest.raises(ValueError, match=r"commands\.py"):
        host.run("reboot")


MARKED = {
    "text/nvidia-smi-topo-m": 42,
    "text/ib-ibstat": 9,
    "text/ib-show_gids": 4,
    "text/rdma-link": 5,
    "text/lsmod": 2,
}
MARKED |= {"text/nvidia-smi-query-csv": 3, "text/ib-ibv_devices": 2}
MARKED |= {"text/lldp": 2, "text/dmesg": 24}
MARKED |= {"text/ib-ibstatus": 4, "text/ib-ibv_devinfo": 5, "text/ib-ibdev2netdev": 3, "text/nvidia-smi-L": 2}


def test_real_outputs_are_recognized(corpus: Path) -> None:
    """Of each command's folder in the corpus, what has this many texts of that command."""
    names = {"nvidia-smi-topo-m": ("nvidia-smi", "topo", "-m"), "ib-ibv_devinfo": ("ibv_devinfo", "-v")}
    names |= {"nvidia-smi-query-csv": ("nvidia-smi", "--query-gpu"), "lldp": ("lldpctl", "-f", "json")}
    names |= {"rdma-link": ("rdma", "link"), "nvidia-smi-L": ("nvidia-smi", "-L")}

    for folder, count in MARKED.items():
        argv = names.get(folder[5:], (folder[5:].removeprefix("ib-"),))
        texts = [path.read_text(errors="replace") for path in (corpus / folder).iterdir()]
        assert count <= sum(identify_command(text) == (argv,) for text in texts), folder


def test_prose_is_no_output(corpus: Path) -> None:
    """What is about machines, but no output of these commands."""
    for folder in (
        "text/nccl",
        "text/ethtool",
    ):
        for path in (corpus / folder).iterdir():
            assert () == identify_command(path.read_text(errors="replace")), path

    lines = (corpus / "text/ibdiagnet/lst-line-2.5.txt").read_text()
    assert () == identify_command(lines)


def test_a_kernel_log_longer_than_other_outputs_is_read(tmp_path: Path) -> None:
    """As a file in a folder and alone; any other output of that length is refused."""
    path = tmp_path / "dmesg.txt"
    row = "[  100.000000] usb 1-1: new high-speed USB device number 5 using xhci_hcd\n"
    path.write_text(row * 250_000 + "[  101.000000] NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.\n")

    for source in (tmp_path, path):
        assert "Xid" in open_source(str(source)).run("dmesg").stdout


@pytest.mark.parametrize(
    "text",
    [
        "sminfo: sm lid 4 sm guid 0x8c0eb0300a1b2c3, activity count 5568 priority 15 state 3 SMINFO_MASTER\n",
        "0: mlx5_0: pd 3 cq 4 qp 3 cm_id 0 mr 0 ctx 0 srq 2\n",
        "--- n7 (Lid 81) ibping statistics ---\n5 packets transmitted, 5 received\n",
        "provider: efa\n    fabric: efa-direct\n    domain: rdmap1s0-rdm\n",
    ],
)
def test_an_output_of_rdma_without_a_fault_is_refused_by_its_kind(text: str) -> None:
    assert "states no fault" in (find_missing_name(text) or "")
    assert identify_command(text) == ()


def test_a_kernel_log_may_have_fewer_decimals() -> None:
    """As people shorten its stamps."""
    assert identify_command("[  912.100] mce: CPU142: Package temperature above threshold\n") == (("dmesg",),)


# Recognizing an output by its text takes linear time, whatever is repeated in it.


FLOODS = ("\n", " ", "\t", "\r\n", "\n ", '"', "|", "{", "[", "[{", "0", "A", "GPU: 1\n", "- ", "==", "\\", "\x1b[0m")


@pytest.mark.parametrize("flood", FLOODS, ids=repr)
def test_a_flood_is_looked_at_in_linear_time(flood: str) -> None:
    """Four times the text is some four times the time (sixteen, were it quadratic), the lesser of two tries."""

    def measure(characters: int) -> float:
        text = (flood * characters)[:characters]
        tries = []
        for _ in range(2):
            started = time.thread_time()
            identify_command(text)
            find_missing_name(text)
            tries.append(time.thread_time() - started)
        return min(tries)

    assert measure(LOOK_CHARACTERS) < 8 * measure(LOOK_CHARACTERS // 4) + 0.05


@pytest.mark.parametrize(
    "text",
    [
        "XPU Topology:\n         GPU 0/0  GPU 1/0\nGPU 0/0  S        NODE\n",
        "| MTHREADS | Device 0 | Device 1 |\n|----------|----------|----------|\n| Device 0 | X        | NODE     |\n",
        "[ 812.1] METAX.B10200.ATU.ERROR xpid 1 vfid 0\n",
        "TPU Chips\n",
    ],
)
def test_accelerators_that_no_check_covers_are_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "paste.txt").write_text(text)
    with pytest.raises(BadSource, match="of accelerators that no check covers"):
        open_source(str(tmp_path / "paste.txt"))


def test_a_log_of_the_neuron_runtime_is_of_a_job(tmp_path: Path) -> None:
    line = "2025-Jun-28 22:19:15.506  8652:8728  ERROR   NRT:nrt_infodump        Failure: NRT_INVALID in nrt_load()\n"
    (tmp_path / "paste.txt").write_text(line)
    with pytest.raises(BadSource, match="is the log of a job"):
        open_source(str(tmp_path / "paste.txt"))
