"""Outputs of two machines in one source: found before any finding, and no part is accused by the other's outputs."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import pytest

from agent.cli.main import run
from agent.config import Configuration
from agent.diagnose import ScanPlan, diagnose, evaluate_report
from agent.model.report import Report
from probes.host.interface import BadSource
from probes.sources.dump import SavedOutputs
from probes.sources.memory import MemoryFiles
from probes.sources.open_source import open_source
from probes.sources.tree import TreeHost
from tests.agent.contradictions.saved_outputs import render_outputs
from tests.conftest import sample_of
from tests.machines import FAULTS, HOSTS, scan_machine

Outputs = dict[str, str]
XID = "[ 9120.551100] NVRM: Xid (PCI:0000:61:00): 79, pid=77, GPU has fallen off the bus.\n"
DRIVE = "61:00.0 Non-Volatile memory controller [0108]: Device [144d:a80a]\n"
GPU = "61:00.0 3D controller [0302]: NVIDIA Corporation Device [10de:2330]\n"
IBSTAT = (
    "CA 'mlx5_0'\n\tCA type: MT4129\n\tNumber of ports: 1\n\tNode GUID: 0x{0}\n\tPort 1:\n\t\tState: {1}\n"
    "\t\tPhysical state: {2}\n\t\tRate: 400\n\t\tBase lid: 7\n\t\tSM lid: 1\n\t\tPort GUID: 0x{0}\n"
    "\t\tLink layer: InfiniBand\n"
)
HEALTHY, DOWN = (
    IBSTAT.format("a088c20300ab0001", "Active", "LinkUp"),
    IBSTAT.format("a088c20300ab0002", "Down", "Polling"),
)


def scan_outputs(outputs: Outputs) -> Report:
    """The report of a folder of these files."""
    files = MemoryFiles({name: text.encode() for name, text in outputs.items()})
    report, _ = diagnose(TreeHost("dump", "mixed", MemoryFiles(), SavedOutputs(files)), ScanPlan())
    return report


def test_lines_of_a_log_are_of_the_gpu_that_another_output_names() -> None:
    """At its address, although no list of PCI functions is there."""
    table = (
        "| NVIDIA-SMI 570.124.06    Driver Version: 570.124.06    CUDA Version: 12.8 |\n"
        "|   0  NVIDIA H100 80GB HBM3  On  |   00000000:61:00.0 Off |                    0 |\n"
        "| N/A   34C    P0    70W /  700W |       1MiB /  81559MiB |      0%      Default |\n"
        "+--------------------------------+----------------------+----------------------+\n"
    )
    report = scan_outputs({"nvidia-smi.txt": table, "dmesg.txt": XID})
    assert [(f.rule, f.subject, f.label) for f in report.findings] == [("gpu-xid", "gpu:0000:61:00.0", "GPU0")]
    assert report.topology.gpus[0].health.power_limit_watts == 700


def list_hosts(report: Report) -> list[tuple[str | None, list[str]]]:
    """Names and files of `source.hosts`."""
    return [(host.name, host.files) for host in report.source.hosts or []]


@functools.cache
def outputs_of(machine: str) -> Outputs:
    """What a fixture machine or one of its faults prints, of interfaces the first alone: they cost a scan each."""
    return render_outputs(scan_machine("", machine) if machine in FAULTS else scan_machine(machine), interfaces=1)


@functools.cache
def found_alone(machine: str, name: str | None = None) -> frozenset[str]:
    """Fingerprints of what a machine's outputs show: all of them, or one by itself."""
    outputs = outputs_of(machine)
    return fingerprints(scan_outputs(outputs if name is None else {name: outputs[name]}))


def fingerprints(report: Report) -> frozenset[str]:
    """Of its findings."""
    return frozenset(finding.fingerprint for finding in report.findings)


def make_twin(outputs: Outputs) -> Outputs:
    """The same of another machine of this model: other UUIDs and GUIDs."""
    return {
        name: re.sub(r"GPU-[0-9a-f]{4}|(?<=GUID: 0x)[0-9a-f]{4}", lambda m: m[0][:-4] + "feed", text)
        for name, text in outputs.items()
    }


