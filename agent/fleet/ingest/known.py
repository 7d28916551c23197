"""Reports that the dataset has: found by their digest, before anything of them is decoded."""

from __future__ import annotations

from array import array
from bisect import bisect_left

import pyarrow as pa
import pyarrow.compute as pc

from agent.fleet.columns import schema
from agent.fleet.dataset import Manifest
from agent.fleet.ingest.history import read_batches
from agent.fleet.store import Store

MOST = 4_000_000  # digests that are held, the latest days first: 32 MB
_SIGHTING = "sighting"


class KnownReports:
    """Digests of the reports of one cluster. They are read when one is first asked for."""

    def __init__(self, store: Store, manifest: Manifest, cluster: str | None) -> None:
        self._store, self._manifest, self._cluster = store, manifest, cluster
        self._digests: array[int] | None = None

    def __contains__(self, digest: str) -> bool:
        """Raises BadDataset."""
        if self._digests is None:
            self._digests = self._read()
        number = int(digest[:16], 16)
        place = bisect_left(self._digests, number)
        return place < len(self._digests) and self._digests[place] == number

    def _read(self) -> array[int]:
        found: array[int] = array("Q")
        plain = pa.schema([each for each in schema(_SIGHTING, True) if each.name in ("node", "report")])
        newest_first = sorted(self._manifest.history.get(_SIGHTING, []), key=lambda file: file.path, reverse=True)
        for file in newest_first:
            if len(found) >= MOST:
                break
            for batch in read_batches(self._store, file, plain):
                ours = self._of_cluster(batch["node"].cast(pa.string()))
                found.extend(int(each, 16) for each in batch.filter(ours)["report"].to_pylist() if each)
        return array("Q", sorted(found))

    def _of_cluster(self, nodes: pa.ChunkedArray) -> pa.ChunkedArray:
        """The same report with another --cluster is that of another node."""
        if self._cluster is None:
            return pc.invert(pc.match_substring(nodes, "/"))
        return pc.starts_with(nodes, f"{self._cluster}/")
