"""The questions from outside: forms, wrong input, exit codes, shared options, what is imported for them, and Ctrl-C
while a dataset is open.
"""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest
from pyarrow import parquet

from agent.cli.fleet import open_tables
from agent.cli.main import run
from tests.agent.fleet.small import finding, node, report, take
from tests.conftest import ROOT
from tests.texts import error_lines

HOSTILE = "x\x1b[31m,=cmd()\u202e"
SINCE = ("--since", "2026-01-15T10:00:00Z")
QUESTIONS = (("summary",), ("outliers",), ("findings",), ("drift", *SINCE), ("duplicates",))
ENDLESS = {
    "counting": "select count(*) from range(1000000000000)",
    "recursive": "with recursive r as (select 1 as n union all select n + 1 from r) select count(*) from r",
    "rows": "select * from range(1000000000000)",
}
STUCK = """
import sys, time
from agent.cli.main import run
from agent.fleet.engines.duckdb_files import Embedded
if sys.argv[1] == "hears nothing":
    Embedded.close = lambda self: time.sleep(100)
answered = Embedded._run_query
endless = {"sql": "select count(*) from range(1000000000000)", "parameters": {}}
Embedded._run_query = lambda self, query, *how: answered(self, query._replace(**endless), *how)
sys.exit(run(sys.argv[2:]))
"""
BUSY_SECONDS = 1.5  # of a processor: a third of it is the start, then the query runs
LIBRARIES = ("duckdb", "pyarrow", "psycopg")
WITHOUT = f"""
import importlib.util, sys
real = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name in {LIBRARIES} else real(name, *more)
for each in {LIBRARIES}:
    sys.modules[each] = None
from agent.cli.main import run
sys.exit(run(sys.argv[1:]))
"""
DATASET = ("--dataset", "dataset")
COMMANDS = (
    ("ingest", "reports", *DATASET),
    ("summary", *DATASET),
    ("summary", *DATASET, "--where", "class=H100"),
    ("outliers", *DATASET),
    ("findings", *DATASET),
    ("drift", "--since", "24h", *DATASET),
    ("duplicates", *DATASET),
    ("topology", *DATASET),
    ("cables", *DATASET),
    ("html", *DATASET),
    ("query", "SELECT 1", *DATASET),
    ("export", "csv", "host", *DATASET),
    ("load", "--engine", "postgres://h/d", *DATASET),
)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    place = tmp_path_factory.mktemp("asked") / "dataset"
    outlier = {3: "6.9", 4: HOSTILE}
    reports = [
        node(f"n{n}", kernel=outlier.get(n, "6.8"), machine_id="same" if n in (1, 2) else f"id{n}") for n in range(24)
    ]
    reports += [node("n5", 8, kernel="6.9", findings=[finding("ib-port-down", HOSTILE, "error")])]
    take(place, *reports)
    return str(place)


def run_question(capfd, *arguments):
    """Exit code, stdout, stderr."""
    code = run(["fleet", *arguments])
    output = capfd.readouterr()
    return code, output.out, output.err


def test_named_nodes_without_a_report_are_named(capfd, dataset):
    where = ("--dataset", dataset, "--where", "nodes=n[1-3,30-31]", "--format", "json")
    code, text, error = run_question(capfd, "summary", *where)
    assert (code, json.loads(text)["nodes"], error) == (0, 3, "warning: no report from n[30-31]\n")
    code, _, error = run_question(capfd, "summary", *where, "--where", "class=v p")
    assert (code, error) == (0, "warning: no report from n[30-31]\n")


def test_a_node_named_as_a_host_list_is_found_by_its_name(capfd, tmp_path):
    take(tmp_path / "d", report("n[1-2]"), report("n3"))
    for name in ("n[1-2]", "n%5B1-2%5D"):
        where = ("--dataset", str(tmp_path / "d"), "--where", f"nodes={name}", "--format", "json")
        code, text, error = run_question(capfd, "summary", *where)
        assert (code, json.loads(text)["nodes"], error) == (0, 1, "")
    take(tmp_path / "d", report("n1"))  # then the list means n1 and n2
    code, text, error = run_question(capfd, "summary", *where[:3], "nodes=n[1-2]", "--format", "json")
    assert (code, json.loads(text)["nodes"], error) == (0, 1, "warning: no report from n2\n")


