"""What all forms promise: no report breaks one, the same report gives the same bytes, the command lists them all."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from agent.cli.main import run
from agent.cli.plain import EXPORT_FORMATS
from agent.outputs.export import export_report
from agent.reports import encode_report
from tests.agent.outputs.export.given import H100, MACHINES, bare, hostile
from tests.conftest import ROOT
from tests.machines import scan_machine

FORMS = list(EXPORT_FORMATS)
PACKAGE = ROOT / "agent" / "outputs" / "export"


def test_the_command_offers_every_form():
    """Every module with an `export` is a format on the command line; a format without a module fails below."""
    modules = {
        path.stem for path in PACKAGE.glob("*.py") if re.search(r"^def export\(|as export$", path.read_text(), re.M)
    }

    assert {form.replace("-", "_") for form in FORMS} == modules


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("host", "fault"), MACHINES)
def test_every_machine_gives_the_same_bytes_twice(form: str, host: str, fault: str | None) -> None:
    """A form that ends with a line end, twice the same."""
    output = export_report(form, scan_machine(host, fault))

    assert output.endswith("\n")
    assert export_report(form, scan_machine(host, fault)) == output


@pytest.mark.parametrize("form", FORMS)
def test_a_report_of_nothing_is_written(form: str) -> None:
    """Nothing known is no error."""
    assert export_report(form, bare(scan_machine(H100)))


@pytest.mark.parametrize("names_only", [True, False])
@pytest.mark.parametrize("form", FORMS)
def test_hostile_texts_stay_in_their_place(form: str, names_only: bool) -> None:
    """No control character gets through, and no line is as long as what a firmware may say."""
    output = export_report(form, hostile(scan_machine(H100), names_only))

    assert not [c for c in output if c != "\n" and not c.isprintable()]
    assert "z" * 1000 not in output


@pytest.mark.parametrize("form", FORMS)
def test_the_command_writes_a_finished_report(form: str, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]):
    """`export FORMAT --report FILE`: to stdout, and whole to a file."""
    finished, written = tmp_path / "report.json", tmp_path / "out"
    finished.write_bytes(encode_report(scan_machine(H100)))

    assert 0 == run(["export", form, "--report", str(finished)])
    output = capsysbinary.readouterr().out
    assert 0 == run(["export", form, "--report", str(finished), "--output", str(written)])
    assert output.splitlines()[:1] == written.read_bytes().splitlines()[:1]
    assert written.read_bytes()


@pytest.mark.parametrize("form", ["pdf", "Prometheus", ""])
def test_what_is_not_offered_is_wrong_usage(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    """One line that names what there is."""
    assert 2 == run(["export", form])
    assert "'nccl-topo'" in capsys.readouterr().err
