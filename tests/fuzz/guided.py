"""Coverage-guided fuzzing of one reader or of all in turn, where atheris is installed: `python -m tests.fuzz.guided`.

python -m tests.fuzz.guided probes.pci.lspci.parse_lspci -max_total_time=600
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.fuzz.mutations import LONGEST_BYTES
from tests.fuzz.readers import READERS

SECONDS_EACH = 60


def main(arguments: list[str]) -> int:
    """No reader named: each in a process of its own, as libFuzzer does not come back."""
    if arguments:
        _one(arguments[0], arguments[1:])
    failed = [
        reader.name
        for reader in READERS
        if subprocess.run([sys.executable, "-m", __spec__.name, reader.name], check=False).returncode
    ]
    print(f"failed: {', '.join(failed) or 'none'}")
    return 1 if failed else 0


def _one(name: str, options: list[str]) -> None:
    import atheris  # type: ignore[import-not-found]  # optional, and built for few Python versions

    reader = next(item for item in READERS if item.name == name)
    with atheris.instrument_imports(include=["probes", "agent"]):
        read = reader.call()

    def test(data: bytes) -> None:
        with contextlib.suppress(*reader.refuses):
            read(data)

    with tempfile.TemporaryDirectory() as folder:
        for number, seed in enumerate(reader.seeds()):
            Path(folder, str(number)).write_bytes(seed[:LONGEST_BYTES])
        bounds = [f"-max_total_time={SECONDS_EACH}", f"-max_len={LONGEST_BYTES}", "-timeout=2", "-rss_limit_mb=1024"]
        atheris.Setup([name, *bounds, *options, folder], test)
        atheris.Fuzz()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