def test_findings_are_a_table_and_of_a_rule_or_node_the_steps(capfd, dataset):
    code, text, _ = run_question(capfd, "findings", "--dataset", dataset)
    head = next(line for line in text.splitlines() if line.startswith("  severity"))
    assert ["severity", "rule", "nodes", "count", "cost", "first", "seen"] == head.split()
    rule, nodes = next(line for line in text.splitlines() if line.startswith("  error")).split()[1:3]
    code, text, _ = run_question(capfd, "findings", rule, "--dataset", dataset)
    assert (0, True) == (code, f"ERROR  {rule}" in text)
    code, text, _ = run_question(capfd, "findings", nodes, "--dataset", dataset)
    assert (0, True) == (code, f"ERROR  {rule}" in text)
    assert "on 1 node" in text
    code, text, error = run_question(capfd, "findings", "nowhere", "--dataset", dataset)
    assert (2, "error: no node of the dataset matches nodes=nowhere\n") == (code, error)


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda item: item[0])
def test_every_form(capfd, dataset, question, tmp_path):
    code, text, error = run_question(capfd, *question, "--dataset", dataset)
    assert (code, error) == (0, "")
    assert "n5" in text or question[0] in ("outliers", "duplicates", "summary")
    assert "\x1b" not in text
    assert "\u202e" not in text
    code, text, _ = run_question(capfd, *question, "--dataset", dataset, "--format", "json")
    answer = json.loads(text)
    assert code == 0
    code, text, _ = run_question(capfd, *question, "--dataset", dataset, "--format", "csv")
    rows = list(csv.reader(io.StringIO(text)))
    assert len(rows) > 1
    assert len({len(row) for row in rows}) == 1
    assert not [cell for row in rows for cell in row if cell.startswith(("=", "+", "@"))]
    assert not [cell for row in rows for cell in row if not cell.isprintable()]
    target = tmp_path / "answer.json"
    assert run_question(capfd, *question, "--dataset", dataset, "-o", str(target)) == (
        0,
        "",
        f"wrote {target}\n",
    )
    assert json.loads(target.read_text()) == answer


def test_the_dataset_may_stand_in_the_environment(capfd, dataset, monkeypatch):
    monkeypatch.setenv("FABRICSCOPE_DATASET", dataset)
    assert run_question(capfd, "summary")[1].startswith("24 nodes")


