"""The units as systemd's own checker reads them: no complaint, and as hardened as reading needs allow."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import ROOT

UNITS = sorted(item for kind in ("service", "timer", "path") for item in (ROOT / "systemd").glob(f"*.{kind}"))
ANALYZE = shutil.which("systemd-analyze")
EXPOSURE_LIMIT = 2.2  # 0 is nothing, 10 everything; CAP_SYS_ADMIN alone is most of it
EXPOSURE_LIMITS = {
    f"fabricscope-{part}.service": 1.3 for part in ("ship", "receive", "ingest", "page")
}  # no capability

pytestmark = [
    pytest.mark.skipif(ANALYZE is None, reason="systemd-analyze is not installed"),
    pytest.mark.usefixtures("real_commands"),
]


def analyze(*arguments: str) -> str:
    """What systemd-analyze prints."""
    done = subprocess.run([str(ANALYZE), *arguments], capture_output=True, text=True, check=False, timeout=60)
    return done.stdout + done.stderr


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_a_unit_has_no_mistake(unit: Path, tmp_path: Path) -> None:
    """Every key and value is known. The program itself is not installed here: a stand-in is named in its place."""
    for other in UNITS:
        text = other.read_text().replace("/opt/fabricscope/bin/fabricscope", "/bin/true")
        (tmp_path / other.name).write_text(text)

    assert "" == analyze("verify", "--man=no", str(tmp_path / unit.name))


@pytest.mark.parametrize("unit", [u for u in UNITS if u.suffix == ".service"], ids=lambda unit: unit.name)
def test_a_service_can_do_little(unit: Path) -> None:
    """systemd's own score."""
    match = re.search(r"Overall exposure level for \S+: ([0-9.]+)", analyze("security", "--offline=true", str(unit)))

    assert match is not None
    assert float(match[1]) <= EXPOSURE_LIMITS.get(unit.name, EXPOSURE_LIMIT)
