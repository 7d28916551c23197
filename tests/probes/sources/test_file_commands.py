"""Files of the kernel in a paste: whatever command printed them, each value is of its file."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.diagnose import ScanPlan, diagnose
from probes.host.interface import BadSource, Failed, ReadError
from probes.sources import dump
from probes.sources.file_commands import FileCommand, find_file_command, show_files
from probes.sources.memory import MemoryFiles
from probes.sources.open_source import open_source
from probes.sources.sysfs_lines import read_shown_files

PORT = "/sys/class/infiniband/mlx5_{}/ports/1"
RATES = {
    f"{PORT.format(number)}/rate": rate for number, rate in enumerate(("400 Gb/sec (4X NDR)", "100 Gb/sec (4X EDR)"))
}
BOTH = "".join(f"{rate}\n" for rate in RATES.values())
STATES = {f"{PORT.format(0)}/{name}": value for name, value in (("state", "4: ACTIVE"), ("link_layer", "InfiniBand"))}
FUNCTION = "/sys/bus/pci/devices/0000:18:00.0"


def read_paste(line: str, output: str) -> dict[str, str]:
    """What a command at its prompt shows, by path."""
    command = find_file_command(line)
    assert command is not None
    files = read_shown_files(show_files(command, output))

    def walk(folder: str) -> dict[str, str]:
        found: dict[str, str] = {}
        for name in files.listdir(folder or "/"):
            place = f"{folder}/{name}"
            try:
                found[place] = files.read(place).decode().rstrip("\n")
            except ReadError:
                found |= walk(place)
        return found

    return walk("")


@pytest.mark.parametrize(
    ("line", "output", "expected"),
    [
        ("$ cat /proc/cmdline", "ro quiet iommu=pt\n", {"/proc/cmdline": "ro quiet iommu=pt"}),
        (f"$ cat {FUNCTION}/numa_node", "-1\n\nIs that right?\n", {f"{FUNCTION}/numa_node": "-1"}),
        ("cat /proc/cmdline", "ro\n", {"/proc/cmdline": "ro"}),
        ("[root@n7 ~]# kubectl exec -it p -- cat /proc/cmdline", "ro\n", {"/proc/cmdline": "ro"}),
        ("$ docker exec job cat /proc/cmdline", "ro\n", {"/proc/cmdline": "ro"}),
        ("$ ssh n7 sudo cat /proc/cmdline", "ro\n", {"/proc/cmdline": "ro"}),
        ("$ cat /sys/class/infiniband/mlx5_{0,1}/ports/1/rate", BOTH, RATES),
        ("$ cat /sys/class/infiniband/mlx5_{0..1}/ports/1/rate", BOTH, RATES),
        ("$ for i in 0 1; do cat /sys/class/infiniband/mlx5_$i/ports/1/rate; done", BOTH, RATES),
        ("$ for i in $(seq 0 1); do cat /sys/class/infiniband/mlx5_${i}/ports/1/rate; done", BOTH, RATES),
        (
            "$ for d in mlx5_0 mlx5_1; do echo == $d; cat /sys/class/infiniband/$d/ports/1/rate; done",
            "== mlx5_0\n400 Gb/sec (4X NDR)\n== mlx5_1\n100 Gb/sec (4X EDR)\n",
            RATES,
        ),
        (
            "$ for d in mlx5_0 mlx5_1; do echo -n \"$d: \"; cat /sys/class/infiniband/$d/ports/1/rate; done",
            "mlx5_0: 400 Gb/sec (4X NDR)\nmlx5_1: 100 Gb/sec (4X EDR)\n",
            RATES,
        ),
        (
            "$ for d in /sys/class/infiniband/*; do echo $(basename $d) $(cat $d/ports/1/rate); done | sort",
            "mlx5_0 400 Gb/sec (4X NDR)\nmlx5_1 100 Gb/sec (4X EDR)\n",
            RATES,
        ),
        (
            '# for p in /sys/class/infiniband/*/ports/1; do echo "$p: $(cat $p/state) $(cat $p/link_layer)"; done',
            f"{PORT.format(0)}: 4: ACTIVE InfiniBand\n",
            STATES,
        ),
        (
            "$ for d in /sys/bus/pci/devices/*; do c=$(cat $d/class); case $c in 0x03*|0x02*) echo -n \"$d \";"
            " cat $d/numa_node;; esac; done",
            f"{FUNCTION} -1\n",
            {f"{FUNCTION}/numa_node": "-1"},
        ),
        (
            f"$ cat {FUNCTION}/numa_node {FUNCTION}/label",
            f"0\ncat: {FUNCTION}/label: No such file or directory\n",
            {f"{FUNCTION}/numa_node": "0"},
        ),
        (f"root@n7:{PORT.format(0)}# cat state", "4: ACTIVE\n", {f"{PORT.format(0)}/state": "4: ACTIVE"}),
        ("root@n7:/sys/class/infiniband/mlx5_0/ports/1# grep . *", "state:4: ACTIVE\nlink_layer:InfiniBand\n", STATES),
        (
            "root@n7:/sys/class/infiniband/mlx5_0/ports/1# grep . state link_layer",
            "state:4: ACTIVE\nlink_layer:InfiniBand\n",
            STATES,
        ),
        ("$ grep -r . /sys/class/infiniband/*/ports/1/rate", "".join(f"{p}:{r}\n" for p, r in RATES.items()), RATES),
        (f"$ grep -H . {FUNCTION}/numa_node", f"{FUNCTION}/numa_node:1\n", {f"{FUNCTION}/numa_node": "1"}),
    ],
)  # fmt: skip
def test_each_value_is_of_its_file(line: str, output: str, expected: dict[str, str]) -> None:
    assert expected == read_paste(line, output)


@pytest.mark.parametrize(
    "line",
    [
        "$ cat notes.txt",
        "$ cat /var/log/syslog",
        "I looked at cat /proc/cmdline and it is fine",
        "$ cat /sys/bus/pci/devices/*/numa_node | sort | uniq -c",
        "$ cat /proc/cpuinfo | wc -l",
        "$ ls /sys/class/infiniband",
        "$ cat /proc/cmdline" + " " * 700,
    ],
)
def test_what_prints_no_such_file_is_none(line: str) -> None:
    assert find_file_command(line) is None


def test_values_that_are_not_as_many_as_the_files_are_of_none() -> None:
    """One of two files could not be read, and nothing shows which."""
    command = find_file_command("$ cat /sys/class/infiniband/mlx5_{0,1}/ports/1/rate")
    assert command is not None
    assert show_files(command, "400 Gb/sec (4X NDR)\n") == ""


def test_a_few_functions_are_no_list_of_the_bus(tmp_path: Path) -> None:
    """Nothing is known of what is not shown: no rule may take its absence for a fact."""
    source = tmp_path / "notes.txt"
    source.write_text(f"$ cat {FUNCTION}/{{vendor,class,numa_node}}\n0x10de\n0x030200\n0\n")
    report, _ = diagnose(open_source(str(source)), ScanPlan())

    (run,) = [run for run in report.probes if run.name == "pci"]
    assert ("partial", "list-cut") == (run.status, run.reason_code)
    (check,) = [check for check in report.checks if check.rule == "ib-port-down"]
    assert "unknown" == check.state


def test_a_folder_without_an_address_is_no_empty_bus(tmp_path: Path) -> None:
    source = tmp_path / "notes.txt"
    source.write_text("$ cat /sys/bus/pci/devices/readme/numa_node\n0\n")
    report, _ = diagnose(open_source(str(source)), ScanPlan())

    (run,) = [run for run in report.probes if run.name == "pci"]
    assert "absent" == run.status


@pytest.mark.parametrize(
    "text",
    [
        "gpu01: 400 Gb/sec (4X NDR)\ngpu02: 100 Gb/sec (4X EDR)\n",
        "$ pdsh -w gpu0[1-2] cat /sys/class/infiniband/mlx5_0/ports/1/rate\ngpu01: 400 Gb/sec (4X NDR)\n"
        "gpu02: 100 Gb/sec (4X EDR)\n",
        "gpu01 | CHANGED | rc=0 >>\nup\ngpu02 | CHANGED | rc=0 >>\ndown\n",
    ],
)
def test_lines_of_several_hosts_are_refused_by_name(text: str, tmp_path: Path) -> None:
    """No file is one of another host."""
    source = tmp_path / "notes.txt"
    source.write_text(text)
    with pytest.raises(BadSource, match=r"holds lines of 2 hosts \(gpu01, gpu02\), and a source is one host"):
        open_source(str(source))


def test_a_long_log_of_too_many_lines_states_what_to_give(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not its own length is too much, but what is read of it."""
    line = b"Nov 14 03:22:11 n7 kernel: NVRM: Xid (PCI:0000:%02x:00): 79, GPU has fallen off the bus.\n"
    content = b"".join(line % number for number in range(64))
    monkeypatch.setattr(dump, "_KEPT_LIMIT_BYTES", 1000)
    with pytest.raises(Failed, match="of its lines are about devices, and 0 MiB are read: give a part of it"):
        dump.read_long_log(MemoryFiles({"log": content}), "/log", ("dmesg",))
    monkeypatch.setattr(dump, "LOG_LIMIT_BYTES", len(content))
    with pytest.raises(Failed, match="/log: longer than 0 MiB: give a part of it"):
        dump.read_long_log(MemoryFiles({"log": content}), "/log", ("dmesg",))


def test_values_that_are_items_of_the_loop_are_no_labels() -> None:
    """Nodes 0, 0, 1, 1 of devices 0 to 3, in a loop that prints nothing else."""
    loop = FileCommand("for i in 0 1 2 3; do cat /sys/class/infiniband/mlx5_$i/device/numa_node; done")
    shown = show_files(loop, "0\n0\n1\n1\n")

    assert ["0", "0", "1", "1"] == [part.splitlines()[1] for part in shown.split("==> ")[1:]]
