"""Measures every promised figure in one run and prints a table. `make bench`."""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

from agent.config import Configuration
from agent.diagnose import ScanPlan, diagnose, evaluate_report
from bench.sixteen import make_sixteen_gpus
from bench.timing import Cost, measure_interleaved
from fixtures.build import write_capture, write_generated_tree
from probes.sources.open_source import open_source

ROOT = Path(__file__).resolve().parent.parent
PYTHON = sys.executable
LARGEST = "lspci-xe9680-h100"  # the corpus' largest tree: 517 functions; hwloc refuses it, for it holds no CPUs
JUDGED = "8xh200-sxm-2s-16xcx7-roce-4nvsw"  # the fixture with the most to judge: NVLink, RoCE, 18 NICs
FRAGMENTS = {  # what people paste: one output, a few lines
    "dmesg": "[ 1843.308145] NVRM: Xid (PCI:0000:b3:00): 79, GPU has fallen off the bus.\n",
    "ibstat": "CA 'mlx5_0'\n\tCA type: MT4129\n\tNumber of ports: 1\n\tPort 1:\n\t\tState: Down\n"
    "\t\tPhysical state: Polling\n\t\tLink layer: InfiniBand\n",
    "lspci": "3b:00.0 3D controller: NVIDIA Corporation GH100 [H100 PCIe] (rev a1)\n"
    "\t\tLnkSta: Speed 16GT/s, Width x8 (downgraded)\n",
    "nvidia-smi": "Unable to determine the device handle for GPU0000:CB:00.0: Unknown Error\n",
}
OF_HWLOC = "hwloc-40intel64-2g2n4c+pcilocality"  # the largest that lspci and hwloc both read: 37 functions


