"""What is taken is what `fleet ingest` takes, counted, filed and shown; what changes while `receive` runs."""

from __future__ import annotations

import errno
import http.client
import json
import os
import shutil
import signal
import ssl
import time
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest

from agent.cli.main import run
from agent.receive.clients import EVERY_HOST, Client
from agent.receive.inbox import Answer, Inbox, Limits
from agent.receive.listening import AccessFiles, BadServer, TlsFiles
from agent.reports import PRIVATE
from tests.agent.receive.conftest import OTHER, TOKEN, Receiver, Start
from tests.agent.receive.test_receive import ship
from tests.agent.ship.conftest import Certificates
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


# What changes while `receive` runs: certificates, authorities, tokens; and reports that come again or much later.


NEW = "token-of-the-next-month"


def await_line(receiver: Receiver, text: str) -> None:
    """Until the log has it."""
    until = time.monotonic() + 30
    while not any(text in line for line in receiver.log):
        assert time.monotonic() < until, receiver.log
        time.sleep(0.05)


def subject(receiver: Receiver, certificates: Certificates) -> str:
    """Whose certificate the server shows."""
    context = ssl.create_default_context(cafile=certificates.file("ca.pem"))
    context.check_hostname = False
    connection = http.client.HTTPSConnection("127.0.0.1", receiver.port, timeout=30, context=context)
    connection.connect()
    shown = connection.sock.getpeercert()["subject"]  # type: ignore[attr-defined]  # a socket of TLS
    connection.close()
    return str(shown[0][0][1])


def test_a_certificate_is_replaced_while_it_runs(start: Start, tmp_path: Path, certificates: Certificates) -> None:
    """First the certificate, whose key is another one: what was there stays. Then its key."""
    for kind in ("pem", "key"):
        shutil.copy(certificates.file(f"server.{kind}"), tmp_path / f"tls.{kind}")
    receiver = start("--cert", str(tmp_path / "tls.pem"), "--key", str(tmp_path / "tls.key"))
    shutil.copy(certificates.file("other.pem"), tmp_path / "new")
    os.replace(tmp_path / "new", tmp_path / "tls.pem")
    receiver.process.send_signal(signal.SIGHUP)
    await_line(receiver, "certificates and clients stay as they were: ")
    assert "server" == subject(receiver, certificates)
    shutil.copy(certificates.file("other.key"), tmp_path / "new")
    os.replace(tmp_path / "new", tmp_path / "tls.key")
    receiver.process.send_signal(signal.SIGHUP)
    await_line(receiver, "certificates and clients are read again")

    assert "other" == subject(receiver, certificates)
    assert 0 == receiver.stop()


def test_an_authority_that_was_taken_out_lets_nobody_in(
    start: Start, tmp_path: Path, certificates: Certificates
) -> None:
    """Also not on a connection that was open before: a client that always sends would keep it for ever."""
    shutil.copy(certificates.file("ca.pem"), tmp_path / "ca.pem")
    receiver = start("--client-ca", str(tmp_path / "ca.pem"), tokens=False)
    context = ssl.create_default_context(cafile=certificates.file("ca.pem"))
    context.load_cert_chain(certificates.file("client.pem"), certificates.file("client.key"))
    connection = http.client.HTTPSConnection("127.0.0.1", receiver.port, timeout=30, context=context)

    def send() -> int:
        connection.request("POST", "/", b"no report")
        answer = connection.getresponse()
        answer.read()
        return answer.status

    assert [400, 400] == [send(), send()]
    before = connection.sock
    shutil.copy(certificates.file("locked.pem"), tmp_path / "new")
    os.replace(tmp_path / "new", tmp_path / "ca.pem")
    receiver.process.send_signal(signal.SIGHUP)
    await_line(receiver, "are read again")
    assert connection.sock is before
    with pytest.raises(OSError):
        send()
    connection.close()
    with pytest.raises(OSError):  # nor a new one
        send()


def test_a_token_is_replaced_while_it_runs(start: Start, tmp_path: Path, certificates: Certificates) -> None:
    """The old one is refused from then on; a damaged file shuts nobody out."""
    from tests.agent.receive.test_receive import report

    receiver = start()
    clients = tmp_path / "clients.toml"
    text = clients.read_text()
    clients.write_text("[[client]\n")
    receiver.process.send_signal(signal.SIGHUP)
    await_line(receiver, "stay as they were: ")
    assert 0 == ship(receiver, tmp_path, certificates, report(1, "error")).returncode
    clients.write_text(text.replace(TOKEN, NEW))
    receiver.process.send_signal(signal.SIGHUP)
    await_line(receiver, "are read again")

    assert "401" in ship(receiver, tmp_path, certificates, report(2, "error")).stderr
    assert 0 == ship(receiver, tmp_path, certificates, report(3, "error"), token=NEW).returncode


