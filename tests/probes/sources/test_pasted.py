"""Texts that somebody pasted together: which outputs are in them, and what is said of the rest."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.cli.request import build_request
from probes.host.commands import COMMANDS, SAVED
from probes.host.interface import FILTERED, BadSource, Failed
from probes.kernel import modules
from probes.pci import lspci
from probes.rdma import tools as rdma_tools
from probes.sources import dump, pasted
from probes.sources.dump import PASTED_CHARACTERS
from probes.sources.open_source import open_source
from probes.sources.output_names import saved_name
from probes.sources.pasted import LINE_CHARACTERS, PIECES_LIMIT, holds_output, split_pasted
from probes.sources.tree import TreeHost
from probes.sources.unwrap import unwrap

MATRIX = (
    "        GPU0    GPU1    NIC0    CPU Affinity    NUMA Affinity\n"
    "GPU0     X      NV4     PIX     0-31            0\n"
    "GPU1    NV4      X      SYS     32-63           1\n"
    "NIC0    PIX     SYS      X\n"
)
IBSTATUS = (
    "Infiniband device 'mlx5_4' port 1 status:\n\tdefault gid:\t fe80::1\n\tbase lid:\t 0x5\n\tsm lid:\t\t 0x1\n"
    "\tstate:\t\t 4: ACTIVE\n\tphys state:\t 5: LinkUp\n\trate:\t\t 200 Gb/sec (4X HDR)\n\tlink_layer:\t InfiniBand\n"
)
LSMOD = "Module                  Size  Used by\nmlx5_ib               401408  0\n"
XID = "[ 9120.551100] NVRM: Xid (PCI:0000:4e:00): 79, pid=77, GPU has fallen off the bus.\n"
GIDS = "DEV\tPORT\tINDEX\tGID\t\tIPv4\t\tVER\tDEV\nmlx5_4\t1\t0\tfe80:0000:0000:0000:0000:0000:0000:0001\t\tv1\tib4\n"
BRIDGE = "00:00.0 Host bridge: Intel Corporation Device 0998 (rev 04)\n"
GPU = "4e:00.0 3D controller: NVIDIA Corporation Device 20b5 (rev a1)\n"


def opened(tmp_path: Path, text: str, name: str = "issue.md") -> TreeHost:
    """The source that a file with this text is."""
    (tmp_path / name).write_text(text)
    host = open_source(str(tmp_path / name))
    assert isinstance(host, TreeHost)
    return host


def test_fences_prompts_and_commands_alone_begin_outputs(tmp_path: Path) -> None:
    """An issue as people write it: each output is that of its command, and prose is none."""
    text = (
        f"My node is slow.\n\n```\n$ nvidia-smi topo -m\n{MATRIX}```\nand `lsmod` gives:\n```text\n{LSMOD}```\n"
        f"(base) [root@gpu-7 ~]# ibstatus\n{IBSTATUS}(base) [root@gpu-7 ~]# exit\nsudo dmesg\n{XID}"
    )
    host = opened(tmp_path, text)

    assert MATRIX == host.run("nvidia-smi", "topo", "-m").stdout
    assert LSMOD == host.run("lsmod").stdout
    assert IBSTATUS == host.run("ibstatus").stdout
    assert XID == host.run("dmesg").stdout
    assert () == host.unread


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("NIC statistics:\n     rx_bytes: 1\n", ("ethtool", "-S", "ens1f0")),
        ("driver: mlx5_core\nversion: 5.0\n", ("ethtool", "-i", "ens1f0")),
        ("Priority trust state: dscp\n", ("mlnx_qos", "-i", "ens1f0")),
        ("link status: UP\n", ("hccn_tool", "-i", "0", "-link", "-g")),
        ("\thccs lane mode : [4 4]\n", ("npu-smi", "info", "-t", "hccs", "-i", "0", "-c", "0")),
        ("\tTX Error Count : 0\n", ("npu-smi", "info", "-t", "sio-info", "-i", "0", "-c", "0")),
    ],
)
def test_an_output_that_is_saved_as_the_warning_advises_is_read(
    tmp_path: Path, text: str, command: tuple[str, ...]
) -> None:
    """Without a name a warning advises one; under that name the output is its command's, and nothing is left to say."""
    (tmp_path / "output.txt").write_text(text)
    (tmp_path / "lsmod.txt").write_text(LSMOD)
    (tmp_path / "ethtool_-a_ens9.txt").write_text("Pause parameters for ens9:\nRX: off\n")
    warned = open_source(str(tmp_path)).unread
    name = f"{saved_name(command)}.txt"
    assert [True] == [f"save it as {name}" in warning for warning in warned]
    (tmp_path / "output.txt").rename(tmp_path / name)
    host = open_source(str(tmp_path))

    assert () == host.unread
    assert text == host.run(*command).stdout


