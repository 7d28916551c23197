"""Units: which program they start, what is not overwritten, and what systemd's own checker says of them."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer.main

from agent import units
from agent.cli.commands import app
from agent.cli.main import run
from agent.units import (
    UnitsError,
    add_signature,
    install_file,
    list_parts,
    render_units,
    why_not_replaceable,
    why_unreachable,
)
from tests.conftest import ROOT

PROGRAM = "/srv/tools/bin/fabricscope"


def test_the_parts_are_those_of_the_project() -> None:
    """Every file of systemd/ belongs to one."""
    named = {name for names in list_parts().values() for name in names}

    assert {path.name for path in (ROOT / "systemd").iterdir()} == named
    assert ["fabricscope-scan.service", "fabricscope-scan.timer"] == list_parts()["scan"]


@pytest.mark.parametrize("part", list_parts())
def test_only_the_program_is_changed(part: str) -> None:
    """Line for line."""
    for unit in render_units([part], PROGRAM):
        before = (ROOT / "systemd" / unit.name).read_text()
        assert before.replace("ExecStart=/opt/fabricscope/bin/fabricscope ", f"ExecStart={PROGRAM} ") == unit.text
        assert unit.name.endswith(".service") == (f"\nExecStart={PROGRAM} " in unit.text)


def test_a_zipapp_has_a_place_to_unpack_to() -> None:
    """Of each service alone, before the first that it starts."""
    for unit in render_units(["scan", "ship"], "/usr/bin/python3 /srv/fabricscope.pyz", unpacks=True):
        lines = unit.text.splitlines()
        starts = [index for index, line in enumerate(lines) if line.startswith("ExecStart=")]
        assert all("CacheDirectory=%N" in lines[max(start - 2, 0) : start] for start in starts[:1])
        assert lines.count("CacheDirectory=%N") == bool(starts) == unit.name.endswith(".service")


@pytest.mark.parametrize("program", ["fabricscope", "/a b'c", "/a%b", "/a$b", '/a"b', "/a\nExecStart=/b", "", "/a  b"])
def test_what_execstart_would_read_otherwise_is_refused(program: str) -> None:
    """No quoting is tried."""
    with pytest.raises(UnitsError, match="is not allowed in ExecStart"):
        render_units(["scan"], program)


def test_a_part_that_is_not_there_is_named_with_those_that_are() -> None:
    """In one line."""
    with pytest.raises(UnitsError, match="no unit 'fleet'; there are forget, ingest, page, receive, scan, ship, watch"):
        render_units(["scan", "fleet"], PROGRAM)


def test_what_we_wrote_is_replaced_and_what_was_changed_is_kept(tmp_path: Path) -> None:
    """Told by the hash of the first line: an older version's unit is ours, with whatever text."""
    old, new = (add_signature(render_units(["scan"], name)[0], "1.0") for name in ("/old", "/new"))
    path = str(tmp_path / "fabricscope-scan.service")
    assert why_not_replaceable(path, new) is None  # nothing is there

    assert install_file(path, old)
    assert why_not_replaceable(path, new) is None
    assert install_file(path, new)
    assert not install_file(path, new)
    Path(path).write_bytes(new + b"Nice=5\n")
    assert "changed by hand" == why_not_replaceable(path, new)
    Path(path).write_bytes(b"[Service]\n")
    assert "not written by install-units" == why_not_replaceable(path, new)
    Path(path).write_bytes(new.partition(b"\n")[2])  # copied from the project: the same text
    assert why_not_replaceable(path, new) is None


def test_a_masked_unit_is_somebodys_will(tmp_path: Path) -> None:
    """`systemctl mask` makes a link to /dev/null; where it is replaced on demand, the link is, not /dev/null."""
    path = tmp_path / "fabricscope-scan.timer"
    path.symlink_to("/dev/null")
    data = add_signature(render_units(["scan"], PROGRAM)[1], "1.0")

    assert "a link to /dev/null" == why_not_replaceable(str(path), data)
    assert install_file(str(path), data)
    assert (False, data) == (path.is_symlink(), path.read_bytes())


def test_a_service_cannot_reach_what_is_hidden_or_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Homes and /tmp by the units' settings, what is closed by its mode; links are followed."""
    assert why_unreachable("/usr/bin/env") is None
    assert "/home, which the service does not see (ProtectHome)" in (why_unreachable("/home/me/bin/fabricscope") or "")
    assert "/tmp, which the service does not see (PrivateTmp)" in (why_unreachable("/tmp/fabricscope") or "")
    assert "/usr/no/such does not exist" == why_unreachable("/usr/no/such")
    monkeypatch.setattr(units, "_SCRATCH", ())  # where the link itself may lie
    link = tmp_path / "link"
    link.symlink_to("/root/fabricscope")
    assert "/root/fabricscope is below /root, which the service does not see" in (why_unreachable(str(link)) or "")


