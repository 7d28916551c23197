"""What changes while `receive` runs: certificates, authorities, tokens; and reports that come again or much later."""

from __future__ import annotations

import http.client
import os
import shutil
import signal
import ssl
import time
from pathlib import Path

import pytest

from agent.cli.main import run
from agent.receive.listening import AccessFiles, TlsFiles
from tests.agent.receive.conftest import OTHER, TOKEN, Receiver, Start
from tests.agent.receive.test_receive import ship
from tests.agent.ship.conftest import Certificates

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