def test_outputs_without_a_line_between_them_are_told_apart(tmp_path: Path) -> None:
    """By the first line of the next tool's output."""
    host = opened(tmp_path, f"Hello,\n{MATRIX}\nLegend:\n\n  X = Self\n\n{IBSTATUS}{XID}")

    assert host.run("nvidia-smi", "topo", "-m").stdout.startswith(MATRIX)
    assert "Infiniband" not in host.run("nvidia-smi", "topo", "-m").stdout
    assert IBSTATUS == host.run("ibstatus").stdout
    assert XID == host.run("dmesg").stdout


def test_margins_and_quotation_marks_are_taken_off(tmp_path: Path) -> None:
    """An output below a list, in a quotation, or with its heading behind the command."""
    margin = "".join(f"      {line}" for line in GIDS.splitlines(keepends=True))
    quoted = "".join(f"> {line}" for line in LSMOD.splitlines(keepends=True))
    heading, _, rows = MATRIX.partition("\n")
    host = opened(
        tmp_path,
        f"2. GIDs:\n      me@n1:~$ show_gids\n{margin}\n```\n{quoted}```\nnvidia-smi topo -m {heading}\n{rows}",
    )

    assert GIDS == host.run("show_gids").stdout.rstrip("\n") + "\n"
    assert LSMOD == host.run("lsmod").stdout
    assert [["GPU0", "GPU1"], ["GPU0", "X"]] == [
        line.split()[:2] for line in host.run("nvidia-smi", "topo", "-m").stdout.splitlines()[:2]
    ]


DRIVER = "driver: {}\nversion: 6.8\nfirmware-version: 22.35.2000 (MT_0000000359)\nbus-info: 0000:{}:00.0\n"


@pytest.mark.parametrize(
    ("loop", "between"),
    [
        ("for i in ens1 ens2; do ethtool -i $i; done", ""),
        ('for nic in ens1 ens2; do echo $nic; sudo ethtool -i "${nic}"; done | less', "{}\n"),
        ('for nic in ens1 ens2; do echo "NIC $nic:"; ethtool -i $nic; done', "NIC {}:\n"),
    ],
)
def test_outputs_of_a_loop_are_of_its_values(tmp_path: Path, loop: str, between: str) -> None:
    """Where they are as many as the values, or the names stand between them."""
    one, two = DRIVER.format("mlx5_core", "19"), DRIVER.format("bnxt_en", "5a")
    host = opened(tmp_path, f"# {loop}\n{between.format('ens1')}{one}{between.format('ens2')}{two}")

    assert ["ens1", "ens2"] == host.saved_arguments("ethtool", "-i")
    assert (one, two) == tuple(host.run("ethtool", "-i", name).stdout for name in ("ens1", "ens2"))
    with pytest.raises(BadSource):  # one answer is missing: it is not known whose the other is
        opened(tmp_path, f"# {loop}\n{one}")


@pytest.mark.parametrize(
    ("loop", "name"),
    [
        ("for i in 1 2; do echo ens$i; ethtool -i ens$i; done", "{}\n"),
        ('for n in $(ls /sys/class/net); do echo "== $n =="; ethtool -i $n; done', "== {} ==\n"),
    ],
)
def test_names_of_a_loop_are_between_its_outputs(tmp_path: Path, loop: str, name: str) -> None:
    """Where a value is a part of the name, or only the machine knows the values."""
    one, two = DRIVER.format("mlx5_core", "19"), DRIVER.format("bnxt_en", "5a")
    host = opened(tmp_path, f"# {loop}\n{name.format('ens1')}{one}{name.format('ens2')}{two}")

    assert (one, two) == tuple(host.run("ethtool", "-i", interface).stdout for interface in ("ens1", "ens2"))


