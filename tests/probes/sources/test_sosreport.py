"""A sosreport tells what its machine is, as far as sos kept it, and says what it did not keep."""

from __future__ import annotations

import json
import lzma
import shutil
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.diagnose import ScanPlan, diagnose
from agent.model.report import Report
from probes.host.interface import Absent, BadSource, Failed, Host, ReadError, TimedOut
from probes.sources import archive
from probes.sources.open_source import open_source
from tests.machines import scan_machine
from tests.probes.sources import bundles

H100 = "8xh100-sxm-2s-8xcx7-ib-4nvsw"
LSPCI = pytest.mark.skipif(not shutil.which("lspci"), reason="pciutils is not installed")
TEXT = ("lspci", "-D", "-nn", "-vvv")
FUNCTION = "00:00.0 Host bridge [0600]: Intel Corporation Device [8086:0d57]\n"


def opened(members: dict[str, bytes | str], folder: Path) -> Host:
    place = folder / "bundle"
    place.write_bytes(bundles.packed(members))
    return open_source(str(place))


def small(**outputs: str) -> dict[str, bytes | str]:
    """`plugin__name` -> content."""
    result: dict[str, bytes | str] = {"s/version.txt": b"sos: 4.10.2\n"}
    return result | {f"s/sos_commands/{name.replace('__', '/')}": text.encode() for name, text in outputs.items()}


def manifest(*commands: dict[str, Any]) -> bytes:
    return json.dumps({"components": {"report": {"plugins": {"pci": {"commands": commands}}}}}).encode()


def report_of(host: Host) -> Report:
    return diagnose(host, ScanPlan())[0]


@LSPCI
def test_the_same_machine_through_two_doors(tmp_path: Path, real_commands: None) -> None:
    """Packed, unpacked, or from its own tree: one PCI topology, one set of GPUs."""
    whole = scan_machine(H100)
    members = bundles.sosreport(H100)
    (tmp_path / "packed").write_bytes(lzma.compress(bundles.packed(members), preset=0))
    subprocess.run(["tar", "-xJf", "packed"], cwd=tmp_path, check=True)
    (tmp_path / "packed").rename(tmp_path / "renamed")
    root = next(tmp_path.glob("sosreport-*"))

    for place in (tmp_path / "renamed", root):
        report = report_of(open_source(str(place)))
        assert ("sosreport", "2026-01-15T08:00:00Z") == (report.source.kind, report.observed_at)
        assert said(whole) == said(report)
        assert whole.platform.profile == report.platform.profile
        for name in ("hostname", "kernel", "arch", "os", "machine_id", "boot_id", "vendor", "product"):
            assert getattr(whole.node, name) == getattr(report.node, name)
        driver = whole.software.driver
        assert driver is not None
        assert msgspec.structs.replace(driver, parameters={}) == report.software.driver  # sos copies no params
        assert {"info"} >= {finding.severity for finding in report.findings}
        rails = [[(nic.id, nic.label, nic.model, nic.role) for nic in item.topology.nics] for item in (whole, report)]
        assert rails[0] == rails[1]


def said(report: Report) -> dict[str, object]:
    """What the tree and lspci both say of each function, and nvidia-smi of each GPU."""
    pci: dict[str, object] = {}
    for function in report.topology.pci:
        link = function.link
        pci[function.id] = (
            *(getattr(function, name) for name in ("parent", "class_code", "vendor", "device", "driver", "numa_node")),
            (link.speed_gt_s, link.width, link.max_speed_gt_s, link.max_width) if link else None,
        )
    for gpu in report.topology.gpus:
        pci[gpu.label] = (gpu.id, gpu.index, gpu.uuid, gpu.name, gpu.pci, gpu.memory_mib, gpu.pcie, len(gpu.links))
    return pci


