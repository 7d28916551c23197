"""Values of several hosts in one text: one that is not as the others is found, in any form; what varies is none."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from probes.sources.host_table import expand_hosts, tabulate_hosts, tabulate_loop
from probes.tool_reports.tables.loops import list_loop_faults
from probes.tool_reports.tables.sheets import list_sheet_faults
from tests.machines import scan_text

RULE = "-" * 16
SHELL = "$ pdsh -w c[01-05] '{}'\n"


def before(values: Mapping[str, str], command: str = "") -> str:
    above = SHELL.format(command) if command else ""
    return above + "".join(f"{host}: {line}\n" for host, text in values.items() for line in text.split("\n"))


def hosts(usual: str, odd: str, name: str = "c{:02}") -> dict[str, str]:
    return {name.format(n): odd if n == 3 else usual for n in range(1, 6)}


ODD = {
    "an MTU": (before(hosts("9000", "1500"), "cat /sys/class/net/ens7np0/mtu"), "sheet-setting"),
    "a rate": (
        before(
            hosts("400 Gb/sec (4X NDR)", "200 Gb/sec (4X HDR)"), "cat /sys/class/infiniband/mlx5_4/ports/1/rate"
        ),
        "below-rate",
    ),
    "a rate of hosts alone": (before(hosts("400 Gb/sec", "100 Gb/sec", "gpu-node-{}")), "below-rate"),
    "a state": (before(hosts("4: ACTIVE", "1: DOWN"), "cat /sys/class/infiniband/mlx5_4/ports/1/state"), "sheet-down"),
    "a count of GPUs": (before(hosts("8", "7"), "nvidia-smi -L | wc -l"), "below-count"),
    "a count of devices": (before(hosts("9", "8"), "lspci | grep -c Mellanox"), "below-count"),
    "a label of several": (before(hosts("State: Up\nRate: 400", "State: Up\nRate: 200"), "ibstat"), "below-rate"),
    "the second of a label": (before(hosts("Rate: 400\nRate: 400", "Rate: 400\nRate: 200"), "ibstat"), "below-rate"),
    "the width of a port": (before(hosts("Width : 4x", "Width : 1x"), "mlxlink -d mlx5_0"), "below-rate"),
    "a value for each file": (
        before(hosts("9000\n9000", "9000\n1500"), "cat /sys/class/net/e1/mtu; cat /sys/class/net/e2/mtu"),
        "sheet-setting",
    ),
    "folded": (f"{RULE}\nc[01-02,04-05] (4)\n{RULE}\nRate: 400\n{RULE}\nc03\n{RULE}\nRate: 200\n", "below-rate"),
}  # fmt: skip
ALIKE = {
    "no odd one": before(hosts("9000", "9000"), "cat /sys/class/net/ens7np0/mtu"),
    "more than the others": before(hosts("200 Gb/sec", "400 Gb/sec"), "cat /sys/class/infiniband/mlx5_4/ports/1/rate"),
    "no command": before(hosts("9000", "1500")),
    "a count of lines": before(hosts("8", "7"), "wc -l /var/log/syslog"),
    "uptimes": before({f"c0{n}": f" 11:02:33 up {n} days, load average: {n}.10" for n in range(1, 6)}, "uptime"),
    "identifiers": before({f"c0{n}": f"Port GUID: 0x{n}{n}\nState: Up" for n in range(1, 6)}, "ibstat"),
    "devices": "".join(f"mlx5_{n}: {400 - 200 * (n == 3)} Gb/sec\n" for n in range(6)),
    "ports": "".join(f"eth{n}: mtu: {1500 if n == 3 else 9000}\n" for n in range(6)),
    "what is free": "".join(f"c0{n}: HugePages_Free: {0 if n == 3 else 512}\n" for n in range(1, 6)),
    "ports of one base": "".join(f"eth{n}: READ: bw={n}GiB/s\n" for n in range(6)),
    "too few hosts": before({"c01": "9000", "c02": "9000", "c03": "1500"}, "cat /sys/class/net/ens7np0/mtu"),
    "other hosts": before(hosts("9000", "9000") | {"login-1": "1500"}, "cat /sys/class/net/ens7np0/mtu"),
}


@pytest.mark.parametrize("name", ODD)
def test_a_value_of_one_host_that_is_not_as_the_others_is_found(name: str, tmp_path: Path) -> None:
    text, code = ODD[name]
    (report,) = list_sheet_faults(tabulate_hosts(text) or "")
    assert report.code == code
    assert report.subject in ("c03", "gpu-node-3")
    (finding,) = scan_text(tmp_path, text, "issue.txt").findings
    assert finding.rule == ("ib-port-down" if name == "a state" else "tool-reports-fault")  # not both


def test_keys_in_units_of_one_base_are_compared() -> None:
    text = hosts("WRITE: bw=9.8GiB/s (10GB/s), io=64GiB", "WRITE: bw=1203MiB/s (1GB/s), io=64GiB")
    (report,) = list_sheet_faults(tabulate_hosts(before(text, "fio w")) or "")
    assert ("value-odd", "host c03: WRITE bw 1203MiB/s, the others 9.8 GiB/s") == (report.code, report.detail[0][1])


@pytest.mark.parametrize("name", ALIKE)
def test_what_is_alike_or_varies_is_not(name: str) -> None:
    table = tabulate_hosts(ALIKE[name])
    assert table is None or list_sheet_faults(table) == []


def loop(values: str, body: str, usual: str, odd: str, number: int = 4) -> str:
    return f"$ for x in {values}; do {body}; done\n" + "".join(f"{odd if at == 2 else usual}\n" for at in range(number))


ODD_IN_LOOP = {
    "addresses that only the machine has": (
        "# for d in $(lspci -D | cut -c1-12); do echo $d $(setpci -s $d 68.w); done\n"
        + "".join(f"0000:{bus}:00.0 {2936 if bus == 'ab' else 5936}\n" for bus in ("18", "2a", "ab", "df")),
        "0000:ab:00.0"
    ),
    "cores of processes": (
        "$ for p in $(pgrep train); do taskset -cp $p; done\n"
        + "".join(f"pid 9{n}'s current affinity list: {f'{4 * n}-{4 * n + 3}' if n != 2 else 8}\n" for n in range(5)),
        "pid 92",
    ),
    "a loop of read": (
        "# ls | while read b; do echo $b $(cat $b/mps); done\n"
        + "".join(f"slot{n} {128 if n == 3 else 512}\n" for n in range(4)), "slot3"
    ),
    "one line of ansible": (
        "$ ansible all -a 'ofed_info -s' -o\n"
        + "".join(f"w{n} | CHANGED | rc=0 | (stdout) OFED-{5 if n == 4 else 23}.8:\n" for n in range(1, 6)), "w4"
    ),
    "one that failed": (
        "$ ansible all -a 'ofed_info -s' -o\n"
        + "".join(f"w{n} | CHANGED | rc=0 | (stdout) OFED-23.8:\n" for n in range(1, 5))
        + "w5 | FAILED | rc=127 | (stdout)  (stderr) sh: ofed_info: not foundnon-zero return code\n", "w5"
    ),
    "a partition of memory": (
        "$ pdsh -w m[1-5] x\n" + "".join(f"m{n}: Memory Partition: NPS{4 if n == 2 else 1}\n" for n in range(1, 6)),
        "m2"
    ),
    "two counts": (
        "$ pdsh -w m[1-5] x\n" + "".join(f"m{n}: {7 if n == 2 else 8} Disabled\n" for n in range(1, 6))
        + "m2: 1 Enabled\n", "m2"
    ),
    "bytes": (loop("1a 3c 4d 5e", "lspci -s $x:00.0 -vv | grep Max", "MaxReadReq 4096", "MaxReadReq 512"), "4d:00.0"),
    "a version": (loop("0 1 2 3", "nvidia-smi -q -i $x", "VBIOS Version : 96.00.74", "VBIOS Version : 96.00.61"),
                  "GPU 2"),
    "a mode": (loop("1 2 3 4", "ssh gb$x nvidia-smi", "4 Default", "4 Exclusive_Process"), "gb3"),
    "lines of each": (loop("{1..4}", "ssh n$x 'cat /proc/x; uname -r'", "9000\n6.8.0", "1500\n6.8.0"), "n3"),
    "below a heading": (
        "$ for h in a7 a8 a9 b1; do echo == $h; racadm get BIOS; done\n"
        + "".join(f"== {h}\n#CStates={'En' if h == 'a9' else 'Dis'}abled\n" for h in ("a7", "a8", "a9", "b1")),
        "a9",
    ),
    "a neighbour": ("$ for i in 0 1 2 3 4 5 6 7; do lldpctl rail$i; done\n"
                    + "".join(f"lldp.rail{n}.chassis.name=leaf-rail{5 if n == 4 else n}\n" for n in range(8)), "rail4"),
    "a mode of devices": ("".join(f"mlx5_{n}: {'IB/RoCE v1' if n == 1 else 'RoCE v2'}\n" for n in range(4)).join(
        ("$ for d in mlx5_0 mlx5_1 mlx5_2 mlx5_3; do echo -n $d: ; cma_roce_mode -d $d; done\n", "")), "mlx5_1"),
    "a line that one has not": (
        "$ for s in l1 l2 l3 l4; do echo == $s; ssh $s show run; done\n"
        + "".join(f"== {s}\nmtu 9214\n{'' if s == 'l3' else 'random-detect ecn'}\n" for s in ("l1", "l2", "l3", "l4")),
        "l3",
    ),
    "hosts": (before(hosts("ClusterUUID : 5e1c2f17-9f2e", "ClusterUUID : 00000000-0000"), "nvidia-smi -q"), "c03"),
}  # fmt: skip
ALIKE_IN_LOOP = {
    "temperatures": loop("0 1 2 3", "nvidia-smi -i $x", "Temp : 61", "Temp : 66"),
    "power and memory": loop("0 1 2 3", "nvidia-smi -i $x", "34, 71.02 W, 0 MiB", "58, 420.11 W, 70021 MiB"),
    "uptimes": before(hosts("10:11 up 3 days, load average: 0.00", "10:11 up 9 days, load average: 4.00"), "uptime"),
    "rows of a tool": before(hosts("Mem: 2015 40 1900 1", "Mem: 2015 940 1000 1"), "free -g"),
    "identifiers": "$ for i in 0 1 2 3; do cat x$i; done\n" + "".join(f"a088:c203:0017:2b4{n}\n" for n in range(4)),
    "the number of the part": "$ for i in 0 1 2 3; do cat x$i; done\n"
    + "".join(f"NPU {n} 0 errors\n" for n in range(4)),
    "an idle GPU among idle ones": loop("0 1 2 3", "lspci", "LnkSta: Speed 2.5GT/s", "LnkSta: Speed 32GT/s"),
    "counts of packets": loop("0 1 2 3", "ethtool -S eth$x", "rx_packets: 12", "rx_packets: 99122"),
    "other lines": "$ for i in 0 1 2 3; do cat x$i; done\na: 1\nb: 2\nc: 3\n",
    "a process that one has not": "$ for s in l1 l2 l3 l4; do echo == $s; ssh $s nvidia-smi; done\n"
    + "".join(f"== {s}\n{'' if s == 'l3' else 'python3 train'}\n8\n" for s in ("l1", "l2", "l3", "l4")),
    "a process with all cores": "$ for p in $(pgrep train); do taskset -cp $p; done\n"
    + "".join(f"pid 9{n}'s current affinity list: {f'{4 * n}-{4 * n + 3}' if n != 2 else '0-63'}\n" for n in range(5)),
    "one line of ansible": "$ ansible all -a 'ofed_info -s' -o\n"
    + "".join(f"w{n} | CHANGED | rc=0 | (stdout) OFED-23.8:\n" for n in range(1, 6)),
    "three": loop("0 1 2", "lspci -vv", "MaxReadReq 4096", "MaxReadReq 512", 3),
}


@pytest.mark.parametrize("name", ODD_IN_LOOP)
def test_a_word_of_one_part_that_no_other_has_is_found(name: str, tmp_path: Path) -> None:
    text, part = ODD_IN_LOOP[name]
    (report,) = list_loop_faults(tabulate_loop(text) or "")
    assert report.subject == part
    assert part in " ".join(
        finding.label + finding.summary for finding in scan_text(tmp_path, text, "issue.txt").findings
    )


@pytest.mark.parametrize("name", ALIKE_IN_LOOP)
def test_what_varies_in_a_loop_is_none(name: str) -> None:
    table = tabulate_loop(ALIKE_IN_LOOP[name])
    assert table is None or table.count("\n") < 4 or list_loop_faults(table) == []


EIGHT = range(1, 9)
ODD_AGAIN = {
    "blocks": ("".join(
        f"Interface Ethernet1/{n}\n  mtu 9216\n  priority-flow-control mode {'auto' if n == 6 else 'on'}\n"
        for n in EIGHT
    ), "Ethernet1/6", "priority-flow-control mode auto (Ethernet1/1: priority-flow-control mode on)"),
    "a line for each": ("".join(
        f"[rank{n}] torch 2.3.1 nccl 2.{'18.3' if n == 5 else '20.5'} cuda 12.1 device NVIDIA H100 80GB HBM3\n"
        for n in EIGHT
    ), "rank5", "nccl 2.18.3 (rank1: nccl 2.20.5)"),
    "a number of another part": ("".join(
        f"rank {n}: CUDA_VISIBLE_DEVICES={n} NCCL_IB_HCA=mlx5_{4 if n == 3 else n} OMP_NUM_THREADS=12\n" for n in EIGHT
    ), "rank 3", "NCCL_IB_HCA=mlx5_4 (rank 1: NCCL_IB_HCA=mlx5_1)"),
    "two lines of each": ("".join(
        f"[rank {8 * n}] MASTER_PORT=29500 WORLD_SIZE=64 RANK={8 * n} LOCAL_RANK=0\n"
        f"[rank {8 * n}] NCCL_IB_HCA=mlx5_0,mlx5_1 NCCL_IB_GID_INDEX={1 if n == 5 else 3} NCCL_IB_TC=106\n"
        for n in EIGHT
    ), "rank 40", "NCCL_IB_GID_INDEX=1 (rank 8: NCCL_IB_GID_INDEX=3)"),
    "the priority beside it": ("".join(
        f"interface Ethernet{n}/1\n   mtu 9214\n   pfc priority {4 if n == 7 else 3} no-drop\n!\n"
        for n in EIGHT
    ), "Ethernet7/1", "pfc priority 4 no-drop (Ethernet1/1: pfc priority 3 no-drop)"),
    "a table of a page": ("| node | BIOS | NPS |\n|---|---|---|\n" + "".join(
        f"| a{n} | 2.3.5 | NPS{2 if n == 7 else 1} |\n" for n in EIGHT
    ), "a7", "2.3.5 NPS2 (a1: 2.3.5 NPS1)"),
}  # fmt: skip
ODD_AGAIN["a GPU that another rank has"] = (
    "".join(f"rank={n} host=a3 pid=4122{n} CUDA_VISIBLE_DEVICES={3 if n == 4 else n} nic=mlx5_{n}\n" for n in EIGHT),
    "rank 4",
    "pid=41224 CUDA_VISIBLE_DEVICES=3 (rank 1: pid=41221 CUDA_VISIBLE_DEVICES=1)",
)
ODD_AGAIN["tags of mpirun"] = (
    "".join(
        f"[1,{8 * n}]<stdout>: NCCL_IB_TIMEOUT=22\n[1,{8 * n}]<stdout>: SOCKET={'docker0' if n == 3 else 'bond0'}\n"
        for n in EIGHT
    ),
    "[1,24]<stdout>",
    "[1,24]<stdout>: SOCKET=docker0 ([1,8]<stdout>: [1,8]<stdout>: SOCKET=bond0)",
)
ALIKE_AGAIN = {
    "a port for something else": "".join(
        f"Interface Ethernet1/{n}\n  description {'uplink spine1' if n == 8 else f'gpu-node{n:02}'}\n"
        f"  switchport access vlan {1 if n == 8 else 100}\n"
        for n in EIGHT
    ),
    "losses": "".join(f"rank {n}: loss 2.31{n} grad_norm 0.8{n} lr 0.0003 step 1200\n" for n in EIGHT),
    "one busy GPU": "".join(
        f"gpu{n} util {98 if n == 3 else 0}% temp {60 + n} power {345 if n == 3 else 68}W\n" for n in EIGHT
    ),
    "steps": "".join(f"step {100 * n} loss 3.{n} time 1.2{n}s{' saved' * (n == 5)}\n" for n in EIGHT),
}


@pytest.mark.parametrize("name", ODD_AGAIN)
def test_the_odd_one_of_parts_in_any_form(name: str, tmp_path: Path) -> None:
    """A note of what no reader has: the part, its value and that of another one."""
    text, part, what = ODD_AGAIN[name]
    (finding,) = scan_text(tmp_path, text, "issue.txt").findings
    assert (finding.severity, finding.confidence, finding.label) == ("info", "low", part)
    assert finding.summary.endswith(f": {what}")


@pytest.mark.parametrize("name", ALIKE_AGAIN)
def test_parts_in_any_form_that_differ_by_use(name: str) -> None:
    table = tabulate_loop(ALIKE_AGAIN[name], of_any_form=True)
    assert table is not None
    assert list_loop_faults(table) == []


def test_the_place_of_a_gpu_is_no_count() -> None:
    rows = "".join(f"{n}    0000:{n}b:00.0  {n // 4}         mlx5_{n}   {n // 4}         PIX\n" for n in range(8))
    assert list_sheet_faults("gpu  pci           gpu_numa   nic      nic_numa  path\n" + rows) == []


def test_ranges_of_hosts() -> None:
    assert expand_hosts("c[1-3]-ib") == ["c1-ib", "c2-ib", "c3-ib"]
    assert expand_hosts("c[-3]") == ["c[-3]"]
    assert len(expand_hosts("c[1-99999]")) == 1
    assert tabulate_hosts("x" * 300_000) is None