def test_a_name_before_each_line_of_a_loop(tmp_path: Path) -> None:
    """Where `echo -n` printed it; what lspci begins a line with is no such name."""
    loop = "# for b in 17:00.0 ca:00.0; do {}lspci -vv -s $b | grep LnkSta; done\n"
    lines = "".join(f"{b} \t\tLnkSta:\tSpeed 32GT/s, Width x{w}\n" for b, w in (("17:00.0", 16), ("ca:00.0", 8)))
    text = opened(tmp_path, loop.format('echo -n "$b "; ') + lines).run("lspci", "-vvv").stdout
    assert ["17:00.0 Device: ?", "LnkSta:\tSpeed 32GT/s, Width x16"] == [row.strip() for row in text.splitlines()[:2]]
    bridges = "17:00.0 PCI bridge: Intel Corporation Device 352a\nca:00.0 PCI bridge: Intel Corporation Device 352a\n"
    assert bridges.splitlines()[1] in opened(tmp_path, loop.format("") + bridges).run("lspci").stdout


def test_devices_that_were_asked_one_by_one_are_all_there(tmp_path: Path) -> None:
    """Each is a part of the list, which is then not known to be whole."""
    other = IBSTATUS.replace("mlx5_4", "mlx5_5")
    host = opened(tmp_path, f"$ ibstatus mlx5_4\n{IBSTATUS}$ ibstatus mlx5_5\n{other}$ lsmod\n{LSMOD}")
    facts = rdma_tools.read(host)

    assert ["mlx5_4", "mlx5_5"] == [device.name for device in facts.facts.devices]
    assert not facts.facts.whole
    assert "may be cut: it is the output of" in (facts.missing or "")
    assert rdma_tools.read(opened(tmp_path, f"$ ibstatus\n{IBSTATUS}{other}")).facts.whole
    assert ["mlx5_4"] == [
        device.name for device in rdma_tools.read(opened(tmp_path, f"$ ibstatus | head -8\n{IBSTATUS}")).facts.devices
    ]


@pytest.mark.parametrize(
    ("lines", "is_part"),
    [("head", False), ("head -n 2", True), ("head -3", False), ("tail -2", True), ("grep m", True)],
)
def test_what_passes_all_lines_on_leaves_the_whole(tmp_path: Path, lines: str, is_part: bool) -> None:
    host = opened(tmp_path, f"$ lsmod | {lines}\n{LSMOD}$ ibstatus\n{IBSTATUS}")

    assert is_part == host.run("lsmod").stderr.startswith(FILTERED)


def test_a_file_with_the_name_of_its_command_may_hold_the_prompt(tmp_path: Path) -> None:
    """As somebody copied it; a part of a list is refused there, too."""
    (tmp_path / "lsmod.txt").write_text(f"[root@gpu-7 ~]# lsmod\n{LSMOD}[root@gpu-7 ~]# \n")
    (tmp_path / "ibstatus.txt").write_text("".join(f"> {line}\n" for line in IBSTATUS.splitlines()))
    (tmp_path / "show_gids.txt").write_text(f"```\n{GIDS}```\n")
    host = open_source(str(tmp_path))

    assert (LSMOD, IBSTATUS, GIDS) == tuple(host.run(name).stdout for name in ("lsmod", "ibstatus", "show_gids"))
    (tmp_path / "nvidia-smi_topo_-m.txt").write_text(f"$ nvidia-smi topo -m | grep GPU\n{MATRIX}")
    with pytest.raises(Failed, match="is a part of what the command printed"):
        open_source(str(tmp_path)).run("nvidia-smi", "topo", "-m")


def test_a_pasted_thread_reads_as_its_files(corpus: Path) -> None:
    """The same is known of its machine by the paste and by the files, as far as both hold it."""
    threads = [path for path in (corpus / "threads").iterdir() if (path / "paste.md").exists()]
    outputs = {
        thread.name: (open_source(str(thread / "in")), open_source(str(thread / "paste.md"))) for thread in threads
    }

    assert len(threads) > 10
    for name, (files, paste) in outputs.items():
        assert isinstance(files, TreeHost)
        assert isinstance(paste, TreeHost)
        assert [] == [why for why in paste.unread if "a job's log: `fabricscope job` reads" not in why], name
        for argv in COMMANDS + SAVED:
            if files.has_output(*argv) and paste.has_output(*argv) and argv != ("hccn_tool",):
                texts = (host.run(*argv).stdout for host in (files, paste))
                one, other = ([line.strip() for line in text.splitlines() if line.strip()] for text in texts)
                assert one == other, (name, argv)


