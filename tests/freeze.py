"""The report of every fixture machine, fault and corpus source, one file each: a refactoring changes none of them.

`python -m tests.freeze DIR` writes them in half a minute; `diff -r OLD NEW` then lists every changed answer.
"""

from __future__ import annotations

import argparse
import multiprocessing
import shutil
import sys
from pathlib import Path

import msgspec

from agent.diagnose import ScanPlan, diagnose
from agent.reports import encode_report
from probes.host.interface import BadSource
from probes.sources.open_source import open_source
from tests.conftest import CORPUS
from tests.machines import FAULTS, HOSTS, scan_machine, still

_FOLDERS = ("sys", "proc", "in")  # a folder with one of these is a source, or holds one
_NO_EVIDENCE = (".md", ".tsv")


def list_sources() -> list[Path]:
    """Files and folders of the corpus that a person could give as a source; a refused one is kept as its error."""
    if not CORPUS.is_dir():
        return []
    folders = [path for path in CORPUS.rglob("*") if path.is_dir() and path.name in _FOLDERS]
    whole = {path if path.name == "in" else path.parent for path in folders}
    files = [path for path in CORPUS.rglob("*") if path.is_file() and path.suffix not in _NO_EVIDENCE]
    outside = [path for path in files if not any(folder in path.parents and folder.name != "in" for folder in whole)]
    return sorted([*whole, *outside, *CORPUS.glob("threads/*/paste.md")])


def freeze(job: tuple[str, str, Path]) -> str | None:
    """Write one report, or the error in its place; returns the name of a source that raised anything else."""
    kind, name, folder = job
    place = folder / kind / name.replace("/", "__")
    try:
        if kind == "corpus":
            report = still(diagnose(open_source(str(CORPUS / name), None), ScanPlan(timeout_seconds=600))[0])
        else:
            report = scan_machine("", name) if kind == "faults" else scan_machine(name)
        place.with_suffix(place.suffix + ".json").write_bytes(msgspec.json.format(encode_report(report), indent=1))
    except BadSource as error:
        place.with_suffix(place.suffix + ".error").write_text(str(error).replace(str(CORPUS), "corpus") + "\n")
    except Exception as error:  # noqa: BLE001 - the other sources are still wanted, and this one is named
        place.with_suffix(place.suffix + ".error").write_text(f"{type(error).__name__}: {error}\n")
        return f"{kind}/{name}: {type(error).__name__}: {error}"
    return None


def main(folder: Path) -> int:
    """Write all; 1 where a source raised what no source may raise."""
    corpus = [str(path.relative_to(CORPUS)) for path in list_sources()]
    names = {"hosts": HOSTS, "faults": FAULTS, "corpus": corpus}
    for kind in names:
        shutil.rmtree(folder / kind, ignore_errors=True)
        (folder / kind).mkdir(parents=True)
    jobs = [(kind, name, folder) for kind, of_kind in names.items() for name in of_kind]
    with multiprocessing.Pool(maxtasksperchild=100) as pool:
        failures = [failure for failure in pool.imap_unordered(freeze, jobs, chunksize=4) if failure]
    print(f"{len(jobs)} sources", *failures, sep="\n")
    return 1 if failures else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", metavar="DIR", type=Path)
    sys.exit(main(parser.parse_args().folder))
