"""`receive` with the real `ship` at the other end: whose reports are accepted, what is refused, and what it costs."""

from __future__ import annotations

import gzip
import json
import os
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from agent.cli.main import run
from agent.receive.inbox import Inbox, Limits
from tests.agent.receive.conftest import OTHER, TOKEN, Receiver, Start
from tests.agent.ship.conftest import Certificates
from tests.agent.ship.servers import report
from tests.conftest import ROOT
from tests.texts import error_lines

pytestmark = pytest.mark.usefixtures("real_commands")


def ship(
    receiver: Receiver, folder: Path, certificates: Certificates, data: bytes, *options: str, token: str | None = TOKEN
) -> subprocess.CompletedProcess[str]:
    """One run of the command to a receiver."""
    address = f"https://127.0.0.1:{receiver.port}/reports"
    return run_ship(address, folder, certificates, data, *options, token=token)


def ship_to(
    address: str, folder: Path, certificates: Certificates, data: bytes, *options: str, token: str | None = TOKEN
) -> tuple[int, str]:
    """One run of the command: its exit code, and what is on stderr."""
    done = run_ship(address, folder, certificates, data, *options, token=token)
    return done.returncode, done.stderr


def run_ship(
    address: str, folder: Path, certificates: Certificates, data: bytes, *options: str, token: str | None = TOKEN
) -> subprocess.CompletedProcess[str]:
    """One run of the command; its spool is new."""
    place = folder / f"node{len(list(folder.iterdir()))}"
    place.mkdir()
    (place / "report.json").write_bytes(data)
    command = [sys.executable, "-m", "fabricscope", "ship", str(place / "report.json"), "--spool", str(place / "spool")]
    command += ["--to", address, "--ca", certificates.file("ca.pem")]
    if token:
        (place / "token").write_text(f"{token}\n")
        (place / "token").chmod(0o600)
        command += ["--token-file", str(place / "token")]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [*command, *options], env=environment, capture_output=True, text=True, timeout=100, check=False
    )


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--compress", "zstd"),
        ("--compress", "none"),
        ("--method", "PUT"),
        ("--method", "PUT", "--compress", "zstd"),
    ],
    ids=" ".join,
)
def test_a_report_arrives_once_and_whole(
    options: tuple[str, ...], start: Start, tmp_path: Path, certificates: Certificates
) -> None:
    """However it is packed; the same report again is the same file."""
    receiver = start("-v")
    for _ in range(2):
        done = ship(receiver, tmp_path, certificates, report(1, "error"), *options)
        assert (0, "") == (done.returncode, done.stderr)

    (file,) = receiver.files
    assert report(1, "error") == gzip.decompress(file.read_bytes())
    assert 0o640 == file.stat().st_mode & 0o777 | 0o040  # a umask may close it further
    assert 0 == receiver.stop()
    assert ["201 Created", "200 OK"] == [line.split(": ")[1] for line in receiver.log]


def test_what_is_received_is_ingested_and_moved(
    start: Start, tmp_path: Path, certificates: Certificates, capsys: pytest.CaptureFixture[str]
) -> None:
    """The next command of a collection reads the folder, and empties it."""
    pytest.importorskip("pyarrow")
    from tests.agent.fleet.small import report as whole

    receiver = start()
    for host in ("n1", "n2"):
        assert 0 == ship(receiver, tmp_path, certificates, whole(host)).returncode
    taken = tmp_path / "taken"
    dataset = str(tmp_path / "d")
    assert 0 == run(["fleet", "ingest", str(receiver.spool), "--dataset", dataset, "--move", str(taken)])

    assert "2 reports: 2 new, 0 known, 2 files moved; 2 nodes" in capsys.readouterr().out
    assert [] == receiver.files
    assert 2 == len(list(taken.iterdir()))


