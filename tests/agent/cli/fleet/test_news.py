"""`fleet news` and `fleet repeat` from outside: formats, exit codes, the state, the request that is sent."""

from __future__ import annotations

import inspect
import json
import os
import threading
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import pytest

from agent.cli.fleet.commands import fleet
from agent.cli.main import run
from tests.agent.fleet.small import finding, node, report, take
from tests.agent.netbox.server import dripping

pytest.importorskip("duckdb")
NOW = datetime.now(timezone.utc)


def seen(host: str, minutes_ago: float, *findings: dict[str, Any]) -> bytes:
    """A report of a moment before now."""
    moment = (NOW - timedelta(minutes=minutes_ago)).isoformat()
    return report(host, observed_at=moment, generated_at=moment, findings=list(findings))


@pytest.fixture
def dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One new finding since an hour, one that came back."""
    take(
        tmp_path / "d",
        seen("n1", 300, finding("b")), seen("n1", 200), seen("n1", 30, finding("a"), finding("b")),
    )  # fmt: skip
    monkeypatch.setenv("FABRICSCOPE_DATASET", str(tmp_path / "d"))
    monkeypatch.delenv("FABRICSCOPE_WEBHOOK", raising=False)
    return tmp_path / "d"


class Received(BaseHTTPRequestHandler):
    """Keeps what is sent."""

    bodies: ClassVar[list[Any]] = []
    status = 200

    def do_POST(self) -> None:
        """A request."""
        self.bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(self.status)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def hook() -> Iterator[str]:
    """The address of a webhook."""
    Received.bodies, Received.status = [], 200
    server = HTTPServer(("127.0.0.1", 0), Received)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/secret-path"
    server.shutdown()
    server.server_close()
    thread.join()


def test_news_is_exit_1(dataset: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert 1 == run(["fleet", "news", "--since", "1h"])
    output = capsys.readouterr().out
    assert "WARNING a: n1 on GPU0" in output
    assert "2 new" in output


def test_nothing_new_is_exit_0(dataset: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == run(["fleet", "news", "--since", "10m"])
    assert "0 new" in capsys.readouterr().out


@pytest.mark.parametrize(("form", "key"), [("json", "items"), ("slack", "text"), ("webhook", "news")])
def test_forms(form: str, key: str, dataset: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert 1 == run(["fleet", "news", "--since", "1h", "--format", form])
    assert json.loads(capsys.readouterr().out)[key]


def test_since_the_last_run(dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state = tmp_path / "news.json"
    words = ["fleet", "news", "--since-last", "--state", str(state)]

    assert 0 == run(words)
    assert "first run, 2 open findings are the baseline" in capsys.readouterr().err
    assert 0 == run(words)
    take(dataset, seen("n1", 5, finding("a"), finding("b"), finding("c", severity="error")))
    assert 1 == run(words)
    assert "ERROR c: n1" in capsys.readouterr().out
    assert 0 == run(words)


def test_a_request_is_sent_where_something_is_new(dataset: Path, hook: str) -> None:
    assert 1 == run(["fleet", "news", "--since", "1h", "--format", "slack", "--post", hook])
    assert 0 == run(["fleet", "news", "--since", "10m", "--format", "slack", "--post", hook])

    (body,) = Received.bodies
    assert "WARNING a: n1" in body["text"]


def test_a_server_that_sends_byte_after_byte_is_given_up(
    dataset: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of an answer only its status is read, however long it is."""
    monkeypatch.setattr(import_module("agent.cli.fleet.news"), "_POST_SECONDS", 0.2)
    words = ["fleet", "news", "--since", "1h", "--format", "slack", "--post"]
    with dripping(b"HTTP/1.1 200 OK\r\nX: ") as port:
        assert 2 == run([*words, f"http://127.0.0.1:{port}/"])
    assert "not sent: no answer in 0.2 s" in capsys.readouterr().err
    with dripping(b"HTTP/1.1 200 OK\r\n\r\n") as port:
        assert 1 == run([*words, f"http://127.0.0.1:{port}/"])


