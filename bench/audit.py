"""Runs the command line in this process and counts opened files and processes: `python -m bench.audit scan ...`."""

from __future__ import annotations

import sys
from collections import Counter

STARTS = ("subprocess.Popen", "os.fork", "os.posix_spawn", "os.exec", "os.system")


def main() -> None:
    """Counts on stderr, one line: opens, listings, processes."""
    seen: Counter[str] = Counter()
    sys.addaudithook(lambda event, _: seen.update((event,)))
    from agent.cli.main import run

    before = Counter(seen)  # imports open files of their own
    code = run(sys.argv[1:])
    spent = seen - before
    started = sum(spent[event] for event in STARTS)
    print(
        f"opens={spent['open']} listings={spent['os.listdir'] + spent['os.scandir']} processes={started}",
        file=sys.stderr,
    )
    sys.exit(code)


if __name__ == "__main__":
    main()
