"""`fleet pull`: fetch the reports of hosts by ssh. The work is in agent/receive/pull.py."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli import options as opt
from agent.cli.errors import CliError, ErrorTranslation, print_warning
from agent.cli.fleet.ingest import NodeKeyOption, ingest
from agent.cli.fleet.open_tables import unfold_nodes
from agent.cli.output import ProgressLine

if TYPE_CHECKING:
    from agent.receive.pull import PullOptions

COMMAND = 'fabricscope scan --quiet --format ndjson --state-dir "$HOME/.fabricscope"'
BAR_CHARACTERS = 30


def pull(
    nodes: Annotated[
        str | None, opt.shown_option("LIST", "Hosts: gpu[001-128],login1; - reads them from stdin.")
    ] = None,
    to: Annotated[str | None, opt.option("DIR", "Folder for the reports.", "--to")] = None,
    dataset: Annotated[
        str | None, opt.shown_option("DIR|URL", "Load them into this dataset, too.", envvar="FABRICSCOPE_DATASET")
    ] = None,
    node_key: NodeKeyOption = None,
    command: Annotated[str, opt.shown_option("COMMAND", "Command that prints a report on the host.")] = COMMAND,
    ssh: Annotated[str, opt.shown_option("COMMAND", "ssh with options, such as 'ssh -F FILE'.")] = "ssh",
    jobs: Annotated[int, opt.shown_option("NUMBER", "Number of hosts at the same time.", min=1, max=512)] = 32,
    timeout: Annotated[float, opt.shown_option("SECONDS", "Time limit of one host.", min=0.1)] = 60.0,
    quiet: opt.Quiet = False,
) -> None:
    """Fetch the reports of hosts by ssh.

    Your own ssh, its keys, agent and configuration; no password is asked for. Exit 0 all fetched, 1 some were not:
    one line for each.
    """
    from tempfile import TemporaryDirectory

    from agent.receive.pull import BadHost, PullOptions, check_hosts

    if not nodes:
        raise CliError("--nodes is missing: a host list, such as gpu[001-128]")
    if node_key is not None and not dataset:
        raise CliError("--node-key is for --dataset: reports in a folder have all keys")
    if not to and not dataset:
        raise CliError("--to or --dataset is missing: where the reports go")
    with ErrorTranslation(BadHost, about="--nodes"):
        hosts = check_hosts(unfold_nodes(sys.stdin.read(1 << 24) if nodes == "-" else nodes, "--nodes"))
    with ErrorTranslation(ValueError, about="--ssh"):
        words = shlex.split(ssh)
    if not hosts or not words:
        raise CliError("--nodes: no host in it" if words else "--ssh: no program in it")
    program = (*words, "-T", "-o", "BatchMode=yes", "-o", f"ConnectTimeout={max(int(min(timeout, 30)), 1)}")
    options = PullOptions(program, command, jobs, timeout)
    if to:
        failed = _pull_and_load(hosts, to, (dataset, node_key), options, quiet)
    else:
        with TemporaryDirectory(prefix="fabricscope-pull-") as folder:
            failed = _pull_and_load(hosts, folder, (dataset, node_key), options, quiet)
    if failed:
        raise typer.Exit(1)


def _pull_and_load(
    hosts: list[str], folder: str, into: tuple[str | None, str | None], options: PullOptions, quiet: bool
) -> int:
    """Fetch all, and load them; how many failed. `into`: dataset and node key. Raises CliError."""
    from probes.planted import PathUse, make_folder

    dataset, node_key = into
    with ErrorTranslation(OSError, about=folder):
        make_folder(folder, PathUse.FOLDER, 0o750)
    failed = _pull_all(hosts, folder, options, quiet)
    if dataset and failed < len(hosts):
        ingest([folder], dataset=dataset, node_key=node_key, quiet=quiet)
    return failed


def _pull_all(hosts: list[str], folder: str, options: PullOptions, quiet: bool) -> int:
    """Fetch all; how many failed. Raises CliError."""
    from agent.receive.pull import pull

    failed = 0
    with ErrorTranslation(OSError, about=options.ssh[0]), ProgressLine(not quiet) as line:
        for done, result in enumerate(pull(hosts, folder, options), 1):
            line.erase()
            if result.problem:
                failed += 1
                print_warning(f"{result.host}: {result.problem}")
            elif result.node.partition(".")[0] != result.host.partition(".")[0]:
                print_warning(f"{result.host}: its report is of {result.node!r:.80}")
            bar = "#" * (BAR_CHARACTERS * done // len(hosts))
            problems = f", {failed} failed" if failed else ""
            line.show(f"[{bar:.<{BAR_CHARACTERS}}] {done} of {len(hosts)} hosts{problems}")
    if not quiet:
        print(f"{len(hosts) - failed} of {len(hosts)} host{'s'[: len(hosts) != 1]} fetched into {folder}")
    return failed
