"""What a scan costs: it grows with the machine and not faster, counts where there are any, else ratios of one run; and
what each command imports, for start-up cost is lost one import at a time."""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

from bench.run import FRAGMENTS
from bench.timing import measure_once
from fixtures.build import write_capture, write_generated_tree
from tests.conftest import ROOT

SMALL, LARGE = 300, 1000
GROWTH = 3.5  # times the CPU time for 3.33 times the functions
ROUNDS = 5


@pytest.fixture(scope="module")
def trees(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """Generated trees of both sizes."""
    place = tmp_path_factory.mktemp("trees")
    for count in (SMALL, LARGE):
        write_generated_tree(place / str(count), count)
    return {count: place / str(count) for count in (SMALL, LARGE)}


def audited(tree: Path) -> dict[str, int]:
    """What one scan opened, listed and started."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.audit", "scan", "--source", str(tree), "--format", "json"],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=True, cwd=ROOT,
    )  # fmt: skip
    return {name: int(number) for name, number in re.findall(r"(\w+)=(\d+)", done.stderr.splitlines()[-1])}


def test_opens_grow_with_the_functions_and_nothing_is_started(trees: dict[int, Path], real_commands: None) -> None:
    """As many opens for each further function as for the first ones; no process at all."""
    small, large = audited(trees[SMALL]), audited(trees[LARGE])

    assert 0 == small["processes"] == large["processes"]
    assert large["opens"] / LARGE <= small["opens"] / SMALL * 1.05
    assert large["listings"] / LARGE <= small["listings"] / SMALL * 1.05
    assert (large["opens"] - small["opens"]) / (LARGE - SMALL) < 24  # 23: how it is powered is read first


def gaudi(root: Path, ports: int) -> Path:
    """Eight Gaudi3 with so many ports each, every one with counters that its firmware would answer in 100 ms."""
    for number in range(8):
        address = f"0000:{0x30 + number:02x}:00.0"
        function = root / "sys/devices/pci0000:00" / address
        ids = {"vendor": "0x1da3", "device": "0x1060", "class": "0x120000", "numa_node": "0"}
        files = {name: f"{text}\n" for name, text in ids.items()}
        for port in range(1, ports + 1):
            place = f"infiniband/hbl_{number}/ports/{port}"
            files |= {f"{place}/state": "4: ACTIVE\n", f"{place}/phys_state": "5: LinkUp\n"}
            files |= {f"{place}/hw_counters/{name}": "1\n" for name in ("rx_Octets", "tx_Octets", "rx_Pkts", "tx_Pkts")}
        for name, text in files.items():
            (function / name).parent.mkdir(parents=True, exist_ok=True)
            (function / name).write_text(text)
        for link, place in (
            (f"bus/pci/devices/{address}", f"pci0000:00/{address}"),
            (f"class/infiniband/hbl_{number}", f"pci0000:00/{address}/infiniband/hbl_{number}"),
        ):
            (root / "sys" / link).parent.mkdir(parents=True, exist_ok=True)
            (root / "sys" / link).symlink_to("../" * link.count("/") + f"devices/{place}")
        (function / f"infiniband/hbl_{number}/device").symlink_to("../..")
    return root


def test_ports_of_accelerators_cost_two_files_each(tmp_path: Path, real_commands: None) -> None:
    """192 ports: their states, and none of 768 counters; no NIC; at most a second of CPU with the start."""
    large, small = gaudi(tmp_path / "24", 24), gaudi(tmp_path / "1", 1)
    argv = [sys.executable, "-m", "fabricscope", "scan", "--source", str(large), "--format", "json"]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, cwd=ROOT)
    topology = json.loads(done.stdout)["topology"]

    assert (8, 0) == (len(topology["gpus"]), len(topology["nics"]))
    assert audited(large)["opens"] - audited(small)["opens"] <= 8 * 23 * 4
    assert min(measure_once(argv, {}).cpu_seconds for _ in range(ROUNDS)) < 1.0


@pytest.mark.slow
def test_cpu_time_grows_no_faster_than_the_machine(trees: dict[int, Path], real_commands: None) -> None:
    """Medians of interleaved runs of whole processes, start-up included."""
    spent: dict[int, list[float]] = {SMALL: [], LARGE: []}
    for _ in range(ROUNDS):
        for count, seconds in spent.items():
            argv = [sys.executable, "-m", "fabricscope", "scan", "--source", str(trees[count]), "--format", "json"]
            seconds.append(measure_once(argv, {}).cpu_seconds)

    assert statistics.median(spent[LARGE]) <= GROWTH * statistics.median(spent[SMALL])


HEAVY = {
    "agent.assemble", "agent.diagnose", "agent.outputs", "agent.rules", "agent.model", "msgspec", "probes", "psutil",
    "pynvml", "pyudev", "rich", "tarfile", "tomllib", "zstandard", "ctypes", "xml", "json", "socket", "asyncio",
    "urllib3", "typer", "hashlib", "statistics",
}  # fmt: skip
DEAR = {"inspect", "dataclasses", "traceback", "difflib", "typing_extensions", "ipaddress"}  # typer's at most
TYPER = {"typer"}
SCAN = {"agent.assemble", "agent.diagnose", "agent.rules", "agent.model", "msgspec", "probes"}
RULES = TYPER | {"agent.rules", "agent.model", "msgspec"}
SHIP = RULES | {"hashlib", "probes"}  # rules: of the configuration, one module; probes: whose file a name is
SHIP_TO_HTTP = SHIP | {"socket", "urllib3", "json"}
ALLOWED = {
    ("--version",): set(),
    ("--help",): TYPER,
    ("scan", "--help"): TYPER,
    ("watch", "--help"): TYPER,
    ("install-units", "--print", "--exec", "/bin/true"): TYPER | {"hashlib"},
    ("rules",): RULES | {"agent.outputs"},
    ("explain", "gpu-missing"): RULES,
    ("schema",): RULES,
    ("scan", "--source", "{tree}", "--format", "json"): SCAN,
    ("diff", "{tree}", "{tree}"): SCAN | TYPER | {"agent.outputs"},
    ("diff", "{tree}", "{tree}", "--format", "json"): SCAN | TYPER,
    ("scan", "--source", "{tree}"): SCAN | {"agent.outputs"},
    ("scan", "{tree}"): SCAN | {"agent.outputs"},
    ("job", "{tree}/sys/job.log"): SCAN | {"agent.outputs", "json"},
    ("check", "--source", "{tree}"): SCAN | {"agent.outputs"},
    ("export", "prometheus", "--source", "{tree}"): SCAN | {"agent.outputs"},
    ("export", "nccl-topo", "--source", "{tree}"): SCAN | {"agent.outputs"},
    ("export", "netbox", "--source", "{tree}"): SCAN | {"agent.outputs"},
    ("netbox", "plan", "--help"): TYPER,
    ("fleet", "--help"): TYPER,
    ("ship", "--help"): TYPER,
    ("receive", "--help"): TYPER,
    ("fleet", "ingest", "--help"): TYPER,
    ("ship", "{tree}/none.json", "--to", "{tree}", "--spool", "{tree}/spool"): SHIP,
    ("ship", "{tree}/none.json", "--to", "https://h.invalid", "--spool", "{tree}/spool"): SHIP_TO_HTTP,
}
CODE = """
import sys
from agent.cli.main import run
run(sys.argv[1:])
names = sorted(sys.modules)
import json
print(json.dumps(names))
"""


COMPILED = """
import re, sys, typing
compiler = re._compiler if sys.version_info >= (3, 11) else __import__("sre_compile")
patterns, types = [], []
compile_one, make_type = compiler.compile, typing.ForwardRef.__init__
compiler.compile = lambda pattern, flags=0: patterns.append(pattern) or compile_one(pattern, flags)
typing.ForwardRef.__init__ = lambda self, *names, **more: types.append(names) or make_type(self, *names, **more)
from agent.cli.main import run
run(["scan", "--source", sys.argv[1], "--output", sys.argv[2]])
print(len(patterns), len(types))
"""


def count_compiled(source: Path) -> tuple[int, int]:
    """How many patterns, and how many types of fields that stand as texts, a scan of a source compiles."""
    argv = [sys.executable, "-c", COMPILED, str(source), os.devnull]
    done = subprocess.run(argv, capture_output=True, text=True, cwd=ROOT, check=True)
    patterns, types = map(int, done.stdout.splitlines()[-1].split())
    return patterns, types


def test_a_fragment_compiles_the_patterns_of_its_output(real_commands: None, tmp_path: Path) -> None:
    """Not those of the eighty others that are recognized, which need as long as all modules of the rules."""
    (tmp_path / "x.md").write_text(FRAGMENTS["dmesg"])
    patterns, types = count_compiled(tmp_path / "x.md")

    assert patterns < 98  # 95
    assert types < 20  # 17


def test_a_scan_compiles_the_patterns_that_it_uses(real_commands: None, tmp_path: Path) -> None:
    """Those of rules where they meet a text; types of facts are evaluated with their class, 100 µs faster each."""
    write_empty_bus(tmp_path / "bus")
    write_capture("8xl40s-pcie-2s-2xcx7-roce", None, tmp_path / "capture")
    of_none, of_machine = count_compiled(tmp_path / "bus"), count_compiled(tmp_path / "capture")

    assert (of_none[0] < 19, of_none[1] < 10) == (True, True)  # 16 and 6
    assert (of_machine[0] < 84, of_machine[1] < 24) == (True, True)  # 80 and 19


ROWS_READ = """
import sys
from agent import toml_file
parse, read = toml_file.parse_toml, []
toml_file.parse_toml = lambda text, shape: read.append(len(text)) or parse(text, shape)
from agent.cli.main import run
run(["job", sys.argv[1], "--output", sys.argv[2]])
print(sum(read))
"""


def test_a_job_reads_the_rows_that_its_lines_may_be(real_commands: None, tmp_path: Path) -> None:
    """Of a table of 300 KB, which took a sixth of the start."""
    (tmp_path / "job.log").write_text(
        "n1:7:9 [0] NCCL INFO Bootstrap : Using eth0\nn1:7:9 [0] NCCL WARN Call to ibv_create_qp failed\n"
    )
    argv = [sys.executable, "-c", ROWS_READ, str(tmp_path / "job.log"), os.devnull]
    done = subprocess.run(argv, capture_output=True, text=True, cwd=ROOT, check=True)

    assert 0 < int(done.stdout.split()[-1]) < 10_000  # some 3,000


WITHOUT_SYNTAX_TREES = """
import builtins, sys
from agent.cli.main import run
compile_any = builtins.compile
def compile_module(source, name, mode, *more, **options):
    assert mode != "eval", source
    return compile_any(source, name, mode, *more, **options)
builtins.compile = compile_module
code = run(["scan", "--source", sys.argv[1], "--output", sys.argv[2]])
print(sys.modules["datetime"].__name__)
sys.exit(code)
"""


def test_a_scan_compiles_no_type_by_itself(real_commands: None, tmp_path: Path) -> None:
    """The first makes the classes of all nodes of a syntax tree, a fortieth of a scan; dates are those in C."""
    write_capture("8xl40s-pcie-2s-2xcx7-roce", None, tmp_path / "capture")
    argv = [sys.executable, "-c", WITHOUT_SYNTAX_TREES, str(tmp_path / "capture"), os.devnull]
    done = subprocess.run(argv, capture_output=True, text=True, cwd=ROOT, check=False)

    assert (0, "_datetime" if sys.version_info < (3, 12) else "datetime") == (done.returncode, done.stdout.split()[-1])


def test_what_runs_probes_imports_no_enumerations_for_it(real_commands: None) -> None:
    """These modules take 3% of a live scan each, or half of that."""
    code = "import sys, probes.worker_pool, probes.host.live, probes.netdev.probe; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)

    modules = set(done.stdout.split())
    assert "probes.host.netlink_socket" in modules
    assert modules.isdisjoint(("pickle", "selectors", "socket", "weakref"))


def write_empty_bus(tree: Path) -> None:
    """A machine without a PCI function, as far as its files show."""
    (tree / "sys" / "bus" / "pci" / "devices").mkdir(parents=True)


@pytest.mark.parametrize("unneeded", [
    "agent.rules.gpu.health", "agent.rules.gpu.memory", "agent.rules.host.service_sentences",
    "agent.rules.nvlink.fabric", "probes.kernel.log_events", "probes.services.logs", "threading",
    "probes.sources.dump", "probes.sources.identify", "probes.own_files", "agent.rules.link_flaps",
    "agent.rules.host.unexplained", "probes.fabric.probe", "probes.kernel.log", "probes.kernel.modules",
    "probes.nccl.probe", "probes.netdev.probe", "probes.netlink", "probes.rdma.sysfs", "probes.services.probe",
    "probes.system.limits", "probes.visible_interfaces",
    "agent.assemble.rdma", "agent.rules.fingerprints", "probes.rdma.normalize",
    "shlex", "decimal", "msgspec._json_schema", "msgspec.inspect", "textwrap", "uuid",
])  # fmt: skip
def test_a_machine_without_devices_and_logs_imports_nothing_about_them(
    unneeded: str, real_commands: None, modules_of_an_empty_bus: set[str]
) -> None:
    """Each took 0.3 to 2 ms of a scan."""
    assert unneeded not in modules_of_an_empty_bus


AFTER_A_SCAN = """
import sys
from agent.cli.main import run
run(["scan", "--source", sys.argv[1], "--output", sys.argv[2]])
import decimal, msgspec, msgspec.inspect, textwrap, uuid
print(uuid.UUID(int=1).int + decimal.Decimal(2), msgspec.inspect.type_info(int))
"""


def test_what_stood_in_for_modules_that_a_scan_does_not_need_is_gone_after_it(
    real_commands: None, tmp_path: Path
) -> None:
    """Who imports one of them later gets it."""
    write_empty_bus(tmp_path / "bus")
    argv = [sys.executable, "-c", AFTER_A_SCAN, str(tmp_path / "bus"), os.devnull]
    done = subprocess.run(argv, capture_output=True, text=True, cwd=ROOT, check=True)

    assert done.stdout.startswith("3 IntType(")


@pytest.fixture(scope="module")
def modules_of_an_empty_bus(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """What a scan of it has imported at its end."""
    tree = tmp_path_factory.mktemp("bus")
    write_empty_bus(tree)
    return loaded(["scan", "--source", str(tree), "--format", "json"])


@pytest.mark.parametrize(
    ("probe", "unneeded"),
    [
        ("probes.dcb.probe", {"json", "probes.dcb.tools", "probes.ethtool.saved"}),
        ("probes.netdev.lldp", {"json", "probes.netdev.lldp_forms"}),
        ("probes.optics.probe", {"probes.optics.cmis", "probes.optics.sff"}),
    ],
)
def test_a_live_probe_imports_no_reader_of_what_is_not_there(
    probe: str, unneeded: set[str], real_commands: None
) -> None:
    """Saved outputs, the answer of a tool that is not installed, the memory of a module that is not plugged in."""
    code = f"import sys, {probe}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)

    assert set() == unneeded & set(done.stdout.split())


NO_DRIVER = """
import sys
from types import SimpleNamespace
from probes.catalogue import probe
from probes.probe import outcome_of
bare = SimpleNamespace(live=True, kind="live", listdir=lambda path: [])
print(outcome_of(probe("nvml"), bare).status.value, "probes.gpu.nvml" in sys.modules)
"""


def test_nvml_is_read_by_nothing_where_no_gpu_is(real_commands: None) -> None:
    """What reads it takes 1 ms to import."""
    argv = [sys.executable, "-c", NO_DRIVER]
    done = subprocess.run(argv, capture_output=True, text=True, cwd=ROOT, check=True)

    assert "skipped False" == done.stdout.strip()


@pytest.mark.parametrize("name", FRAGMENTS)
def test_a_fragment_imports_what_reads_its_output(name: str, real_commands: None, tmp_path: Path) -> None:
    """Of the probes those that it holds something for, and no rules that go through what it does not list."""
    (tmp_path / "x.md").write_text(FRAGMENTS[name])
    modules = loaded(["scan", "--source", str(tmp_path / "x.md"), "--format", "json", "--output", os.devnull])
    subjects = ("amd", "cxl", "dcb", "ethtool", "gaudi", "nccl", "netdev", "neuron", "optics")
    others = {f"probes.{subject}.probe" for subject in subjects} | {"probes.ascend.npu", "probes.pci.sysfs"}
    of_gpus, of_infiniband = "agent.rules.gpu.memory", "agent.rules.infiniband.links"

    assert set() == modules & others
    assert (name in ("lspci", "nvidia-smi"), name == "ibstat") == (of_gpus in modules, of_infiniband in modules)
    assert len(modules) < 368  # up to 357


def loaded(arguments: list[str]) -> set[str]:
    """The modules that a fresh process has after this command."""
    done = subprocess.run(
        [sys.executable, "-c", CODE, *arguments], capture_output=True, text=True, cwd=ROOT, check=True
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize("arguments", ALLOWED, ids=" ".join)
def test_a_command_imports_what_it_needs_and_no_more(
    arguments: tuple[str, ...], real_commands: None, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Of what is heavy, each command has exactly its allowance."""
    tree = tmp_path_factory.mktemp("tree")
    write_empty_bus(tree)
    (tree / "sys" / "job.log").write_text("n1:7:9 [0] NCCL INFO Bootstrap : Using eth0\n")
    modules = loaded([argument.format(tree=tree) for argument in arguments])
    heavy = {name for name in HEAVY if any(m == name or m.startswith(name + ".") for m in modules)}

    assert ALLOWED[arguments] == heavy
    if "typer" not in heavy and sys.version_info >= (3, 11):  # before, msgspec needs typing_extensions
        assert not DEAR & modules


@pytest.mark.parametrize(
    ("shape", "wanted"),
    [
        ("8xl40s-pcie-2s-2xcx7-roce", set[str]()),
        ("8xmi300x-2s-8xcx7-roce", {"probes.amd"}),
        ("8x910b-4s-atlas-a2", {"probes.ascend", "agent.assemble.ascend"}),
    ],
)
def test_a_scan_imports_what_reads_its_accelerators(
    shape: str, wanted: set[str], real_commands: None, tmp_path: Path
) -> None:
    """A host with NICs and NVIDIA GPUs pays for no other vendor's probes; none for what reads any TOML."""
    write_capture(shape, None, tmp_path / "capture")
    modules = loaded(["scan", "--source", str(tmp_path / "capture"), "--format", "json", "--output", os.devnull])
    vendors = ("probes.amd", "probes.ascend", "probes.gaudi", "probes.neuron", "probes.cxl", "agent.assemble.ascend")

    assert wanted == {name for name in vendors if any(f"{module}.".startswith(f"{name}.") for module in modules)}
    assert {"tomllib", "tomli"}.isdisjoint(modules)  # its profile is there, and is read
