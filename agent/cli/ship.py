"""`ship`: send reports to a fleet inventory, with a spool for when it is unavailable."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent.cli import options as opt
from agent.cli.errors import CliError, ErrorTranslation, print_warning
from agent.cli.stdin import notice_pipe

if TYPE_CHECKING:
    from agent.config import ShipSettings
    from agent.ship.run import RunResult
    from agent.ship.spool import Spool

REPORT = "/var/lib/fabricscope/report.json"
STATE = "/var/lib/fabricscope-ship"
ALL_SENT, SOME_WAITING = 0, 1
SPOOL_BYTES, SPOOL_COUNT, SECONDS = 64 << 20, 2000, 60.0


def ship(
    reports: Annotated[list[str] | None, opt.argument("REPORT...", f"Reports (.json, .gz); {REPORT}.")] = None,
    to: Annotated[str | None, opt.option("URL", "A folder, https://, or s3://BUCKET/PREFIX.")] = None,
    method: Annotated[str | None, opt.option("POST|PUT", "PUT: a file below the address. Default: POST.")] = None,
    compress: Annotated[str | None, opt.option("gzip|zstd|none", "Compression of what is sent; gzip.")] = None,
    token_file: Annotated[str | None, opt.option("FILE", "File with the bearer token.")] = None,
    cert: Annotated[str | None, opt.option("FILE", "Client certificate (PEM), if the server requires one.")] = None,
    key: Annotated[str | None, opt.option("FILE", "Client key, if it is not in the same file.")] = None,
    ca: Annotated[str | None, opt.option("FILE", "CA bundle; default: the system's.")] = None,
    endpoint: Annotated[str | None, opt.option("URL", "s3: address of a store that is not AWS.")] = None,
    region: Annotated[str | None, opt.option("NAME", "s3: region. Default: AWS_REGION or us-east-1.")] = None,
    credentials: Annotated[
        str | None, opt.option("FILE", "s3: AWS credentials file. Default: the AWS_ variables.")
    ] = None,
    spool: Annotated[str | None, opt.option("DIR", f"Folder of waiting reports; {STATE}/spool.")] = None,
    state_dir: Annotated[str | None, opt.option("DIR", "The spool is DIR/spool.")] = None,
    spool_limit: Annotated[int | None, opt.option("BYTES", "Largest size of the spool; 64 MiB.", min=0)] = None,
    spool_count: Annotated[int | None, opt.option("NUMBER", "Most reports in the spool; 2000.", min=0)] = None,
    timeout: Annotated[float | None, opt.option("SECONDS", "Time limit of the whole run; 60.", min=0.1)] = None,
    config: Annotated[str | None, opt.option("FILE", "TOML: a table [ship] with these options.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print warnings and errors only.")] = False,
) -> None:
    """Send reports to a fleet inventory.

    What cannot be sent waits in a spool. Exit 0 all sent, 1 some still wait or were given up.
    """
    options = dict(locals())
    options["spool"] = spool or (os.path.join(state_dir, "spool") if state_dir else None)
    raise typer.Exit(_run_ship(reports or [], _merge_options(options, config), quiet))


def _merge_options(options: Mapping[str, Any], config: str | None) -> ShipSettings:
    """The options over what the file has of them. Raises CliError."""
    import msgspec

    from agent.config import ConfigurationError, ShipSettings, load_ship_settings

    settings = ShipSettings()
    if config is not None:
        with ErrorTranslation(ConfigurationError), notice_pipe(config):
            settings = load_ship_settings(config)
    given = {name: options[name] for name in ShipSettings.__struct_fields__ if options[name] is not None}
    return msgspec.structs.replace(settings, **given)


def _run_ship(reports: list[str], options: ShipSettings, quiet: bool) -> int:
    """Run, print the result and return the exit code. Raises CliError, also if reports are kept and cannot be sent."""
    from agent.ship.options import TargetOptions, check_options, open_target
    from agent.ship.run import RetryPolicy
    from agent.ship.run import ship as run_ship
    from agent.ship.spool import NoSpool, Spool
    from agent.ship.target import BadTarget

    until = time.monotonic() + _validate_number(options.timeout, SECONDS, "timeout", 0.1)
    if not options.to:
        raise CliError("--to is missing: a folder, https://HOST/PATH or s3://BUCKET/PREFIX")
    target_options = TargetOptions(
        options.to,
        (options.method or "POST").upper(),
        (options.compress or "gzip").lower(),
        options.token_file,
        options.cert,
        options.key,
        options.ca,
        options.endpoint,
        options.region,
        options.credentials,
    )
    place = os.path.abspath(options.spool or os.path.join(_state_dir(), "spool"))
    limit = int(_validate_number(options.spool_limit, SPOOL_BYTES, "spool_limit", 0))
    spool = Spool(
        place, limit, int(_validate_number(options.spool_count, SPOOL_COUNT, "spool_count", 0)), print_warning
    )
    problem, target = None, None
    with ErrorTranslation(BadTarget):
        check_options(target_options)
    try:
        target = open_target(target_options, os.environ)
    except BadTarget as error:  # a secret that is missing today: what was scanned is kept all the same
        problem = str(error)
    try:
        with ErrorTranslation(NoSpool, hint="choose an empty folder, or one that ship made, with --spool"):
            result = run_ship(reports or [REPORT], target, spool, until, RetryPolicy(), print_warning)
    except OSError as error:
        raise CliError(f"{error.filename or place}: {error.strerror}; choose another spool with --spool") from error
    if not reports and not os.path.exists(REPORT) and (result.accepted or result.waiting):
        result = result._replace(bad=[])  # no scan has left one here; what waits was to be sent
    return _report_result(result, problem, target.label if target else "", spool, quiet)


def _report_result(result: RunResult, problem: str | None, label: str, spool: Spool, quiet: bool) -> int:
    if result.accepted and not quiet:
        sys.stdout.write(f"handed over {_count_reports(result.accepted)} to {label}\n")
    why = f": {result.reason}" if result.reason else ""
    dropped = sum(result.dropped.values())
    if dropped:
        limits = f"--spool-limit {spool.limit_bytes}, --spool-count {spool.limit_count}"
        bound = "the disk is full" if spool.is_disk_full else limits
        kinds = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in result.dropped.items() if count)
        print_warning(
            f"dropped {_count_reports(dropped)} ({kinds}), {result.dropped_ever} since {result.since}: "
            f"no room in {spool.path} ({bound})"
            f"{'' if result.waiting else why}"
        )
    if result.left:
        print_warning(f"{_count_reports(result.left)} not taken, and left where it was named{why}")
    waiting = f"{_count_reports(result.waiting)} {'waits' if result.waiting == 1 else 'wait'} in {spool.path}"
    if result.waiting and not problem:
        print_warning(f"{waiting}{why}")
    for line in result.bad if problem else result.bad[:-1]:
        print_warning(line)
    if problem:
        raise CliError(f"{problem}; {waiting}")
    if result.bad:
        raise CliError(result.bad[-1])
    return ALL_SENT if result.all_handed_over else SOME_WAITING


def _count_reports(count: int) -> str:
    return f"{count} report{'' if count == 1 else 's'}"


def _state_dir() -> str:
    """systemd's state directory when run as its service (the first of several), or the default."""
    return os.environ.get("STATE_DIRECTORY", "").partition(":")[0] or STATE


def _validate_number(value: float | None, default: float, name: str, least: float) -> float:
    """Validate a number of the command line or the file. Raises CliError."""
    if value is None:
        return default
    if not least <= value < 1e15:
        raise CliError(f"{name} = {value:g}: expected a number of at least {least:g}")
    return value
