"""The program: runs one command line, and makes every expected failure one line on stderr and an exit code."""

from __future__ import annotations

import errno
import gc
import signal
import sys
from collections.abc import Sequence

from agent.cli.errors import INTERRUPTED, CliError, print_error
from agent.cli.output import DEBUG, discard_output, ignore_closed_pipe, open_streams
from agent.cli.plain import parse_plain
from agent.version import VERSION

_STDOUT_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EBADF)
USAGE, CHECK_UNKNOWN = 2, 3
_GARBAGE = 200_000  # new objects until cycles are looked for: a run that ends soon makes hardly any


def run(arguments: Sequence[str]) -> int:
    """Run the program: never a traceback, but with --debug."""
    open_streams()
    if signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:  # inherited: the kernel would drop every exit code
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    debug = "--debug" in arguments
    DEBUG.set(debug)
    arguments = [argument for argument in arguments if argument != "--debug"]
    failed = CHECK_UNKNOWN if arguments[:1] == ["check"] else USAGE
    try:
        code = _run_command(arguments, failed)
        with ignore_closed_pipe():
            sys.stdout.flush()
    except KeyboardInterrupt:
        return _print_error("interrupted", INTERRUPTED)
    except (BrokenPipeError, SystemExit):  # SystemExit: typer's, after completion or on a closed pipe
        discard_output()
        return 0
    except (CliError, OSError) as error:
        if debug:
            raise
        if isinstance(error, OSError) and error.filename is None and error.errno in _STDOUT_ERRORS:
            return _print_error(f"stdout: {error.strerror}", failed)
        return _print_error(str(error), failed, getattr(error, "hint", None))
    except Exception as bug:  # the outermost wall: exit code 1 would be a result of `check` and `diff`
        if debug:
            raise
        line = " ".join("".join(c if c.isprintable() else " " for c in f"{type(bug).__name__}: {bug}").split())
        return _print_error(f"internal error ({line[:300]}); --debug shows where", failed)
    return code


def _run_command(arguments: Sequence[str], failed: int) -> int:
    """Run a command: of a plain line without typer, whose import costs as much as a third of a scan."""
    if arguments == ["--version"]:
        print(f"fabricscope {VERSION}")
        return 0
    plain = parse_plain(arguments)
    if plain is None:
        from agent.cli.commands import run_command

        return run_command(arguments, failed)
    gc.set_threshold(_GARBAGE)
    _import_msgspec()
    command, values = plain
    if command == "check":
        from agent.cli.check import check_host

        return check_host(values)
    from agent.cli.scan import export_host, scan_host

    (scan_host if command == "scan" else export_host)(values)
    return 0


def _print_error(text: str, code: int, hint: str | None = None) -> int:
    print_error(text, hint)
    return code


def _import_msgspec() -> None:
    """Import msgspec without typing_extensions, which it takes where typer has brought them.

    `typing` has what it needs of them from Python 3.11 on, and they bring inspect, ast and tokenize: as much as a fifth
    of what `lspci` takes for a large machine.
    """
    name = "typing_extensions"
    if sys.version_info < (3, 11) or name in sys.modules:
        return
    sys.modules[name] = None  # Python has it so that a module cannot be imported
    try:
        import msgspec  # noqa: F401
    finally:
        del sys.modules[name]