def test_the_manifest_says_which_file_is_which_command(tmp_path: Path) -> None:
    """However its name is cut or numbered; a path and the exit status count too."""
    members = small(**{"pci__lspci_-n": "old", "odd__lspci_-n.1": FUNCTION})
    members["s/sos_reports/manifest.json"] = manifest(
        {"exec": "/usr/sbin/lspci -nnvv", "filepath": "sos_commands/pci/lspci_-n", "return_code": 1},
        {"exec": "lspci -nnvv", "filepath": "sos_commands/odd/lspci_-n.1", "return_code": 0},
        {"exec": "nvidia-smi --list-gpus", "filepath": None, "return_code": 127},
        {"exec": "ibstat", "filepath": "sos_commands/gone", "return_code": 0},
    )
    host = opened(members, tmp_path)

    assert (FUNCTION, 0) == ((done := host.run(*TEXT)).stdout, done.returncode)
    with pytest.raises(Absent, match=r"holds no output of nvidia-smi -q \(sos found no such command\)"):
        host.run("nvidia-smi", "-q")
    with pytest.raises(Absent, match=r"the sosreport holds no output of ibstat$"):
        host.run("ibstat")


def test_names_say_it_where_there_is_no_manifest(tmp_path: Path) -> None:
    """Options in any order; a repeated command's second output is not taken for another command's."""
    host = opened(
        small(
            **{"pci__lspci_-vv_-nn": FUNCTION, "x__nvidia-smi_--list-gpus": "GPU 0: H100", "infiniband__ibstat.1": ""}
        ),
        tmp_path,
    )

    assert FUNCTION == host.run(*TEXT).stdout
    assert "GPU 0: H100" == host.run("nvidia-smi", "-L").stdout
    assert not host.has_output("ibstat")


def test_what_timed_out_or_was_cut_is_no_answer(tmp_path: Path) -> None:
    """The first part of lspci, or the last one, would be a machine with fewer devices."""
    members = small(**{"pci__lspci_-nnvv": FUNCTION})
    for status, truncated, error in ((124, False, TimedOut), (0, True, Failed)):
        row = {"exec": "lspci -nnvv", "filepath": "sos_commands/pci/lspci_-nnvv", "return_code": status}
        host = opened(members | {"s/sos_reports/manifest.json": manifest(row | {"truncated": truncated})}, tmp_path)
        with pytest.raises(error):
            host.run(*TEXT)

    log = b"2026-01-15 08:00:00,1 WARNING: [plugin:pci] command 'lspci -nnvv' timed out after 300s\n"
    with pytest.raises(TimedOut, match="sos gave up waiting"):
        opened(members | {"s/sos_logs/sos.log": log}, tmp_path).run(*TEXT)
    members["s/sos_strings/pci/lspci_-nnvv.tailed"] = FUNCTION.encode()
    members["s/sos_commands/pci/lspci_-nnvv"] = "../../sos_strings/pci/lspci_-nnvv.tailed"
    with pytest.raises(Failed, match="kept only the last part"):
        opened(members, tmp_path).run(*TEXT)


def test_what_it_does_not_hold_is_named(tmp_path: Path) -> None:
    """Not there is said of the bundle, never of the machine."""
    host = opened(small(x__lsmod="Module Size Used by\n") | {"s/proc/cpuinfo": b"x"}, tmp_path)

    assert b"x" == host.read("/proc/cpuinfo")
    for ask in (host.read, host.listdir, host.readlink, host.resolve):
        with pytest.raises(Absent, match="the sosreport holds no /sys/bus/pci/devices"):
            ask("/sys/bus/pci/devices")
    with pytest.raises(Absent, match="a sosreport holds no NVML answers"):
        host.nvml("nvmlInit_v2")
    assert {} == host.attributes("/proc", ("nothing",))


