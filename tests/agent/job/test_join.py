"""Causes joined with reports of hosts: a cause becomes a part, or nothing is wrong there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agent.cli.job import JobOptions
from agent.cli.main import run
from agent.model.finding import Finding
from agent.model.job_answer import JobAnswer
from agent.model.nic import Nic
from agent.model.node import Event, Service
from agent.model.report import Report
from agent.reports import encode_report
from tests.agent.fleet import small
from tests.agent.job.jobs import answer, begin, describe, first, steps, warn
from tests.machines import scan_machine

H100 = "8xh100-sxm-2s-8xcx7-ib-4nvsw"
UNANSWERED = "NET/IB : Got completion from peer 10.0.0.9<4> with status=12 opcode=0 len=0 vendor err 129 (Send) hca {}"
FLAP = "NET/IB : {}:1 Got async error event: port error"


@pytest.fixture(scope="module")
def healthy() -> Report:
    """A machine without findings that matter, as host gpu1."""
    report = scan_machine(H100)
    return msgspec.structs.replace(
        report, node=msgspec.structs.replace(report.node, hostname="gpu1.site.org"), findings=[]
    )


def rail(report: Report, number: int = 1) -> Any:
    """One of its rails."""
    return [nic for nic in report.topology.nics if nic.role == "rail"][number]


def finding(subject: str, severity: str = "error") -> Finding:
    """Of a port."""
    return Finding(
        rule="ib-port-down",
        severity=severity,
        subject=subject,
        label="mlx5_1/1",
        summary="port is down",
        impact="x",
        remedy="reseat",
        fingerprint="0123456789abcdef",
    )


Join = Callable[[Report, str], JobAnswer]


@pytest.fixture
def join(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Join:
    """The answer about a log with this report as it is: `--report` judges again, without the findings of tests."""

    def answer_with(report: Report, log: str) -> JobAnswer:
        monkeypatch.setattr("agent.cli.job.read_one", lambda path: report)
        return answer(tmp_path, JobOptions(["report.json"]), log=log)

    return answer_with


def with_ports(report: Report, *nics: Nic, **changes: Any) -> Report:
    """The report with the ports of these NICs changed, of all where none is named."""
    replace = msgspec.structs.replace
    rows = [
        replace(nic, ports=[replace(port, **changes) for port in nic.ports]) if nic in (nics or (nic,)) else nic
        for nic in report.topology.nics
    ]
    return replace(report, topology=replace(report.topology, nics=rows))


def test_a_port_with_a_finding(join: Join, healthy: Report) -> None:
    """The finding is evidence, its fingerprint and summary are in the cause."""
    nic = rail(healthy)
    report = msgspec.structs.replace(healthy, findings=[finding(f"port:{nic.id}/1")])
    result = join(report, begin(2) + steps() + warn(1, FLAP.format(nic.rdma_device)))

    assert ["0123456789abcdef"] == first(result).findings
    assert "port is down" in first(result).summary
    assert (True, "gpu1") == (result.reports[0].joined, result.reports[0].host)


def test_a_port_that_is_down_there(join: Join, healthy: Report) -> None:
    """Retries on a NIC whose port is down: the wire of that host."""
    nic = rail(healthy)
    report = with_ports(healthy, nic, state="DOWN", phys_state="Polling")
    text = (
        f"NET/IB : Got completion from peer 10.0.0.1<41022> with status=12 opcode=1 len=0 vendor err 129 "
        f"(Recv) hca {nic.rdma_device}"
    )
    result = join(report, begin(4, 2) + steps() + warn(2, text, "gpu2"))

    assert "failed: completion-12 (wire, high, ranks [2], gpu1, mlx5_3)" == describe(result)
    assert "the port is down there" in result.headline


def test_nothing_is_wrong_there(join: Join, healthy: Report) -> None:
    """Is an answer as well, with the parts that were looked at."""
    nic = rail(healthy)
    report = msgspec.structs.replace(with_ports(healthy, counters={}, hw_counters={}), events=[])
    result = join(report, begin(2) + steps() + warn(1, FLAP.format(nic.rdma_device)))

    assert any("nothing is wrong" in row.text and nic.label in row.text for row in first(result).evidence)
    assert "nothing is wrong there" not in first(result).summary  # the log itself shows the port event

    text = UNANSWERED.format(nic.rdma_device)
    silent = join(report, begin(2) + steps() + warn(1, text))
    assert "nothing is wrong there by the report of gpu1" in first(silent).summary
    assert "what is between the hosts" in first(silent).next[1]


def test_a_report_of_another_host_joins_nothing(join: Join, healthy: Report) -> None:
    """And that is stated."""
    other = msgspec.structs.replace(healthy, node=msgspec.structs.replace(healthy.node, hostname="gpu77"))
    result = join(other, begin(2) + warn(1, FLAP.format("mlx5_1")))

    assert (False, "gpu77 is no host of this job") == (result.reports[0].joined, (result.reports[0].reason or "")[:28])
    assert not any("report" in row.source for row in first(result).evidence)


def test_a_report_without_a_host_name(join: Join, healthy: Report) -> None:
    """Is taken for the log's host, and that is stated."""
    fragment = msgspec.structs.replace(healthy, node=msgspec.structs.replace(healthy.node, hostname=None))
    result = join(fragment, begin(2) + warn(1, FLAP.format("mlx5_1")))

    assert result.reports[0].joined
    assert "taken for gpu1" in (result.reports[0].reason or "")


