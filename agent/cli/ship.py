"""`ship`: hand reports to a fleet inventory, with a spool for when it does not answer."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent.cli.options import a_number
from agent.cli.refused import Refused

if TYPE_CHECKING:
    from agent.config import ShipSettings
    from agent.ship.run import Shipped
    from agent.ship.spool import Spool

REPORT = "/var/lib/fabricscope/report.json"
STATE = "/var/lib/fabricscope-ship"
ALL_GONE, SOME_LEFT = 0, 1
SPOOL_BYTES, SPOOL_COUNT, SECONDS = 64 << 20, 2000, 60.0


def _option(metavar: str, text: str, **more: Any) -> Any:
    return typer.Option(metavar=metavar, help=text, show_default=False, **more)


def ship(
    reports: Annotated[
        list[str] | None,
        typer.Argument(metavar="REPORT...", help=f"Reports (.json, .gz); {REPORT}.", show_default=False),
    ] = None,
    to: Annotated[str | None, _option("URL", "A folder, https://, or s3://BUCKET/PREFIX.")] = None,
    method: Annotated[str | None, _option("POST|PUT", "PUT: a file below the address; else POST.")] = None,
    compress: Annotated[str | None, _option("gzip|zstd|none", "How it is sent; gzip.")] = None,
    token_file: Annotated[str | None, _option("FILE", "Holds the bearer token.")] = None,
    cert: Annotated[str | None, _option("FILE", "Our certificate, PEM, where the server asks for one.")] = None,
    key: Annotated[str | None, _option("FILE", "Its key, where it is not in the same file.")] = None,
    ca: Annotated[str | None, _option("FILE", "Authorities to believe; else the system's.")] = None,
    endpoint: Annotated[str | None, _option("URL", "s3: a store that is not AWS.")] = None,
    region: Annotated[str | None, _option("NAME", "s3: else AWS_REGION, else us-east-1.")] = None,
    credentials: Annotated[str | None, _option("FILE", "s3: in AWS's form; else the AWS_ variables.")] = None,
    spool: Annotated[str | None, _option("DIR", f"Where reports wait; {STATE}/spool.")] = None,
    state_dir: Annotated[str | None, _option("DIR", "The spool is DIR/spool.")] = None,
    spool_limit: Annotated[int | None, _option("BYTES", "Of all that waits; 64 MiB.", min=0)] = None,
    spool_count: Annotated[int | None, _option("NUMBER", "Of reports that wait; 2000.", min=0)] = None,
    timeout: Annotated[
        float | None, _option("SECONDS", "Bound on the whole run; 60.", min=0.1, callback=a_number)
    ] = None,
    config: Annotated[str | None, _option("FILE", "TOML: a table [ship] with these options.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say only what went wrong.")] = False,
) -> None:
    """Hand reports to a fleet inventory, with a spool. Exit 0 all handed over, 1 some still wait (or were given up)."""
    from agent.config import ShipSettings

    asked = ShipSettings(
        to=to,
        method=method,
        compress=compress,
        token_file=token_file,
        cert=cert,
        key=key,
        ca=ca,
        endpoint=endpoint,
        region=region,
        credentials=credentials,
        spool=spool or (os.path.join(state_dir, "spool") if state_dir else None),
        spool_limit=spool_limit,
        spool_count=spool_count,
        timeout=timeout,
    )
    raise typer.Exit(_ship(reports or [REPORT], _merged(asked, config), quiet))


def _merged(asked: ShipSettings, config: str | None) -> ShipSettings:
    """The command line, then the file. Raises Refused."""
    if config is None:
        return asked
    import msgspec

    from agent.config import ConfigurationError, load_ship_settings

    try:
        told = msgspec.structs.asdict(load_ship_settings(config))
    except ConfigurationError as error:
        raise Refused(str(error)) from error
    given = {name: value for name, value in msgspec.structs.asdict(asked).items() if value is not None}
    return type(asked)(**{**told, **given})


def _ship(reports: list[str], asked: ShipSettings, quiet: bool) -> int:
    """Run, tell, and choose the exit code. Raises Refused, also where reports are kept and cannot be sent."""
    from agent.ship.answer import BadTarget
    from agent.ship.deliver import Patience
    from agent.ship.run import ship as do
    from agent.ship.spool import Spool
    from agent.ship.targets import Address, checked, opened

    until = time.monotonic() + _number(asked.timeout, SECONDS, "timeout", 0.1)
    if not asked.to:
        raise Refused("--to says where reports go: a folder, https://HOST/PATH or s3://BUCKET/PREFIX")
    address = Address(
        asked.to,
        (asked.method or "POST").upper(),
        (asked.compress or "gzip").lower(),
        asked.token_file,
        asked.cert,
        asked.key,
        asked.ca,
        asked.endpoint,
        asked.region,
        asked.credentials,
    )
    place = os.path.abspath(asked.spool or os.path.join(_state_dir(), "spool"))
    limit = int(_number(asked.spool_limit, SPOOL_BYTES, "spool_limit", 0))
    spool = Spool(place, limit, int(_number(asked.spool_count, SPOOL_COUNT, "spool_count", 0)), _say)
    trouble, target = None, None
    try:
        checked(address)
    except BadTarget as error:
        raise Refused(str(error)) from error
    try:
        target = opened(address, os.environ)
    except BadTarget as error:  # a secret that is missing today: what was scanned is kept all the same
        trouble = str(error)
    try:
        made = do(reports, target, spool, until, Patience(), _say)
    except OSError as error:
        raise Refused(f"{error.filename or place}: {error.strerror}; --spool says where reports may wait") from error
    return _told(made, trouble, target.shown if target else "", spool, quiet)


def _told(made: Shipped, trouble: str | None, shown: str, spool: Spool, quiet: bool) -> int:
    if made.taken and not quiet:
        sys.stdout.write(f"handed over {_reports(made.taken)} to {shown}\n")
    why = f": {made.why}" if made.why else ""
    gone = sum(made.dropped.values())
    if gone:
        kinds = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in made.dropped.items() if count)
        _say(
            f"dropped {_reports(gone)} ({kinds}), {made.dropped_ever} since {made.since}: no room in {spool.path} "
            f"(--spool-limit {spool.limit_bytes}, --spool-count {spool.limit_count}){'' if made.waiting else why}"
        )
    if made.left:
        _say(f"{_reports(made.left)} not taken, and left where it was named{why}")
    waiting = f"{_reports(made.waiting)} {'waits' if made.waiting == 1 else 'wait'} in {spool.path}"
    if made.waiting and not trouble:
        _say(f"{waiting}{why}")
    for line in made.bad if trouble else made.bad[:-1]:
        _say(line)
    if trouble:
        raise Refused(f"{trouble}; {waiting}")
    if made.bad:
        raise Refused(made.bad[-1])
    return ALL_GONE if made.all_gone else SOME_LEFT


def _reports(count: int) -> str:
    return f"{count} report{'' if count == 1 else 's'}"


def _state_dir() -> str:
    """systemd's, where we run as its service; it may name several."""
    return os.environ.get("STATE_DIRECTORY", "").partition(":")[0] or STATE


def _number(value: float | None, default: float, name: str, least: float) -> float:
    """A number of the command line or the file. Raises Refused."""
    if value is None:
        return default
    if not least <= value < 1e15:
        raise Refused(f"{name} = {value:g} is too small or no number")
    return value


def _say(text: str) -> None:
    print(f"fabricscope: {text}"[:1000], file=sys.stderr)