def test_some_nodes(capfd, dataset):
    code, text, _ = run_question(
        capfd, "summary", "--dataset", dataset, "--where", "nodes=n[1-3]", "--where", "class=v p"
    )
    assert (code, text.startswith("3 nodes")) == (0, True)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["summary"], "--dataset"),
        (["summary", "--dataset", "/nowhere"], "no dataset"),
        (["summary", "--dataset", "DATASET", "--where", "rack=1"], "cluster=NAME"),
        (["summary", "--dataset", "DATASET", "--where", "nodes=n[1"], "not closed"),
        (["summary", "--dataset", "DATASET", "--where", "nodes=zz"], "no node of the dataset"),
        (["summary", "--dataset", "DATASET", "--stale-after", "soon"], "not a duration"),
        (["summary", "--dataset", "DATASET", "-o", "x.pdf"], "unknown suffix"),
        (["summary", "--dataset", "DATASET", "-o", "/nowhere/x.json"], "/nowhere/x.json"),
        (["summary", "--dataset", "DATASET", "--engine", "oracle://u:secret@h"], "oracle"),
        (["outliers", "--dataset", "DATASET", "--majority", "0.2"], "--majority"),
        (["outliers", "--dataset", "DATASET", "--majority", "nan"], "nan is not a number"),
        (["outliers", "--dataset", "DATASET", "--majority", "inf"], "--majority"),
        (["drift", "--dataset", "DATASET", "--since", "999999w"], "not a time of the years"),
        (["html", "--dataset", "DATASET", "--since", "999999w"], "not a time of the years"),
        (["drift", "--dataset", "DATASET", "--since", "0001-01-01T00:00:00+14:00"], "not a time of the years"),
        (["drift", "--dataset", "DATASET", "--since", "9999-12-31T23:59:59-14:00"], "not a time of the years"),
        (["summary", "--dataset", "DATASET", "-o", ""], "it is empty"),
        (["query", "select '\udcff'", "--dataset", "DATASET"], "the query is not UTF-8"),
        (["query", "select 'infinity'::timestamptz", "--dataset", "DATASET"], "duckdb"),
        (["drift", "--dataset", "DATASET"], "--since"),
        (["drift", "--dataset", "DATASET", "--since", "yesterday"], "not a time"),
        (["query", "drop table host", "--dataset", "DATASET"], "one SELECT"),
        (["query", "select * from '/etc/passwd'", "--dataset", "DATASET"], "duckdb"),
        (["query", "select cast(node as int) from host", "--dataset", "DATASET"], "duckdb"),
        (["export", "csv", "gpus", "--dataset", "DATASET"], "hint: did you mean gpu?"),
        (["export", "xml", "gpu", "--dataset", "DATASET"], "xml"),
        (["load", "--dataset", "DATASET", "--engine", "spark://h:1"], "no such engine: duckdb://, postgres://"),
    ],
)
def test_refused_in_one_line(capfd, dataset, arguments, says):
    code, out, error = run_question(capfd, *(dataset if argument == "DATASET" else argument for argument in arguments))
    assert (code, out) == (2, "")
    assert says in error
    assert len(error_lines(error)) == 1
    assert "secret" not in error


def test_a_query_in_every_form(capfd, dataset, tmp_path):
    sql = "select node, gpus, observed_at from host order by node limit 2"
    _, text, _ = run_question(capfd, "query", sql, "--dataset", dataset)
    assert text.splitlines()[0].split() == ["node", "gpus", "observed_at"]
    assert text.splitlines()[-1] == "(2 rows)"
    _, text, _ = run_question(capfd, "query", sql, "--dataset", dataset, "--format", "json")
    assert [json.loads(line)["gpus"] for line in text.splitlines()] == [2, 2]
    target = tmp_path / "q.csv"
    assert run_question(capfd, "query", sql, "--dataset", dataset, "-o", str(target)) == (
        0,
        "",
        f"wrote {target}\n",
    )
    assert target.read_text().splitlines()[1] == "n0,2,2026-01-15T08:00:00Z"


def test_columns_of_one_name_are_kept_apart(capfd, dataset):
    sql = "select 1 as a, 2 as a, 3 as a_1"
    _, text, _ = run_question(capfd, "query", sql, "--dataset", dataset, "--format", "json")
    assert json.loads(text) == {"a": 1, "a_2": 2, "a_1": 3}
    _, text, _ = run_question(capfd, "query", sql, "--dataset", dataset, "--format", "csv")
    assert text == "a,a_2,a_1\n1,2,3\n"


