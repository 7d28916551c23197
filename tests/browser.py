"""Pages in a real browser: Debian's Chromium, driven by Playwright. The fixture `browser` is in conftest.py."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
NEEDED = [
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed (apt install chromium)"),
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
