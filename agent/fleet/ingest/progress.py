"""How far an ingest is, on a terminal: the only file of the fleet that uses rich."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TextIO

from agent.fleet.ingest.run import Tell

WORDS = {"read": "reading", "write": "writing"}


@contextlib.contextmanager
def progress(stream: TextIO, quiet: bool = False) -> Iterator[Tell]:
    """A line that is drawn over itself; where the stream is no terminal nothing is drawn."""
    if quiet or not stream.isatty():
        yield lambda _stage, _done: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[told]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(file=stream), transient=True) as bar:
        task = bar.add_task(WORDS["read"], total=None, told="")
        stages = []

        def tell(stage: str, done: int) -> None:
            if stage not in stages:
                stages.append(stage)
                bar.reset(task, total=None if stage == "read" else 100, description=WORDS[stage])
            bar.update(
                task, completed=done, told=f"{done:,} report{'s'[: done != 1]}" if stage == "read" else f"{done}%"
            )

        yield tell
