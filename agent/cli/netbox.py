"""The sub-commands of `netbox`: sync nodes, NICs and cables to NetBox."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent.cli import options as opt
from agent.cli.errors import CliError, ErrorTranslation
from agent.cli.output import choose_format, deliver_json, show

if TYPE_CHECKING:
    from agent.netbox.matching import ReportedNode
    from agent.netbox.run import ApplyOptions, ApplyResult, SyncPlan

IN_STEP, DIFFERS = 0, 1
INSTALL = "pynetbox is not installed: pip install 'pynetbox>=7.4' (or, in the checkout, pip install '.[netbox]')"

netbox = typer.Typer(help="Sync nodes, NICs and cables to NetBox.", no_args_is_help=True)


Reports = Annotated[list[str] | None, opt.argument("REPORT...", "Reports of many nodes (.json, .gz).")]
Url = Annotated[str | None, opt.option("URL", "Address of NetBox: https://HOST. Default: the variable NETBOX_URL.")]
TokenFile = Annotated[str | None, opt.option("FILE", "File with the token. Default: the variable NETBOX_TOKEN.")]
Ca = Annotated[str | None, opt.option("FILE", "CA bundle; default: the system's.")]
Timeout = Annotated[float, opt.shown_option("SECONDS", "Time limit of one request.", min=0.1, max=3600)]
Create = Annotated[
    bool, typer.Option("--create", help="Create missing devices; needs --site, --role and --device-type.")
]
Site = Annotated[str | None, opt.option("SLUG", "Look for devices in this site only; --create makes them there.")]
Role = Annotated[str | None, opt.option("SLUG", "With --create: the role of new devices.")]
DeviceType = Annotated[str | None, opt.option("SLUG", "With --create: their type, or MANUFACTURER/SLUG.")]
Prune = Annotated[bool, typer.Option("--prune", help="Delete objects made by this tool that the node no longer has.")]
Form = Annotated[opt.TextOrJson | None, typer.Option("--format", help="text (default) or json.", show_default=False)]


@netbox.command("plan")
def netbox_plan(
    reports: Reports = None,
    url: Url = None,
    token_file: TokenFile = None,
    ca: Ca = None,
    source: opt.Source = None,
    report: opt.ReportFile = None,
    create: Create = False,
    site: Site = None,
    role: Role = None,
    device_type: DeviceType = None,
    prune: Prune = False,
    timeout: Timeout = 60.0,
    form: Form = None,
    output: opt.Output = None,
    no_color: opt.NoColor = False,
) -> None:
    """Show what `apply` would change.

    Changes nothing. Exit 0 nothing to do, 1 changes, 2 NetBox cannot be reached.
    """
    raise typer.Exit(_run_sync(locals()))


@netbox.command("apply")
def netbox_apply(
    reports: Reports = None,
    url: Url = None,
    token_file: TokenFile = None,
    ca: Ca = None,
    source: opt.Source = None,
    report: opt.ReportFile = None,
    create: Create = False,
    site: Site = None,
    role: Role = None,
    device_type: DeviceType = None,
    prune: Prune = False,
    limit_changes: Annotated[int | None, opt.option("NUMBER", "Send nothing if there are more changes.", min=0)] = None,
    timeout: Timeout = 60.0,
    form: Form = None,
    output: opt.Output = None,
    no_color: opt.NoColor = False,
) -> None:
    """Apply the changes to NetBox.

    Exit 0 all done, 1 something is left, 2 NetBox cannot be reached.
    """
    raise typer.Exit(_run_sync(locals(), send=True))


def _parse_plan_options(values: Mapping[str, Any]) -> ApplyOptions:
    """Parse what the run may do. Raises CliError."""
    from agent.netbox.run import ApplyOptions, DevicePlacement

    site, role, device_type = values["site"], values["role"], values["device_type"]
    if not values["create"] and (role or device_type):
        raise CliError("--role and --device-type need --create")
    if values["create"] and not (site and role and device_type):
        raise CliError("--create needs --site, --role and --device-type")
    placement = DevicePlacement(site, role, device_type) if values["create"] else None
    return ApplyOptions(placement, values["prune"], site, values.get("limit_changes"))


def _load_nodes(reports: list[str] | None, source: str | None, report: str | None) -> list[ReportedNode]:
    """Load the nodes. Raises CliError for the first report that cannot be read."""
    from agent.cli.request import ReportRequest, load_report
    from agent.netbox.matching import ReportedNode
    from agent.outputs.inventory.node import build_desired

    if reports and (source or report):
        raise CliError("reports and --source or --report exclude each other")
    if not reports:
        request = ReportRequest(source=source, report=report)
        return [ReportedNode(build_desired(request.make_report()[0]), report or source or "this host")]
    return [ReportedNode(build_desired(load_report(path)), path) for path in dict.fromkeys(reports)]


def _run_sync(values: Mapping[str, Any], send: bool = False) -> int:
    """Plan or apply with the values of a command's parameters, print the result and return the exit code.

    Raises CliError.
    """
    from agent.netbox.api import NetBoxError, resolve_access
    from agent.netbox.run import apply, plan

    options = _parse_plan_options(values)
    nodes = _load_nodes(values["reports"], values["source"], values["report"])
    with ErrorTranslation(NetBoxError):
        credentials = resolve_access(values["url"], values["token_file"], values["ca"], values["timeout"], os.environ)
        try:
            from agent.netbox.client import NetBox
        except ImportError as error:
            raise CliError(INSTALL) from error
        client = NetBox(credentials)
        client.connect()
        if not send:
            planned = plan(client, nodes, options)
            _print_plan(planned, None, values)
            return IN_STEP if planned.in_step else DIFFERS
        applied = apply(client, nodes, options)
    if applied.stopped:
        raise CliError(f"nothing was sent: {applied.stopped}")
    _print_plan(applied.plan, applied, values)
    if applied.broken:
        raise CliError(f"{applied.broken}; what was changed stays: run it again")
    return IN_STEP if applied.in_step else DIFFERS


def _print_plan(planned: SyncPlan, applied: ApplyResult | None, values: Mapping[str, Any]) -> None:
    from agent.netbox.page import data, page

    output = values["output"]
    if (values["form"] or choose_format(output)) == "json":
        deliver_json(data(planned, applied), output)
    else:
        show(lambda width: page(planned, width, applied), output, values["no_color"])
