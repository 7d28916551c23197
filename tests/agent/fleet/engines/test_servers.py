"""A server that does not come up says why, in the failure; one that needs a moment gets it."""

from __future__ import annotations

import socket
import sys

import pytest

from tests.agent.fleet.engines import servers
from tests.agent.fleet.engines.servers import NotReadyError, run_server

pytestmark = pytest.mark.usefixtures("real_commands")
LISTENS = """
import socket, sys, time
print("starting", flush=True)
time.sleep(0.3)
listening = socket.create_server(("127.0.0.1", int(sys.argv[1])))
for answer in (b"no", b"no", b"yes"):
    connection, _ = listening.accept()
    connection.sendall(answer)
    connection.close()
time.sleep(60)
"""


def listening(port: int) -> list[str]:
    """It accepts, and refuses twice what comes."""
    return [sys.executable, "-c", LISTENS, str(port)]


def ask(port: int) -> None:
    """Once accepted, not yet answered."""
    with socket.socket() as connection:
        if connection.connect_ex(("127.0.0.1", port)):
            raise NotReadyError("refused")
        connection.settimeout(1)  # what another server has on this port may never answer
        try:
            answer = connection.recv(3)
        except TimeoutError as error:
            raise NotReadyError("no answer") from error
        if answer != b"yes":
            raise NotReadyError("it accepts, and refuses")


def test_a_server_is_ready_when_it_answers(tmp_path):
    with run_server(listening, tmp_path / "log", ask) as port:
        assert port > 0


def test_a_server_that_never_answers_is_given_up_with_its_log(tmp_path, monkeypatch):
    monkeypatch.setattr(servers, "SECONDS", 2)

    def never(port: int) -> None:
        raise NotReadyError("it accepts, and refuses")

    with (
        pytest.raises(AssertionError, match=r"not ready after 2 s: it accepts, and refuses; the end of .*\nstarting"),
        run_server(listening, tmp_path / "log", never),
    ):
        pass


def test_a_server_that_ends_says_what_it_printed(tmp_path):
    command = [sys.executable, "-c", "import sys; print('no shared memory', file=sys.stderr); sys.exit(3)"]
    with (
        pytest.raises(AssertionError, match="ended by itself with exit code 3; the end of its log:\nno shared memory"),
        run_server(lambda port: command, tmp_path / "log"),
    ):
        pass


def test_another_port_is_tried_where_one_is_taken(tmp_path, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ports = iter([taken.getsockname()[1], servers.free_port()])
        monkeypatch.setattr(servers, "free_port", lambda: next(ports))
        with run_server(listening, tmp_path / "log", ask) as port:
            assert port != taken.getsockname()[1]
