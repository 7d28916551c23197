"""Pages in a real browser: Debian's Chromium, driven by Playwright. The fixture `browser` is in conftest.py."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

# The shell is Chromium without the windows and menus of a browser: a third of the CPU, the same pages
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
NEEDED = [
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed (apt install chromium-headless-shell)"),
    pytest.mark.timeout(300),
]


class Shown:
    """One page that is open, and all that it asked for or complained of."""

    def __init__(self, page: Any, address: str) -> None:
        self.page = page
        self.asked: list[str] = []
        self.complaints: list[str] = []
        page.on("request", lambda line: self.asked.append(line.url))
        page.on("console", lambda line: self.complaints.append(line.text))
        page.on("pageerror", lambda line: self.complaints.append(str(line)))
        page.on("dialog", lambda line: self.complaints.append(line.message))
        page.goto(address)
