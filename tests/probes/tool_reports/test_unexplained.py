"""Lines that state a failure in words that no table of sentences has: what counts as one, and which part it is of."""

from __future__ import annotations

import pytest

from probes.sources.identify import identify_command
from probes.tool_reports.sentences.stated import list_unexplained_beside
from probes.tool_reports.sentences.unexplained import list_logged, list_unexplained

STATED = {
    "GPU 5: the paste checker found a margin that is exceeded": "NVIDIA 5",
    "gpu[2]: amdgpu agent says the ring is wedged, giving up": "AMD 2",
    "agent[7]: ERROR: device mlx5_3 port 1 rejected table 4": "mlx5_3",
    "Error: failed to bring up rail 3 on node gpu-17: training timeout": "rail 3",
    "swp17 lost its carrier twice": "swp17",
    "GPU4 の クロック (HW Thermal Slowdown: Active)": "NVIDIA 4",
    "le port mlx5_3 est en \u00ab Polling \u00bb": "mlx5_3",
    "swp9 goes down and comes back each hour": "swp9",
    "NPU 4 never came back": "NPU 4",
    "fabric check: 0000:5E:00.0 has no link": "0000:5e:00.0",
    "PSU 2 is offline": "PSU 2",
    "[FANS] - FAN1/F1 fan is NOT OK": "FAN1/F1",
    "Unable to open /dev/dri/renderD152 read-write: Permission denied": "/dev/dri/renderD152",
    "GPU2 Status_Health = Critical": "NVIDIA 2",
    "FAIL gpu-n23 mlx5_4 DOWN": "mlx5_4",
    "device GPU-1a2b3c4d marked unhealthy": "GPU-1a2b3c4d",
    "mlx5_9/1 rate 200 Gb/sec (2X NDR), should be 400 Gb/sec (4X NDR)": "mlx5_9",
    "BMC: slot 5 has x4 instead of x16": "slot 5",
    "could not pair mlx5_0 with mlx5_4": None,
    "Feb 22 17:46:38 gpu-7 slurmd[562]: spank-epilog: error: pyxis: cannot create /x/enroot: Permission denied": None,
    "W0101 agent.cc:12] RDMA setup failed": None,
}
CALM = (
    "GPU 5: no errors found",
    "GPU 5: errors: 0",
    "mlx5_3 dropped 0, timeouts: 0",
    "swp17 is up",
    "GPU 3 recovered",
    "Is it bad that GPU 3 has fewer lanes?",
    "If GPU 3 fails, replace it",
    "GPU 3: corrected error",
    "| FAN1 | OK, failed events: 0 |",
    "| ethernet-1/30 | disable | down | 400G |",
    "cat: /sys/class/infiniband/mlx5_2/ports/1/state: No such file or directory",
    "there is no 'GPU 3 failed' in the log",
    "RDMA failed on our cluster",
    "gpu-17 failed",  # a host
    f"GPU 3 is used by {'a person who writes much ' * 10} and failed",
    "gpu17 failed",
    "mlx5_3: 392 Gb/s, expected 390 Gb/s",
    "swp12: count down to 400 Gb/s",
    "5: eth3: <BROADCAST,MULTICAST> mtu 1500 qdisc noop state DOWN mode DEFAULT",
    "et-0/0/30               down  down     <- spare",
    "me@leaf:~$ ethtool -S swp22 | grep -i err",
    '{"gpu": 3, "error": null}',
)


@pytest.mark.parametrize("line", STATED)
def test_a_line_that_states_a_failure_names_its_part(line: str) -> None:
    (report,) = list_unexplained(f"before\n{line}\nafter\n")
    assert (STATED[line], line) == (report.subject, report.text)
    assert (("error", "of", "program"),) == identify_command(line)


@pytest.mark.parametrize("line", CALM)
def test_a_line_that_states_none_is_not_one(line: str) -> None:
    assert [] == list_unexplained(line)


def test_a_question_behind_what_is_stated_takes_nothing_back() -> None:
    (report,) = list_unexplained("Port 7 went down and came back twice. Can anyone look at the cable?")
    assert report.subject == "Port 7"


def test_lines_of_one_form_count_once_and_each_part_by_itself() -> None:
    text = "".join(f"swp{port} dropped frame {number}\n" for port in (1, 2) for number in range(50))
    assert ["swp1", "swp2"] == [report.subject for report in list_unexplained(text)]


def test_a_list_of_many_parts_that_are_down_is_one_of_what_is_not_used() -> None:
    text = "".join(f"swp{port} down\n" for port in range(9)) + "swp9 went down, lost\n"
    assert ["swp9"] == [report.subject for report in list_unexplained(text)]
    assert ["swp1", "swp2"] == [report.subject for report in list_unexplained("swp1 down\nswp2 down\n")]


def test_beside_outputs_only_what_a_program_wrote_counts() -> None:
    text = "My GPU 5 fails\n2026-01-02 ERROR agent: mlx5_4 refuses to arm\n"
    assert ["2026-01-02 ERROR agent: mlx5_4 refuses to arm"] == list_logged(text)


def test_what_a_sentence_explains_is_not_unexplained_beside_it() -> None:
    known = "ERROR: vfio 0000:41:00.0: group 27 is not viable\n"
    assert [] == list_unexplained_beside(known)
    assert ["mlx5_3"] == [one.subject for one in list_unexplained_beside(f"{known}ERROR: mlx5_3 refuses to arm\n")]