def test_a_closed_folder_is_out_of_reach(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pytest's own folder is open to one user alone, as a venv made with umask 077 is."""
    monkeypatch.setattr("agent.units._SCRATCH", ())
    folder = tmp_path_factory.mktemp("closed")
    (folder / "fabricscope").touch(mode=0o755)
    os.chmod(folder, 0o700)

    assert "is not readable for other users" in (why_unreachable(str(folder / "fabricscope")) or "")


# The units as systemd's own checker reads them: no complaint, and as hardened as reading needs allow; that of `watch`


UNITS = sorted(item for kind in ("service", "timer", "path") for item in (ROOT / "systemd").glob(f"*.{kind}"))
ANALYZE = shutil.which("systemd-analyze")
EXPOSURE_LIMIT = 2.2  # 0 is nothing, 10 everything; CAP_SYS_ADMIN alone is most of it
EXPOSURE_LIMITS = {
    f"fabricscope-{part}.service": 1.3 for part in ("ship", "receive", "ingest", "page", "forget")
}  # no capability

needs_analyze = pytest.mark.skipif(ANALYZE is None, reason="systemd-analyze is not installed")


def analyze(*arguments: str) -> str:
    """What systemd-analyze prints."""
    done = subprocess.run([str(ANALYZE), *arguments], capture_output=True, text=True, check=False, timeout=60)
    return done.stdout + done.stderr


@needs_analyze
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_a_unit_has_no_mistake(unit: Path, tmp_path: Path, real_commands: None) -> None:
    """Every key and value is known. The program itself is not installed here: a stand-in is named in its place."""
    for other in UNITS:
        text = other.read_text().replace("/opt/fabricscope/bin/fabricscope", "/bin/true")
        (tmp_path / other.name).write_text(text)

    assert "" == analyze("verify", "--man=no", str(tmp_path / unit.name))


@needs_analyze
@pytest.mark.parametrize("unit", [u for u in UNITS if u.suffix == ".service"], ids=lambda unit: unit.name)
def test_a_service_can_do_little(unit: Path, real_commands: None) -> None:
    """systemd's own score."""
    match = re.search(r"Overall exposure level for \S+: ([0-9.]+)", analyze("security", "--offline=true", str(unit)))

    assert match is not None
    assert float(match[1]) <= EXPOSURE_LIMITS.get(unit.name, EXPOSURE_LIMIT)


PLACE = ROOT / "systemd" / "fabricscope-watch.service"
EXPOSURE = 2.0  # the scan's unit has 1.9: to read the log as it is written costs the rest
MEASURED = 252
OF_A_SCAN = {
    "Type",
    "ExecStart",
    "TimeoutStartSec",
    "SupplementaryGroups",
    "AmbientCapabilities",
    "CapabilityBoundingSet",
}


def settings(name: str) -> list[tuple[str, str]]:
    """The lines of a unit's [Service]."""
    text = (ROOT / "systemd" / name).read_text().partition("[Service]\n")[2].partition("\n[")[0]
    return [(key, value) for key, equals, value in (line.partition("=") for line in text.splitlines()) if equals]


def test_it_forbids_whatever_the_scan_forbids() -> None:
    """Line for line, but for what makes one a scan; beyond that one device to read, and one capability."""
    scan, watch = settings("fabricscope-scan.service"), settings(PLACE.name)

    assert [] == [row for row in scan if row[0] not in OF_A_SCAN and row not in watch and not row[0].startswith("#")]
    more = [row for row in watch if row[0] in ("DeviceAllow", "AmbientCapabilities") and row not in scan]
    assert [("AmbientCapabilities", "CAP_SYS_ADMIN CAP_SYSLOG"), ("DeviceAllow", "/dev/kmsg r")] == more


def test_its_command_is_one_that_there_is() -> None:
    """Every option of the line is an option of `watch`."""
    argv = shlex.split(dict(settings(PLACE.name))["ExecStart"])
    command = typer.main.get_command(app).commands["watch"]  # type: ignore[attr-defined]  # a group
    known = {option for parameter in command.params for option in parameter.opts}

    assert "watch" == argv[1]
    assert {word for word in argv[2:] if word.startswith("--")} <= known


@needs_analyze
def test_its_exposure_is_what_was_measured(real_commands: None) -> None:
    """By systemd's own score; other versions count otherwise, and the limit of all units holds there."""
    version = re.search(r"systemd (\d+)", analyze("--version"))
    if version is None or int(version[1]) != MEASURED:
        pytest.skip(f"the score was measured with systemd {MEASURED}")
    match = re.search(r"Overall exposure level for \S+: ([0-9.]+)", analyze("security", "--offline=true", str(PLACE)))

    assert match is not None
    assert float(match[1]) <= EXPOSURE


# `install-units`: what it writes passes systemd's own checks, and what it refuses is one line.


TRUE = "/bin/true"
CAPABLE, PLAIN = 2.2, 1.8  # systemd's score, 0 to 10: with CAP_SYS_ADMIN, which alone is most of it, and without


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Where units go below a prefix."""
    return tmp_path / "etc/systemd/system"


def install(tmp_path: Path, *more: str) -> int:
    """Every part, below a prefix."""
    every = ",".join(part for part in list_parts() if part != "scan")
    return run(["install-units", "--prefix", str(tmp_path), "--exec", TRUE, "--with", every, *more])


def test_the_scan_alone_by_default(tmp_path: Path, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Readable for everybody, and told in a line each; below a prefix there is nothing to start."""
    assert 0 == run(["install-units", "--prefix", str(tmp_path), "--exec", TRUE])
    output = capsys.readouterr()

    assert ["fabricscope-scan.service", "fabricscope-scan.timer"] == sorted(os.listdir(place))
    assert [f"wrote  {place}/{n}" for n in sorted(os.listdir(place))] + [
        f"They start {TRUE}"
    ] == output.out.splitlines()
    assert "" == output.err


def test_what_is_written_passes_systemds_checks(tmp_path: Path, place: Path, real_commands: None) -> None:
    """No complaint about any unit, and little that a service could do."""
    if ANALYZE is None:
        pytest.skip("systemd-analyze is not installed")
    assert 0 == install(tmp_path)
    result = [str(path) for path in sorted(place.iterdir())]
    checked = subprocess.run(
        [ANALYZE, "verify", "--man=no", *result], capture_output=True, text=True, check=False, timeout=60
    )
    assert ("", 0) == (checked.stdout + checked.stderr, checked.returncode)

    services = [path for path in result if path.endswith(".service")]
    scored = subprocess.run(
        [ANALYZE, "security", "--offline=true", *services], capture_output=True, text=True, check=False, timeout=60
    ).stdout
    found = dict(re.findall(r"Overall exposure level for (\S+): ([0-9.]+)", scored))
    assert {os.path.basename(path) for path in services} == set(found)
    for name, score in found.items():
        capable = "AmbientCapabilities=CAP_SYS_ADMIN" in (place / name).read_text()
        assert float(score) <= (CAPABLE if capable else PLAIN), name


def test_a_second_run_changes_nothing_and_a_newer_program_replaces(
    tmp_path: Path, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As an upgrade does it."""
    assert [0, 0] == [install(tmp_path), install(tmp_path)]
    assert all(
        line.startswith(("as it was", "They"))
        for line in capsys.readouterr().out.splitlines()[-len(os.listdir(place)) - 1 :]
    )

    assert 0 == run(
        ["install-units", "--prefix", str(tmp_path), "--exec", "/opt/other", "--unit-dir", "/etc/systemd/system"]
    )
    assert "ExecStart=/opt/other scan" in (place / "fabricscope-scan.service").read_text()


def test_a_unit_that_was_changed_by_hand_is_kept_and_so_are_all_others(
    tmp_path: Path, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All or nothing; --force replaces it."""
    place.mkdir(parents=True)
    (place / "fabricscope-scan.timer").write_text("[Timer]\n")

    assert 2 == install(tmp_path)
    output = capsys.readouterr().err
    assert output.startswith(f"error: {place}/fabricscope-scan.timer is not written by install-units: not replaced")
    assert 1 == len(output.splitlines())
    assert ["fabricscope-scan.timer"] == os.listdir(place)
    assert 0 == install(tmp_path, "--force")
    assert "OnCalendar=hourly" in (place / "fabricscope-scan.timer").read_text()


def test_printing_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the place of each, as `systemctl cat` has it."""
    assert 0 == install(tmp_path, "--print")

    assert f"# {tmp_path}/etc/systemd/system/fabricscope-scan.timer\n" in capsys.readouterr().out
    assert [] == os.listdir(tmp_path)


def test_what_runs_next_is_told_with_the_choice_between_timer_and_watch(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both keep the same report. The place is given in full, as on a host."""
    (tmp_path / "units").mkdir()
    assert 0 == run(["install-units", "--unit-dir", str(tmp_path / "units"), "--exec", TRUE, "--with", "ship, watch"])

    assert capsys.readouterr().out.splitlines()[-6:] == [
        "",
        "Next:",
        "    systemctl daemon-reload",
        "    systemctl enable --now fabricscope-scan.timer fabricscope-ship.path",
        "or, in place of fabricscope-scan.timer:",
        "    systemctl enable --now fabricscope-watch.service",
    ]


def test_a_program_that_a_service_cannot_reach_is_refused(tmp_path: Path, real_commands: None) -> None:
    """As it stands in a home or in /tmp: the first timer would be the first to notice."""
    program = tmp_path / "fabricscope"
    program.write_text(f"#!{sys.executable}\nfrom fabricscope import console\nconsole()\n")
    program.chmod(0o755)
    done = subprocess.run(
        [program, "install-units", "--prefix", str(tmp_path / "root")], capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip

    assert (2, "", False) == (done.returncode, done.stdout, (tmp_path / "root").exists())
    assert re.fullmatch(
        r"error: \S+ (is below|is not readable for) .*: install fabricscope below /opt .*\n", done.stderr
    )
