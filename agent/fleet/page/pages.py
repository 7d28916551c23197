"""Nodes' own pages: files NODE.html of a folder, CLUSTER/NODE.html where nodes have a cluster's name before theirs."""

from __future__ import annotations

import os
from urllib.parse import quote

SUFFIX = ".html"
MOST = 1_000_000  # entries of the folder


def pages(folder: str, output: str | None) -> dict[str, str]:
    """Node -> address, as seen from the page that is written (else from the current folder). Raises OSError."""
    start = os.path.dirname(os.path.abspath(output)) if output else os.getcwd()
    before = os.path.relpath(os.path.abspath(folder), start)
    found: dict[str, str] = {}
    clusters = []
    with os.scandir(folder) as entries:
        for count, entry in enumerate(entries):
            if count >= MOST:
                break
            if entry.name.endswith(SUFFIX) and entry.is_file():
                found[entry.name.removesuffix(SUFFIX)] = _address(before, entry.name)
            elif entry.is_dir():
                clusters.append(entry.name)
    for cluster in clusters:
        try:
            names = os.listdir(os.path.join(folder, cluster))
        except OSError:
            continue  # a folder of somebody else's
        for name in names[:MOST]:
            if name.endswith(SUFFIX):
                found[f"{cluster}/{name.removesuffix(SUFFIX)}"] = _address(before, cluster, name)
    return found


def _address(before: str, *names: str) -> str:
    """Relative, and never anything else: the dot keeps a name with a colon from being read as a scheme."""
    path = "/".join(names if before == "." else (before, *names))
    return ("" if path.startswith("../") else "./") + quote(path.encode("utf-8", "surrogateescape"), safe="/")
