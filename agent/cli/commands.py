"""The commands, for typer. Each imports what it needs when it runs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from agent.cli import options as opt
from agent.cli.configuration import config
from agent.cli.errors import INTERRUPTED, explain_usage_error, print_error
from agent.cli.install_units import install_units
from agent.cli.netbox import netbox
from agent.cli.plain import CheckAs, ExportFormat, FailOn, JobFormat
from agent.cli.profiles import profiles
from agent.cli.program import GroupedHelp, build_program, set_plain_usage
from agent.cli.receive import receive
from agent.cli.recommend import recommend
from agent.cli.ship import ship
from agent.cli.watch import watch
from agent.version import VERSION

# typer exports UsageError under no public name
USAGE_ERROR: type[Exception] = typer.BadParameter.__bases__[0]

app = typer.Typer(
    name="fabricscope",
    help="Shows how a GPU server is wired, from PCIe to RoCE, and what is wrong with it. Read-only.",
    cls=GroupedHelp,
    no_args_is_help=True,
    add_completion=False,  # `completion SHELL` is the one
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def run_command(arguments: Sequence[str], failed: int) -> int:
    """Run the command that the arguments name; `failed`: the exit code of wrong usage."""
    program = set_plain_usage(build_program(app, arguments))
    try:
        code = program(args=list(arguments), prog_name="fabricscope", standalone_mode=False)
    except USAGE_ERROR as error:
        return _print_usage_error(error, failed)
    except typer.Abort:
        code = INTERRUPTED
    if code == INTERRUPTED:  # typer's result for Ctrl-C
        print_error("interrupted")
    return code if isinstance(code, int) else 0


def _print_usage_error(error: Exception, code: int) -> int:
    message = getattr(error, "format_message", lambda: str(error))()
    if message.startswith("Usage:"):  # no command: the help itself
        print(message, file=sys.stderr)
        return code
    context = getattr(error, "ctx", None)
    message, hint = explain_usage_error(message, context.command_path.split() if context else [])
    if message:
        print_error(message, hint)
    return code


def _print_version(requested: bool) -> None:
    if requested:
        print(f"fabricscope {VERSION}")
        raise typer.Exit


@app.callback()
def _accept_program_options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Log how every probe ended; show tracebacks.")] = False,
) -> None:
    """Options of the program itself; `--debug` is removed in `main`, at any position."""


@app.command()
def scan(
    path: Annotated[str | None, opt.argument("PATH", "The same as --source PATH.")] = None,
    source: opt.Source = None,
    root: opt.Root = None,
    report: opt.ReportFile = None,
    only: opt.Only = None,
    skip: opt.Skip = None,
    timeout: opt.Timeout = None,
    state_dir: opt.StateDir = None,
    accept_inventory: opt.AcceptInventory = False,
    interval: opt.Interval = None,
    config: opt.ConfigFile = None,
    profile: opt.ProfileName = "auto",
    form: opt.ScanForm = None,
    output: opt.Output = None,
    capture: Annotated[str | None, opt.option("FILE", "Also save all evidence of this run.")] = None,
    redact: opt.Redact = False,
    no_color: opt.NoColor = False,
    quiet: opt.Quiet = False,
    brief: opt.Brief = False,
    topology: opt.TopologyOnly = False,
    verbose: opt.Verbose = False,
) -> None:
    """Scan a host and print its report.

    Exit 0 once the report is written, with or without findings.
    """
    from agent.cli.scan import scan_host

    scan_host(locals())


@app.command()
def check(
    source: opt.Source = None,
    root: opt.Root = None,
    report: opt.ReportFile = None,
    only: opt.Only = None,
    skip: opt.Skip = None,
    timeout: opt.Timeout = None,
    state_dir: opt.StateDir = None,
    accept_inventory: opt.AcceptInventory = False,
    interval: opt.Interval = None,
    config: opt.ConfigFile = None,
    profile: opt.ProfileName = "auto",
    fail_on: Annotated[
        FailOn | None, typer.Option(help="Lowest severity that fails the check.", show_default=False)
    ] = None,
    max_age: Annotated[
        float | None, opt.shown_option("SECONDS", "Exit 3 for a report that is older (with --report).", min=0)
    ] = None,
    as_: Annotated[CheckAs, typer.Option("--as", help="Output format: nagios, npd, slurm-prolog.")] = "nagios",
    fail_on_unknown: Annotated[
        bool, typer.Option("--fail-on-unknown", help="slurm-prolog: fail also if essential checks have no data.")
    ] = False,
    quiet: opt.Quiet = False,
) -> None:
    """Scan as a monitoring plugin.

    One summary line, then one line per finding. Exit 0 ok or nothing to check, 1 warning, 2 error or critical,
    3 unknown.
    """
    from agent.cli.check import check_host

    raise typer.Exit(check_host(locals()))


@app.command()
def capture(
    output: Annotated[
        str | None, opt.option("FILE", "A new folder, or .tar, .tar.gz, .tar.zst.", "--output", "-o")
    ] = None,
    root: opt.Root = None,
    source: opt.Source = None,
    timeout: opt.CaptureTimeout = 60.0,
    redact: opt.Redact = False,
    quiet: opt.Quiet = False,
) -> None:
    """Save all evidence in one archive.

    It replays anywhere: fabricscope scan --source FILE.
    """
    from agent.cli.request import ReportRequest
    from agent.cli.scan import CaptureTarget, run_capture

    request = ReportRequest(source, root, timeout=timeout, quiet=quiet)
    run_capture(request, CaptureTarget(output, redact))


@app.command()
def diff(
    old: Annotated[str, opt.argument("OLD", "A report (.json, .gz), or what --source takes.")],
    new: Annotated[str, opt.argument("NEW", "The same, from later or from another host.")],
    form: Annotated[
        opt.TextOrJson | None, typer.Option("--format", help="text (default) or json.", show_default=False)
    ] = None,
    output: opt.Output = None,
    timeout: opt.SourceTimeout = None,
    config: opt.ConfigFile = None,
    profile: opt.ProfileName = "auto",
    no_color: opt.NoColor = False,
    quiet: opt.Quiet = False,
) -> None:
    """Compare two reports.

    Devices, links, software, settings, findings and error counters. Exit 0 no change, 1 changes.
    """
    from agent.cli.diff import run_diff
    from agent.cli.request import ReportRequest

    request = ReportRequest(timeout=timeout, config=config, quiet=quiet, profile=profile)
    raise typer.Exit(run_diff(old, new, request, form, output, no_color))


@app.command(help=f"Export a report for another tool.\n\nFormats: {opt.EXPORT_FORMS}. Exit 0 once it is written.")
def export(
    form: Annotated[ExportFormat, opt.argument("FORMAT", "The format.")],
    source: opt.Source = None,
    root: opt.Root = None,
    report: opt.ReportFile = None,
    only: opt.Only = None,
    skip: opt.Skip = None,
    timeout: opt.Timeout = None,
    state_dir: opt.StateDir = None,
    accept_inventory: opt.AcceptInventory = False,
    interval: opt.Interval = None,
    config: opt.ConfigFile = None,
    profile: opt.ProfileName = "auto",
    output: opt.Output = None,
    quiet: opt.Quiet = False,
) -> None:
    """Write one report in a form of agent/outputs/export."""
    from agent.cli.scan import export_host

    export_host(locals())


@app.command()
def rules(
    form: Annotated[opt.TextOrJson, typer.Option("--format", help="text or json.")] = "text",
) -> None:
    """List all rules."""
    from agent.cli.reference import print_rules

    print_rules(form)


@app.command()
def explain(
    rule: Annotated[
        list[str],
        opt.argument(
            "RULE...",
            "A rule's name, a prefix, a family or words (Xid 79); with --report also a part (GPU2, mlx5_0/1).",
        ),
    ],
    report: opt.FindingsFile = None,
    everything: Annotated[
        bool, typer.Option("--all", help="The whole page: also how it is decided, when it does not apply, every fix.")
    ] = False,
) -> None:
    """Explain a rule.

    What it checks, why it matters and how to confirm; --all prints the whole page. For a prefix, a family or words:
    their rules. With --report: the findings of that rule or part, and how to fix that part.
    """
    from agent.cli.reference import print_findings, print_rule

    if report is None:
        print_rule(" ".join(rule), everything)
    else:
        print_findings(" ".join(rule), report, everything)


@app.command()
def schema() -> None:
    """Print the JSON Schema of the report."""
    from agent.cli.reference import print_schema

    print_schema()


@app.command()
def completion(
    shell: Annotated[opt.Shell, opt.argument("SHELL", "bash, zsh or fish.")],
) -> None:
    """Print the completion of a shell.

    For bash: fabricscope completion bash > ~/.local/share/bash-completion/completions/fabricscope
    """
    from agent.cli.reference import print_completion

    print_completion(app, shell)


@app.command()
def demo(
    form: opt.ScanForm = None,
    output: opt.Output = None,
    no_color: opt.NoColor = False,
    brief: opt.Brief = False,
    topology: opt.TopologyOnly = False,
    verbose: opt.Verbose = False,
) -> None:
    """Show a faulty 8-GPU server.

    A recorded machine that ships with fabricscope, scanned like any other source: no GPU is needed.
    """
    from agent.cli.scan import OutputChoice, choose_detail, run_demo

    run_demo(OutputChoice(form, output, no_color, choose_detail(brief, topology, verbose)))


app.command()(install_units)


@app.command()
def job(
    paths: Annotated[
        list[str], opt.argument("PATH...", "Logs, or folders of any mix of what jobs leave; - for stdin.")
    ],
    report: Annotated[
        list[str] | None, opt.option("FILE", "Report of a host of the job. May be repeated.", "--report")
    ] = None,
    source: opt.Source = None,
    dataset: Annotated[str | None, opt.option("DIR|URL", "Dataset of `fleet ingest`: the hosts of the job.")] = None,
    at: Annotated[
        str | None, opt.option("TIME", "With --dataset: its state at TIME (RFC 3339). Default: end of the log.")
    ] = None,
    profile: Annotated[str | None, opt.option("NAME|FILE", "Compare with this platform.")] = None,
    form: Annotated[
        JobFormat | None, typer.Option("--format", help="text (default), json or html.", show_default=False)
    ] = None,
    timeout: opt.JobTimeout = None,
    output: opt.Output = None,
    no_color: opt.NoColor = False,
    quiet: opt.Quiet = False,
) -> None:
    """Explain why a job failed, hung or was slow.

    From logs of NCCL, RCCL and HCCL, watchdog lines, flight recorder dumps, RAS and Inspector files. Exit 0 once an
    answer is written, 2 if nothing could be read.
    """
    from agent.cli.job import explain_job

    explain_job(locals())


app.command()(ship)
app.command()(receive)
app.command()(watch)
app.add_typer(config, name="config")
app.add_typer(netbox, name="netbox")
app.add_typer(profiles, name="profile")
app.add_typer(recommend, name="recommend")
