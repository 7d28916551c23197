"""The sub-commands of `profile`: list, show, learn."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from agent.cli import options as opt
from agent.cli.errors import CliError, print_warning
from agent.cli.output import deliver_text

profiles = typer.Typer(help="Show or learn the expected hardware.", no_args_is_help=True)


@profiles.command("list")
def profile_list() -> None:
    """List the built-in profiles."""
    from agent.platforms.profiles import list_profiles, load_profile

    width = max(len(name) for name in list_profiles())
    for name in list_profiles():
        sys.stdout.write(f"{name:{width}}  {load_profile(name).title}\n")


@profiles.command("show")
def profile_show(
    name: Annotated[str, opt.argument("NAME|FILE", "A built-in profile, or a file.")],
) -> None:
    """Show a profile as TOML.

    Each value has its source.
    """
    from agent.cli.request import load_profile
    from agent.platforms.profiles import profile_to_toml

    profile = load_profile(name)
    if profile is None:
        raise CliError(f"{name}: not a profile")
    deliver_text(profile_to_toml(profile), None)


@profiles.command("learn")
def profile_learn(
    source: opt.Source = None,
    root: opt.Root = None,
    report: opt.ReportFile = None,
    name: Annotated[str | None, opt.option("NAME", "Name of the profile. Default: the product.")] = None,
    output: opt.Output = None,
    timeout: opt.SourceTimeout = None,
    quiet: opt.Quiet = False,
) -> None:
    """Learn a profile from a good node.

    For `--profile FILE` on nodes of the same kind.
    """
    from agent.cli.request import ReportRequest
    from agent.platforms.profiles import learn_profile, profile_to_toml

    request = ReportRequest(source, root, report, timeout=timeout, quiet=quiet)
    learned, _ = request.make_report()
    if learned.summary.verdict in ("error", "critical"):
        worst = next(iter(learned.findings), None)
        why = f": {worst.rule} {worst.label}" if worst else ""
        raise CliError(f"no profile is learned from a node whose verdict is {learned.summary.verdict}{why}")
    if not learned.topology.gpus and not learned.topology.host_nics:
        raise CliError("nothing to learn: this node has no GPU and no NIC")
    if learned.summary.verdict == "unknown":
        print_warning("some checks could not run on this node: the profile may be incomplete")
    profile = learn_profile(learned, name or learned.node.product or "site")
    deliver_text(profile_to_toml(profile), output, public=True)