@pytest.mark.parametrize(
    ("node", "token", "status"),
    [
        ({"hostname": "n9"}, TOKEN, None),
        ({"hostname": "worker.example"}, TOKEN, None),
        ({"hostname": "n2"}, OTHER, None),
        ({"hostname": " n2 "}, OTHER, None),  # the fleet keeps it without the blanks
        ({"hostname": "n1"}, OTHER, "403"),
        ({"hostname": "n10"}, TOKEN, "403"),
        ({"hostname": "N1"}, TOKEN, "403"),
        ({"hostname": "n1.example"}, TOKEN, "403"),
        ({"hostname": "n1\x00"}, TOKEN, "403"),
        ({"hostname": None, "machine_id": "n1"}, OTHER, "403"),  # the fleet would take it for the node n1
        ({"hostname": "", "serial": "n1"}, OTHER, "403"),
        ({"hostname": "n1"}, TOKEN[:-1], "401"),
        ({"hostname": "n1"}, None, "401"),
    ],
)  # fmt: skip
def test_a_token_may_send_its_hosts_only(
    node: dict[str, str | None], token: str | None, status: str | None, start: Start, tmp_path: Path,
    certificates: Certificates,
) -> None:  # fmt: skip
    """By the name under which the fleet would keep the report; what is refused waits at the node."""
    receiver = start()
    document = json.loads(report(1)) | {"node": node}
    done = ship(receiver, tmp_path, certificates, json.dumps(document).encode(), token=token)

    assert (1 if status else 0) == done.returncode
    assert (status or "") in done.stderr
    assert (0 if status else 1) == len(receiver.files)


@pytest.mark.parametrize(
    ("hosts", "host", "status"),
    [
        (None, "node", None), (None, "other", "403"),
        ("r1n[1-4]", "r1n3", None), ("r1n[1-4]", "node", "403"), ("*", "any", None),
    ],
)  # fmt: skip
def test_a_certificate_may_send_its_host_only(
    hosts: str | None, host: str, status: str | None, start: Start, tmp_path: Path, certificates: Certificates
) -> None:
    """The one that it names, or those that a file lists for it."""
    options = ["--client-ca", certificates.file("ca.pem")]
    if hosts:
        (tmp_path / "c.toml").write_text(f'[[client]]\ncertificate = "node"\nhosts = "{hosts}"\n')
        options += ["--clients", str(tmp_path / "c.toml")]
    receiver = start(*options, tokens=False)
    mine = ("--cert", certificates.file("client.pem"), "--key", certificates.file("client.key"))
    done = ship(receiver, tmp_path, certificates, report(1, host=host), *mine, token=None)

    assert (1 if status else 0) == done.returncode
    assert (status or "") in done.stderr
    without = ship(receiver, tmp_path, certificates, report(2, host=host), token=None)
    assert "401" in without.stderr
    stranger = ("--cert", certificates.file("locked.pem"), "--key", certificates.file("locked.key"))
    assert 2 == ship(receiver, tmp_path, certificates, report(2, host=host), *stranger, token=None).returncode
    assert (0 if status else 1) == len(receiver.files)


def test_a_certificate_of_a_host_and_its_domain(certificates: Certificates) -> None:
    """The host name of a report may be the first label of the certificate's name; a wildcard is no host."""
    from agent.receive.clients import load_clients

    clients = load_clients(None)
    client = clients.find(None, {"subjectAltName": (("DNS", "n1.cluster.example"), ("DNS", "*.cluster.example"))})

    assert client is not None
    assert ["n1", "n1.cluster.example"] == sorted(client.hosts)
    assert clients.find(None, {"subjectAltName": (("DNS", "*.example"),)}) is None
    assert clients.find(None, {}) is None
    assert clients.find("Bearer x", {"subjectAltName": (("DNS", "n1"),)}) is None