@pytest.mark.parametrize("domain", ["0005", "1000", "10000", "10001"])
def test_a_pci_domain_is_no_line_number(tmp_path: Path, domain: str) -> None:
    """Nor are the numbers of interfaces, of LIDs or of anything that an output counts by itself."""
    text = f"{domain}:00:00.0 PCI bridge: NVIDIA Corporation Device 1ad0 (rev a1)\n"

    assert text == opened(tmp_path, text).run("lspci", "-D", "-nn", "-vvv").stdout
    assert "1: lo: <LOOPBACK,UP> mtu 65536\n2: ib0: <UP> mtu 4092\n" == unwrap(
        "1: lo: <LOOPBACK,UP> mtu 65536\n2: ib0: <UP> mtu 4092\n", holds_output
    )


def test_a_text_of_one_output_stays_whole(tmp_path: Path) -> None:
    """Also with prose around it, as ever."""
    text = f"It prints\n{IBSTATUS}and that is all.\n"

    assert text == opened(tmp_path, text).run("ibstatus").stdout


def test_outputs_of_interfaces_get_their_names(tmp_path: Path) -> None:
    """By the prompt or by the output; without either a stand-in has it, where no other output names an interface."""
    counters = "NIC statistics:\n     rx_out_of_buffer: 7\n"
    text = f"```\nSettings for ens1f0np0:\n\tSpeed: 100000Mb/s\n```\n# ethtool -S ens1f0np0 | grep buf\n{counters}\n"
    host = opened(tmp_path, text)

    assert ["ens1f0np0"] == host.saved_arguments("ethtool")
    assert counters.strip() == host.run("ethtool", "-S", "ens1f0np0").stdout.strip()
    assert ["ethX"] == opened(tmp_path, f"# ethtool -S output\n```\n{counters}```\n").saved_arguments("ethtool", "-S")
    unnamed = f"{LSMOD}\n{counters}\nDCBX mode: OS controlled\nPriority trust state: dscp\n"
    host = opened(tmp_path, unnamed)
    assert () == host.unread
    assert ["ethX"] == host.saved_arguments("mlnx_qos", "-i")
    host = opened(tmp_path, f"{unnamed}\nSettings for ens1f0np0:\n\tSpeed: 100000Mb/s\n")
    assert ["issue.md, line 4", "issue.md, line 7"] == [text.partition(": ")[0] for text in host.unread]
    assert "mlnx_qos_-i_ens1f0.txt" in host.unread[1]


def test_a_part_of_a_list_is_no_whole_list(tmp_path: Path) -> None:
    """A GPU that `grep` left over says nothing of NICs; modules that are not in a part may be loaded."""
    host = opened(tmp_path, f"$ lspci | grep -i nvidia\n{GPU}$ lsmod | grep mlx5\n{LSMOD}")

    assert host.run("lspci", "-D", "-nn", "-vvv").stderr.startswith(FILTERED)
    assert "may be cut: it is the output of `lspci | ...`" in str(lspci.read(host).missing)
    with pytest.raises(Failed, match="so that other modules may be loaded"):
        modules.read_lsmod(host)
    for whole in ("lspci", "lspci | less", "lspci 2>/dev/null | tee list.txt", "sudo /usr/bin/lspci  # all"):
        assert lspci.read(opened(tmp_path, f"$ {whole}\n{BRIDGE}{GPU}$ lsmod\n{LSMOD}")).missing is None
    two = opened(tmp_path, f"$ me@n1:~$ sudo lspci -s 4e:00.0\n{GPU}$ me@n1:~$ sudo lspci -s 00:00.0 -vv\n{BRIDGE}")
    assert ["0000:00:00.0", "0000:4e:00.0"] == [function.address for function in lspci.read(two).facts.functions]
    assert lspci.read(two).missing
    for part in ("lspci -s 4e:00.0", "lspci -d 10de:"):
        assert lspci.read(opened(tmp_path, f"$ {part}\n{GPU}")).missing


def test_outputs_of_a_second_host_are_not_mixed_in(tmp_path: Path) -> None:
    """A source is one host: the first one whose prompt is there."""
    host = opened(tmp_path, f"[me@n12 ~]$ lsmod\n{LSMOD}[me@n13 ~]$ ibstatus\n{IBSTATUS}[root@n12 ~]# dmesg\n{XID}")

    assert [True, True, False] == [host.has_output(name) for name in ("lsmod", "dmesg", "ibstatus")]
    assert ("issue.md, line 4: ibstatus: is of n13, and a source is one host: here n12",) == host.unread


