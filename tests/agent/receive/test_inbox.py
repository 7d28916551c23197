"""What is taken is what `fleet ingest` takes, under the name that is bound, counted, filed and shown."""

from __future__ import annotations

import errno
import json
import os
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest

from agent.receive.clients import EVERY_HOST, Client
from agent.receive.inbox import Answer, Inbox, Limits
from agent.reports import PRIVATE
from tests.agent.ship.servers import report

ALL = Client("all", frozenset((EVERY_HOST,)))


def inbox(path: Path, size: int = 1 << 20, reports: int = 100, per_host: int = 50) -> Inbox:
    """An empty one."""
    opened = Inbox(str(path / "spool"), Limits(size, reports, per_host))
    opened.open()
    return opened


def changed(**change: Any) -> bytes:
    """A report with other fields."""
    return json.dumps(json.loads(report()) | change).encode()


@pytest.mark.parametrize(
    ("body", "part"),
    [
        (changed(schema="fabricscope.report/2"), "not a report that this version reads"),
        (report().replace(b'"pad"', b'"duration_seconds": 1e999, "pad"'), "out of range"),
        (changed(duration_seconds="long"), "a damaged report"),
        (changed(observed_at="1969-12-31T23:59:59Z"), "before 1970"),
        (changed(generated_at="yesterday", observed_at=None), "time"),
        (changed(probes=[{"name": "pci", "status": "ok"}] * 2), "a name appears twice"),
        (changed(node={"hostname": "x" * 254}), "254 characters"),
        (changed(node={"hostname": " \t"}), "names no node"),
    ],
)
def test_what_ingest_would_refuse_is_refused(body: bytes, part: str, tmp_path: Path) -> None:
    """Else `ship` would drop its copy of a report that no dataset will have."""
    from agent.fleet.ingest.run import IngestOptions, ingest

    answer = inbox(tmp_path).take(body, None, ALL)
    assert HTTPStatus.BAD_REQUEST == answer.status
    assert part in answer.reason
    (tmp_path / "drop").mkdir()
    (tmp_path / "drop" / "r.json").write_bytes(body)
    options = IngestOptions(sources=[str(tmp_path / "drop")], dataset=str(tmp_path / "d"))
    assert 1 == ingest(options, lambda _stage, _done: None).quarantined


def test_a_report_that_follows_a_refused_one_is_taken(tmp_path: Path) -> None:
    """The reader of an earlier report is used again."""
    one = inbox(tmp_path)
    for number in range(3):
        assert HTTPStatus.BAD_REQUEST == one.take(changed(probes=[{"name": "pci"}] * 2), None, ALL).status
        assert HTTPStatus.CREATED == one.take(report(number), None, ALL).status


