"""Asks for the sysfs files of an RDMA device: a driver's "there is none" is no gap in what we know."""

from __future__ import annotations

from collections.abc import Iterable

from probes.asking import Asking
from probes.host.interface import Unanswered

# An empty GID, a counter that the driver does not keep, a rate that it cannot name (mana).
NO_VALUE = frozenset({"EINVAL", "EAGAIN", "EOPNOTSUPP", "ENOTSUP", "ENODATA", "ENXIO", "ENOSYS"})


class RdmaFiles(Asking):
    """One probe's questions to RDMA drivers."""

    def attributes(self, directory: str, names: Iterable[str], source: str | None = None) -> dict[str, str]:
        """name -> text of the files that say something. One that holds nothing but its own name was blanked out by
        whoever published the tree: it is left out, too."""
        said = super().attributes(directory, names, source)
        return {name: text for name, text in said.items() if text not in ("", name)}

    def listed(self, directory: str) -> list[str]:
        """The names in a folder; none where there is no such folder."""
        return self.names(directory) or []

    def _note(self, why: Unanswered) -> None:
        if why.code not in NO_VALUE:
            super()._note(why)
