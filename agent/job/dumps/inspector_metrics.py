"""What NCCL's Inspector writes for Prometheus: the mean time of each function on each GPU, of some seconds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from probes.text import lazy_pattern

IN_HEAD = (b"nccl_collective_exec_time", b"nccl_bus_bandwidth_gbs", b"nccl_p2p_exec_time")
_METRIC = lazy_pattern(
    rb"nccl_(?:collective|p2p)_exec_time_(?:p50_)?microseconds\{(?P<labels>[^}]{1,2000})\} (?P<value>[\d.eE+-]{1,30})"
)
_LABEL = lazy_pattern(rb'(\w{1,40})="([^"]{0,200})"')
_MOST_ROWS = 200_000


class MetricKey(NamedTuple):
    """Series that can be compared: one function at one size in communicators of one shape."""

    function: str
    size: str
    ranks: int
    nodes: int


class InspectorMetrics:
    """All metrics of a job."""

    def __init__(self) -> None:
        # by shape and communicator: the time of each (host, GPU), in microseconds
        self.times: dict[MetricKey, dict[str, dict[tuple[str, str], float]]] = defaultdict(lambda: defaultdict(dict))
        self.files: dict[tuple[str, str], str] = {}
        self.rows = 0

    def read(self, name: str, lines: Iterable[bytes]) -> tuple[int, int]:
        """One file: its lines, and how many of them were no metric."""
        count = damaged = 0
        for line in lines:
            count += 1
            match = _METRIC.match(line)
            if match is None:
                damaged += not (line.startswith((b"#", b"nccl_")) or not line.strip())
                continue
            labels = {key.decode(): value.decode("utf-8", "replace") for key, value in _LABEL.findall(match["labels"])}
            self._add(name, labels, match["value"])
        return count, damaged

    def _add(self, name: str, labels: dict[str, str], value: bytes) -> None:
        host = (labels.get("node") or labels.get("hostname") or "").partition(".")[0]
        gpu = labels.get("gpu") or labels.get("gpu_device_id") or ""
        function = labels.get("collective") or labels.get("p2p_operation")
        ranks, nodes = labels.get("nranks", labels.get("n_ranks", "")), labels.get("n_nodes", "")
        try:
            time = float(value)
        except ValueError:
            return
        if not (host and gpu and function and ranks[:9].isdecimal() and nodes[:9].isdecimal() and time > 0):
            return
        if self.rows >= _MOST_ROWS:
            return
        self.rows += 1
        key = MetricKey(function, labels.get("message_size", ""), int(ranks[:9]), int(nodes[:9]))
        communicator = labels.get("comm_id") or labels.get("comm_name") or "unknown"
        self.times[key][communicator][host, gpu] = time  # a later scrape takes the place of an earlier one
        self.files.setdefault((host, gpu), name)
