"""`recommend`: what collectives reach, what bounds them, what faults cost, what to set."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

import typer

from agent.cli import options as opt
from agent.cli.errors import CliError, ErrorTranslation
from agent.cli.output import choose_format, write_answer
from agent.cli.stdin import notice_pipe

if TYPE_CHECKING:
    from agent.cli.request import ReportRequest
    from agent.model.prediction import Recommendation
    from agent.model.profile import Profile
    from agent.recommend.answer import Question

_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,6})?)\s*([KMGT]?)(?:i?B)?", re.IGNORECASE)
_RAILS = re.compile(r"(\d{1,3})x(\d{1,5}(?:\.\d+)?)")
_POWERS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}
LARGEST = 1 << 50  # bytes
_LIMIT_BYTES = 1 << 30  # of a log or a table

Collective = Literal["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "sendrecv"]
RecommendFormat = Literal["text", "json", "html", "conf", "env"]
_FORMS = {"": "text", ".txt": "text", ".json": "json", ".html": "html", ".htm": "html", ".conf": "conf", ".env": "env"}


class RecommendOptions(NamedTuple):
    """What is asked of one machine or platform."""

    collective: str | None
    size: str | None
    nodes: int | None
    nccl: str | None
    rails: str | None
    dataset: str | None = None
    hosts: str | None = None


recommend = typer.Typer(help="Predict NCCL bandwidth, recommend settings.", invoke_without_command=True)


@recommend.callback()
def recommend_machine(
    context: typer.Context,
    source: opt.Source = None,
    root: opt.Root = None,
    report: opt.ReportFile = None,
    only: opt.Only = None,
    skip: opt.Skip = None,
    timeout: opt.SourceTimeout = None,
    config: opt.ConfigFile = None,
    profile: opt.ProfileName = "auto",
    collective: Annotated[Collective | None, typer.Option(help="Only this collective.", show_default=False)] = None,
    size: Annotated[str | None, opt.option("BYTES", "Message size: 1G, 256M, 4096. Default 1G.")] = None,
    nodes: Annotated[
        int | None, opt.option("COUNT", "Nodes of the job. Default 1, 2 and 4.", min=1, max=100_000)
    ] = None,
    nccl: Annotated[
        str | None, opt.option("VERSION", "NCCL version, such as 2.27. Default: the installed one.")
    ] = None,
    dataset: Annotated[str | None, opt.option("DIR|URL", "Dataset of `fleet ingest`: one job on its nodes.")] = None,
    hosts: Annotated[
        str | None, opt.option("HOSTLIST", "With --dataset: the nodes of the job, as gpu[001-128].")
    ] = None,
    measured: Annotated[
        str | None, opt.option("FILE", "Judge the output of nccl-tests, nvbandwidth or perftest; - for stdin.")
    ] = None,
    rails: Annotated[str | None, opt.option("NUMBERxGBITS", "With --profile: rails of a node, such as 8x400.")] = None,
    form: Annotated[
        RecommendFormat | None,
        typer.Option(
            "--format", help="text (default), json, html; conf or env for the settings alone.", show_default=False
        ),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Also the settings that are not needed, and why.", show_default=False)
    ] = False,
    output: opt.Output = None,
    no_color: opt.NoColor = False,
    quiet: opt.Quiet = False,
) -> None:
    """Predict bus bandwidth by NCCL's own model, for this machine as it is and as it should be.

    With --profile and no evidence it predicts for that platform and reads no host. Exit 2 where nothing can be
    predicted, with the reason; where only NCCL's model does not fit, repairs and settings are written all the same.
    """
    if context.invoked_subcommand is not None:
        return
    from agent.cli.request import ReportRequest

    options = RecommendOptions(collective, size, nodes, nccl, rails, dataset, hosts)
    request = ReportRequest(source, root, report, only, skip, timeout, config, quiet, profile=profile)
    chosen = form or choose_format(output, _FORMS)
    if measured is not None:
        run_measured(request, options, measured, chosen, output, no_color)
    else:
        run_recommend(request, options, chosen, output, no_color, everything)


def run_recommend(
    request: ReportRequest,
    options: RecommendOptions,
    form: str,
    output: str | None,
    no_color: bool,
    everything: bool = False,
) -> None:
    """Answer and write it. Raises CliError where facts are missing; where no model fits, after all else is written."""
    from agent.outputs.html.recommend import render_recommendation_page
    from agent.outputs.text.recommend import render_recommendation
    from agent.recommend.settings import to_lines

    answer = _answer(request, options)
    unpredicted = all(row.busbw_gbyte_s is None for row in answer.predictions)
    if answer.missing == ["topology.gpus"]:
        raise CliError("nothing can be predicted: no GPU that a driver offers")
    if (unpredicted and answer.missing) or not answer.predictions:
        raise CliError(f"nothing can be predicted: missing in the report: {', '.join(answer.missing)}")
    write_answer(
        answer, form, partial(render_recommendation, everything=everything), output, no_color, indent=1,
        html=lambda: render_recommendation_page(answer),
        conf=lambda: to_lines(answer.settings, export=False),
        env=lambda: to_lines(answer.settings, export=True),
    )  # fmt: skip
    if unpredicted and form not in ("conf", "env"):
        notes = dict.fromkeys(row.note for row in answer.predictions if row.note)
        raise CliError(f"nothing can be predicted: {'; '.join(notes)}")


def run_measured(
    request: ReportRequest, options: RecommendOptions, path: str, form: str, output: str | None, no_color: bool
) -> None:
    """Judge a table of measurements. Raises CliError where it has no figure."""
    from agent.job.measured_tables import read_tables
    from agent.outputs.text.recommend_answers import render_measured
    from agent.recommend.answer import answer_profile, answer_report
    from agent.recommend.judge import judge_table
    from agent.recommend.machine import assume_node, read_node
    from agent.recommend.predict import version_of

    if form not in ("text", "json") or options.dataset is not None or options.size is not None:
        raise CliError("--measured: one machine, --format text or json; not --dataset or --size")
    with notice_pipe(path):
        table = read_tables(_read_lines(path))
    if not table.rows:
        raise CliError(f"{path}: no row of nccl-tests, nvbandwidth or perftest")
    question, rails = _question(options), parse_rails(options.rails)
    if _is_platform(request):
        profile = load_platform(request.profile)
        node, answer = assume_node(profile, rails), answer_profile(profile, rails, question)
    else:
        report = request.make_report()[0]
        node, answer = read_node(report), answer_report(report, question)
    version = version_of(question.nccl, [node])
    judged = judge_table(table, node, answer, version, (options.collective, options.nodes))
    write_answer(judged, form, render_measured, output, no_color, indent=1)


def _question(options: RecommendOptions) -> Question:
    from agent.recommend.answer import Question

    size = parse_size(options.size) if options.size is not None else None
    return Question(options.collective, size, options.nodes, _check_version(options.nccl))


def _is_platform(request: ReportRequest) -> bool:
    """Whether a platform is asked about, and no machine."""
    return request.profile not in ("auto", "none") and not (request.source or request.report or request.root)


def _answer(request: ReportRequest, options: RecommendOptions) -> Recommendation:
    from agent.recommend.answer import answer_profile, answer_report

    question, rails = _question(options), parse_rails(options.rails)
    if options.dataset is not None:
        if request.source or request.report or request.root or rails or options.nodes:
            raise CliError("--dataset takes --hosts; not --source, --root, --report, --rails or --nodes")
        return _answer_job(options.dataset, options.hosts, question)
    if options.hosts is not None:
        raise CliError("--hosts needs --dataset DIR: the reports of the nodes")
    if _is_platform(request):
        return answer_profile(load_platform(request.profile), rails, question)
    if rails is not None:
        raise CliError("--rails needs --profile without a source: a report has its own rails")
    return answer_report(request.make_report()[0], question)


def _answer_job(dataset: str, hosts: str | None, question: Question) -> Recommendation:
    from agent.cli.fleet.open_tables import query_tables

    with query_tables(dataset, None, [f"nodes={hosts}"] if hosts is not None else None) as tables:
        from agent.fleet.questions.job import predict_job

        return predict_job(tables, question)


def parse_size(text: str) -> int:
    """Bytes of "4096", "256M" or "1G": powers of 1024. Raises CliError.

    >>> parse_size("1G"), parse_size("256MiB"), parse_size("4096")
    (1073741824, 268435456, 4096)
    """
    match = _SIZE.fullmatch(text.strip())
    size = int(float(match[1]) * (1 << _POWERS[match[2].upper()])) if match else 0
    if not 0 < size <= LARGEST:
        raise CliError(f"--size {text}: bytes, or a number with K, M, G or T (powers of 1024), such as 256M")
    return size


def parse_rails(text: str | None) -> tuple[int, float] | None:
    """Number and Gb/s of "8x400". Raises CliError.

    >>> parse_rails("8x400"), parse_rails(None)
    ((8, 400.0), None)
    """
    if text is None:
        return None
    match = _RAILS.fullmatch(text.strip())
    if match is None or not int(match[1]) or not float(match[2]):
        raise CliError(f"--rails {text}: the number of rails and the Gb/s of each, such as 8x400")
    return int(match[1]), float(match[2])


def _check_version(text: str | None) -> str | None:
    if text is not None and re.fullmatch(r"2\.\d{1,2}(\.\d{1,3})?(-\d+)?", text) is None:
        raise CliError(f"--nccl {text}: a version such as 2.27 or 2.27.7")
    return text


def load_platform(name: str) -> Profile:
    """A platform by its name, or a file. Raises CliError."""
    from agent.cli.request import load_profile

    profile = load_profile(name)
    assert profile is not None, "neither auto nor none"
    return profile


def _read_lines(path: str) -> Iterator[str]:
    """The lines of a file, or of stdin for "-". Raises CliError."""
    size = 0
    with (
        ErrorTranslation(OSError, about=path),
        nullcontext(sys.stdin.buffer) if path == "-" else open(path, "rb") as file,
    ):
        while line := file.readline(1 << 16):
            size += len(line)
            if size > _LIMIT_BYTES:
                raise CliError(f"larger than {_LIMIT_BYTES >> 30} GiB")
            yield line.decode("utf-8", "replace")