def test_a_certificate_of_an_address_is_of_no_host_10(certificates: Certificates) -> None:
    """A part of an address is no name."""
    from agent.receive.clients import load_clients

    client = load_clients(None).find(None, {"subject": ((("commonName", "10.0.0.7"),),)})

    assert client is not None
    assert ["10.0.0.7"] == list(client.hosts)


def test_no_room_is_507_and_one_host_cannot_take_it_all(
    start: Start, tmp_path: Path, certificates: Certificates
) -> None:
    """The node keeps its report and tries again later; once ingest has emptied the folder, it arrives."""
    receiver = start("--spool-count", "2", "--host-count", "1")
    assert 0 == ship(receiver, tmp_path, certificates, report(1, host="n1")).returncode
    assert "429" in ship(receiver, tmp_path, certificates, report(2, host="n1")).stderr
    assert 0 == ship(receiver, tmp_path, certificates, report(3, host="n2")).returncode
    assert "507" in ship(receiver, tmp_path, certificates, report(4, host="n3")).stderr
    for file in receiver.files:
        file.unlink()
    time.sleep(1.1)  # a full folder is counted again after a second
    assert 0 == ship(receiver, tmp_path, certificates, report(5, host="n1"), "--timeout", "20").returncode


def test_a_spool_of_too_many_bytes_is_507(start: Start, tmp_path: Path, certificates: Certificates) -> None:
    """What a killed run left half-written is no report, and goes after an hour."""
    spool = tmp_path / "spool"
    spool.mkdir()
    left = spool / f".n1_20260101T000000Z_{'0' * 16}.json.gz.12345678.tmp"
    left.write_bytes(b"x" * 5000)
    os.utime(left, (1, 1))
    receiver = start("--spool-limit", "3000")

    assert not left.exists()
    assert 0 == ship(receiver, tmp_path, certificates, report(1, pad=800)).returncode
    assert "507" in ship(receiver, tmp_path, certificates, report(2, pad=2000)).stderr