def test_a_request_that_fails_leaves_the_state(
    dataset: Path, tmp_path: Path, hook: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """So that the next run sends it again; the address may hold a secret."""
    words = ["fleet", "news", "--since-last", "--state", str(tmp_path / "s"), "--format", "webhook", "--post", hook]
    assert 0 == run(words)
    take(dataset, seen("n1", 5, finding("c", severity="error")))
    Received.status = 500

    assert 2 == run(words)
    output = capsys.readouterr().err
    assert "error: --post: 127.0.0.1: not accepted: status 500" in output
    assert "secret-path" not in output
    Received.status = 200
    assert 1 == run(words)
    assert ["error", "error"] == [body["severity"] for body in Received.bodies]


def test_what_is_silenced_is_no_news(dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    silences = tmp_path / "silences.toml"
    silences.write_text(
        '[[silence]]\nrule = "a"\nreason = "known"\nnode = "n[1-4]"\nticket = "OPS-1"\n'
        '[[silence]]\nrule = "b"\nreason = "old"\nuntil = 2020-01-01\n'
    )

    assert 1 == run(["fleet", "news", "--since", "1h", "--silences", str(silences)])
    output = capsys.readouterr()
    assert "1 silenced" in output.out
    assert "WARNING a" not in output.out
    assert "1 entry has ended" in output.err


def test_repeat(dataset: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == run(["fleet", "repeat"])
    assert "2 episodes" in capsys.readouterr().out
    assert 0 == run(["fleet", "repeat", "--since", "7d", "--format", "csv"])
    head, row = capsys.readouterr().out.splitlines()
    assert head.startswith("serial,part,label,hosts,severity,episodes,open")
    assert "n1" in row
    assert 0 == run(["fleet", "repeat", "--times", "3"])
    assert "no part with repeated findings" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["news"], "either --since TIME or --since-last is needed"),
        (["news", "--since", "1h", "--since-last", "--state", "x"], "either --since TIME or --since-last is needed"),
        (["news", "--since-last"], "--since-last needs --state FILE"),
        (["news", "--since", "1h", "--state", "x"], "--state is for --since-last only"),
        (["news", "--since", "1h", "--post", "http://x"], "--post needs --format slack or webhook"),
        (["news", "--since", "1h", "--format", "slack", "--post", "ftp://x"], "expected a URL with http or https"),
        (["news", "--since", "1h", "--format", "slack", "--post", "http://127.0.0.1:1/k"], "127.0.0.1: not sent: "),
        (["news", "--since", "soon"], "'soon': not a time"),
        (["news", "--since-last", "--state", "{here}/bad"], "not a state of fleet news, or damaged"),
        (["news", "--since-last", "--state", "{here}"], "Is a directory"),
        (["news", "--since-last", "--state", "{here}/pipe"], "is there, and is no file"),
        (["news", "--since", "1h", "--silences", "{here}/none"], "No such file"),
        (["news", "--since", "1h", "--silences", "{here}/bad"], "bad: "),
        (["news", "--since", "1h", "--silences", "{here}/list"], "a bracket is not closed"),
        (["repeat", "--times", "1"], "1"),
    ],
)
def test_asked_the_wrong_way(
    arguments: list[str], said: str, dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad").write_text("{")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "list").write_text('[[silence]]\nrule = "a"\nreason = "r"\nnode = "n[1"\n')

    assert 2 == run(["fleet", *(word.format(here=tmp_path) for word in arguments)])
    assert said in capsys.readouterr().err


# Every command of the fleet, and whether it leaves out what the fleet's silence file is for.


HONOURED = {  # command -> its arguments; all but the page leave the finding out
    "findings": [],
    "html": [],
    "news": ["--since", "2026-01-01"],
    "repeat": ["--since", "2026-01-01", "--times", "2"],
    "expected": ["{here}/nodes", "--drain-at", "error", "--format", "slurm-drain"],
    "export": ["prometheus"],
}
OTHERS = {  # command -> what it is about instead
    "summary": "verdicts of the nodes' own reports",
    "lossless": "what switches have set",
    "drift": "what changed in reports",
    **dict.fromkeys(("outliers", "duplicates", "topology", "cables"), "no finding"),
    **dict.fromkeys(("query", "load"), "tables as nodes reported them; finding.silenced has what nodes silenced"),
    **dict.fromkeys(("ingest", "pull", "forget"), "the dataset"),
}
MARK = {"export": 'rule="bad-link"', "html": "silenced until 2999-12-31: known"}


def test_each_command_is_one_or_the_other() -> None:
    callbacks = {command.name: command.callback for command in fleet.registered_commands}
    assert callbacks.keys() == HONOURED.keys() | OTHERS.keys()
    assert {
        name
        for name, callback in callbacks.items()
        if callback and "silences" in inspect.signature(callback).parameters
    } == HONOURED.keys()


@pytest.mark.parametrize("by", ["option", "environment"])
@pytest.mark.parametrize("command", HONOURED)
def test_what_is_silenced(
    command: str, by: str, tmp_path: Path, capfdbinary: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [finding("bad-link", severity="error")]
    reports = [
        node(f"n{n}", hour, findings=found if n == 3 and hour != 1 else []) for hour in range(3) for n in range(5)
    ]
    take(tmp_path / "d", *reports)
    (tmp_path / "nodes").write_text("n[0-4]\n")
    silences = tmp_path / "silences.toml"
    silences.write_text(
        '[[silence]]\nrule = "bad-link"\nnode = "n3"\nreason = "known <7>"\nticket = "OPS-1"\nuntil = 2999-12-31\n'
    )
    words = [
        "fleet",
        command,
        *(word.format(here=tmp_path) for word in HONOURED[command]),
        "--dataset",
        f"{tmp_path}/d",
    ]
    out = [_answer(words, capfdbinary)]
    if by == "option":
        words += ["--silences", str(silences)]
    else:
        monkeypatch.setenv("FABRICSCOPE_SILENCES", str(silences))
    out.append(_answer(words, capfdbinary))
    mark = MARK.get(command, "bad-link")
    assert (mark in out[0], mark in out[1]) == ((False, True) if command == "html" else (True, False))


def _answer(words: list[str], capfdbinary: Any) -> str:
    assert run(words) in ((0, 1) if words[1] == "news" else (0,))
    return capfdbinary.readouterr().out.decode()