def main() -> None:
    """Run the chosen parts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        for tree, description in _trees(place):
            print(f"## Scan of a {description}, beside what a user would run instead\n")
            _scan(tree, rounds)
            print()
        print("## Cost against size\n")
        _growth(place, rounds)
        print("\n## Judging\n")
        _judging(place, rounds)
        print("\n## A pasted fragment, with start\n")
        _fragments(place, rounds)
        print("\n## This host, live, beside lspci of it\n")
        _live(place, rounds)
    print("\n## Start-up\n")
    _start_up(rounds)


def _scan(tree: Path, rounds: int) -> None:
    commands = {
        "fabricscope scan --format json": [
            PYTHON,
            "-m",
            "fabricscope",
            "scan",
            "--source",
            str(tree),
            "--format",
            "json",
        ]
    }
    environment: dict[str, dict[str, str]] = {}
    if shutil.which("lspci"):
        commands["lspci -vvv"] = ["lspci", "-A", "linux-sysfs", "-O", f"sysfs.path={tree}/sys/bus/pci", "-vvv"]
    if shutil.which("lstopo-no-graphics") and (tree / "sys/devices/system/cpu").is_dir():
        commands["lstopo"] = ["lstopo-no-graphics", "--whole-io", "-v", "-"]
        environment["lstopo"] = {"HWLOC_COMPONENTS": "linux,stop", "HWLOC_FSROOT": str(tree)}
    costs = measure_interleaved(commands, rounds, environment)
    _table(costs, against="lspci -vvv" if "lspci -vvv" in costs else next(iter(costs)))
    audited = subprocess.run(
        [PYTHON, "-m", "bench.audit", "scan", "--source", str(tree), "--format", "json"],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=True, cwd=ROOT,
    )  # fmt: skip
    print(f"\nfabricscope: {audited.stderr.strip().splitlines()[-1]}")


def _growth(place: Path, rounds: int) -> None:
    commands = {}
    for count in (300, 1000):
        tree = place / str(count)
        write_generated_tree(tree, count)
        commands[f"{count} functions"] = [
            PYTHON,
            "-m",
            "fabricscope",
            "scan",
            "--source",
            str(tree),
            "--format",
            "json",
        ]
    _table(measure_interleaved(commands, rounds), against="300 functions")


def _judging(place: Path, rounds: int) -> None:
    """The report of a machine with everything judged again and again, in this process: no start, no probes."""
    write_capture(JUDGED, None, place / JUDGED)
    report = make_sixteen_gpus(diagnose(open_source(str(place / JUDGED)), ScanPlan())[0])
    spent = []
    for _ in range(rounds * 5):
        started = time.process_time()
        evaluate_report(report, Configuration())
        spent.append(time.process_time() - started)
    size = f"{len(report.topology.gpus)} GPUs, {len(report.topology.nics)} NICs, {len(report.checks)} rules"
    what = f"{JUDGED} with a second GPU beside each: {size}"
    print(f"{what}: {min(spent) * 1000:.1f} ms of CPU at least, median {statistics.median(spent) * 1000:.1f} ms")


def _fragments(place: Path, rounds: int) -> None:
    bare = "python with msgspec"
    commands = {bare: [PYTHON, "-c", "import msgspec"]}
    paths = {name: place / f"{name}.md" for name in FRAGMENTS}
    for name, path in paths.items():
        path.write_text(FRAGMENTS[name])
    threads = sorted((_corpus() / "threads").glob("*/paste.md"))  # whole ones that people pasted
    paths |= {f"a thread, {path.parent.name}": path for path in threads}
    for name, path in paths.items():
        commands[f"fabricscope scan of {name}"] = [PYTHON, "-m", "fabricscope", "scan", "--source", str(path)]
    _table(measure_interleaved(commands, rounds), against=bare)


def _live(place: Path, rounds: int) -> None:
    """A scan, and the check that a monitoring system runs: any verdict on this host is one."""
    scan = [PYTHON, "-m", "fabricscope", "scan", "--format", "json"]
    check = [PYTHON, "-m", "fabricscope", "check", "--state-dir", str(place / "state")]
    commands = {"fabricscope scan --format json": scan, "fabricscope check --state-dir": check}
    if shutil.which("lspci"):
        commands["lspci -vvv"] = ["lspci", "-vvv"]
    _table(measure_interleaved(commands, rounds, accepted=(0, 1, 2, 3)), against=[*commands][-1])


def _start_up(rounds: int) -> None:
    bare = "import typer\napp = typer.Typer()\n@app.command()\ndef main():\n    print('1')\napp()\n"
    completion = {"_FABRICSCOPE_COMPLETE": "complete_bash", "COMP_WORDS": "fabricscope sc", "COMP_CWORD": "1"}
    commands = {
        "a bare typer program": [PYTHON, "-c", bare],
        "fabricscope --version": [PYTHON, "-m", "fabricscope", "--version"],
        "fabricscope, completion": [PYTHON, "-m", "fabricscope"],
    }
    environment = {"fabricscope, completion": completion}
    _table(measure_interleaved(commands, rounds * 2, environment), against="a bare typer program")
    profile = subprocess.run(
        [PYTHON, "-X", "importtime", "-m", "fabricscope", "--version"],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    rows = [line.split("|") for line in profile.stderr.splitlines() if line.count("|") == 2 and "[us]" not in line]
    slowest = sorted(rows, key=lambda row: -int(row[0].split(":")[1]))[:8]
    print(f"\nmodules imported for --version: {len(rows)}; the slowest of their own:")
    for row in slowest:
        print(f"- {row[2].strip()}: {int(row[0].split(':')[1]) / 1000:.1f} ms")


def _table(costs: dict[str, Cost], against: str) -> None:
    base = costs[against].wall_seconds
    print("| command | wall, median | ratio | CPU | peak memory |\n|---|---|---|---|---|")
    for name, cost in costs.items():
        print(
            f"| {name} | {cost.wall_seconds * 1000:.0f} ms | {cost.wall_seconds / base:.2f} "
            f"| {cost.cpu_seconds * 1000:.0f} ms | {cost.peak_mib:.0f} MiB |"
        )


def _corpus() -> Path:
    return Path(os.environ.get("FABRICSCOPE_CORPUS", ROOT.parent / "shared" / "corpus"))


def _trees(place: Path) -> list[tuple[Path, str]]:
    """Real trees where the corpus is here, else a generated one of the same size."""
    result = []
    for name, description in (
        (LARGEST, "real server's tree (517 functions)"),
        (OF_HWLOC, "four-socket server, 37 functions"),
    ):
        packed = _corpus() / "trees" / f"{name}.tar.xz"
        if packed.is_file():
            with tarfile.open(packed) as archive:
                archive.extraction_filter = getattr(tarfile, "tar_filter", None)  # Python before 3.11.4 has none
                archive.extractall(place / name)
            result.append((place / name, description))
    if not result:
        write_generated_tree(place / "largest", 517)
        result.append((place / "largest", "generated tree (517 functions)"))
    return result


if __name__ == "__main__":
    main()
