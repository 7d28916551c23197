"""Addresses of nodes' own pages."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.fleet.page.page import pages


def test_files_are_found_by_node_and_by_cluster(tmp_path: Path) -> None:
    """As seen from the page's own place; other files are none."""
    (tmp_path / "nodes" / "west").mkdir(parents=True)
    for name in ("gpu1.html", "gpu2.txt", "west/gpu1.html", "west/x.json"):
        (tmp_path / "nodes" / name).write_text("")

    assert {"gpu1": "./nodes/gpu1.html", "west/gpu1": "./nodes/west/gpu1.html"} == pages(
        str(tmp_path / "nodes"), str(tmp_path / "fleet.html")
    )
    assert "../nodes/gpu1.html" == pages(str(tmp_path / "nodes"), str(tmp_path / "out" / "fleet.html"))["gpu1"]
    assert "./gpu1.html" == pages(str(tmp_path / "nodes"), str(tmp_path / "nodes" / "fleet.html"))["gpu1"]


@pytest.mark.parametrize("name", ["javascript:alert(1)", "a b\"c'<d>", "%2e%2e", "né", "?x#y"])
def test_a_name_is_never_more_than_a_relative_path(tmp_path: Path, name: str) -> None:
    """No scheme, no query, nothing that ends an attribute."""
    (tmp_path / f"{name}.html").write_text("")
    (address,) = pages(str(tmp_path), str(tmp_path / "fleet.html")).values()

    assert address.startswith("./")
    assert not set("\"'<> ?#:") & set(address)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    """Is the caller's to tell."""
    with pytest.raises(OSError, match="No such file"):
        pages(str(tmp_path / "none"), None)