@pytest.mark.parametrize("machine", HOSTS)
def test_outputs_of_one_machine_do_not_contradict_each_other(machine: str) -> None:
    """All that one machine prints is of one host."""
    assert scan_outputs(outputs_of(machine)).source.hosts is None


@pytest.mark.parametrize("machine", [host for host in HOSTS if "mlx5" in str(outputs_of(host)) and "8xh" in host])
@pytest.mark.parametrize("name", ["ibstat.txt", "nvidia-smi_-L.txt"])
def test_an_output_of_a_twin_is_found(machine: str, name: str) -> None:
    """Another machine of the same model differs in UUIDs and GUIDs alone."""
    outputs = outputs_of(machine)
    mixed = scan_outputs({**outputs, "copy_of_other.txt": make_twin(outputs)[name]})
    assert mixed.source.hosts is not None
    assert ["copy_of_other.txt"] in [host.files for host in mixed.source.hosts]
    assert "unknown" == mixed.summary.verdict


# The kernel log states whether the IOMMU translates, the list which devices are behind it: where a log shows nothing
# else of its host, nothing shows that it is of another one.
STATED_TOGETHER = {"gdr-iommu-translated"}


@pytest.mark.parametrize("other", sample_of([*HOSTS, *FAULTS])[::8])
def test_no_part_is_accused_by_an_output_of_another_machine(other: str) -> None:
    """One output of a machine is replaced by that of another: what is then found, one of both shows by itself."""
    theirs = outputs_of(other)
    for number, machine in enumerate(name for name in HOSTS if name != other):
        shared = sorted(set(outputs_of(machine)) & set(theirs))
        for name in shared[number % len(shared) :][:1] if shared else ():
            whole = outputs_of(machine)
            rest = {own: text for own, text in whole.items() if own != name}
            if not rest or whole[name] == theirs[name]:
                continue
            mixed = scan_outputs({**rest, name: theirs[name]})
            new = {f.fingerprint: f.rule for f in mixed.findings if f.severity != "info"}
            alone = [(machine, own) for own in rest] if mixed.source.hosts else [(machine, None)]
            for part in (*alone, (other, name)):
                new = {found: rule for found, rule in new.items() if found not in found_alone(*part)}
            if new and not mixed.source.hosts:
                new = {found: rule for found, rule in new.items() if found not in fingerprints(scan_outputs(rest))}
            if name == "dmesg.txt" and len(theirs[name].splitlines()) == 1:
                new = {found: rule for found, rule in new.items() if rule not in STATED_TOGETHER}
            assert {} == new


def test_an_xid_at_a_drive_is_of_another_host() -> None:
    """The list and the log name two parts at one address: the drive is not accused, the GPU is, by its log alone."""
    report = scan_outputs({"dmesg.txt": XID, "lspci_-nnvvv.txt": DRIVE})

    assert [(None, ["dmesg.txt"]), (None, ["lspci_-nnvvv.txt"])] == list_hosts(report)
    assert ["0000:61:00.0 is a GPU", "vendor of 0000:61:00.0: 0x10de"] == report.source.hosts[0].facts  # type: ignore[index]
    assert ("unknown", []) == (report.summary.verdict, report.topology.pci)
    assert [("gpu-xid", {"dmesg.txt (dmesg)"})] == [
        (f.rule, {row.source for row in f.evidence}) for f in report.findings
    ]
    assert scan_outputs({"dmesg.txt": XID, "lspci_-nnvvv.txt": GPU}).source.hosts is None


def test_a_report_of_several_hosts_is_not_judged_again() -> None:
    """What each output shows by itself is not in its topology: the findings stay."""
    report = scan_outputs({"dmesg.txt": XID, "lspci_-nnvvv.txt": DRIVE})
    again = evaluate_report(report, Configuration())
    assert (report.findings, report.checks, report.summary) == (again.findings, again.checks, again.summary)


