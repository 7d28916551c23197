"""The program: runs one command line, and makes every expected failure one line on stderr and an exit code."""

from __future__ import annotations

import contextlib
import errno
import gc
import importlib
import signal
import sys
import typing
from collections.abc import Sequence
from types import ModuleType

from agent.cli.errors import INTERRUPTED, CliError, print_error
from agent.cli.output import DEBUG, discard_output, ignore_closed_pipe, open_streams
from agent.cli.plain import parse_plain
from agent.version import VERSION

_STDOUT_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EBADF)
USAGE, CHECK_UNKNOWN = 2, 3
_LIMIT_ERRORS = (errno.EAGAIN, errno.ENOMEM, errno.EMFILE)
_LIMITS = "ulimit -a shows the limits of memory (-v), processes (-u) and open files (-n)"
_GARBAGE = 1_000_000  # new objects until cycles are looked for: a run that ends soon makes hardly any


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
        if isinstance(error, OSError) and error.filename is None and error.errno in _LIMIT_ERRORS:
            return _print_error(str(error.strerror), failed, _LIMITS)
        return _print_error(str(error), failed, getattr(error, "hint", None))
    except MemoryError:
        if debug:
            raise
        return _print_error("out of memory", failed, _LIMITS)
    except Exception as bug:  # the outermost wall: exit code 1 would be a result of `check` and `diff`
        if debug:
            raise
        if str(bug) == "can't start new thread":  # Python's RuntimeError, where memory or processes are limited
            return _print_error(str(bug), failed, _LIMITS)
        line = " ".join("".join(c if c.isprintable() else " " for c in f"{type(bug).__name__}: {bug}").split())
        return _print_error(f"internal error ({line[:300]}); --debug shows where", failed)
    return code


def _run_command(arguments: Sequence[str], failed: int) -> int:
    """Run a command: of a plain line without typer, whose import costs as much as a third of a scan."""
    if arguments == ["--version"]:
        print(f"fabricscope {VERSION}")
        return 0
    plain = parse_plain(arguments)
    gc.enable()
    if plain is None:
        from agent.cli.commands import run_command

        return run_command(arguments, failed)
    gc.set_threshold(_GARBAGE)
    _import_msgspec()
    command, values = plain
    if command == "check":
        from agent.cli.check import check_host

        return check_host(values)
    if command == "job":
        from agent.cli.job import explain_job

        explain_job(values)
        return 0
    if command.startswith("fleet "):
        from agent.cli.fleet.answers import PLAIN

        PLAIN[command](values)
        return 0
    from agent.cli.scan import export_host, scan_host

    (scan_host if command == "scan" else export_host)(values)
    return 0


def _print_error(text: str, code: int, hint: str | None = None) -> int:
    print_error(text, hint)
    return code


def _import_msgspec() -> None:
    """Import msgspec without what no report needs and no plain command asks for: UUIDs, decimal numbers, JSON Schema,
    and typing_extensions, which it takes where they are there.

    They bring a dozen modules, platform, textwrap and inspect among them: half of what its import takes, an eighth of a
    scan. What stands in for them is gone afterwards.
    """
    stand_ins: dict[str, ModuleType | None] = {
        "uuid": _stand_in("uuid", UUID=type("UUID", (), {}), SafeUUID=type("SafeUUID", (), {"unknown": None})),
        "decimal": _stand_in("decimal", Decimal=type("Decimal", (), {})),
        "msgspec.inspect": _stand_in("msgspec.inspect"),
        "msgspec._json_schema": _stand_in("msgspec._json_schema", schema=None, schema_components=None),
    }
    if sys.version_info >= (3, 11):  # `typing` has what it needs of them from there on
        stand_ins["typing_extensions"] = None  # Python has it so that a module cannot be imported
    if "msgspec" in sys.modules or not stand_ins.keys().isdisjoint(sys.modules):
        return
    vars(typing)["compile"] = _keep_text
    if sys.version_info < (3, 12) and "datetime" not in sys.modules:  # there it has its classes in Python, too
        with contextlib.suppress(ImportError):
            sys.modules["datetime"] = importlib.import_module("_datetime")
    sys.modules.update(stand_ins)  # type: ignore[arg-type]
    with contextlib.suppress(
        ImportError, AttributeError
    ):  # a version that takes more from them is imported whole where it is needed
        importlib.import_module("msgspec")
    for name in stand_ins:
        del sys.modules[name]


def _keep_text(text: str, *_: object) -> str:
    """In place of `compile` where `typing` meets a type that is a text, which it can evaluate as well: the first use of
    `compile` makes the classes of all nodes of a syntax tree, a fortieth of a live scan."""
    return text


def _stand_in(name: str, **members: object) -> ModuleType:
    module = ModuleType(name)
    module.__dict__.update(members)
    return module
