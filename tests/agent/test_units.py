"""Units as they are put in place: which program they start, and what is not overwritten."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agent import units
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