@pytest.mark.parametrize(
    ("outputs", "fact"),
    [
        ({"ibstat.txt": HEALTHY, "other.txt": DOWN}, "node GUID of mlx5_0: a088c20300ab0002"),
        (
            {"uname_-a.txt": "Linux n7 5.15.0-91-generic #101-Ubuntu SMP x86_64 GNU/Linux\n",
             "journalctl_-k_-b.txt": f"2026-11-21T00:53:57+0000 n8 kernel: {XID[15:]}"},
            "host name: n8",
        ),
        (
            {"nvidia-smi_-q.txt": "==============NVSMI LOG==============\nDriver Version : 550.54.15\n"
             "Attached GPUs : 1\nGPU 00000000:19:00.0\n    Product Name : NVIDIA H100\n",
             "dmesg.txt": "[    9.1] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19\n" + XID},
            "NVIDIA driver: 535.129.03",
        ),
        (
            {"nvidia-smi_-q.txt": "==============NVSMI LOG==============\nDriver Version : 550.54.15\n"
             "Attached GPUs : 1\nGPU 00000000:61:00.0\n    Product Name : NVIDIA H100\n", "lspci_-nn.txt": DRIVE},
            "0000:61:00.0 is an NVMe drive",
        ),
        ({"ibstat.txt": HEALTHY.replace("mlx5_0", "ibp12s0"),
          "rdma_link.txt": "link mlx5_0/1 state ACTIVE netdev ib0 \n"}, "RDMA devices: mlx5_0"),
        ({"ibstat.txt": f"[root@n7 ~]# ibstat\n{HEALTHY}", "lsmod.txt": "[root@n8 ~]# lsmod\nModule Size Used by\n"
          "mlx5_ib 401408 0\n"}, "host name in the prompt: n8"),
        ({"lsmod.txt": "Module                  Size  Used by\nnvidia               1  0\n",
          "lsmod.out": "Module                  Size  Used by\nib_core               1  0\n"},
         "another output of lsmod"),
    ],
    ids=["guid", "host-name", "driver", "address", "names-of-devices", "prompt", "two-files-of-one-command"],
)  # fmt: skip
def test_each_kind_of_contradiction_is_found(outputs: Outputs, fact: str) -> None:
    """Whatever outputs state of their host twice, and differently."""
    report = scan_outputs(outputs)
    assert fact in {fact for host in report.source.hosts or [] for fact in host.facts}
    assert None is report.node.hostname


@pytest.mark.parametrize(
    ("listed", "named", "is_mixed"),
    [
        (("mlx5_0", "mlx5_1"), ("mlx5_0", "mlx5_bond_0"), True),
        (("mlx5_0", "mlx5_1"), ("mlx5_0",), False),
        (("mlx5_0",), ("mlx5_0", "mlx5_1"), False),
        (("mlx5_0", "mlx5_1"), ("mlx5_0", "mlx5_1"), False),
    ],
    ids=["each has one that the other lacks", "a port that is lost", "one that came later", "the same names"],
)
def test_two_lists_of_all_rdma_devices_are_compared(
    listed: tuple[str, ...], named: tuple[str, ...], is_mixed: bool
) -> None:
    """mlx5_N names devices on every host: what each list alone has shows that they are of two."""
    ibstat = "".join(
        HEALTHY.replace("mlx5_0", name).replace("a088c20300ab0001", f"a088c20300ab001{number}")
        for number, name in enumerate(named)
    )
    links = "".join(f"link {name}/1 state ACTIVE physical_state LINK_UP netdev ib_{name} \n" for name in listed)
    report = scan_outputs({"ibstat.txt": ibstat, "rdma_link.txt": links})

    assert is_mixed == bool(report.source.hosts)


def test_an_earlier_output_of_the_same_host_is_no_other_host(tmp_path: Path) -> None:
    """A thread goes on: the port is up, then it is down, of one GUID; the first is used, and of the other is named what
    the first does not show. What both show is named once."""
    later = IBSTAT.format("a088c20300ab0001", "Down", "Polling")
    text = f"```\n{HEALTHY}```\nand after the switch was restarted:\n```\n{later}```\n"
    (tmp_path / "issue.md").write_text(text)
    report, _ = diagnose(open_source(str(tmp_path / "issue.md")), ScanPlan())

    assert None is report.source.hosts
    files = [(file.name, file.read_as, file.reason) for file in report.source.files or []]
    ((name, read_as, why),) = files[:1]
    assert ("issue.md, line 16", None) == (name, read_as)
    assert why is not None
    assert why.startswith("an output: an earlier one is used; by itself it shows mlx5_0/1: DOWN")
    assert why.endswith("(ib-port-down)")
    assert [("issue.md, line 1", "ibstat", None)] == files[1:]

    (tmp_path / "issue.md").write_text(text.replace(HEALTHY, later))
    report, _ = diagnose(open_source(str(tmp_path / "issue.md")), ScanPlan())
    assert ["ib-port-down"] == [finding.rule for finding in report.findings]
    assert [None] == [file.reason for file in report.source.files or []]


