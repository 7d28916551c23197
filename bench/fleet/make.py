"""Writes a made-up fleet: `python -m bench.fleet.make --nodes 1000 --out DIR`, or `--out -` for NDJSON on stdout."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import sys
import time
import zlib
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

from bench.fleet.fabric import LAYOUTS
from bench.fleet.forms import stamp
from bench.fleet.kinds import KINDS
from bench.fleet.plan import FABRIC_FORMS, FIRST, HOUR, Plan, plan
from bench.fleet.platforms import BY_NAME

_OBSERVED = re.compile(rb'"observed_at": ?"([0-9TZ:.+-]{20,32})"')
_COMPRESSION = 1  # what the disk can take counts, not its space


def main(words: list[str] | None = None) -> int:
    """The command line."""
    given = _parser().parse_args(words)
    try:
        faults = None if given.fault is None else dict(_pair(text) for text in given.fault if text != "none")
        mix = None if given.mix is None else dict(map(_share, given.mix))
        result = plan(
            given.nodes,
            given.seed,
            faults,
            sweeps=given.sweeps,
            mix=mix,
            layout=given.layout,
            oversubscription=given.oversubscription,
        )
    except ValueError as why:
        print(f"bench.fleet.make: {why}", file=sys.stderr)
        return 2
    try:
        if given.truth:
            Path(given.truth).write_text(json.dumps(result.truth, indent=1) + "\n")
        if given.fabric:
            _fabrics(result, Path(given.fabric), given.fabric_form)
        if given.out:
            _out(result, given)
    except BrokenPipeError:  # the reader has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as why:
        print(f"bench.fleet.make: {why.filename or 'output'}: {why.strerror}", file=sys.stderr)
        return 2
    return 0


def _out(made: Plan, given: argparse.Namespace) -> None:
    started, count, size = time.monotonic(), 0, 0
    with contextlib.ExitStack() as files:
        if given.out == "-":
            sizes = _ndjson(made, sys.stdout.buffer, given.gz)
        elif given.ndjson:
            Path(given.out).parent.mkdir(parents=True, exist_ok=True)
            sizes = _ndjson(made, files.enter_context(Path(given.out).open("wb")), given.gz)
        else:
            sizes = _folder(made, Path(given.out), given.gz)
        for each in sizes:
            count, size = count + 1, size + each
    seconds = time.monotonic() - started
    print(f"{count} reports, {size / 1e6:.1f} MB in {seconds:.1f} s, scans of templates in it", file=sys.stderr)


def _ndjson(made: Plan, file: BinaryIO, packed: bool) -> Iterable[int]:
    squeeze = zlib.compressobj(_COMPRESSION, wbits=31) if packed else None
    for sweep in range(made.sweeps):
        for line in made.reports(sweep, one_line=True):
            text = line if line.endswith(b"\n") else line + b"\n"  # a truncated one is a line, too
            file.write(squeeze.compress(text) if squeeze else text)
            yield len(text)
    file.write(squeeze.flush() if squeeze else b"")
    file.flush()


def _folder(made: Plan, place: Path, packed: bool) -> Iterable[int]:
    """raw/<time of the sweep>/<host>.json, as they would lie in an inventory."""
    clocks = {odd["hosts"][0]: odd["detail"]["seconds"] for odd in made.truth["oddities"] if "clock" in odd["kind"]}
    for sweep in range(made.sweeps):
        folder = place / "raw" / stamp(FIRST + sweep * HOUR).replace(":", "")
        folder.mkdir(parents=True, exist_ok=True)
        for hostname, data in made.named(sweep):
            arrived = _arrival(data, float(FIRST + sweep * HOUR)) - clocks.get(hostname, 0)
            if packed:
                squeeze = zlib.compressobj(_COMPRESSION, wbits=31)
                data = squeeze.compress(data) + squeeze.flush()
            path = folder / f"{hostname}.json{'.gz' if packed else ''}"
            with path.open("wb", buffering=0) as file:
                file.write(data)
            os.utime(path, (arrived, arrived))
            yield len(data)


def _arrival(data: bytes, otherwise: float) -> float:
    """When a report arrives by the node's clock: a second after it was observed. `otherwise`: of a damaged one."""
    match = _OBSERVED.search(data)
    return datetime.fromisoformat(match[1].decode().replace("Z", "+00:00")).timestamp() + 1 if match else otherwise


def _fabrics(made: Plan, place: Path, form: str) -> None:
    """One fabric: that file. Several: a folder, a file each."""
    place.parent.mkdir(parents=True, exist_ok=True)
    if len(made.fabrics) == 1:
        with place.open("w") as file:
            file.writelines(made.fabric_text(form=form))
        return
    place.mkdir(parents=True, exist_ok=True)
    for name in made.fabrics:
        with (place / f"{name}.{form}").open("w") as file:
            file.writelines(made.fabric_text(name, form))


def _named(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    return name, value or "1"


def _pair(text: str) -> tuple[str, int]:
    name, value = _named(text)
    if not value.isdigit():
        raise ValueError(f"--fault {text}: KIND=COUNT is wanted")
    return name, int(value)


def _share(text: str) -> tuple[str, float]:
    name, value = _named(text)
    try:
        return name, float(value)
    except ValueError:
        raise ValueError(f"--mix {text}: PLATFORM=SHARE is wanted") from None


def _parser() -> argparse.ArgumentParser:
    request = argparse.ArgumentParser(prog="python -m bench.fleet.make", description=__doc__)
    request.add_argument("--nodes", type=int, default=1000, help="how many (1000)")
    request.add_argument("--seed", type=int, default=1, help="another one makes another fleet (1)")
    request.add_argument("--sweeps", type=int, default=1, help="an hour apart")
    request.add_argument("--out", help="a folder, a file (with --ndjson), or - for NDJSON on stdout")
    request.add_argument("--ndjson", action="store_true", help="one file, a report a line")
    request.add_argument("--gz", action="store_true", help="compressed")
    request.add_argument("--truth", metavar="FILE", help="what is odd, as JSON")
    request.add_argument("--fabric", metavar="FILE", help="the fabric as a tool tells it; of several: a folder")
    request.add_argument(
        "--fabric-form", choices=FABRIC_FORMS, default="ibnetdiscover", help="ndt: where its cables belong (UFM)"
    )
    request.add_argument(
        "--fault", metavar="KIND=COUNT", action="append",
        help=f"instead of every kind once in 2,500 nodes; `none` for none. Kinds: {', '.join(KINDS)}",
    )  # fmt: skip
    request.add_argument(
        "--mix", metavar="PLATFORM=SHARE", action="append", help=f"instead of all. Platforms: {', '.join(BY_NAME)}"
    )
    request.add_argument("--layout", choices=LAYOUTS, default="rail")
    request.add_argument("--oversubscription", type=float, default=1.0, help="of the leaves: 2 for half of the uplinks")
    return request


if __name__ == "__main__":
    raise SystemExit(main())
