"""What jobs leave behind, made from the public forms of NCCL, PyTorch and launchers, with planted causes.

It imports nothing of the readers: forms are written down here a second time.
"""

from __future__ import annotations

import json
import random
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

LOCAL = 8  # ranks of a host
STEPS = 12


class Truth(NamedTuple):
    """What was planted."""

    causes: tuple[Planted, ...] = ()


class Planted(NamedTuple):
    """One cause."""

    ids: frozenset[str]
    ranks: frozenset[int] = frozenset()
    host: str | None = None
    nic: str | None = None


class Job:
    """Names, numbers and habits of one job."""

    def __init__(self, folder: Path, ranks: int, seed: int) -> None:
        self.folder, self.ranks, self.random = folder, ranks, random.Random(seed)
        self.hosts = [f"node{number:04}" for number in range(1, max(1, ranks // LOCAL) + 1)]
        self.version = self.random.choice(("2.18.5", "2.21.5", "2.23.4", "2.26.5", "2.27.7", "2.28.9"))
        self.prefix = self.random.choice(("none", "srun", "mpirun", "kubectl"))
        self.link = self.random.choice(("IB", "RoCE"))
        self.run = 7  # of several in one log
        self.start = 3 * 3600 + self.random.randint(0, 3000)
        folder.mkdir(parents=True, exist_ok=True)

    def host(self, rank: int) -> str:
        """Of a rank."""
        return self.hosts[rank // LOCAL]

    def address(self, host: str) -> str:
        """On the network of the bootstrap."""
        number = self.hosts.index(host)
        return f"10.77.{number // 250}.{number % 250 + 1}"

    def pid(self, rank: int) -> int:
        """Of a rank's process."""
        return 20000 + (self.run - 7) * 10000 + rank * 7

    def clock(self, seconds: float) -> str:
        """Of a day in November."""
        moment = self.start + int(seconds)
        return f"{moment // 3600:02}:{moment // 60 % 60:02}:{moment % 60:02}"

    def wrap(self, rank: int, line: str) -> str:
        """With the launcher's prefix."""
        if self.prefix == "srun":
            return f"{rank:>4}: {line}" if line else f"{rank:>4}: "
        if self.prefix == "mpirun":
            return f"[1,{rank}]<stdout>:{line}"
        if self.prefix == "kubectl":
            return f"[pod/worker-{rank // LOCAL}/main] {line}"
        return line

    def info(self, rank: int, text: str) -> str:
        """A line of NCCL at level INFO."""
        return self.wrap(
            rank, f"{self.host(rank)}:{self.pid(rank)}:{self.pid(rank) + 1} [{rank % LOCAL}] NCCL INFO {text}"
        )

    def warn(self, rank: int, place: str, text: str, seconds: float) -> list[str]:
        """A line of NCCL at level WARN, after its empty line."""
        stamp = f"[2026-11-05 {self.clock(seconds)}] " if self.version >= "2.26" else ""
        head = f"{self.host(rank)}:{self.pid(rank)}:{self.pid(rank) + 1} [{rank % LOCAL}] {place} NCCL WARN {text}"
        return [self.wrap(rank, ""), self.wrap(rank, stamp + head)]

    def begin(self, rank: int) -> list[str]:
        """What each rank writes while it starts."""
        link, host = self.link, self.host(rank)
        devices = " ".join(f"[{number}]mlx5_{number}:1/{link}" for number in range(LOCAL))
        bus = f"{0x10 + 0x13 * (rank % LOCAL):x}000"
        head = (
            f"comm 0x7f{rank:08x} rank {rank} nranks {self.ranks} cudaDev {rank % LOCAL} nvmlDev "
            f"{rank % LOCAL} busId {bus}"
        )
        function = "ncclCommInitRank " if self.version >= "2.20" else ""
        peer = (rank + LOCAL) % self.ranks
        lines = [f"NCCL version {self.version}+cuda12.4"] if rank == 0 else []
        lines += [
            self.info(rank, f"Bootstrap : Using bond0:{self.address(host)}<0>"),
            self.info(rank, "NET/Plugin: Could not find: libnccl-net.so. Using internal net plugin."),
            self.info(rank, f"NET/IB : Using {devices} [RO]; OOB bond0:{self.address(host)}<0>"),
            self.info(rank, "Using network IB"),
            self.info(rank, f"{function}{head} commId 0x51ac{self.run} - Init START"),
        ]
        if self.ranks > LOCAL:
            lines += [
                self.info(
                    rank,
                    f"Channel 00/0 : {rank}[{rank % LOCAL}] -> {peer}[{peer % LOCAL}] [send] via "
                    f"NET/IB/{rank % LOCAL}/GDRDMA",
                ),
                self.info(
                    rank,
                    f"Channel 01/0 : {peer}[{peer % LOCAL}] -> {rank}[{rank % LOCAL}] [receive] via "
                    f"NET/IB/{rank % LOCAL}/GDRDMA",
                ),
            ]
        lines += [
            self.info(rank, "Connected all rings"),
            self.info(rank, f"{function}{head} commId 0x51ac{self.run} - Init COMPLETE"),
        ]
        return lines

    def steps(self) -> list[str]:
        """Of training."""
        return [
            self.wrap(
                0, f"[2026-11-05 {self.clock(30 + step * 10)},100] iteration {step} | loss {self.random.random():.4f}"
            )
            for step in range(STEPS)
        ]

    def write(self, name: str, lines: list[str]) -> None:
        """One file."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines) + "\n")

    def mixed(self, parts: list[list[str]]) -> list[str]:
        """The lines of all ranks as one output has them."""
        rest = [list(reversed(part)) for part in parts if part]
        lines = []
        while rest:
            part = self.random.choice(rest)
            lines += [part.pop() for _ in range(min(len(part), self.random.randint(1, 4)))]
            if not part:
                rest.remove(part)
        return lines


def healthy(job: Job) -> Truth:
    """It ends as it should, with the noise that healthy jobs have."""
    lines = job.mixed([job.begin(rank) for rank in range(job.ranks)]) + job.steps()
    lines += [job.info(0, "socketPollConnect: Connect to 10.77.0.1<40001> failed : Connection refused, retrying")]
    for rank in range(job.ranks):
        bus = f"{0x10 + 0x13 * (rank % LOCAL):x}000"
        lines.append(
            job.info(
                rank,
                f"comm 0x7f{rank:08x} rank {rank} nranks {job.ranks} cudaDev {rank % LOCAL} busId {bus} - Destroy "
                f"COMPLETE",
            )
        )
    job.write("run.log", lines)
    return Truth()


def dead_rank(job: Job) -> Truth:
    """One process is killed; the others lose their connections, and the launcher may have a line."""
    dead = job.random.randrange(job.ranks)
    lines = job.mixed([job.begin(rank) for rank in range(job.ranks)]) + job.steps()
    parts = []
    for rank in range(job.ranks):
        if rank != dead:
            part = job.warn(
                rank,
                "misc/socket.cc:58",
                f"socketProgress: Connection closed by remote peer {job.host(dead)}<{40000 + dead}>",
                160,
            )
            parts.append([*part, job.info(rank, "misc/socket.cc:752 -> 6")])
    lines += job.mixed(parts)
    ids = {"rank-silent"}
    if job.random.random() < 0.6:
        ids = {"oom-kill"}
        lines.append(
            "slurmstepd: error: Detected 1 oom_kill event in StepId=4711.0. Some of the step tasks have been OOM "
            "Killed."
        )
        lines.append(f"srun: error: {job.host(dead)}: task {dead}: Out Of Memory")
    job.write("slurm-4711.out", lines)
    return Truth((Planted(frozenset(ids), frozenset((dead,)), job.host(dead)),))


def wrong_gid(job: Job) -> Truth:
    """Link-local GIDs on RoCE: nothing ever answers."""
    job.link, job.version = "RoCE", "2.20.5"
    lines = [f"+ mpirun -np {job.ranks} -x NCCL_DEBUG=INFO -x NCCL_IB_GID_INDEX=0 ./train"]
    lines += job.mixed([[line for line in job.begin(rank) if "COMPLETE" not in line] for rank in range(job.ranks)])
    for rank in range(0, job.ranks, max(1, job.ranks // 16)):
        peer = job.host((rank + LOCAL) % job.ranks)
        gids = f"localGid fe80::a0b:{rank:x} remoteGidsfe80::a0c:{rank:x}"
        for status, vendor in ((12, 129), (5, 249)):
            text = (
                f"NET/IB : Got completion from peer {job.address(peer)}<4{rank:04}> with status={status} "
                f"opcode=0 len=0 vendor err {vendor} (Recv) {gids}"
            )
            lines += job.warn(rank, "transport/net_ib.cc:1295", text, 60)
        lines.append(job.info(rank, "transport/net.cc:1302 -> 6"))
    job.write("run.log", lines)
    return Truth((Planted(frozenset(("gid-link-local",))),))


def port_flap(job: Job, at: float = 300.0) -> Truth:
    """A port goes down and comes up; its rail has time-outs on all hosts, and all watchdogs follow."""
    flapped, rail = job.random.choice(job.hosts), job.random.randrange(LOCAL)
    job.version = "2.27.7"
    rank = job.hosts.index(flapped) * LOCAL + rail
    for number, host in enumerate(job.hosts):
        own = range(number * LOCAL, (number + 1) * LOCAL)
        lines = job.mixed([job.begin(one) for one in own]) + (job.steps() if number == 0 else [])
        if host == flapped:
            for seconds, event in ((at, "port error"), (at + 7, "port active")):
                lines += job.warn(
                    rank, "transport/net_ib.cc:199", f"NET/IB : mlx5_{rail}:1 Got async error event: {event}", seconds
                )
        one = number * LOCAL + rail
        peer = job.address(job.hosts[(number + 1) % len(job.hosts)])
        text = (
            f"NET/IB: Got completion from peer {peer}<40{one:03}> with status=12 opcode=1 len=0 vendor err 129 "
            f"(Recv) hca mlx5_{rail}"
        )
        lines += job.warn(one, "transport/net_ib.cc:2244", text, at + 40)
        lines += [line for other in own for line in watchdog(job, other, 77, 79, 76, at + 60)]
        job.write(f"{host}.log", lines)
    return Truth((Planted(frozenset(("port-down",)), frozenset((rank,)), flapped, f"mlx5_{rail}"),))


def watchdog(job: Job, rank: int, sequence: int, enqueued: int, completed: int, seconds: float) -> list[str]:
    """A rank that waited until its time-out."""
    stamp = f"E1105 {job.clock(seconds)}.{rank % 1000:03}123"
    return [
        job.wrap(
            rank,
            f"[rank{rank}]:[{stamp} ProcessGroupNCCL.cpp:632] [Rank {rank}] Watchdog caught collective "
            f"operation timeout: WorkNCCL(SeqNum={sequence}, "
            f"OpType=ALLREDUCE, NumelIn=4096, NumelOut=4096, Timeout(ms)=600000) ran for "
            f"600{rank % 1000:03} milliseconds before timing out.",
        ),
        job.wrap(
            rank,
            f"[rank{rank}]:[{stamp} ProcessGroupNCCL.cpp:2271] [PG ID 0 PG GUID 0(default_pg) Rank "
            f"{rank}]  failure detected by watchdog at work "
            f"sequence id: {sequence} PG status: last enqueued work: {enqueued}, last completed work: "
            f"{completed}",
        ),
    ]


def clock_skew(job: Job) -> Truth:
    """One rank does not come; the clocks of hosts differ by up to half a minute."""
    late = job.random.randrange(job.ranks)
    offsets = {host: job.random.uniform(-30, 30) for host in job.hosts}
    for rank in range(job.ranks):
        lines = [f"[I] launcher: host {job.host(rank)} local rank {rank % LOCAL}"]
        seconds = 900 + offsets[job.host(rank)]
        if rank != late:
            lines += watchdog(job, rank, 500, 502, 499, seconds)
        else:
            stamp = f"E1105 {job.clock(seconds)}.5"
            lines.append(
                job.wrap(
                    rank,
                    f"[rank{rank}]:[{stamp} ProcessGroupNCCL.cpp:1746] [PG ID 0 PG GUID "
                    f"0(default_pg) Rank {rank}] Received a dump signal due to a "
                    f"collective timeout from  rank {(late + 1) % job.ranks} and we will try "
                    f"our best to dump the debug info. Last enqueued NCCL "
                    "work: 499, last completed NCCL work: 499.",
                )
            )
        job.write(f"logs/attempt_0/{rank}/stderr.log", lines)
    return Truth((Planted(frozenset(("rank-behind",)), frozenset((late,)), job.host(late)),))


def ring_overflow(job: Job) -> Truth:
    """Flight recorder dumps whose rings hold the last entries only; one rank is missing in its groups."""
    missing = job.random.randrange(job.ranks)
    keep, total = 24, 90
    job.write("hostfile", [f"{host} slots={LOCAL}" for host in job.hosts])
    for rank in range(job.ranks):
        tp, dp = rank // LOCAL, rank % LOCAL
        groups = [
            ("0", "default_pg", list(range(job.ranks))),
            (f"tp{tp}", f"tensor_{tp}", list(range(tp * LOCAL, tp * LOCAL + LOCAL))),
        ]
        if job.ranks > LOCAL:
            groups.append((f"dp{dp}", f"data_{dp}", list(range(dp, job.ranks, LOCAL))))
        entries: list[dict[str, object]] = []
        status: dict[str, dict[str, str]] = {}
        for number, (name, title, members) in enumerate(groups):
            last = total
            waits = missing in members and name != "0"
            if rank == missing and name != "0":
                last = total - 1
            for sequence in range(max(1, last - keep), last + 1):
                stuck = waits and sequence == total
                entries.append(
                    {
                        "record_id": len(entries),
                        "pg_id": number,
                        "process_group": [name, title],
                        "collective_seq_id": sequence,
                        "p2p_seq_id": 0,
                        "op_id": sequence,
                        "profiling_name": "nccl:all_reduce",
                        "time_created_ns": 1793760000000000000 + sequence * 10**9,
                        "input_sizes": [[1024]],
                        "input_dtypes": ["Float"],
                        "output_sizes": [[1024]],
                        "output_dtypes": ["Float"],
                        "state": "scheduled" if stuck else "completed",
                        "time_discovered_started_ns": 0,
                        "time_discovered_completed_ns": 0,
                        "retired": not stuck,
                        "timeout_ms": 600000,
                        "is_p2p": False,
                    }
                )
            done = last - 1 if waits and rank != missing else last
            status[str(number)] = {
                "last_enqueued_collective": str(last),
                "last_started_collective": "-1",
                "last_completed_collective": str(done),
            }
        config = {name: {"name": name, "desc": title, "ranks": str(members)} for name, title, members in groups}
        document = {
            "version": "2.10",
            "nccl_version": "2.27.7",
            "pg_config": config,
            "pg_status": status,
            "entries": entries,
        }
        (job.folder / f"nccl_trace_rank_{rank}").write_text(json.dumps(document))
    return Truth((Planted(frozenset(("rank-behind",)), frozenset((missing,)), job.host(missing)),))


def _records(job: Job, change: Callable[[int, str, float], float]) -> None:
    """Inspector files; `change` gives the time of a rank in a communicator."""
    for rank in range(job.ranks):
        tp, dp = rank // LOCAL, rank % LOCAL
        groups = [(f"tp{tp}", LOCAL, rank % LOCAL, 1, 300.0)]
        if job.ranks > LOCAL:
            groups.append((f"dp{dp}", job.ranks // LOCAL, tp, job.ranks // LOCAL, 900.0))
        lines = []
        for sequence in range(1, 41):
            for name, size, number, nodes, usual in groups:
                time = change(rank, name, usual) * job.random.uniform(0.97, 1.03)
                lines.append(
                    json.dumps(
                        {
                            "header": {
                                "id": f"0x{abs(hash_text(name)):x}",
                                "comm_name": name,
                                "rank": number,
                                "n_ranks": size,
                                "nnodes": nodes,
                            },
                            "metadata": {
                                "inspector_output_format_version": "v4.0",
                                "git_rev": "x",
                                "rec_mechanism": "nccl_profiler_interface",
                                "dump_timestamp_us": 1793760000000000 + sequence,
                                "hostname": job.host(rank),
                                "pid": job.pid(rank),
                            },
                            "coll_perf": {
                                "coll": "AllReduce",
                                "coll_sn": sequence,
                                "coll_msg_size_bytes": 1 << 26,
                                "coll_exec_time_us": round(time),
                                "coll_timing_source": "kernel_gpu",
                                "coll_algobw_gbs": 1.0,
                                "coll_busbw_gbs": 1.0,
                            },
                        }
                    )
                )
        job.write(f"nccl-inspector-1/{job.host(rank)}-pid{job.pid(rank)}.log", lines)


def hash_text(text: str) -> int:
    """The same number in every run."""
    return zlib.crc32(text.encode())


def slow_gpu(job: Job) -> Truth:
    """One GPU comes late to all collectives: its own times are the shortest, the others wait."""
    late = job.random.randrange(job.ranks)
    groups = {f"tp{late // LOCAL}", f"dp{late % LOCAL}"}
    _records(job, lambda rank, name, usual: usual if name not in groups or rank == late else usual + 2500.0)
    return Truth((Planted(frozenset(("rank-late",)), host=job.host(late)),))


def slow_gpu_metrics(job: Job) -> Truth:
    """The same as means of 30 s, in the form for Prometheus: one file per GPU."""
    late = job.random.randrange(job.ranks)
    for rank in range(job.ranks):
        rows = ["# HELP nccl_collective_exec_time_microseconds NCCL collective execution time"]
        groups = [(f"tp{rank // LOCAL}", LOCAL, 1, 300.0)]
        if job.ranks > LOCAL:
            groups.append((f"dp{rank % LOCAL}", job.ranks // LOCAL, job.ranks // LOCAL, 900.0))
        for name, size, nodes, usual in groups:
            waits = name in (f"tp{late // LOCAL}", f"dp{late % LOCAL}") and rank != late
            time = (usual + (2500.0 if waits else 0.0)) * job.random.uniform(0.97, 1.03)
            labels = (
                f'version="v5.1",slurm_job_id="4711",node="{job.host(rank)}",gpu="GPU{rank % LOCAL}",'
                f'comm_name="{name}",n_nodes="{nodes}",nranks="{size}",collective="AllReduce",'
                'message_size="67-68MB",algo_proto="RING_SIMPLE"'
            )
            rows.append(f"nccl_bus_bandwidth_gbs{{{labels}}} {67108.864 / time:.6g}")
            rows.append(f"nccl_collective_exec_time_microseconds{{{labels}}} {time:.6g}")
        job.write(f"nccl_inspector/{job.host(rank)}-GPU{rank % LOCAL}.prom", rows)
    return Truth((Planted(frozenset(("rank-late",)), host=job.host(late)),))


def restart(job: Job) -> Truth:
    """A process is killed; the job starts again in the same log, and ends well."""
    truth = dead_rank(job)
    path = job.folder / "slurm-4711.out"
    before = path.read_text()
    job.run += 1
    healthy(job)
    again = job.folder / "run.log"
    path.write_text(before + again.read_text())
    again.unlink()
    return truth


def slow_rail(job: Job) -> Truth:
    """One rail is slow: all ranks of its communicator take longer."""
    rail = job.random.randrange(LOCAL)
    _records(job, lambda rank, name, usual: usual * 2.6 if name == f"dp{rail}" else usual)
    return Truth((Planted(frozenset(("communicator-slow",))),)) if job.ranks >= 2 * LOCAL else Truth()


def two_causes(job: Job) -> Truth:
    """A port flaps; before that, a GPU of another host has an uncorrectable memory error."""
    if len(job.hosts) < 2:
        return dead_rank(job)
    truth = port_flap(job)
    flap = truth.causes[0]
    broken = job.random.choice(
        [
            rank
            for rank in range(job.ranks)
            if job.host(rank) != flap.host and rank % LOCAL != next(iter(flap.ranks)) % LOCAL
        ]
    )
    path = job.folder / f"{job.host(broken)}.log"
    lines = job.warn(broken, "enqueue.cc:1389", "Cuda failure 214 'uncorrectable ECC error encountered'", 296)
    path.write_text(path.read_text() + "\n".join(lines) + "\n")
    return Truth((Planted(frozenset(("cuda-214",)), frozenset((broken,)), job.host(broken)), flap))


CASES: dict[str, Callable[[Job], Truth]] = {
    "healthy": healthy,
    "dead rank": dead_rank,
    "wrong GID": wrong_gid,
    "port flap": port_flap,
    "clock skew": clock_skew,
    "ring overflow": ring_overflow,
    "slow GPU": slow_gpu,
    "slow GPU, metrics": slow_gpu_metrics,
    "slow rail": slow_rail,
    "two causes": two_causes,
    "restart": restart,
}
