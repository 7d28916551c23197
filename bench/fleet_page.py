"""What a fleet's page costs in a browser: `python -m bench.fleet_page fleet.html` (Chromium, by Playwright).

Times are of the page itself: from its start until it has painted, and from a choice until the next frame is painted.
"""

from __future__ import annotations

import os
import shutil
import statistics
import sys
from pathlib import Path
from typing import Any

ROUNDS = 5
# Resolves when the frame after the work has been painted
PAINTED = "new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)))"
CHOICES = {
    "switch to rails": "arranged.value = 'rails'; arranged.dispatchEvent(new Event('change'))",
    "switch to units": "arranged.value = first; arranged.dispatchEvent(new Event('change'))",
    "colour by metric": "coloured.value = 'metric/0'; coloured.dispatchEvent(new Event('change'))",
    "colour by verdict": "coloured.value = 'verdict'; coloured.dispatchEvent(new Event('change'))",
}


def main(file: Path) -> int:
    """Print one line a measurement."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        chromium = shutil.which("chromium") or shutil.which("chromium-browser")
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        loads = [_load(browser, file) for _ in range(ROUNDS)]
        print(f"file                 {file.stat().st_size / 1e6:8.2f} MB")
        for name in ("first paint", "ready"):
            print(f"{name:<20} {statistics.median(each[name] for each in loads):8.0f} ms")
        page = browser.new_page(viewport={"width": 1400, "height": 1000})
        page.goto(file.as_uri())
        for name, took in _choices(page).items():
            print(f"{name:<20} {took:8.0f} ms")
        for name, size in _memory(page).items():
            print(f"{name:<20} {size}")
        browser.close()
    return 0


def _load(browser: Any, file: Path) -> dict[str, float]:
    """Milliseconds from the start of the page."""
    page = browser.new_page(viewport={"width": 1400, "height": 1000})
    page.goto(file.as_uri())
    page.wait_for_function("performance.getEntriesByName('first-contentful-paint').length")
    ready = "performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd"
    told = {
        "first paint": page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime"),
        "ready": page.evaluate(ready),
    }
    page.close()
    return told


def _choices(page: Any) -> dict[str, float]:
    """Milliseconds until the frame after each is painted; the filter without the pause that waits for typing to end."""
    page.evaluate("window.first = document.querySelector('#arranged').value")
    found = {}
    for name, work in CHOICES.items():
        found[name] = _timed(page, work)
    names = page.evaluate("JSON.parse(document.querySelector('#data').textContent).names")
    for name, query in {"find a part of names": names[len(names) // 2][-3:], "find a verdict": "is:error"}.items():
        found[name] = _filtered(page, query)
    return found


def _timed(page: Any, work: str) -> float:
    timed = (
        f"(async () => {{ const at = performance.now(); {work}; await {PAINTED}; return performance.now() - at; }})()"
    )
    return float(page.evaluate(timed))


def _filtered(page: Any, query: str) -> float:
    """The long task that the filter is, as the page's own timer runs it."""
    work = (
        "(query) => new Promise((done) => {"
        " const real = window.setTimeout;"
        " window.setTimeout = (call) => { window.setTimeout = real; const at = performance.now(); call();"
        " requestAnimationFrame(() => real(() => done(performance.now() - at), 0)); return 0; };"
        " const box = document.getElementById('find'); box.value = query; box.dispatchEvent(new Event('input')); })"
    )
    return float(page.evaluate(work, query))


def _memory(page: Any) -> dict[str, str]:
    """Of scripts, and of the process that shows the page."""
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    heap = session.send("Runtime.getHeapUsage")["usedSize"] / 1e6
    nodes = session.send("Memory.getDOMCounters")["nodes"]
    processes = page.context.browser.new_browser_cdp_session().send("SystemInfo.getProcessInfo")["processInfo"]
    resident = max((_resident(each["id"]) for each in processes if each["type"] == "renderer"), default=0.0)
    return {"script heap": f"{heap:8.1f} MB", "renderer resident": f"{resident:8.1f} MB", "DOM nodes": f"{nodes:8}"}


def _resident(process: int) -> float:
    try:
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
    except OSError:
        return 0.0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m bench.fleet_page fleet.html")
    sys.exit(main(Path(sys.argv[1]).resolve()))