def test_a_second_output_of_a_command_is_named(tmp_path: Path) -> None:
    """The first one is used; a log goes on, and an equal one is no other."""
    other = LSMOD.replace("401408", "1")
    host = opened(tmp_path, f"$ lsmod\n{LSMOD}$ dmesg\n{XID}$ lsmod\n{LSMOD}$ lsmod\n{other}$ dmesg -T\n{XID}")

    assert LSMOD == host.run("lsmod").stdout
    assert 2 * XID == host.run("dmesg").stdout
    assert ("issue.md, line 9: lsmod: an earlier one is used",) == host.unread


def test_several_logs_of_nvidia_smi_are_read_together(tmp_path: Path) -> None:
    """Each has a date, by which its reader chooses."""
    idle, busy = (f"==============NVSMI LOG==============\n\nTimestamp : {day}\n" for day in ("x", "y"))
    host = opened(tmp_path, f"$ nvidia-smi -q\n{idle}$ nvidia-smi -q\n{busy}")

    assert idle + busy == host.run("nvidia-smi", "-q").stdout
    assert () == host.unread


def test_what_no_reader_knows_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """On stderr, where a scan says it; commands that are none of ours are not."""
    table = "+------+\n| NVIDIA-SMI 535.1    Driver Version: 535.1 |\n+------+\n"
    host = opened(tmp_path, f"$ nvidia-smi\n{table}$ lspci -t\n-[0000:00]-\n$ ls\nx\n$ lsmod\n{LSMOD}")

    assert ["line 1: nvidia-smi", "line 5: lspci -t"] == [
        text.split(": ", 1)[0][10:] + ": " + text.split(": ")[1] for text in host.unread
    ]
    assert "without a GPU; save all of it" in host.unread[0]
    values = dict.fromkeys(("root", "report", "config", "state_dir", "interval", "accept_inventory", "skip"))
    request = build_request(
        values | {"source": host.path, "only": "lsmod", "timeout": 30.0, "quiet": True, "profile": "none"}
    )
    request.make_report()
    assert 2 == capsys.readouterr().err.count("warning: not read: issue.md, line ")


def test_files_of_a_folder_are_looked_into(tmp_path: Path) -> None:
    """A named output counts more than one in a text; two texts complete each other."""
    (tmp_path / "lsmod.txt").write_text(LSMOD.replace("401408", "2"))
    (tmp_path / "a.md").write_text(f"$ lsmod\n{LSMOD}$ ibstatus\n{IBSTATUS}")
    (tmp_path / "b.md").write_text(f"$ dmesg\n{XID}$ show_gids\n{GIDS}")
    host = open_source(str(tmp_path))

    assert "  2  0" in host.run("lsmod").stdout
    assert all(host.has_output(name) for name in ("ibstatus", "dmesg", "show_gids"))