def test_a_flap_of_the_kernel_log_at_that_time(join: Join, healthy: Report) -> None:
    """Within seconds, also where the log's clock is hours away; another minute is none."""
    nic = rail(healthy)
    for at, words in (
        ("2026-11-03T04:11:33Z", "went down at"),
        ("2026-11-03T02:11:30Z", "+2 h"),
        ("2026-11-03T04:19:33Z", None),
    ):
        event = Event(kind="link_down", text="x", source="dmesg", subject=nic.pci, at=at)
        report = msgspec.structs.replace(healthy, events=[event])
        result = join(report, begin(2) + steps() + warn(1, FLAP.format(nic.rdma_device), at="04:11:31"))
        texts = [row.text for row in first(result).evidence if "kernel log" in row.text]

        assert (words is not None) == bool(texts)
        assert (words or "") in "".join(texts)


def test_a_flap_of_the_kernel_log_explains_a_peer_that_did_not_answer(join: Join, healthy: Report) -> None:
    """The wire of that host, where the log alone does not show what happened."""
    nic = rail(healthy)
    event = Event(kind="link_down", text="x", source="dmesg", subject=nic.pci, at="2026-11-03T04:11:29Z")
    text = UNANSWERED.format(nic.rdma_device)
    log = begin(2) + steps() + warn(1, text, at="04:11:31")
    result = join(msgspec.structs.replace(healthy, events=[event]), log)
    calm = join(healthy, log)

    fault = first(result).at_fault
    assert ("wire", nic.rdma_device, "high") == (fault.kind, fault.nic, first(result).confidence)
    assert f"{nic.rdma_device} on gpu1 went down at 2026-11-03T04:11:29Z" in result.headline
    assert "fabric" == first(calm).at_fault.kind


def test_fabric_manager_behind_nvls(join: Join, healthy: Report) -> None:
    """Its state is evidence."""
    software = msgspec.structs.replace(
        healthy.software, services=[Service(name="nvidia-fabricmanager", state="failed")]
    )
    report = msgspec.structs.replace(healthy, software=software)
    log = begin(2) + warn(0, "Failed to bind NVLink SHARP (NVLS) Multicast memory of size 2097152 : CUDA error 401 'x'")
    result = join(report, log)

    assert any("nvidia-fabricmanager: failed" in row.text for row in first(result).evidence)


def test_the_limit_of_locked_memory(join: Join, healthy: Report) -> None:
    """As the report has it."""
    software = msgspec.structs.replace(healthy.software, limits={"memlock pid 4711 (python3)": "65536"})
    report = msgspec.structs.replace(healthy, software=software)
    result = join(
        report,
        begin(2) + warn(0, "Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory"),
    )

    assert "64 KiB" in first(result).summary


def test_a_host_without_a_report_is_the_next_step(join: Join, healthy: Report) -> None:
    """Run a scan there."""
    result = join(healthy, begin(4, 2) + steps() + warn(3, FLAP.format("mlx5_1"), "gpu2"))

    assert any("no report of gpu2 is here" in step for step in first(result).next)


def test_saved_outputs_in_the_folder_are_judged(tmp_path: Path) -> None:
    """As `scan` judges them, in the same answer."""
    dump = (
        "CA 'mlx5_0'\n\tCA type: MT4129\n\tNumber of ports: 1\n\tPort 1:\n\t\tState: Down\n\t\tPhysical "
        "state: Polling\n\t\tRate: 10\n\t\tBase lid: 0\n\t\tSM lid: 0\n\t\tPort GUID: 0x1\n\t\tLink layer: "
        "InfiniBand\n"
    )
    result = answer(tmp_path, log=begin(2) + steps() + warn(1, FLAP.format("mlx5_0")), ibstat__txt=dump)

    assert ["saved output"] == [file.read_as for file in result.source.files if file.name == "ibstat.txt"]
    assert any("DOWN" in row.text for row in first(result).evidence)