def test_times_with_a_zone_are_utc(capfd, dataset, monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    sql = "select timestamptz '2026-01-15 10:00:00+02' as t, [t] as l, 1 as n from range(2)"
    code, text, error = run_question(capfd, "query", sql, "--dataset", dataset, "--format", "json")
    assert (code, error) == (0, "")
    row = {"t": "2026-01-15T08:00:00Z", "l": ["2026-01-15T08:00:00Z"], "n": 1}
    assert [json.loads(line) for line in text.splitlines()] == [row, row]
    code, text, error = run_question(capfd, "query", "select now() where false", "--dataset", dataset)
    assert (code, text, error) == (0, "now()\n(0 rows)\n", "")


def test_everything_is_younger_than_so_long(capfd, dataset):
    code, text, error = run_question(capfd, "summary", "--dataset", dataset, "--stale-after", "999999w")
    assert (code, error) == (0, "")
    assert "stale" not in text


def test_a_failed_query_leaves_no_file(capfd, dataset, tmp_path):
    target = tmp_path / "q.csv"
    sql = "select cast(node as int) from host"
    assert run_question(capfd, "query", sql, "--dataset", dataset, "-o", str(target))[0] == 2
    assert list(tmp_path.iterdir()) == []


def test_whole_tables(capfd, dataset, tmp_path):
    target = tmp_path / "gpu.parquet"
    assert run_question(capfd, "export", "parquet", "gpu", "--dataset", dataset, "-o", str(target)) == (
        0,
        "",
        f"wrote {target}\n",
    )
    assert parquet.read_table(target).num_rows == 48
    code, text, error = run_question(capfd, "export", "csv", "gpu", "--dataset", dataset, "--where", "nodes=n1")
    assert (code, error, len(text.splitlines())) == (0, "", 3)
    _, text, _ = run_question(capfd, "export", "json", "history_host", "--dataset", dataset)
    assert len([json.loads(line) for line in text.splitlines()]) == 25


@pytest.mark.usefixtures("real_commands")
def test_a_question_needs_neither_pandas_nor_pyarrow(dataset):
    """Nor what surrounds DuckDB's engine (before 1.4 it is within), nor what makes rows of reports."""
    code = (
        "import sys; from agent.cli.main import run; "
        f"code = run(['fleet', 'outliers', '--dataset', {dataset!r}]); "
        "dear = {'pandas', 'pyarrow', 'numpy', 'agent.fleet.rows', *(['duckdb'] if '_duckdb' in sys.modules else [])}; "
        "print(sorted(dear & sys.modules.keys()), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=110, check=True)
    assert done.stderr == "[]\n"


def interrupted(*command: str) -> tuple[int, bytes, float]:
    """Exit code, stderr, and how many seconds it took to end."""
    running = subprocess.Popen(
        [sys.executable, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's background job ignores it
    )  # fmt: skip
    until = time.monotonic() + 3
    while time.monotonic() < until and psutil.Process(running.pid).cpu_times().user < BUSY_SECONDS:
        time.sleep(0.05)
    began = time.monotonic()
    running.send_signal(signal.SIGINT)
    try:
        _, errors = running.communicate(timeout=30)
    finally:
        running.kill()
    return running.returncode, errors, time.monotonic() - began


@pytest.mark.parametrize("sql", ENDLESS.values(), ids=ENDLESS)
def test_a_query_that_would_never_end(tmp_path: Path, real_commands: None, sql: str) -> None:
    take(tmp_path / "d", report())
    target = tmp_path / "out" / "a.csv"
    target.parent.mkdir()
    code, errors, seconds = interrupted(
        "-m", "fabricscope", "fleet", "query", sql, "--dataset", str(tmp_path / "d"), "-o", str(target)
    )

    assert (code, errors) == (130, b"error: interrupted\n")
    assert seconds < 25
    assert list(target.parent.iterdir()) == []


@pytest.mark.parametrize("how", ["hears", "hears nothing"])
def test_a_question(tmp_path: Path, real_commands: None, how: str) -> None:
    take(tmp_path / "d", report())
    arguments = ["fleet", "html", "--dataset", str(tmp_path / "d"), "-o", str(tmp_path / "page.html")]
    code, errors, seconds = interrupted("-c", STUCK, how, *arguments)

    assert (code, errors) == (130, b"error: interrupted\n")
    assert seconds < 25
    assert not (tmp_path / "page.html").exists()


def test_what_duckdb_heard_itself(tmp_path: Path) -> None:
    take(tmp_path / "d", report())
    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt), open_tables.open_engine(str(tmp_path / "d"), None):
        raise RuntimeError("Query interrupted")
    with pytest.raises(RuntimeError, match="another"), open_tables.open_engine(str(tmp_path / "d"), None):
        raise RuntimeError("another")
    assert threading.active_count() <= before


@pytest.mark.usefixtures("real_commands")
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_without_the_extra_it_is_one_line(command: tuple[str, ...]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, "fleet", *command], capture_output=True, text=True, cwd=ROOT, timeout=60
    )

    assert (2, "") == (done.returncode, done.stdout)
    assert done.stderr.startswith("error: the fleet's libraries are not installed: in the checkout, ")
    assert 1 == done.stderr.count("\n")
