"""The program's help, `explain`, `completion`, `config show` and `demo`: commands that need no host."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
from pathlib import Path

import pytest
import typer.main
import zstandard
from msgspec.structs import replace

from agent.cli.command_tree import Command, read_commands, walk_commands
from agent.cli.commands import app
from agent.cli.main import run
from agent.cli.program import GROUPS, build_full_program
from agent.cli.reference import shorten_page
from agent.cli.scan import DEMO
from agent.config import load_configuration
from agent.model.finding import UnknownSubject
from agent.model.topology import Topology
from agent.reports import encode_report
from agent.rules.catalogue import every_rule, names
from agent.rules.rule import Rule
from fixtures.build import write_capture
from release.share import BASH, FISH, ZSH, shared_files
from tests.machines import scan_machine

SUMMARY = 50  # letters
PROGRAM = typer.main.get_command(build_full_program(app))
COMMANDS = [command for command in walk_commands(read_commands(app)) if command.words]
MACHINE = ("8xh100-sxm-2s-8xcx7-ib-4nvsw", "gpu-width-x8")


def summary(command: Command) -> str:
    """What the list of commands shows: the first sentence of the help."""
    return command.help.partition(". ")[0].rstrip(".")


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_a_summary_is_short_and_never_cut(command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    """At most 50 letters, so that it fits beside the name at 80 columns."""
    assert 0 == run([*command.words[:-1], "--help"])
    output = capsys.readouterr().out

    assert len(summary(command)) <= SUMMARY
    assert f"  {summary(command)}" in output
    assert "..." not in [word for line in output.splitlines() for word in line.split()[-1:]]


def test_every_command_is_in_one_group_of_the_help() -> None:
    """And every name of a group is a command."""
    grouped = [name for members in GROUPS.values() for name in members]

    assert sorted(PROGRAM.commands) == sorted(grouped)  # type: ignore[attr-defined]  # a group, as there are several


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_a_value_is_named_in_words(command: Command) -> None:
    """No INTEGER, FLOAT or TEXT: the metavar is what is meant."""
    values = [option.value for option in command.options if option.value] + [a.value for a in command.arguments]

    assert [] == [
        value.metavar
        for value in values
        if value.metavar.split(" ")[0] in ("INTEGER", "FLOAT", "TEXT", "STR", "<int", "<float", "<text>")
    ]
    assert [] == [argument.help for argument in command.arguments if argument.value.metavar.islower()]


def test_explain_of_an_old_name(capsys: pytest.CaptureFixture[str]) -> None:
    """The page of today's name, with a note; of what is no rule any more the field."""
    assert 0 == run(["explain", "roce-module-fault"])
    renamed = capsys.readouterr()
    assert renamed.out.startswith("port-module-fault (error)")
    assert "roce-module-fault is called port-module-fault now" in renamed.err
    assert 0 == run(["explain", "pcie-aspm-on"])
    assert "not a rule any more: the report has it as topology.pci[].aspm" in capsys.readouterr().out


