"""The command's first line of code: makes sure that `agent` and `probes` are ours before it imports from them.

Both are common words. Where another package of that name comes first on the path, one clear line is better than
an ImportError from its inside.
"""

from __future__ import annotations

import gc
import os
import sys  # these are loaded already; at an interrupt while another one is imported here, a traceback would be printed


def main() -> int:
    """Run the command line."""
    gc.disable()  # while modules are imported, which leave no garbage: the command line decides when to look for some
    home = os.path.dirname(os.path.abspath(__file__))
    packages = ("agent", "probes")
    for name in packages:
        found = (finder.find_spec(name, None) for finder in sys.meta_path if hasattr(finder, "find_spec"))
        spec = next(filter(None, found), None)  # as `import` looks for it; importlib.util would be a start of its own
        place = os.path.dirname(os.path.dirname(spec.origin)) if spec and spec.origin else None
        if place is None or not os.path.samefile(place, home):
            where = spec.origin if spec and spec.origin else "nowhere"
            print(
                f"error: its package {name!r} is hidden by {where}: install it in an environment of its own",
                file=sys.stderr,
            )
            return 3 if "check" in sys.argv[1:2] else 2
    from agent.own_modules import install_finder

    install_finder(home, packages)
    from agent.cli.main import run

    return run(sys.argv[1:])


def console() -> None:
    """The program: leaves without taking the interpreter down, which would cost a tenth of a scan and free nothing that
    the end of the process does not."""
    try:
        code = main()
    except KeyboardInterrupt:  # while modules were imported
        print("error: interrupted", file=sys.stderr)
        code = 130
    import contextlib

    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):  # closed or full: `main` has said so
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    console()