@pytest.mark.parametrize(
    "names", [(".bashrc", ".env", ".gitignore"), (".n1.json.tmp",), ("a/report.json",), ("x.json",)]
)
def test_a_folder_with_files_of_somebody_else_is_refused(
    names: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 2, an error and a hint, and nothing is touched, however old the files are."""
    folder = tmp_path / "home"
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("mine")
        os.utime(folder / name, (1, 1))
    (tmp_path / "clients.toml").write_text(f'[[client]]\nhosts = "n1"\ntoken = "{TOKEN}"\n')
    (tmp_path / "clients.toml").chmod(0o600)
    options = ["--plain", "--listen", "127.0.0.1:0", "--clients", str(tmp_path / "clients.toml")]

    assert 2 == run(["receive", "--spool", str(folder), *options])
    error = capsys.readouterr().err
    assert f"not a folder of receive: it holds other files ({names[0].partition('/')[0]!r}" in error
    assert "hint: choose an empty folder" in error
    assert sorted(names) == sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_only_our_own_temporary_files_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A spool of an older version is accepted; what another put under such a name is neither followed nor removed."""
    name = f"n1_20260101T000000Z_{'0' * 16}.json.gz"
    victim = tmp_path / "victim"
    victim.write_text("mine")
    spool = tmp_path / "spool"
    spool.mkdir()
    for number, make in enumerate((lambda path: path.symlink_to(victim), os.mkfifo, os.mkdir)):
        make(spool / f".{name}.0000000{number}.tmp")
    for left in (f".{name}.aaaaaaaa.tmp", f".{name}.bbbbbbbb.tmp", name, "lost+found"):
        (spool / left).write_text("x")
    for item in spool.iterdir():
        os.utime(item, (1, 1), follow_symlinks=False)
    (spool / f".{name}.bbbbbbbb.tmp").touch()
    others = spool / f".{name}.cccccccc.tmp"
    others.write_text("of another user")
    os.utime(others, (1, 1))
    lstat = os.lstat

    def of_another(path: Any) -> os.stat_result:
        status = list(lstat(path))
        status[stat.ST_UID] += os.fspath(path) == str(others)
        return os.stat_result(status)

    monkeypatch.setattr(os, "lstat", of_another)
    Inbox(str(spool), Limits(1 << 20, 10, 10)).open()

    monkeypatch.undo()
    left_there = {f".{name}.{tag}.tmp" for tag in ("00000000", "00000001", "00000002", "bbbbbbbb", "cccccccc")}
    assert {*left_there, name, "lost+found"} == {item.name for item in spool.iterdir()}
    assert "mine" == victim.read_text()


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ([], "--spool is missing"),
        (["--spool", "s"], "--cert is missing"),
        (["--spool", "s", "--cert", "server"], "no client could send"),
        (["--spool", "s", "--cert", "server", "--clients", "certificates.toml"], "--client-ca is missing"),
        (["--spool", "s", "--cert", "server", "--clients", "open.toml"], "chmod o="),
        (["--spool", "s", "--cert", "server", "--clients", "short.toml"], "at least 16"),
        (["--spool", "s", "--cert", "server", "--clients", "twice.toml"], "client 2: an earlier client"),
        (["--spool", "s", "--cert", "server", "--clients", "both.toml"], "either token or certificate"),
        (["--spool", "s", "--cert", "server", "--clients", "hosts.toml"], "hosts: a bracket is not closed"),
        (["--spool", "s", "--cert", "server", "--clients", "empty.toml"], "no [[client]]"),
        (["--spool", "s", "--cert", "server", "--clients", "typo.toml"], "tokn"),
        (["--spool", "s", "--cert", "server", "--clients", "none.toml"], "No such file"),
        (["--spool", "s", "--cert", "none.pem", "--clients", "good.toml"], "none.pem: No such file"),
        (["--spool", "s", "--cert", "locked", "--clients", "good.toml"], "encrypted"),
        (["--spool", "s", "--plain", "--clients", "good.toml"], "loopback"),
        (["--spool", "s", "--plain", "--listen", "127.0.0.1:0"], "--clients is missing"),
        (["--spool", "s", "--plain", "--cert", "server", "--clients", "good.toml"], "--plain has no certificates"),
        (["--spool", "good.toml", "--plain", "--listen", "127.0.0.1:0", "--clients", "good.toml"], "good.toml: "),
        (["--spool", "s", "--plain", "--listen", "8443", "--clients", "good.toml"], "ADDRESS:PORT"),
        (["--spool", "s", "--plain", "--listen", "127.0.0.1:99999", "--clients", "good.toml"], "ADDRESS:PORT"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_one_line(
    options: list[str], part: str, tmp_path: Path, certificates: Certificates, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Exit 2, and no token in it."""
    one = f'[[client]]\nhosts = "n1"\ntoken = "{TOKEN}"\n'
    files = {
        "good": one, "open": one, "twice": one + one, "both": one + 'certificate = "x"\n', "empty": "client = []\n",
        "short": '[[client]]\nhosts = "n1"\ntoken = "short"\n', "hosts": one.replace("n1", "n[1-"),
        "typo": one.replace("token", "tokn", 1), "certificates": '[[client]]\nhosts = "n1"\ncertificate = "x"\n',
    }  # fmt: skip
    for name, text in files.items():
        (tmp_path / f"{name}.toml").write_text(text)
        (tmp_path / f"{name}.toml").chmod(0o604 if name == "open" else 0o600)
    for name in ("server", "locked"):
        pem = (certificates.folder / f"{name}.pem").read_bytes() + (certificates.folder / f"{name}.key").read_bytes()
        (tmp_path / name).write_bytes(pem)
    monkeypatch.chdir(tmp_path)

    assert 2 == run(["receive", *options])
    error = capsys.readouterr().err
    assert part in error
    assert 1 == len(error_lines(error))
    assert TOKEN not in error
