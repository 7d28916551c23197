"""What the lab shows at the same time is the sum of its causes on the fixture machine; the table its kernels get."""

from __future__ import annotations

import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from tests.lab.batches import BATCHES
from tests.lab.qemu.dmar import archive, table
from tests.matrix.cases import Cause
from tests.matrix.together import seen


@pytest.mark.parametrize("name", BATCHES)
def test_causes_at_the_same_time_are_found_as_each_alone(name: str) -> None:
    """All their findings, and no other above info."""
    batch = BATCHES[name]
    later = {"earlier": {}} if batch.later else {}
    report = seen(Cause(about=name, on=[], overlay=batch.overlay, config=batch.config, **later), batch.shape)

    assert batch.finds == sorted((f.rule, f.severity, f.subject) for f in report.findings if f.severity != "info")


@pytest.mark.parametrize("name", BATCHES)
def test_no_two_causes_are_on_one_device(name: str) -> None:
    """Or the last of them would be shown alone."""
    used = Counter(
        (address, word, key)
        for scenario in BATCHES[name].scenarios
        for address, words in scenario.cause.overlay.get("device", {}).items()
        for word, value in words.items()
        for key in (value if isinstance(value, dict) else [""])
    )
    assert [] == [place for place, count in used.items() if count > 1]


def test_a_table_says_its_length_and_sums_up_to_nothing() -> None:
    """A kernel believes no other."""
    result = table()

    assert (b"DMAR", len(result)) == (result[:4], int.from_bytes(result[4:8], "little"))
    assert 0 == sum(result) & 0xFF
    assert 1 == result[48 + 4]  # one unit, for every device


@pytest.mark.usefixtures("real_commands")
@pytest.mark.skipif(shutil.which("cpio") is None, reason="cpio is not installed")
def test_the_archive_holds_it_where_the_kernel_looks(tmp_path: Path) -> None:
    """Documentation/admin-guide/acpi/initrd_table_override.rst."""
    subprocess.run(["cpio", "-id", "--quiet"], input=archive(), cwd=tmp_path, check=True, timeout=20)

    assert table() == (tmp_path / "kernel/firmware/acpi/DMAR.aml").read_bytes()
    assert 0 == len(archive()) % 4  # another archive follows