def test_logs_take_no_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What no probe asks for is neither kept nor counted: real sosreports are mostly logs."""
    monkeypatch.setattr(archive, "KEPT_LIMIT_BYTES", 1 << 20)
    logs: dict[str, bytes | str] = {f"s/var/log/messages-{day}": bytes(1 << 20) for day in range(4)}

    host = opened(small(x__lsmod="a 1 0\n", **{"logs__journalctl_--no-pager": "x" * (2 << 20)}) | logs, tmp_path)

    assert "a 1 0\n" == host.run("lsmod").stdout
    with pytest.raises(Failed, match="no probe asks for"):
        host.read("/var/log/messages-0")


@pytest.mark.parametrize("content", [b"[" * 100_000, b"{}", b'{"components": {"report": []}}', b"\xff", bytes(7 << 20)])
def test_an_odd_manifest_leaves_the_names(content: bytes, tmp_path: Path) -> None:
    """Too deep, too long, of another shape, or no JSON."""
    members = small(**{"pci__lspci_-nnvv": FUNCTION})

    assert FUNCTION == opened(members | {"s/sos_reports/manifest.json": content}, tmp_path).run(*TEXT).stdout


def test_links_out_of_it_lead_nowhere(tmp_path: Path) -> None:
    """Neither a folder of outputs nor an output that is a link shows this host; nor does a folder on disk."""
    members = small(x__lsmod="a 1 0\n") | {"s/etc/hostname": "/etc/hostname", "s/proc": "/proc"}
    members["s/sos_commands/y/ibstat"] = "../../../../../../etc/hostname"
    packed = opened(members, tmp_path)
    (tmp_path / "s/sos_commands/y").mkdir(parents=True)
    (tmp_path / "s/proc").symlink_to("/proc")
    (tmp_path / "s/sos_commands/y/ibstat").symlink_to("/etc/hostname")

    for host in (packed, open_source(str(tmp_path / "s"))):
        assert "sosreport" == host.kind
        assert not host.has_output("ibstat")
        with pytest.raises(ReadError):
            host.read("/proc/uptime")


SMALL = bundles.packed(
    small(**{"pci__lspci_-nnvv": FUNCTION, "date__date_--utc": "Thu Jan 15 08:00:00 UTC 2026"})
    | {"s/sos_reports/manifest.json": manifest({"exec": "lspci -nnvv", "filepath": "a", "return_code": 0})}
)


@given(st.data())
@settings(max_examples=100)
def test_damage_is_a_bad_source_or_an_answer(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """Whatever bytes are changed or cut out: one line, or a host whose probes end without a traceback."""
    content = bytearray(SMALL)
    for _ in range(data.draw(st.integers(1, 8))):
        at = data.draw(st.integers(0, len(content) - 1))
        content[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=4))
    place = tmp_path_factory.mktemp("damaged") / "sos.tar"
    place.write_bytes(content)

    result = read_or_refused(place)

    assert result in ("ok", "unknown", "nothing_to_check") or (result.startswith(f"{place}: ") and "\n" not in result)


def read_or_refused(place: Path) -> str:
    """The verdict of a scan, or the one line that refuses the source."""
    try:
        return report_of(open_source(str(place))).summary.verdict
    except BadSource as why:
        return str(why)


@pytest.mark.skipif(not shutil.which("sos"), reason="sos is not installed (Debian: sosreport)")
def test_a_bundle_that_the_real_sos_makes(tmp_path: Path, real_commands: None) -> None:
    """Of the machine that the tests run on, by a few plugins."""
    command = ["sos", "report", "--batch", "--tmp-dir", str(tmp_path), "-z", "xz", "-o", "pci,kernel,host,processor"]
    completed = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    result = list(tmp_path.glob("sosreport-*.tar.xz"))
    if not result:
        pytest.skip(f"sos made nothing here: {completed.stdout[-200:]}")

    host = open_source(str(result[0]))
    report = report_of(host)
    facts = {run.name: run.status for run in report.probes}

    assert ("sosreport", Path("/proc/sys/kernel/osrelease").read_text().strip()) == (host.kind, report.node.kernel)
    assert "ok" == facts["cpu"]
    if host.has_output(*TEXT):
        assert {"absent", "ok"} == {facts["pci"], facts["lspci"]} | {"ok"}
        assert len(report.topology.pci) == len(list(Path("/sys/bus/pci/devices").iterdir()))
