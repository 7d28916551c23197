"""The ACPI table and the archive that carries it, as a kernel and cpio read them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.lab.qemu.dmar import archive, table


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