def room(**change: int) -> Any:
    """A file system."""
    return type(
        "Room", (), {"f_bavail": 1 << 30, "f_frsize": 4096, "f_files": 100, "f_favail": 50, "f_flag": 0} | change
    )


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({}, 200),
        ({"f_bavail": 1000}, 507),
        ({"f_favail": 0}, 507),
        ({"f_files": 0, "f_favail": 0}, 200),  # btrfs counts none
        ({"f_flag": os.ST_RDONLY}, 500),
    ],
)
def test_health_is_that_of_the_disk(
    change: dict[str, int], status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk without room for a report is no health."""
    one = inbox(tmp_path)
    monkeypatch.setattr(os, "statvfs", lambda path: room(**change))

    assert status == one.check_health().status


def test_health_is_that_of_the_last_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A quota, or a disk that fails, is seen by what it does; the next report that is written ends it."""
    one = inbox(tmp_path)

    def fail(descriptor: int) -> None:
        raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        assert HTTPStatus.INSUFFICIENT_STORAGE == one.take(report(), None, ALL).status
    assert HTTPStatus.INTERNAL_SERVER_ERROR == one.check_health().status
    assert HTTPStatus.CREATED == one.take(report(), None, ALL).status
    assert Answer(HTTPStatus.OK, "ok") == one.check_health()


@pytest.mark.parametrize("sent", ["gpu001", " gpu001  ", "gpu001\t"])
def test_one_name_is_bound_counted_filed_and_shown(sent: str, tmp_path: Path) -> None:
    """A client cannot get a second share of the folder by blanks around its name."""
    one = inbox(tmp_path, per_host=1)
    client = Client("token 1", frozenset(("gpu001",)))
    answer = one.take(changed(node={"hostname": sent}), None, client)

    assert (HTTPStatus.CREATED, "gpu001") == (answer.status, answer.host)
    assert ["gpu001"] == [name.split("_")[0] for name in os.listdir(one.path)]
    assert HTTPStatus.TOO_MANY_REQUESTS == one.take(report(5, host="gpu001"), None, client).status
    again = inbox(tmp_path, per_host=1)
    assert HTTPStatus.TOO_MANY_REQUESTS == again.take(report(6, host="gpu001"), None, client).status


@pytest.mark.parametrize(
    "name", ["gpu[001-128]", "gpu1,gpu2", "gpu1 gpu2", "east/gpu1", "g*", "a\x1bb", "gpu%31", "-rf"]
)
def test_a_name_that_a_list_of_hosts_could_not_hold_is_refused(name: str, tmp_path: Path) -> None:
    """A command that drains that node would drain others."""
    answer = inbox(tmp_path).take(report(host=name), None, ALL)

    assert HTTPStatus.BAD_REQUEST == answer.status
    assert "invalid node name" in answer.reason


def test_names_that_differ_in_what_no_file_can_hold_are_two_nodes(tmp_path: Path) -> None:
    """Each has its own count."""
    one = inbox(tmp_path, per_host=1)
    for name in ("gpu:1", "gpu_1", "gpu+1"):
        assert HTTPStatus.CREATED == one.take(report(host=name), None, ALL).status

    assert 3 == len(os.listdir(one.path))
    assert {PRIVATE} == {
        os.stat(os.path.join(one.path, name)).st_mode & 0o777 | PRIVATE for name in os.listdir(one.path)
    }


def fill(one: Inbox, host: str, client: Client, first: int) -> list[int]:
    """Reports that no compression makes small, until one is refused; the answers."""
    answers = []
    for number in range(first, first + 400):
        answers.append(int(one.take(report(number, host=host, pad=4000), None, client).status))
        if answers[-1] != HTTPStatus.CREATED:
            break
    return answers


@pytest.mark.parametrize("restarted", [False, True])
def test_one_node_cannot_fill_the_folder_for_others(restarted: bool, tmp_path: Path) -> None:
    """However large its reports are: it is told to wait, and there is room for the others; also after a restart."""
    one = inbox(tmp_path, size=400_000, reports=10_000, per_host=10_000)
    clients = {host: Client(host, frozenset((host,))) for host in ("evil", *(f"n{number}" for number in range(20)))}
    answers = fill(one, "evil", clients["evil"], 0)
    assert HTTPStatus.TOO_MANY_REQUESTS == answers[-1]
    assert len(answers) > 10
    if restarted:
        one = inbox(tmp_path, size=400_000, reports=10_000, per_host=10_000)

    for number in range(20):
        answer = one.take(report(number, host=f"n{number}", pad=4000), None, clients[f"n{number}"])
        assert HTTPStatus.CREATED == answer.status, answer
    assert HTTPStatus.TOO_MANY_REQUESTS == fill(one, "evil", clients["evil"], 1000)[-1]
    assert HTTPStatus.OK == one.check_health().status


def test_one_client_of_many_hosts_cannot_fill_the_folder_for_another(tmp_path: Path) -> None:
    """By any number of host names, in bytes and in reports."""
    many = frozenset(f"e{number}" for number in range(500))
    evil, honest = Client("evil", many), Client("honest", frozenset(("n1",)))
    for limits in ({"size": 300_000, "reports": 10_000}, {"size": 1 << 30, "reports": 90}):
        one = inbox(tmp_path / str(limits["reports"]), **limits)
        (tmp_path / str(limits["reports"])).mkdir(exist_ok=True)
        answers = [
            int(one.take(report(number, host=f"e{number}", pad=2000), None, evil).status) for number in range(200)
        ]
        assert {201, 429} == set(answers)
        assert HTTPStatus.CREATED == one.take(report(1, host="n1", pad=2000), None, honest).status


def test_a_fleet_with_one_token_uses_most_of_the_folder(tmp_path: Path) -> None:
    """Equal nodes are refused when hardly anything is left for one more."""
    one = inbox(tmp_path, size=400_000, reports=10_000)
    for number in range(1000):
        if one.take(report(number // 30, host=f"n{number % 30}", pad=4000), None, ALL).status != HTTPStatus.CREATED:
            break
    assert 0.8 < sum(os.path.getsize(os.path.join(one.path, name)) for name in os.listdir(one.path)) / 400_000 < 1


def test_a_link_in_place_of_a_report_is_no_report(tmp_path: Path) -> None:
    """Who can write there has planted it: the report is written, and what the link leads to is left alone."""
    opened, victim = inbox(tmp_path), tmp_path / "victim"
    victim.write_text("mine")
    assert HTTPStatus.CREATED is opened.take(report(), None, ALL).status
    (path,) = (tmp_path / "spool").iterdir()
    path.unlink()
    path.symlink_to(victim)
    (tmp_path / "spool" / "n2_20260101T000000Z_0123456789abcdef.json.gz").symlink_to("/nowhere")

    assert HTTPStatus.OK is opened.check_health().status
    assert HTTPStatus.CREATED is opened.take(report(), None, ALL).status
    assert path.is_file()
    assert not path.is_symlink()
    assert "mine" == victim.read_text()
    assert HTTPStatus.OK is opened.take(report(), None, ALL).status
