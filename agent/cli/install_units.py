"""`install-units`: the only command that writes to the host's configuration."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli import options as opt
from agent.cli.errors import CliError, ErrorTranslation

if TYPE_CHECKING:
    from agent.units import SystemdUnit


def install_units(
    prefix: Annotated[str | None, opt.option("DIR", "Write below DIR instead of /: for packages and images.")] = None,
    unit_dir: Annotated[str, opt.shown_option("DIR", "Folder of the units, below --prefix.")] = "/etc/systemd/system",
    with_: Annotated[
        str | None,
        opt.option(
            "PART,...",
            "Also install: ship, watch; receive, ingest, page, forget (on the host that collects).",
            "--with",
        ),
    ] = None,
    program: Annotated[
        str | None, opt.option("COMMAND", "Program that the units start. Default: this one.", "--exec")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite units that were changed by hand.")] = False,
    show: Annotated[bool, typer.Option("--print", help="Print the units; write nothing.")] = False,
) -> None:
    """Install systemd units (does not enable them)."""
    from agent.units import SCAN_PART, UnitsError, render_units

    parts = [SCAN_PART, *(part.strip() for part in (with_ or "").split(",") if part.strip())]
    place = os.path.normpath((prefix or "") + os.path.join("/", unit_dir))
    with ErrorTranslation(UnitsError):
        line, unpacks = (program, program.endswith(".pyz")) if program else _current_program()
        units = render_units(parts, line, unpacks)
        if show:
            sys.stdout.write("\n".join(f"# {os.path.join(place, unit.name)}\n{unit.text}" for unit in units))
            return
        if not program:
            _check_reachable(line)
        written = _write_units(place, units, force, prefix is not None)
    _print_next_steps(place, units, written, line, prefix is not None)


def _current_program() -> tuple[str, bool]:
    """The command line of the running fabricscope, and whether it is a zipapp."""
    import zipfile

    path = os.path.abspath(sys.argv[0])
    if os.path.isfile(path) and zipfile.is_zipfile(path):
        return f"{sys.executable} {path}", True
    if os.path.isfile(path) and os.access(path, os.X_OK):
        return path, False
    from importlib.util import find_spec

    program = find_spec("fabricscope")
    assert program is not None
    assert program.origin is not None  # it is what runs
    return f"{sys.executable} {os.path.abspath(program.origin)}", False


def _check_reachable(line: str) -> None:
    """Raises CliError if the service could not start this program: ExecStart would fail on the first timer."""
    from agent.units import why_unreachable

    unpacked = line.endswith(".pyz")
    mine = [] if unpacked else [os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))]
    for path in [*line.split(" "), sys.executable, sys.base_prefix, *mine]:
        why = why_unreachable(path)
        if why:
            raise CliError(f"{why}: install fabricscope below /opt or /usr/local, or choose a program with --exec")


def _write_units(place: str, units: list[SystemdUnit], force: bool, rooted: bool) -> list[str]:
    """Write the units that are missing, all or (if one is refused) none. Raises CliError."""
    from agent.units import add_signature, install_file, why_not_replaceable
    from agent.version import VERSION

    if not rooted and not os.path.isdir(place):
        raise CliError(f"{place}: no such folder: systemd is missing (use --prefix to install for another root)")
    files = {os.path.join(place, unit.name): add_signature(unit, VERSION) for unit in units}
    try:
        refused = [] if force else [(path, why_not_replaceable(path, data)) for path, data in files.items()]
        for path, why in refused:
            if why:
                raise CliError(
                    f"{path} is {why}: not replaced (--force does; `systemctl edit` keeps changes beside a unit)"
                )
        if rooted:
            os.makedirs(place, exist_ok=True)
        return [path for path, data in files.items() if install_file(path, data)]
    except OSError as error:
        hint = "; as root, or see --print" if isinstance(error, PermissionError) else ""
        raise CliError(f"{place}: {error.strerror}{hint}") from error


def _print_next_steps(place: str, units: list[SystemdUnit], written: list[str], line: str, rooted: bool) -> None:
    for unit in units:
        path = os.path.join(place, unit.name)
        sys.stdout.write(f"{'wrote' if path in written else 'as it was'}  {path}\n")
    sys.stdout.write(f"They start {line}\n")
    if rooted:
        return
    instead = {unit.name for unit in units for other in units if other.enabled and other.name in unit.conflicts}
    enabled = " ".join(unit.name for unit in units if unit.enabled and unit.name not in instead)
    sys.stdout.write(f"\nNext:\n    systemctl daemon-reload\n    systemctl enable --now {enabled}\n")
    for unit in units:
        if unit.name in instead and unit.enabled:
            others = " ".join(name for name in unit.conflicts if name in enabled)
            sys.stdout.write(f"or, in place of {others}:\n    systemctl enable --now {unit.name}\n")
