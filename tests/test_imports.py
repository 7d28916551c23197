"""What each command imports: start-up cost is a promise, and it is lost one import at a time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fixtures.build import write_capture
from tests.conftest import ROOT

HEAVY = {
    "agent.assemble", "agent.diagnose", "agent.outputs", "agent.rules", "agent.model", "msgspec", "probes", "psutil",
    "pynvml", "pyudev", "rich", "tarfile", "tomllib", "zstandard", "ctypes", "xml", "json", "socket", "asyncio",
    "urllib3", "typer", "hashlib",
}  # fmt: skip
DEAR = {"inspect", "dataclasses", "traceback", "difflib", "typing_extensions", "ipaddress"}  # typer's at most
TYPER = {"typer"}
SCAN = {"agent.assemble", "agent.diagnose", "agent.rules", "agent.model", "msgspec", "probes"}
RULES = TYPER | {"agent.rules", "agent.model", "msgspec"}
SHIP = RULES | {"hashlib"}  # rules: of the configuration, one module
SHIP_TO_HTTP = SHIP | {"socket", "urllib3", "json"}
ALLOWED = {
    ("--version",): set(),
    ("--help",): TYPER,
    ("scan", "--help"): TYPER,
    ("watch", "--help"): TYPER,
    ("install-units", "--print", "--exec", "/bin/true"): TYPER | {"hashlib"},
    ("rules",): RULES,
    ("explain", "gpu-missing"): RULES,
    ("schema",): RULES,
    ("scan", "--source", "{tree}", "--format", "json"): SCAN,
    ("diff", "{tree}", "{tree}"): SCAN | TYPER | {"agent.outputs"},
    ("diff", "{tree}", "{tree}", "--format", "json"): SCAN | TYPER,
    ("scan", "--source", "{tree}"): SCAN | {"agent.outputs"},
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
    (tree / "sys" / "bus" / "pci" / "devices").mkdir(parents=True)
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
    """A host with NICs and NVIDIA GPUs pays for no other vendor's probes."""
    write_capture(shape, None, tmp_path / "capture")
    modules = loaded(["scan", "--source", str(tmp_path / "capture"), "--format", "json", "--output", os.devnull])
    vendors = ("probes.amd", "probes.ascend", "probes.gaudi", "probes.neuron", "probes.cxl", "agent.assemble.ascend")

    assert wanted == {name for name in vendors if any(f"{module}.".startswith(f"{name}.") for module in modules)}