def test_files_are_read_again_where_they_changed_and_only_then(tmp_path: Path) -> None:
    """Also a file that a link leads to, as a Secret of Kubernetes is replaced."""
    for name, token in (("a", TOKEN), ("b", OTHER)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "clients").write_text(f'[[client]]\nhosts = "n1"\ntoken = "{token}"\n')
        (tmp_path / name / "clients").chmod(0o600)
    (tmp_path / "data").symlink_to("a")
    files = AccessFiles(TlsFiles(None, None, None), str(tmp_path / "data" / "clients"), plain=True)
    before = files.load()
    assert files.load_changed() is None
    (tmp_path / "new").symlink_to("b")
    os.replace(tmp_path / "new", tmp_path / "data")
    after = files.load_changed()

    assert before.clients.find(f"Bearer {TOKEN}", None)
    assert after is not None
    assert after.clients.find(f"Bearer {TOKEN}", None) is None
    assert after.clients.find(f"Bearer {OTHER}", None)
    assert files.load_changed() is None


def test_a_pipe_in_place_of_a_file_does_not_stop_the_server(tmp_path: Path) -> None:
    """Named once; what was there before stays in use, and a file in its place is read."""
    path = tmp_path / "clients"
    path.write_text(f'[[client]]\nhosts = "n1"\ntoken = "{TOKEN}"\n')
    path.chmod(0o600)
    files = AccessFiles(TlsFiles(None, None, None), str(path), plain=True)
    files.load()
    path.unlink()
    os.mkfifo(path, 0o600)
    with pytest.raises(BadServer, match="clients: not a regular file"):
        files.load_changed()
    assert files.load_changed() is None
    path.unlink()
    path.write_text(f'[[client]]\nhosts = "n1"\ntoken = "{OTHER}"\n')
    path.chmod(0o600)
    after = files.load_changed()
    assert after is not None
    assert after.clients.find(f"Bearer {OTHER}", None)


def test_an_old_report_that_is_sent_again_changes_nothing(
    start: Start, tmp_path: Path, certificates: Certificates, capsys: pytest.CaptureFixture[str]
) -> None:
    """Once ingest has emptied the folder, it is accepted as if it were new, and known to the dataset: the node's
    latest state stays that of the newer report."""
    pytest.importorskip("pyarrow")
    from tests.agent.fleet.small import at, rows
    from tests.agent.fleet.small import report as whole

    receiver, dataset = start(), tmp_path / "d"
    old, new = whole("n1", 1), whole("n1", 2)
    answers = []
    for sent in (old, new, old):
        assert 0 == ship(receiver, tmp_path, certificates, sent).returncode
        arguments = [str(receiver.spool), "--dataset", str(dataset), "--move", str(tmp_path / "t")]
        assert 0 == run(["fleet", "ingest", *arguments])
        answers.append(capsys.readouterr().out)

    assert ["1 new, 0 known", "1 new, 0 known", "0 new, 1 known"] == [
        answer.partition(": ")[2].partition(", 1 file")[0] for answer in answers
    ]
    assert [] == receiver.files
    assert [(at(2)[:19],)] == [(str(row[0])[:19].replace(" ", "T"),) for row in rows(dataset, "host", "observed_at")]


def test_what_another_put_at_the_name_of_a_report_loses_none(tmp_path: Path) -> None:
    """In a folder that others may write to: a second name of a file that is ours is replaced, and a folder is named."""
    one = inbox(tmp_path)
    one.take(report(), None, ALL)
    (place,) = (tmp_path / "spool").iterdir()
    whole = place.read_bytes()
    for make, status in ((os.link, 201), (lambda _, name: os.mkdir(name), 500)):
        place.unlink()
        (tmp_path / "other").write_text("mine")
        make(tmp_path / "other", place)
        answer = one.take(report(), None, ALL)
        assert status == answer.status, answer
        assert "mine" == (tmp_path / "other").read_text()
        assert place.is_dir() or whole == place.read_bytes()
    assert f"{place}: Is a directory" == answer.reason
