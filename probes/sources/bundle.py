"""A support bundle as a host: the files and command outputs that somebody else's tool chose to keep.

What it lacks is not known to be missing on the machine: each reason says that the bundle does not hold it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from probes.host.files import Files
from probes.host.interface import READ_LIMIT_BYTES, Absent, Completed, Unanswered
from probes.sources.dump import Outputs
from probes.sources.tree import TreeHost


class BundleHost(TreeHost):
    """`noun` is what people call the bundle; `notes` what it says of commands that it has no output of."""

    def __init__(
        self,
        kind: str,
        path: str,
        files: Files,
        outputs: Outputs,
        *,
        noun: str,
        observed_at: str | None = None,
        notes: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(kind, path, files, outputs)
        self.observed_at = observed_at
        self._noun = noun
        self._notes = notes or {}

    def read(self, path: str, limit: int = READ_LIMIT_BYTES) -> bytes:
        """See Host.read."""
        with self._said(path):
            return super().read(path, limit)

    def attributes(self, directory: str, names: Iterable[str]) -> Mapping[str, bytes | Unanswered]:
        """See Host.attributes."""
        with self._said(directory):
            return super().attributes(directory, names)

    def listdir(self, path: str) -> list[str]:
        """See Host.listdir."""
        with self._said(path):
            return super().listdir(path)

    def readlink(self, path: str) -> str:
        """See Host.readlink."""
        with self._said(path):
            return super().readlink(path)

    def resolve(self, path: str) -> str:
        """See Host.resolve."""
        with self._said(path):
            return super().resolve(path)

    def run(self, *argv: str) -> Completed:
        """See Host.run."""
        try:
            return super().run(*argv)
        except Absent:
            why = self._notes.get(argv[0])
            lacking = f"the {self._noun} holds no output of {' '.join(argv)}"
            raise Absent(f"{lacking} ({why})" if why else lacking) from None

    @contextmanager
    def _said(self, path: str) -> Iterator[None]:
        try:
            yield
        except Absent as why:
            if why.code not in ("ENOENT", "ENOTDIR"):
                raise
            raise Absent(f"the {self._noun} holds no {path}", why.code) from None