def test_outputs_of_one_device_at_two_times_are_not_joined(tmp_path: Path) -> None:
    """`ibstat DEVICE` of several devices is one list; of one device again it is another time."""
    other = HEALTHY.replace("mlx5_0", "mlx5_1").replace("b0001", "b0003")
    (tmp_path / "issue.md").write_text(
        f"$ ibstat mlx5_0\n{HEALTHY}$ ibstat mlx5_1\n{other}$ ibstat mlx5_0\n{HEALTHY.replace('Active', 'Down')}"
    )
    report, _ = diagnose(open_source(str(tmp_path / "issue.md")), ScanPlan())
    states = {nic.label: nic.ports[0].state for nic in report.topology.nics}

    assert {"mlx5_0": "ACTIVE", "mlx5_1": "ACTIVE"} == states
    assert 1 == sum("an earlier one is used" in (file.reason or "") for file in report.source.files or [])


def test_a_log_of_several_hosts_is_read_by_host() -> None:
    """A collector's file: the Xids of two GPUs at one address are not one GPU's."""
    lines = "".join(f"2026-11-21T00:53:5{n}+0000 n{n} kernel: {XID[15:]}" for n in (7, 8))
    report = scan_outputs({"journalctl_-k_-b.txt": lines})
    names = [f"journalctl_-k_-b.txt, lines of n{n}" for n in (7, 8)]
    assert [("n7", names[:1]), ("n8", names[1:])] == list_hosts(report)


def test_a_log_that_begins_before_the_host_has_its_name_is_of_one_host() -> None:
    """`localhost` is no name, and a name with its domain is the same."""
    hosts = ("localhost", "n7", "n7.example.org")
    lines = "".join(f"2026-11-21T00:53:5{n}+0000 {host} kernel: {XID[15:]}" for n, host in enumerate(hosts))
    assert None is scan_outputs({"journalctl_-k_-b.txt": lines}).source.hosts


