"""Measures the fleet's page in a browser: `python -m bench.fleet_page fleet.html` (Chromium, by Playwright).

Times are the page's own: from navigation to the first paint, and from a selection to the next painted frame.
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
    """Print one line per measurement."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        chromium = shutil.which("chromium") or shutil.which("chromium-browser")
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        loads = [_load(browser, file) for _ in range(ROUNDS)]
        print(f"file                 {file.stat().st_size / 1e6:8.2f} MB")
        for name in ("first paint", "ready"):
            print(f"{name:<20} {statistics.median(load[name] for load in loads):8.0f} ms")
        page = browser.new_page(viewport={"width": 1400, "height": 1000}, bypass_csp=True)  # waiting evaluates text
        page.goto(file.as_uri())
        for name, took in _choices(page).items():
            print(f"{name:<20} {took:8.0f} ms")
        for name, size in _memory(page).items():
            print(f"{name:<20} {size}")
        browser.close()
    return 0


def _load(browser: Any, file: Path) -> dict[str, float]:
    """Milliseconds from the start of the page."""
    page = browser.new_page(viewport={"width": 1400, "height": 1000}, bypass_csp=True)  # waiting evaluates text
    page.goto(file.as_uri())
    page.wait_for_function("performance.getEntriesByName('first-contentful-paint').length")
    ready = "performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd"
    result = {
        "first paint": page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime"),
        "ready": page.evaluate(ready),
    }
    page.close()
    return result


def _choices(page: Any) -> dict[str, float]:
    """Milliseconds to the painted frame after each selection; the filter without its typing delay."""
    page.evaluate("window.first = document.querySelector('#arranged').value")
    result = {}
    for name, work in CHOICES.items():
        result[name] = _timed(page, work)
    names = page.evaluate("JSON.parse(document.querySelector('#data').textContent).names")
    for name, query in {"find a part of names": names[len(names) // 2][-3:], "find a verdict": "is:error"}.items():
        result[name] = _filtered(page, query)
    return result


def _timed(page: Any, work: str) -> float:
    timed = (
        f"(async () => {{ const at = performance.now(); {work}; await {PAINTED}; return performance.now() - at; }})()"
    )
    return float(page.evaluate(timed))


def _filtered(page: Any, query: str) -> float:
    """The duration of the filter, as the page's own timer runs it."""
    work = (
        "(query) => new Promise((done) => {"
        " const real = window.setTimeout;"
        " window.setTimeout = (call) => { window.setTimeout = real; const at = performance.now(); call();"
        " requestAnimationFrame(() => real(() => done(performance.now() - at), 0)); return 0; };"
        " const box = document.getElementById('find'); box.value = query; box.dispatchEvent(new Event('input')); })"
    )
    return float(page.evaluate(work, query))


def _memory(page: Any) -> dict[str, str]:
    """Memory of the script heap and of the renderer process."""
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    heap = session.send("Runtime.getHeapUsage")["usedSize"] / 1e6
    nodes = session.send("Memory.getDOMCounters")["nodes"]
    processes = page.context.browser.new_browser_cdp_session().send("SystemInfo.getProcessInfo")["processInfo"]
    resident = max((_resident(process["id"]) for process in processes if process["type"] == "renderer"), default=0.0)
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
