"""Every output reads the same whatever stands around it: prompts, sudo, watch, pipes, fences, quotation marks, line
numbers, colours, line ends, and a terminal that broke its lines."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from probes.catalogue import probes
from probes.host.commands import COMMANDS, SAVED, SERVICE_LOG
from probes.host.interface import BadSource
from probes.probe import outcome_of
from probes.sources.identify import identify_command
from probes.sources.open_source import open_source
from probes.sources.output_names import saved_name
from probes.sources.unwrap import unwrap
from tests.conftest import CORPUS, sample_of
from tests.fuzz import ethernet
from tests.probes.amd import test_smi
from tests.probes.ascend import test_ascend
from tests.probes.dcb import test_tools
from tests.probes.fabric import fabric_texts
from tests.probes.gpu import nvidia_smi_texts, test_nvidia_smi_table
from tests.probes.netdev import test_ip_link, test_lldp
from tests.probes.optics import test_probe as test_optics
from tests.probes.pci import lspci_sample
from tests.probes.rdma import tool_texts as rdma_texts
from tests.probes.services import test_logs as test_service_logs
from tests.probes.sources import test_pasted
from tests.probes.tool_reports import tool_texts

PROMPT = "me@gpu-7:~$ "
ULIMIT = (
    "core file size              (blocks, -c) 0\nmax locked memory           (kbytes, -l) 64\n"
    "open files                          (-n) 1024\nfile locks                          (-x) unlimited\n"
)


LLDP = {"lldp": {"interface": {"ens1f0": test_lldp.ROW | test_lldp.DCBX}}}


class Output(NamedTuple):
    """A text, and the command that printed it."""

    name: str
    command: str
    text: str


def numbered(text: str, mark: str) -> str:
    return "".join(f"{number:6}{mark}{line}" for number, line in enumerate(text.splitlines(keepends=True), 1))


def broken(text: str, width: int) -> str:
    """As copied from a terminal of this width: tabs are blanks, and those at the end of a line are gone."""
    lines = [line[at : at + width] for line in text.expandtabs().splitlines() for at in range(0, len(line) or 1, width)]
    return "".join(f"{line.rstrip()}\n" for line in lines)


def with_prompt(prompt: str, after: str = "") -> Callable[[str, str], str]:
    return lambda text, command: f"{prompt}{command}\n{text}{after}"


SHOWN: dict[str, Callable[[str, str], str]] = {  # the command stands before it
    "dollar": with_prompt("$ "),
    "hash": with_prompt("# "),
    "root": with_prompt("[root@gpu-7 ~]# ", "[root@gpu-7 ~]# \n"),
    "user": with_prompt(PROMPT, f"{PROMPT}exit\n"),
    "container": with_prompt("root@0a1b2c3d4e5f:/# ", "root@0a1b2c3d4e5f:/#\n"),
    "environment": with_prompt(f"(venv) {PROMPT}"),
    "sudo": with_prompt(f"{PROMPT}sudo -E "),
    "locale": with_prompt("$ LC_ALL=C sudo /usr/bin/"),
    "watch": lambda text, command: f"Every 2.0s: {command}      gpu-7: Thu Nov 12 10:00:00 2026\n\n{text}",
    "watched": with_prompt("$ watch -n 1 "),
    "cat": lambda text, command: f"$ {command} | cat\n{text}",
    "head": lambda text, command: f"$ {command} | head -n 90000\n{text}",
    "tee": lambda text, command: f"$ {command} 2>&1 | tee out.txt\n{text}",
    "fence": lambda text, command: f"Hello,\n\n```bash\n$ {command}\n{text}```\n\nThanks\n",
    "ticked": lambda text, command: f"The output of `{command}`:\n\n```text\n{text}```\n",
    "indented": lambda text, command: (
        "Hi,\n\n" + "".join(f"    {line}\n" for line in f"$ {command}\n{text}".splitlines()) + "\nBye\n"
    ),
    "quoted": lambda text, command: "".join(f"> {line}\n" for line in f"$ {command}\n{text}".splitlines()),
    "grep -n": lambda text, command: re.sub(r"(?m)^ *([0-9]+):", r"\1:", numbered(f"$ {command}\n{text}", ":")),
    "80 columns": lambda text, command: broken(f"$ {command}\n{text}", 80),
    "132 columns": lambda text, command: broken(f"{PROMPT}{command}\n{text}", 132),
    "line ends": lambda text, command: f"$ {command}\n{text}".replace("\r", "").replace("\n", "\r\n"),
    "colours": lambda text, command: (
        f"\x1b[01;32mme@gpu-7\x1b[00m:\x1b[01;34m~\x1b[00m$ {command}\n"
        + "".join(f"\x1b[1m{line}\x1b[0m\x1b[K\n" for line in text.splitlines())
    ),
}
BARE: dict[str, Callable[[str], str]] = {  # for outputs that are known by what they hold
    "line ends": lambda text: text.replace("\r", "").replace("\n", "\r\n"),
    "fence": lambda text: f"Hello,\n\n```\n{text}```\n\nThanks\n",
    "indented": lambda text: "Hi,\n\n" + "".join(f"    {line}\n" for line in text.splitlines()) + "\nBye\n",
    "quoted": lambda text: "".join(f"> {line}\n" for line in text.splitlines()),
    "cat -n": lambda text: numbered(text, "\t"),
    "less -N": lambda text: numbered(text, " "),
    "editor": lambda text: numbered(text, " | "),
}
REWRITTEN: dict[str, Callable[[str], str]] = {  # of these our own texts are tried
    "empty lines": lambda text: "".join(f"{line}\n\n" for line in text.splitlines()),
    "a terminal's log": lambda text: text.replace("\r", "").replace("\n", "\r\r\n"),
    "list": lambda text: "".join(f"* {line}\n" for line in text.splitlines()),
    "code": lambda text: "".join(f"`{line}`\n" if line else "\n" for line in text.splitlines()),
    "word processor": lambda text: text.replace("'", "\u2019").replace('"', "\u201d").replace("-", "\u2011"),
    "pdsh": lambda text: "".join(f"gpu-7: {line}\n" for line in text.splitlines()),
    "ts": lambda text: "".join(f"Nov 12 10:00:00 {line}\n" for line in text.splitlines()),
    "a program's log": lambda text: "".join(
        f"2026-11-12T10:00:{at % 60:02}+0100 gpu-7 diag[77]: {line}\n" for at, line in enumerate(text.splitlines())
    ),
    "grep": lambda text: "".join(f"gpu-7.log:{at}:{line}\n" for at, line in enumerate(text.splitlines(), 1)),
    "bars": lambda text: "".join(f"\u2502 {line}\n" for line in text.splitlines()),
    "string": lambda text: "output: " + json.dumps(text) + "\n",
    "ansible": lambda text: json.dumps({"cmd": ["run.sh"], "rc": 0, "stdout": text}),
    "lines of a task": lambda text: json.dumps({"task": {"stdout_lines": text.splitlines()}}, indent=1),
}
OF_INTERFACE = {
    "ethtool": "ethtool ens1f0", "ethtool-S": "ethtool -S ens1f0", "ethtool-a": "ethtool -a ens1f0",
    "ethtool-fec": "ethtool --show-fec ens1f0", "ethtool-i": "ethtool -i ens1f0", "ethtool-m": "ethtool -m ens1f0",
    "qos-mlnx_qos": "mlnx_qos -i ens1f0",
}  # fmt: skip
OUR_OWN = (
    Output("ibstat", "ibstat", rdma_texts.IBSTAT),
    Output("ibstatus", "ibstatus", rdma_texts.IBSTATUS),
    Output("ibv_devinfo", "ibv_devinfo -v", rdma_texts.IBV_DEVINFO),
    Output("rdma", "rdma link", rdma_texts.RDMA_LINK),
    Output("ibdev2netdev", "ibdev2netdev", rdma_texts.IBDEV2NETDEV),
    Output("show_gids", "show_gids", test_pasted.GIDS),
    Output("lsmod", "lsmod", test_pasted.LSMOD),
    Output("dmesg", "dmesg", test_pasted.XID),
    Output("topo", "nvidia-smi topo -m", test_pasted.MATRIX),
    Output("ip", "ip -s -d link", test_ip_link.OUTPUT),
    Output("ethtool", "ethtool ens1f0", f"Settings for ens1f0:\n{ethernet.SETTINGS}"),
    Output("ethtool -a", "ethtool -a ens1f0", ethernet.PAUSE),
    Output("ethtool -S", "ethtool -S ens1f0", ethernet.STATISTICS),
    Output("mlnx_qos", "mlnx_qos -i ens1f0", test_tools.TEXT),
    Output("dcb", "dcb pfc show dev ens1f0", test_tools.PFC),
    Output("lldpctl", "lldpctl", test_lldp.PLAIN),
    Output("lldpctl keyvalue", "lldpctl -f keyvalue", test_lldp.KEYVALUE),
    Output("lldpctl xml", "lldpctl -f xml", test_lldp.XML),
    Output("rocm-smi", "rocm-smi --showtopo", test_smi.ROCM),
    Output("amd-smi", "amd-smi topology", test_smi.TABLE),
    Output("npu-smi", "npu-smi info", test_ascend.INFO_A2),
    Output("systemctl", "systemctl status nvidia-fabricmanager", test_service_logs.STATUS),
    Output("journalctl", "journalctl -u nvidia-fabricmanager", test_service_logs.JOURNAL),
    Output("nvidia-smi", "nvidia-smi", test_nvidia_smi_table.TABLE),
    Output("nvidia-smi R390", "nvidia-smi", test_nvidia_smi_table.R390),
    Output("npu-smi alarm", "npu-smi info", tool_texts.NPU.format(state="Alarm")),
    Output("hl-smi", "hl-smi", tool_texts.HL.format(count=3)),
    Output("amd-smi monitor", "amd-smi monitor", tool_texts.AMD_MONITOR.format(count=3)),
    Output("rocm-smi ras", "rocm-smi --showrasinfo", tool_texts.RAS.format(count=3)),
    Output("dcgmi health", "dcgmi health -c", tool_texts.UNHEALTHY),
    Output("dcgmi diag", "dcgmi diag -r 3", tool_texts.DIAG),
    Output("ibqueryerrors", "ibqueryerrors", tool_texts.PORT_ERRORS),
    Output("perfquery", "perfquery -x", tool_texts.PERFQUERY.format(symbols=3)),
    Output("perfquery, two ports", "perfquery -x", 2 * tool_texts.PERFQUERY.format(symbols=3)),  # no broken headings
    Output(
        "kubectl", "kubectl describe node n07", tool_texts.NODE.format(**{**tool_texts.NODE_WORDS, "allocatable": "7"})
    ),
    Output("ulimit", "ulimit -a", ULIMIT),
    Output("nvidia-smi -L", "nvidia-smi -L", nvidia_smi_texts.LIST),
    Output("nvidia-smi -q", "nvidia-smi -q", nvidia_smi_texts.QUERY),
    Output("p2p", "nvidia-smi topo -p2p r", nvidia_smi_texts.P2P),
    Output("nvlink -s", "nvidia-smi nvlink -s", nvidia_smi_texts.STATUS),
    Output("nvlink -e", "nvidia-smi nvlink -e", nvidia_smi_texts.ERRORS),
    Output("nvlink -R", "nvidia-smi nvlink -R", nvidia_smi_texts.REMOTES),
    Output("nvlink -c", "nvidia-smi nvlink -c", nvidia_smi_texts.CAPABILITIES),
    Output("lspci", "lspci -D -nn -vvv", lspci_sample.SAMPLE),
    Output("ethtool -i", "ethtool -i ens1f0", ethernet.DRIVER),
    Output("ethtool -m", "ethtool -m ens1f0", test_optics.QSFP_TEXT),
    Output("ethtool --show-fec", "ethtool --show-fec ens1f0", f"FEC parameters for ens1f0:\n{ethernet.FEC}"),
    Output("lldpctl json", "lldpctl -f json", json.dumps(LLDP, indent=2) + "\n"),
    Output("ibnetdiscover", "ibnetdiscover", fabric_texts.TOPOLOGY),
    Output("ibnetdiscover -p", "ibnetdiscover -p", fabric_texts.PORTS),
    Output("iblinkinfo", "iblinkinfo", fabric_texts.LINKS),
)


def corpus_outputs() -> Iterator[Output]:
    """Texts of the corpus whose command is known: by their folder, or by what they hold."""
    for path in sorted(path for top in ("text", "second/text") for path in (CORPUS / top).glob("*/*")):
        text, kind = path.read_text(errors="replace"), path.parent.name
        name = f"{kind}/{path.name}"
        argv = next(iter(identify_command(text)), ())
        if path.name.startswith("env-check") or "|" in argv:  # several outputs; lines that a filter left
            continue
        if kind in OF_INTERFACE:
            stated = re.search(r"(?:Settings|Pause parameters|FEC parameters) for (\S+):", text)
            command = OF_INTERFACE[kind].replace("ens1f0", stated[1] if stated else "ens1f0")
        elif argv and argv[0] == "lspci":
            numbers = " -nn" if re.search(r"\[[0-9a-f]{4}\]: ", text) else ""
            command = f"lspci{numbers}{' -vvv' if 'Capabilities' in text else ''}"
        elif argv == SERVICE_LOG and "systemd[1]: " in text:
            command = "journalctl -u nvidia-fabricmanager"
        elif argv and argv != SERVICE_LOG and argv[0] != "error" and "." not in argv[0]:  # else no command prints it
            command = " ".join(argv)
        else:
            continue
        yield Output(name, command, text if text.endswith("\n") else f"{text}\n")


FROM_CORPUS = tuple(sample_of(list(corpus_outputs())))
# What is not put together again, as its breaks show in no line: a gap of many blanks in which the copy ends, one row of
# many, the only broken line, a row of several widths. Each says less then, and says so where something is missing.
_MLXLINK_JSON = "mlxlink/json-400g-dr4-mft4.34.txt"
BEYOND_REPAIR = {
    "bare, pdsh": {"ibdev2netdev", "iblinkinfo"},  # each line is an output, whatever is before it
    "bare, ts": {"dmesg", "iblinkinfo"},  # times of a log are its own
    "bare, ansible": {"ibnetdiscover", "ibnetdiscover -p"},  # of a fabric
    "bare, lines of a task": {"ibnetdiscover", "ibnetdiscover -p"},
    # two lines are too few for a margin; lines that are an output whatever is before them
    "bare, a program's log": {
        *("show_gids", "lsmod", "dmesg", "iblinkinfo", "systemctl", "journalctl", "ibqueryerrors"),
    },
    "bare, grep": {"ibdev2netdev", "show_gids", "lsmod", "dmesg", "iblinkinfo"},
    "bare, bars": {"ibdev2netdev", "show_gids", "lsmod", "dmesg", "iblinkinfo"},
    "bare, string": {"dmesg", "ibnetdiscover", "ibnetdiscover -p"},
    # a log whose lines begin with numbers; two lines, which are too few for a column of numbers
    "bare, less -N": {"dmesg/xid63-row-remap.txt", "ib-fabric/ibportstate-error.txt", _MLXLINK_JSON},
    # which its brackets alone make an output
    "bare, cat -n": {_MLXLINK_JSON},
    "bare, editor": {_MLXLINK_JSON},
    "80 columns": {
        "ibqueryerrors", "ibv_devinfo", "lldpctl json", "show_gids", "amd/amd-smi-topology-mi300x.txt",
        "dmesg/mlx5-probe-failed-create-eq.txt",
        "ib-ibv_devinfo/cx4lx-bond.txt", "ib-show_gids/a800-vm-4nic-trailing-spaces.txt",
        "ib-show_gids/container-gids-start-at-4.txt", "ib-show_gids/cx5-mce0-second-port-v1only.txt",
        "ib-show_gids/mixed-huawei-hiroce-and-mlx5-noipv4.txt", "nvidia-smi-q/h800-525.txt",
        "host/numactl-dell-interleaved-even-odd.txt", "host/numactl-mi300a-4node.txt",
        "nvidia-smi-query-csv/h100-590-load-allfields.txt", "nvidia-smi-query-csv/h200-590-idle-allfields.txt",
        "nvidia-smi-query-csv/l40s-595-load-allfields.txt", "nvidia-smi-topo-m/16gpu-dgx2-10mlx5-TRUNCATED.txt",
        "nvidia-smi-topo-m/4gpu-a100-leonardo-4hdr100.txt", "nvidia-smi-topo-m/4gpu-sys-but-same-numa.txt",
        "nvidia-smi-topo-m/8gpu-h100-snc2-4numa-TRUNCATED.txt", "nvidia-smi-topo-m/8gpu-h200-10nic-ansi.txt",
        "nvidia-smi-topo-m/8gpu-h800-9nic-interleaved-TRUNCATED.txt",
    },
    "132 columns": {
        "iblinkinfo",
        "dmesg/boot-limited-x8-laptop-gpu.txt", "dmesg/pcie-bw-limited-gen4-switch.txt",
        "fabricmanager/journal-a40-nothing-to-do-zh-locale.txt",
        "nvidia-smi-query-csv/h200-590-idle-allfields.txt", "nvidia-smi-query-csv/l40s-595-load-allfields.txt",
        "nvidia-smi-query-csv/rtx2080s-595-idle-allfields.txt",
        "nvidia-smi-topo-m/8gpu-h100-dell-6nic-cpuset-affinity.txt",
    },
}  # fmt: skip


LONG = 20_000  # characters


def read_facts(path: Path) -> dict[str, Any]:
    """The facts of all probes; why the source is refused, else."""
    try:
        host = open_source(str(path))
    except BadSource as why:
        return {"refused": str(why).partition(": ")[2]}
    outcomes = {probe.name: outcome_of(probe, host) for probe in probes()}
    facts = {name: outcome.facts for name, outcome in outcomes.items() if outcome.facts is not None}
    if services := facts.get("services"):  # the source is the name of the command, where the text states it
        facts["services"] = services._replace(events=[event._replace(source=None) for event in services.events])
    return facts


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_bytes(text.encode())
    return path


def test_all_outputs_in_one_text_read_as_their_files(tmp_path: Path) -> None:
    """A thread in which a person pasted them one after the other."""
    outputs = {output.command: output.text for output in reversed(OUR_OWN) if output.name != "ip"}  # has two
    folder = tmp_path / "saved"
    folder.mkdir()
    for command, text in outputs.items():
        write(folder, f"{saved_name(tuple(command.split()))}.txt", text)
    paste = "".join(f"Then:\n\n```\n$ {command}\n{text}```\n\n" for command, text in outputs.items())
    files, thread = open_source(str(folder)), open_source(str(write(tmp_path, "issue.md", paste)))
    known = [argv for argv in COMMANDS + SAVED if files.has_output(*argv)]

    assert len(known) > len(outputs) // 2
    assert [] == [argv for argv in known if not thread.has_output(*argv)]
    for argv in known:
        texts = (host.run(*argv).stdout.split() for host in (files, thread))
        assert next(texts) == next(texts), argv


@pytest.mark.parametrize("output", [*OUR_OWN, *FROM_CORPUS], ids=lambda output: output.name)
def test_an_output_reads_the_same_in_every_wrapper(tmp_path: Path, output: Output) -> None:
    """The facts of a text are those of the file that it was saved in by itself, under its command's name."""
    name = f"{saved_name(tuple(output.command.split()))}.txt"
    plain = read_facts(write(tmp_path, name, output.text))
    blanks = read_facts(write(tmp_path, name, output.text.expandtabs()))  # a terminal has no tabs
    named = any(output.command.startswith(f"{tool} ") for tool in ("ethtool", "mlnx_qos", "dcb"))

    assert plain or "TRUNCATED" in output.name
    wrapped = {title: wrap(output.text, output.command) for title, wrap in SHOWN.items()}
    wrapped |= (
        {}
        if named
        else {
            f"bare, {title}": wrap(output.text)
            for title, wrap in (BARE if output in FROM_CORPUS else BARE | REWRITTEN).items()
        }
    )
    if (
        output in FROM_CORPUS
    ):  # indented code is tried with our own texts alone: a log in it may be taken for its margin
        wrapped = {title: text for title, text in wrapped.items() if "indented" not in title}
    if len(output.text) > LONG:  # all of it is read for each: others of its kind have the other wrappers
        wrapped = dict([*wrapped.items()][len(output.name) % 4 :: 4])
    different = [
        title
        for title, text in wrapped.items()
        if read_facts(write(tmp_path, "issue.md", text)) != (blanks if "columns" in title else plain)
    ]
    assert {title for title in wrapped if output.name in BEYOND_REPAIR.get(title, ())} == set(different)


@pytest.mark.parametrize("lines", ["4\n", "4 a\n9 b\n", "1\n2\n\n"])
def test_numbers_of_the_text_itself_are_tried_so_often_and_no_more(lines: str) -> None:
    """64 KiB of such lines took four seconds; an output behind numbers is found all the same where few are in vain."""
    tried: list[int] = []

    def holds(bare: list[str]) -> bool:
        tried.append(1)
        return bare[0].startswith("CA ")

    text = lines * 20_000
    assert text == unwrap(text, holds)
    assert len(tried) <= 500
    assert f"{lines * 100}text\nCA 'mlx5_0'\n" == unwrap(f"{lines * 100}text\n7:CA 'mlx5_0'\n", holds)