@pytest.mark.parametrize("form", ["folders", "prefixes"])
def test_outputs_of_one_host_each_are_listed_with_how_to_scan_each(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 2 with the command lines, and each of them gives that host's report."""
    for host, text in (("n7", HEALTHY), ("n8", DOWN)):
        place = tmp_path / host / "ibstat.txt" if form == "folders" else tmp_path / f"{host}-ibstat.txt"
        place.parent.mkdir(exist_ok=True)
        place.write_text(text)
    assert 2 == run(["scan", "--source", str(tmp_path)])

    error = capsys.readouterr().err
    assert f"error: {tmp_path}: holds outputs of 2 hosts: n7, n8\n" in error
    sources = re.findall(r"`fabricscope scan --source '?([^'`]+)'?`", error)
    guids = [diagnose(open_source(source), ScanPlan())[0].topology.nics[0].node_guid for source in sources]
    assert ["a088:c203:00ab:0001", "a088:c203:00ab:0002"] == guids


def test_prefixes_of_other_commands_are_hosts_where_they_contradict(tmp_path: Path) -> None:
    """No command is there twice: the address shows that they are two."""
    (tmp_path / "n7-dmesg.txt").write_text(XID)
    (tmp_path / "n8_lspci_-nn.txt").write_text(DRIVE)
    with pytest.raises(BadSource, match="holds outputs of 2 hosts: n7, n8"):
        diagnose(open_source(str(tmp_path)), ScanPlan())


def test_a_prefix_of_all_files_is_left_out(tmp_path: Path) -> None:
    """One host's folder whose files all begin with its name."""
    (tmp_path / "n7-ibstat.txt").write_text(HEALTHY)
    (tmp_path / "n7-ethtool_-S_ens1f0np0.txt").write_text("NIC statistics:\n     rx_bytes: 1\n")
    report, _ = diagnose(open_source(str(tmp_path)), ScanPlan())
    assert {"n7-ibstat.txt", "n7-ethtool_-S_ens1f0np0.txt"} == {file.name for file in report.source.files or []}
    assert None is report.source.hosts


def test_no_capture_is_made_of_two_hosts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It would replay as one."""
    (tmp_path / "ibstat.txt").write_text(HEALTHY)
    (tmp_path / "other.txt").write_text(DOWN)
    assert 2 == run(["scan", "--source", str(tmp_path), "--capture", str(tmp_path / "c.tar.gz")])
    assert "no capture is made" in capsys.readouterr().err


def test_the_page_names_the_hosts_before_any_finding(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Which outputs, by what they differ, and what to do."""
    (tmp_path / "dmesg.txt").write_text(XID)
    (tmp_path / "lspci_-nn.txt").write_text(DRIVE)
    assert 0 == run(["scan", "--source", str(tmp_path)])

    page = capsys.readouterr().out
    assert page.index("each is checked alone") < page.index("0000:61:00.0 is an NVMe drive") < page.index("CRITICAL")


def test_a_list_of_one_gpu_that_was_asked_for_is_no_other_host(tmp_path: Path) -> None:
    """`-i` leaves out the others."""
    rows = "".join(f"GPU {n}: NVIDIA A100-SXM4-80GB (UUID: GPU-{n}b4e)\n" for n in range(4))
    link = "\t Link 0: 25 GB/s\n"
    text = f"[root@n7 ~]# nvidia-smi -L\n{rows}[root@n7 ~]# nvidia-smi nvlink -s -i 2\n{rows.splitlines()[2]}\n{link}"
    (tmp_path / "issue.txt").write_text(text)

    report = diagnose(open_source(str(tmp_path / "issue.txt"), None), ScanPlan())[0]

    assert report.source.hosts is None
    assert [0, 0, 1, 0] == [len(gpu.links) for gpu in report.topology.gpus]


PORT = "CA 'mlx5_0'\n\tNumber of ports: 1\n\tPort 1:\n\t\tState: {}\n\t\tRate: 400\n\t\tLink layer: InfiniBand\n"


def _print_before(host: str, text: str) -> str:
    return "".join(f"{host}: {line}\n" for line in text.splitlines())


@pytest.mark.parametrize(("host", "other"), [("gpu7.example.org", "gpu8.example.org"), ("10.0.0.7", "10.0.0.8")])
def test_hosts_are_named_by_their_names_or_whole_addresses(host: str, other: str, tmp_path: Path) -> None:
    """pdsh prints what it was given: the domain is left out, and a part of an address is no host."""
    text = _print_before(host, PORT.format("Active")) + _print_before(other, PORT.format("Down"))
    (tmp_path / "both.txt").write_text(text)
    (tmp_path / "one.txt").write_text(_print_before(other, PORT.format("Down")))
    both, one = (diagnose(open_source(str(tmp_path / name)), ScanPlan())[0] for name in ("both.txt", "one.txt"))

    assert [f"{other.removesuffix('.example.org')}: mlx5_0/1"] == [finding.label for finding in both.findings]
    assert ["mlx5_0/1"] == [finding.label for finding in one.findings]


@pytest.mark.parametrize("hosts", [("n7", "n8"), ("n7.east.example.org", "n7.west.example.org")])
def test_a_log_of_several_hosts_has_its_findings_whatever_the_name_of_its_file(
    hosts: tuple[str, str], tmp_path: Path
) -> None:
    """Hosts of one name in two domains are two."""
    (tmp_path / "ticket-4711.txt").write_text(
        "".join(f"2026-11-21T00:53:57+0000 {host} kernel: {XID[15:]}" for host in hosts)
    )
    report, _ = diagnose(open_source(str(tmp_path / "ticket-4711.txt")), ScanPlan())

    assert list(hosts) == [host.name for host in report.source.hosts or []]
    assert list(hosts) == sorted(finding.label.partition(":")[0] for finding in report.findings)
    assert [("ticket-4711.txt", None)] == [(file.name, file.reason) for file in report.source.files or []]
