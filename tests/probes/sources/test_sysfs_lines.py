"""Files of /sys as grep, head and cat print them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from agent.diagnose import ScanPlan, diagnose
from agent.model.finding import Finding
from probes.sources.open_source import open_source
from probes.sources.sysfs_lines import read_shown_files

_PORTS = "/sys/class/infiniband/mlx5_{}/ports/1/{}"
_STATES = {0: "4: ACTIVE", 1: "4: ACTIVE", 2: "1: DOWN", 3: "4: ACTIVE"}


def _scan(folder: Path, text: str) -> list[Finding]:
    (folder / "notes.txt").write_text(text)
    return diagnose(open_source(str(folder / "notes.txt")), ScanPlan())[0].findings


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
    findings = _scan(tmp_path, write("2: Polling"))
    assert [(finding.rule, finding.label, finding.confidence) for finding in findings] == [
        ("ib-port-down", "mlx5_2/1", "low")
    ]


@pytest.mark.parametrize("down", ["3: Disabled", "5: LinkUp"])
def test_a_port_whose_link_layer_is_open(down: str, tmp_path: Path) -> None:
    """Such a state is no evidence of InfiniBand: no finding."""
    assert not _scan(tmp_path, _beside(down))


def test_an_error_is_no_content(tmp_path: Path) -> None:
    """What cat prints of a file that does not exist."""
    path = _PORTS.format(0, "state")
    (tmp_path / "notes.txt").write_text(f"$ cat {path}\ncat: {path}: No such file or directory\n")
    host = open_source(str(tmp_path / "notes.txt"))
    assert not host.listdir("/")


def test_a_statistic_that_a_terminal_wrapped_between_name_and_number() -> None:
    text = "link mlx5_0/1 rx_write_requests 8 rx_atomic_requests\n0 out_of_buffer 7 packet_seq_err\n9 np_cnp_sent 3\n"
    files = read_shown_files(text)
    names = ("rx_write_requests", "rx_atomic_requests", "out_of_buffer", "packet_seq_err", "np_cnp_sent")

    folder = "/sys/class/infiniband/mlx5_0/ports/1/hw_counters"
    assert [b"8\n", b"0\n", b"7\n", b"9\n", b"3\n"] == [files.read(f"{folder}/{name}") for name in names]
