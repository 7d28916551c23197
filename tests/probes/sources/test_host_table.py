"""Values of several hosts in one text: one that is not as the others is found, in any form; what varies is none."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from probes.sources.host_table import expand_hosts, tabulate_hosts
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


def test_ranges_of_hosts() -> None:
    assert expand_hosts("c[1-3]-ib") == ["c1-ib", "c2-ib", "c3-ib"]
    assert expand_hosts("c[-3]") == ["c[-3]"]
    assert len(expand_hosts("c[1-99999]")) == 1
    assert tabulate_hosts("x" * 300_000) is None