def test_a_report_in_the_folder_is_joined(tmp_path: Path, healthy: Report) -> None:
    """Like one that is given."""
    result = answer(
        tmp_path, log=begin(2) + steps() + warn(1, FLAP.format("mlx5_1")), report__json=encode_report(healthy)
    )

    assert [True] == [row.joined for row in result.reports]


def test_the_dataset_at_the_time_of_the_job(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The state that is not later; `--at` chooses another."""

    def report(hour: float, state: str) -> bytes:
        nic = {
            "id": "0000:10:00.0",
            "label": "mlx5_1",
            "rdma_device": "mlx5_1",
            "role": "rail",
            "ports": [{"port": 1, "state": state}],
        }
        gpus = [{"id": "0000:11:00.0", "label": "GPU0"}]
        return small.report("gpu1", hour, topology={"nics": [nic], "gpus": gpus})

    small.take(tmp_path / "fleet", report(1, "ACTIVE"), report(3, "DOWN"))
    (tmp_path / "job").mkdir()
    stamp = "[2026-01-15 {}] gpu1:101:201 [1] transport/net_ib.cc:199 NCCL WARN " + FLAP.format("mlx5_1") + "\n"

    for clock, more, down in (
        ("10:00:00", [], False),
        ("12:00:00", [], True),
        ("10:00:00", ["--at", "2026-01-15T12:00:00Z"], True),
    ):
        (tmp_path / "job" / "log").write_text(begin(2) + steps() + "\n" + stamp.format(clock))
        arguments = ["job", str(tmp_path / "job"), "--dataset", str(tmp_path / "fleet"), *more]
        assert 0 == run(arguments)
        assert down == ("the port is down there" in " ".join(capsys.readouterr().out.split())), (clock, more)


def _nccl_tests(busbw: float, model: str = "NVIDIA H100", ranks: int = 8, hosts: int = 1) -> str:
    rows = "".join(
        f"{1 << size} {1 << size - 2} float sum -1 100 {busbw} {busbw} 0 100 {busbw} {busbw} 0\n" for size in (28, 30)
    )
    head = "#  size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n"
    listed = "".join(
        f"#  Rank  {rank} Group  0 Pid {rank} on gpu{rank % hosts} device  {rank} [0x1{rank}] {model}\n"
        for rank in range(ranks)
    )
    return listed + head + rows + "# Out of bounds values : 0 OK\n"


def test_a_measured_table_with_a_machine(tmp_path: Path) -> None:
    """Below what it should give is a cause of slowness; as it should be is none."""
    low = answer(tmp_path, JobOptions([], profile="dgx-h100"), table=_nccl_tests(30.0))
    plain = answer(tmp_path, table=_nccl_tests(30.0))

    assert ["bandwidth-low"] == [cause.id for cause in low.causes]
    assert [] == plain.causes


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        (
            _nccl_tests(8.2, "NVIDIA H100 80GB HBM3"),
            ["all_reduce reaches 8.2 GB/s, and HGX H100 8-GPU should give 461"],
        ),
        (
            _nccl_tests(21.0, "NVIDIA A100-SXM4-80GB"),
            ["all_reduce reaches 21 GB/s, and HGX A100 8-GPU should give 237"],
        ),
        (_nccl_tests(440.0, "NVIDIA H100 80GB HBM3"), []),
        (_nccl_tests(8.2, "NVIDIA H100 NVL"), []),
        (_nccl_tests(8.2, "NVIDIA H100 PCIe"), []),
        (_nccl_tests(8.2, "NVIDIA H100 80GB HBM3", ranks=4), []),
        (_nccl_tests(40.0, "NVIDIA H100 80GB HBM3", hosts=2), []),
    ],
    ids=["H100", "A100", "as it should be", "cards in pairs", "cards", "a part of a board", "two hosts"],
)
def test_a_measured_table_names_its_board(table: str, expected: Sequence[str], tmp_path: Path) -> None:
    assert expected == [cause.summary for cause in answer(tmp_path, table=table).causes]


def test_what_perftest_fills_is_named(tmp_path: Path) -> None:
    head = " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n"
    tables = answer(tmp_path, table=f"{head} 65536      5000             97.90              96.90              0.18\n")

    assert ["97% of 100 Gbit/s"] == [shape for table in tables.measured for shape in table.shapes]


@pytest.mark.parametrize(
    ("rates", "shapes"),
    [
        ((8912.1, 23120.5, 24101.3, 24433.8), ["98% of 200 Gbit/s"]),
        ((8912.1, 23120.5, 1203.2, 1190.4), ["falls from 23.1 to 1.2 GB/s", "92% of 200 Gbit/s"]),
    ],
    ids=["as it should be", "loss under load"],
)
def test_a_table_of_osu(rates: Sequence[float], shapes: Sequence[str], tmp_path: Path) -> None:
    head = "# OSU MPI-CUDA Bandwidth Test v7.4\n# Size      Bandwidth (MB/s)\n1                       0.31\n"
    rows = "".join(f"{size << 16:<12}{rate:>20.2f}\n" for size, rate in zip((1, 16, 32, 64), rates, strict=True))
    (table,) = answer(tmp_path, table=head + rows).measured

    assert (table.tool, table.rows, table.largest_gbyte_s) == ("osu", 5, round(rates[-1] / 1e3, 3))
    assert shapes == [shape.partition(" at ")[0] for shape in table.shapes]


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        (
            _nccl_tests(440.0, "NVIDIA H100 80GB HBM3"),
            "Measured: 440 GB/s at the largest size, and HGX H100 8-GPU should give 461: good",
        ),
        (
            _nccl_tests(440.0, ranks=0),
            "Measured: 440 GB/s at the largest size, compared with nothing: which machine it is of is not known; "
            "--profile names one",
        ),
        (
            " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n"
            " 65536      5000             97.90              96.90              0.18\n",
            "Measured: 12.1 GB/s at the largest size, 97% of 100 Gbit/s",
        ),
    ],
    ids=["a known board", "rows alone", "perftest"],
)
def test_a_table_without_its_end_states_what_was_measured(table: str, expected: str, tmp_path: Path) -> None:
    result = answer(tmp_path, table=table.replace("# Out of bounds values : 0 OK\n", ""))

    assert ("unknown", expected) == (result.job.ended, result.headline)


def test_the_kernel_log_of_a_dataset_at_the_time_of_the_job(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Also where only a later report has the lines; those of another day are left out."""
    nic = {"id": "0000:10:00.0", "label": "mlx5_1", "rdma_device": "mlx5_1", "role": "rail", "ports": [{"port": 1}]}
    gpus = [{"id": "0000:11:00.0", "label": "GPU0", "index": 0, "pci": "0000:11:00.0"}]
    flap = {"kind": "link_down", "text": "Link down", "source": "dmesg", "subject": "0000:10:00.0"}
    aer = {"kind": "aer", "text": "AER: Corrected error", "source": "dmesg", "subject": "0000:10:00.0", "code": "x"}
    xid = {"kind": "xid", "text": "fallen off the bus", "source": "dmesg", "subject": "0000:11:00.0", "code": "79"}
    times = ["2026-01-10T01:00:00Z", "2026-01-15T10:00:02Z"]
    then = [{**flap, "at": times[0], "times": times[:1]}, {**xid, "code": "63", "at": times[0]}]
    events = [
        {**flap, "at": times[1], "first_at": times[0], "count": 2, "times": times},
        {**aer, "at": "2026-01-15T10:00:01Z"},
        {**xid, "at": "2026-01-15T10:00:03Z"},
    ]
    limits = {"memlock pid 4711 (python3)": "65536", "memlock slurmd.service": "unlimited"}
    topology = {"nics": [nic], "gpus": gpus}
    software = {"limits": limits, "shared_memory_mib": 64}
    small.take(
        tmp_path / "fleet",
        small.report("gpu1", 1, topology=topology, events=then, software=software),
        small.report("gpu1", 3, topology=topology, events=events),
        small.report("gpu1", 90, topology=topology, events=[]),
    )
    (tmp_path / "job").mkdir()

    def ask(text: str, place: str = "transport/net_ib.cc:199") -> str:
        stamp = f"[2026-01-15 10:00:00] gpu1:100:200 [0] {place} NCCL WARN {text}\n"
        (tmp_path / "job" / "log").write_text(begin(2) + steps() + "\n" + stamp)
        assert 0 == run(["job", str(tmp_path / "job"), "--dataset", str(tmp_path / "fleet")])
        return " ".join(capsys.readouterr().out.split())

    network = ask(FLAP.format("mlx5_1"))
    assert "kernel log: mlx5_1 went down at 2026-01-15T10:00:02Z, at the time of the failure" in network
    memory = ask("Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory")
    assert "limit of locked memory there is 64 KiB" in memory
    gpu = ask("Cuda failure 214 'uncorrectable ECC error encountered'", "init.cc:1")
    assert "GPU0: Xid 79 (2026-01-15T10:00:03Z): fallen off the bus" in gpu
    assert "Xid 63" not in gpu
