"""The sub-commands of `profile`."""

from __future__ import annotations

from typing import Annotated

import typer

from agent.cli import options as opt

profiles = typer.Typer(help="What platforms, or a site's good node, have: list, show, learn.", no_args_is_help=True)


@profiles.command("list")
def profile_list() -> None:
    """The built-in profiles, a line each."""
    from agent.cli.profile import listed

    listed()


@profiles.command("show")
def profile_show(
    name: Annotated[str, typer.Argument(help="A built-in profile, or a file.", show_default=False)],
) -> None:
    """One profile as TOML, with the source of each value."""
    from agent.cli.profile import shown

    shown(name)


@profiles.command("learn")
def profile_learn(
    source: opt.Source = None,
    root: opt.Root = None,
    report: opt.ReportFile = None,
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="What to call it; else the product.", show_default=False)
    ] = None,
    output: opt.Output = None,
    timeout: opt.Timeout = 30.0,
    quiet: opt.Quiet = False,
) -> None:
    """Write a profile of what a good node has now, for `--profile FILE` on its siblings."""
    from agent.cli.asked import Asked
    from agent.cli.profile import learn

    learn(Asked(source, root, report, None, None, timeout, None, quiet, False), name, output)
