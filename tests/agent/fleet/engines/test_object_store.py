"""A dataset in an object store, by the real command line: written there, asked there, and the same as in a folder."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from agent.fleet.dataset import open_dataset
from bench.fleet.plan import plan
from tests.agent.fleet.engines.servers import needed, run_server
from tests.conftest import ROOT

pytestmark = [pytest.mark.engines, pytest.mark.timeout(1800), pytest.mark.usefixtures("real_commands")]
FAULTS = {"gpu-link-narrow": 1, "driver": 1, "drift-driver": 1, "duplicate-serial": 1, "nvlink-fewer": 1}
QUESTIONS = (
    ("summary",),
    ("outliers",),
    ("findings",),
    ("duplicates",),
    ("drift", "--since", "2026-01-15T08:59:59Z"),
    ("topology",),
    ("cables",),
)


@pytest.fixture(scope="module")
def bucket(tmp_path_factory):
    """A bucket of moto's S3 server; its URL, which ends in `?options`."""
    needed("moto", "flask", "flask_cors")
    log = tmp_path_factory.mktemp("moto") / "log"
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p"]
    with run_server(lambda port: [*command, str(port)], log) as port:
        put(f"http://127.0.0.1:{port}/fleet")
        yield f"s3://fleet/PLACE?endpoint_override=127.0.0.1:{port}&scheme=http&region=us-east-1"


KEYS = {"AWS_ACCESS_KEY_ID": "made-up", "AWS_SECRET_ACCESS_KEY": "made-up", "AWS_EC2_METADATA_DISABLED": "true"}


def put(url: str, data: bytes = b"") -> None:
    """Make a bucket or an object."""
    request = urllib.request.Request(url, data, {"Content-Type": "application/octet-stream"}, method="PUT")
    urllib.request.urlopen(request, timeout=60).close()


def told(*words: str, code: int = 0) -> str:
    """What `fabricscope fleet` prints: stdout, or stderr where it is to fail."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("FABRICSCOPE_")} | KEYS
    done = subprocess.run(
        [sys.executable, "-m", "fabricscope", "fleet", *words],
        capture_output=True, text=True, env=environment, cwd=ROOT, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    return done.stderr if code else done.stdout


@pytest.fixture(scope="module")
def sweeps(tmp_path_factory):
    """Reports of two sweeps, a file each."""
    place = tmp_path_factory.mktemp("reports")
    fleet = plan(40, 8, FAULTS, sweeps=2, mix={"gb200-ib": 1, "h200-roce": 1})
    for sweep in (0, 1):
        lines = (data.replace(b"\n", b" ") + b"\n" for data in fleet.reports(sweep, one_line=True))
        (place / f"{sweep}.ndjson").write_bytes(b"".join(lines))
    return [str(place / "0.ndjson"), str(place / "1.ndjson")]


@pytest.fixture(scope="module")
def datasets(bucket, sweeps, tmp_path_factory):
    """The same fleet in a folder and in a bucket, a sweep an ingest."""
    folder, url = str(tmp_path_factory.mktemp("folder") / "dataset"), bucket.replace("PLACE", "dataset")
    for sweep in sweeps:
        for dataset in (folder, url):
            assert "40 new" in told("ingest", sweep, "--dataset", dataset)
    return folder, url


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda each: each[0])
def test_answers_are_those_of_a_folder(datasets, question):
    folder, url = (told(*question, "--format", "json", "--dataset", dataset) for dataset in datasets)
    assert json.loads(folder)
    assert folder == url


def test_tables_are_those_of_a_folder(datasets):
    sql = "select node, count(*) as gpus from gpu group by node order by node"
    folder, url = (told("query", sql, "--dataset", dataset) for dataset in datasets)
    assert "(40 rows)" in folder
    assert folder == url
    folder, url = (told("export", "csv", "history_host", "--dataset", dataset) for dataset in datasets)
    assert sorted(folder.splitlines()) == sorted(url.splitlines())


@pytest.mark.parametrize("older", [0, -1])
def test_a_column_that_some_files_have(bucket, sweeps, older, monkeypatch):
    """Files of an earlier version lack it: what others have is there."""
    from pyarrow import parquet

    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    url = bucket.replace("PLACE", f"mixed{older}")
    for sweep in sweeps:
        told("ingest", sweep, "--dataset", url)
    asked = "select count(*) as rows, count(services) as known from history_host"
    before = json.loads(told("query", asked, "--format", "json", "--dataset", url))
    dataset = open_dataset(url)
    path = sorted(file.path for file in dataset.manifest.history["host"])[older]
    whole = parquet.read_table(dataset.store.opened(path))
    data = io.BytesIO()
    parquet.write_table(whole.drop_columns(["services"]), data)
    dataset.store.replace(path, data.getvalue())
    after = json.loads(told("query", asked, "--format", "json", "--dataset", url))
    lost = len(whole) - whole["services"].null_count
    assert after == {"rows": before["rows"], "known": before["known"] - lost}
    assert 0 < lost < before["known"]


def test_the_page_is_that_of_a_folder(datasets):
    pages = (re.sub(r"20..-..-.. ..:.. UTC", "", told("html", "--dataset", dataset)) for dataset in datasets)
    folder, url = (page.partition('<script id="data"')[2] for page in pages)
    assert len(folder) > 10_000
    assert folder == url


def test_the_same_reports_are_known_there(datasets, sweeps):
    assert "0 new" in told("ingest", sweeps[0], "--dataset", datasets[1])


def test_reports_that_lie_there_are_taken(datasets, bucket, sweeps, tmp_path):
    """A bucket as source; its dataset is another one."""
    server, options = re.fullmatch(r".*endpoint_override=([^&]+)(&.*)", bucket).groups()
    put(f"http://{server}/fleet/drop/0.ndjson", Path(sweeps[0]).read_bytes())
    source = f"s3://fleet/drop?endpoint_override={server}{options}"
    assert "40 new" in told("ingest", source, "--dataset", str(tmp_path / "dataset"))


def test_what_is_not_there_is_one_line(bucket):
    for words in (("summary", "--dataset", bucket.replace("PLACE", "nothing")), ("summary", "--dataset", "s3://")):
        result = told(*words, code=2)
        assert result.count("\n") == 1
        assert "Traceback" not in result


def test_what_is_loaded_from_there_is_what_lies_there(datasets, tmp_path):
    """The way of an object store to every engine but DuckDB."""
    needed("chdb", "clickhouse_connect")
    database = f"chdb://{tmp_path}/database"
    assert "rows of" in told("load", "--engine", database, "--dataset", datasets[1])
    for question in (("findings",), ("drift", "--since", "2026-01-15T08:59:59Z")):
        folder = told(*question, "--format", "json", "--dataset", datasets[0])
        assert folder == told(*question, "--format", "json", "--engine", database)