def test_a_long_text_is_read_to_its_end(tmp_path: Path) -> None:
    """Where its begin has an output: the next one may stand far below. One beyond the limit is one output."""
    prose = "".join(f"naïve sentence {number}\n" for number in range(20_000))
    host = opened(tmp_path, f"$ lsmod\n{LSMOD}```\n{prose}$ ibstatus\n{IBSTATUS}")
    longer = opened(tmp_path, f"{LSMOD}{'ä' * 80}\n" * (PASTED_CHARACTERS // 200) + f"$ ibstatus\n{IBSTATUS}")

    assert (LSMOD, IBSTATUS) == (host.run("lsmod").stdout, host.run("ibstatus").stdout)
    assert [True, False] == [longer.has_output(name) for name in ("lsmod", "ibstatus")]


def test_a_folder_of_long_texts_takes_no_long_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is split has a limit for all files together; beyond, a file is one output."""
    monkeypatch.setattr(dump, "_SPLIT_CHARACTERS", 4000)
    for number in range(9):
        (tmp_path / f"app-{number}.log").write_text("something happened\n" * 99)
    (tmp_path / "b.md").write_text(f"$ lsmod\n{LSMOD}$ ibstatus\n{IBSTATUS}")
    (tmp_path / "c.out").write_text(GIDS)
    host = open_source(str(tmp_path))

    assert [False, True, True] == [host.has_output(name) for name in ("lsmod", "ibstatus", "show_gids")]
    assert isinstance(host, TreeHost)
    assert ("8 files count as one output each: there is too much text here to look for more",) == host.unread


@pytest.mark.parametrize(
    "line",
    [
        "pcieport 0000:00:03.1: AER: Corrected error received: 0000:00:00.0",
        "kernel: pcieport 0000:00:03.1: AER: Corrected error received: 0000:00:00.0",
        "[  +0.000844] pcieport 0000:00:03.1: AER: Corrected error received: 0000:00:00.0",
        "> NVRM: Xid (PCI:0000:4e:00): 79, pid=77, GPU has fallen off the bus.",
        '[found] (3 minutes ago) "NVRM: Xid (PCI:0000:4e:00): 79, pid=77, GPU has fallen off the bus."',
        "10.0.0.7: kern: warning: [2026-01-02T03:04:05.000000006Z]: NVRM: Xid (PCI:0000:4e:00): 79, pid=77, x",
    ],
)
def test_lines_of_a_log_without_its_times_are_a_log(tmp_path: Path, line: str) -> None:
    """As people quote them, below prose of some lines."""
    prose = "".join(f"sentence {number}\n" for number in range(8))

    assert line.lstrip("> ") in opened(tmp_path, f"{prose}{line}\n").run("dmesg").stdout
    assert line.lstrip("> ") in opened(tmp_path, f"{line}\n").run("dmesg").stdout


def test_a_long_text_has_bounds() -> None:
    """A million fences, one endless line, a margin of spaces: none takes long, and parts are counted."""
    assert PIECES_LIMIT == len(split_pasted("$ lsmod\nx\n" * 300))
    assert 1 == len(split_pasted("a" * LINE_CHARACTERS + "`lsmod`\n"))
    for hard in (
        " " * 599,
        "> " * 299,
        "a@a " * 149,
        "ip -a" * 100,
        "ab/" * 190,
        "[a@b c" * 90,
        "ip" + " -a" * 90 + "!",
    ):
        assert 2 > len(split_pasted(f"{hard}\n" * (PASTED_CHARACTERS // 40 // len(hard))))


def test_a_prompt_without_a_name_behind_ssh_is_of_the_other_host() -> None:
    """So that what one host counts is not compared with what another does; where `exit` leads is not known."""
    text = (
        "[root@n1 ~]# ethtool -S ens1\nNIC statistics:\n     rx_packets: 1\n"
        "[root@n1 ~]# ssh -p 22 root@n2.example\n$ ethtool -S ens1\nNIC statistics:\n     rx_packets: 2\n"
        "$ exit\n$ ethtool -S ens1\nNIC statistics:\n     rx_packets: 3\n"
        "$ ssh n3 lsmod\nModule  Size  Used by\n$ ethtool -S ens1\nNIC statistics:\n     rx_packets: 4\n"
    )
    pieces = [piece for piece in split_pasted(text) if piece.words[:1] == ("ethtool",)]

    assert ["n1", "n2", None, None] == [piece.host for piece in pieces]


@pytest.mark.parametrize("prompt", ["nid7:~ # ", "nid7:/var/log # ", "nid7$ ", "root@nid7:~# "])
def test_a_prompt_of_any_form_names_its_host(prompt: str) -> None:
    pieces = split_pasted(f"{XID}{prompt}ibstat\nCA 'mlx5_0'\n")

    assert [(None, ()), ("nid7", ("ibstat",))] == [(piece.host, piece.words) for piece in pieces]


def test_rows_below_a_heading_in_capitals_are_whole_whatever_their_width() -> None:
    rows = [
        f"{'NAME':40}READY   STATUS                  RESTARTS        AGE",
        f"{'nvidia-cuda-validator-9xw2c':40}0/1     Init:CrashLoopBackOff   6 (26s ago)     6m",
        f"{'nvidia-operator-validator-2kq7d':40}0/1     Init:CrashLoopBackOff   17 (80s ago)    15m",
        f"{'nvidia-dcgm-exporter-7pzvr':40}1/1     Running                 0               15m",
    ]
    (piece,) = split_pasted("me@head:~$ kubectl get po -n gpu-operator\n" + "\n".join(rows) + "\n")
    assert piece.text.splitlines() == rows


def test_a_command_at_the_end_of_a_sentence_states_the_device_of_its_output() -> None:
    text = "Two dies are slow. hccn_tool -i 9 -link -g gives\nlink status: DOWN\nAny idea?\n"
    pieces = [piece for piece in split_pasted(text) if piece.words]
    assert [piece.words for piece in pieces] == [("hccn_tool", "-i", "9", "-link", "-g")]
    assert pieces[0].text.startswith("link status: DOWN\n")


def test_empty_lines_begin_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A megabyte of them took 15 seconds."""
    tried: list[str] = []
    monkeypatch.setattr(pasted, "find_file_command", lambda line: tried.append(line))
    split_pasted("Hi,\n\n\n" + "\n" * 1000 + "Bye\n")

    assert {"Hi,", "Bye"} == set(tried)
