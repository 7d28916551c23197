"""The README's picture of a fleet: `python -m release.pictures docs` writes fleet.png from a made fleet in Chromium.

The picture of a machine, docs/machine.svg, is one of the goldens: tests/test_goldens.py.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from release.site import write_fleet

WIDTH, HEIGHT = 1280, 710


def main(arguments: Sequence[str]) -> int:
    """Write the pictures into the folder that is named; 2 for wrong usage, 1 where there is no Chromium."""
    from playwright.sync_api import sync_playwright

    if len(arguments) != 1:
        sys.stderr.write("usage: python -m release.pictures DIR\n")
        return 2
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        sys.stderr.write("error: no chromium in PATH\n")
        return 1
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as play:
        page = Path(folder) / "fleet.html"
        write_fleet(page)
        browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        tab = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
        tab.goto(page.as_uri())
        tab.wait_for_timeout(2000)  # the map is drawn in steps, so that a page of 100,000 nodes opens at once
        tab.screenshot(path=str(Path(arguments[0]) / "fleet.png"))
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