def test_explain_lists_the_rules_of_a_prefix_or_family(capsys: pytest.CaptureFixture[str]) -> None:
    """`pcie-w` is a prefix, `roce` a family."""
    for prefix in ("pcie-w", "pcie-width", "pcie-width-*"):
        assert 0 == run(["explain", prefix])
        assert ["pcie-width-downgraded"] == [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert 0 == run(["explain", "infiniband"])
    assert "ib-port-down" in capsys.readouterr().out
    assert 0 == run(["explain", "ib-port-down", "--all"])
    assert "## How to fix" in capsys.readouterr().out


@pytest.mark.parametrize("rule", every_rule(), ids=lambda rule: rule.name)
def test_a_page_fits_a_screen(rule: Rule) -> None:
    """What and why come first; what is left out is named."""
    page = shorten_page(rule)

    assert page.count("\n") <= 28
    assert "## Why it matters" in page
    assert "With --all also: how it is decided" in page


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("pcie-width-downgarded", "hint: did you mean pcie-width-downgraded?"),
        ("GPU2", "hint: findings of a part are in a report: fabricscope explain GPU2 --report FILE"),
        ("weather", "hint: fabricscope rules lists all rules"),
    ],
)
def test_a_name_is_suggested_only_where_it_is_near(name: str, hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A far one would only puzzle."""
    assert 2 == run(["explain", name])

    assert [f"error: no rule, prefix or family {name!r}", hint] == capsys.readouterr().err.splitlines()


@pytest.mark.parametrize(
    ("words", "found", "others"),
    [
        ("Xid", "gpu-xid ", "pcie-device-gone"),
        ("xid 79", "pcie-device-gone ", "roce-mtu-mismatch"),  # a page has MTU 790 and more
        ("xid79", "gpu-xid ", "roce-mtu-mismatch"),
        ("Xid-79", "gpu-xid ", "roce-mtu-mismatch"),
        ("lanes pcie", "pcie-width-downgraded ", "gpu-xid"),
    ],
)
def test_words_find_the_rules_that_have_them(
    words: str, found: str, others: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """In names and titles, else in pages."""
    assert run(["explain", *words.split()]) == 0
    listed = capsys.readouterr().out
    assert any(line.startswith(found) for line in listed.splitlines())
    assert others not in listed


def test_the_rule_whose_title_has_more_of_the_words_comes_first(capsys: pytest.CaptureFixture[str]) -> None:
    """Of those whose pages have them all."""
    assert 0 == run(["explain", "Xid", "79"])
    assert capsys.readouterr().out.startswith("gpu-xid ")


@pytest.mark.parametrize("name", ["GPU2", "pcie-width-downgraded"])
def test_explain_shows_the_findings_of_a_report(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By the label of a part or by the rule; with --all the page, too. Another part is an error with the labels."""
    path = tmp_path / "report.json"
    path.write_bytes(encode_report(scan_machine("", "gpu-width-x8")))

    assert 0 == run(["explain", name, "--report", str(path)])
    printed = capsys.readouterr().out
    assert printed.startswith("ERROR  GPU2: PCIe link is x8")
    assert "  fix  " in printed
    assert "## " not in printed
    assert 0 == run(["explain", name, "--report", str(path), "--all"])
    assert "## How it is decided" in capsys.readouterr().out
    assert 2 == run(["explain", "GPU7", "--report", str(path)])
    assert "hint: findings are on GPU2" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("fault", "names", "found"),
    [
        (
            "ib-no-sm",
            ["mlx5_3", "mlx5_3/1", "0000:3c:00.0", "3c:00.0", "ib-port-down"],
            "CRITICAL  No subnet manager on any of 8",
        ),
        ("gpu-width-x8", ["GPU2", "pci:0000:4c:00.0"], "ERROR  GPU2: PCIe link is x8"),
    ],
)
def test_a_part_is_found_by_all_its_names(
    fault: str, names: list[str], found: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also in a finding of the whole node; a rule also in the finding that explains it."""
    report = scan_machine("", fault)
    path = tmp_path / "report.json"
    path.write_bytes(encode_report(report))
    devices = [gpu for gpu in report.topology.gpus if gpu.label in names]
    for name in [*names, *(own for gpu in devices for own in (gpu.id, gpu.uuid, gpu.serial) if own)]:
        assert 0 == run(["explain", name, "--report", str(path)]), name
        assert capsys.readouterr().out.startswith(found), name


def test_what_is_gone_is_found_by_its_address(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The topology has it no more."""
    report = scan_machine("", "gpu-width-x8")
    gone = replace(report.findings[0], subject="gpu:0000:77:00.0", label="GPU9")
    path = tmp_path / "report.json"
    path.write_bytes(encode_report(replace(report, findings=[gone])))

    for name in ("0000:77:00.0", "gpu:0000:77:00.0", "GPU9"):
        assert 0 == run(["explain", name, "--report", str(path)]), name
    assert 2 == run(["explain", "77:00.1", "--report", str(path)])


def test_a_gpu_without_an_address_is_no_other_device() -> None:
    """Nor are interfaces and NICs that have none either."""
    topology = scan_machine(*MACHINE).topology
    gpu = replace(topology.gpus[0], id="GPU-1", pci=None)
    nic = replace(topology.nics[0], id="npu-3", label="npu3", pci=None)
    netdev = replace(topology.netdevs[0], id="lo", label="lo", nic=None, pci=None)

    assert {"GPU-1"} == Topology(gpus=[gpu], nics=[nic], netdevs=[netdev]).find_named(gpu.label)


def test_a_port_is_not_the_other_port(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is known of the one says nothing of the other; what could not be judged is named."""
    report = scan_machine("", "gpu-width-x8")
    (finding,) = (f for f in report.findings if f.subject.startswith("pci:"))
    nic = report.topology.nics[0]
    port = replace(finding, subject=f"port:{nic.id}/1", label=f"{nic.label}/1")
    unknown = UnknownSubject(subject=f"port:{nic.id}/2", reason="denied")
    checks = [replace(report.checks[0], unknown_subjects=[unknown]), *report.checks[1:]]
    path = tmp_path / "report.json"
    path.write_bytes(encode_report(replace(report, findings=[port], checks=checks)))

    assert 0 == run(["explain", f"{nic.label}/1", "--report", str(path)])
    assert 2 == run(["explain", f"{nic.label}/2", "--report", str(path)])
    error = capsys.readouterr().err
    assert f"no finding on {nic.label}/2" in error
    assert f"hint: not judged there: {report.checks[0].rule}" in error


@pytest.mark.parametrize(("shell", "path"), [("bash", BASH), ("zsh", ZSH), ("fish", FISH)])
def test_the_completion_is_the_one_of_the_packages(shell: str, path: str, capsys: pytest.CaptureFixture[str]) -> None:
    """But for the line that states where it comes from."""
    assert 0 == run(["completion", shell])
    printed = capsys.readouterr().out.splitlines()
    packaged = shared_files()[path].splitlines()

    assert len(printed) > 50
    assert 1 >= sum(a != b for a, b in zip(printed, packaged, strict=True))


def test_config_show_has_every_key_and_what_the_file_changes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Defaults are comments; what it prints is a configuration file with the same settings."""
    file = tmp_path / "fabricscope.toml"
    file.write_text('[rules]\noff = ["roce-mtu-small"]\n[thresholds]\nroce-ets-starved.percent = 20\n')
    assert 0 == run(["config", "show", "--config", str(file)])
    output = capsys.readouterr().out
    (tmp_path / "again.toml").write_text(output)

    assert f"# from {file}" in output
    assert 'off = ["roce-mtu-small"]\n' in output
    assert "# roce_mode =  # lossless, lossy\n" in output
    assert [] == [t.name for rule in every_rule() for t in rule.thresholds if t.name not in output]
    assert (
        load_configuration(str(file), names()).changed
        == load_configuration(str(tmp_path / "again.toml"), names()).changed
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '\n[facts]\nroce_mode = "lossles"\n',
            ":3: facts.roce_mode: Invalid enum value 'lossles'; valid: lossless, ",
        ),
        ("[facts]\nroce = 1\n", ":2: facts.roce: no such key; valid: roce_mode, roce_traffic_class, cable_metres"),
        ("[rule]\noff = []\n", ":1: rule: no such key; valid: rules, facts, thresholds, peers, silence, ship"),
        (
            '[rules]\noff = ["pcie-width-downgrade"]\n',
            ":2: rules.off: no rule 'pcie-width-downgrade'; did you mean ",
        ),
        (
            "[thresholds]\nroce-ets-starved.percen = 1\n",
            ":2: thresholds: no threshold 'roce-ets-starved.percen'; ",
        ),
        ("[facts\n", ": Expected ']' at the end of a table declaration (at line 1, column 7)"),
    ],
)
def test_a_wrong_configuration_names_line_key_and_valid_values(
    text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line."""
    file = tmp_path / "c.toml"
    file.write_text(text)
    assert 2 == run(["config", "show", "--config", str(file)])

    assert capsys.readouterr().err.startswith(f"error: {file}{message}")


def test_demo_is_a_machine_of_the_fixtures_with_one_fault(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The archive in the package holds what the fixtures describe; UPDATE_GOLDENS writes it again."""
    write_capture(*MACHINE, tmp_path / "machine.tar.gz")
    described = gzip.decompress((tmp_path / "machine.tar.gz").read_bytes())
    if os.environ.get("UPDATE_GOLDENS") and described != _decompress(Path(DEMO).read_bytes()):
        Path(DEMO).write_bytes(zstandard.ZstdCompressor(level=22).compress(described))
    packaged = _decompress(Path(DEMO).read_bytes())

    assert _members(described) == _members(packaged)
    assert len(Path(DEMO).read_bytes()) < 100_000
    assert 0 == run(["demo", "--brief"])
    assert "  ERROR  GPU2: PCIe link" in capsys.readouterr().out


def _decompress(data: bytes) -> bytes:
    return zstandard.ZstdDecompressor().decompress(data)


def _members(data: bytes) -> dict[str, tuple[bytes, str]]:
    """Contents and link targets by name."""
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        files = {member.name: tar.extractfile(member) for member in tar if member.isfile()}
        links = {member.name: member.linkname for member in tar if not member.isfile()}
        return {name: (file.read() if file else b"", "") for name, file in files.items()} | {
            name: (b"", link) for name, link in links.items()
        }


@pytest.mark.parametrize(
    ("words", "usage"),
    [(["diff"], "[OPTIONS] OLD NEW"), (["scan"], "[OPTIONS] [PATH]"), (["fleet", "ingest"], "[OPTIONS] SOURCE...")],
)
def test_a_usage_line_has_plain_names(words: list[str], usage: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Braces mean a choice to most."""
    assert run([*words, "--help"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == f"Usage: fabricscope {' '.join(words)} {usage}"
