"""A real HTTP server on a port of this machine that can be told to misbehave in every way, request by request."""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from agent.ship.options import TargetOptions, open_target
from agent.ship.payload import Payload, decompress, parse_payload
from agent.ship.run import RetryPolicy, RunResult, ship
from agent.ship.spool import Spool
from agent.ship.target import SendResult, SendStatus, Target

QUICK = RetryPolicy(attempts=4, first_pause_seconds=0.01, longest_pause_seconds=0.05, attempt_seconds=5.0)


class Request(NamedTuple):
    """What a client sent."""

    method: str
    path: str
    headers: dict[str, str]  # names in lower case
    body: bytes

    @property
    def report(self) -> bytes:
        """The body without its compression."""
        if self.body[:4] == b"\x28\xb5\x2f\xfd":
            import zstandard

            return zstandard.ZstdDecompressor().decompress(self.body, max_output_size=1 << 23)
        return decompress(self.body)


Behaviour = Callable[[socket.socket, Request], bool]  # True: the connection stays


def reply(status: int, headers: dict[str, str] | None = None, body: bytes = b"") -> Behaviour:
    """A whole answer."""
    lines = [f"HTTP/1.1 {status} Whatever", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]

    def behave(sock: socket.socket, _: Request) -> bool:
        sock.sendall("\r\n".join([*lines, "", ""]).encode() + body)
        return True

    return behave


def raw(data: bytes, drip: float = 0.0) -> Behaviour:
    """These bytes, then the connection is closed; `drip`: seconds before each of them."""

    def behave(sock: socket.socket, _: Request) -> bool:
        for piece in [data[i : i + 1] for i in range(len(data))] if drip else [data]:
            time.sleep(drip)
            sock.sendall(piece)
        return False

    return behave


def hang(sock: socket.socket, _: Request) -> bool:
    """No answer until the client has had enough."""
    sock.recv(1)
    return False


OK = reply(200, body=b"thanks")
PATIENCE = 30.0  # seconds, on a busy machine; what is slow here takes longer


class Server:
    """Answers each request with the next behaviour; the last one for ever."""

    def __init__(self, behaviours: Sequence[Behaviour] = (OK,), tls: ssl.SSLContext | None = None) -> None:
        self.behaviours = list(behaviours)
        self.requests: list[Request] = []
        self.connections = 0
        self._tls = tls
        self._lock = threading.Lock()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Its address."""
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}"

    def close(self) -> None:
        """No more connections."""
        self._listening.close()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listening.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock: socket.socket) -> None:
        with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
            stack.callback(sock.close)
            sock.settimeout(30)
            if self._tls:
                sock = self._tls.wrap_socket(sock, server_side=True)
                stack.callback(sock.close)
            file = sock.makefile("rb")
            while request := read_request(file):
                with self._lock:
                    self.requests.append(request)
                    behave = self.behaviours.pop(0) if len(self.behaviours) > 1 else self.behaviours[0]
                if not behave(sock, request):
                    return


def read_request(file: object) -> Request | None:
    """One request of a connection; None at its end."""
    line = file.readline().decode("latin-1").split()  # type: ignore[attr-defined]  # a socket's file
    if len(line) < 2:
        return None
    headers: dict[str, str] = {}
    while (text := file.readline().decode("latin-1").strip()) != "":  # type: ignore[attr-defined]  # the same
        name, _, value = text.partition(":")
        headers[name.lower()] = value.strip()
    length = int(headers.get("content-length", "0"))
    body = file.read(length)  # type: ignore[attr-defined]  # the same
    return Request(line[0], line[1], headers, body) if len(body) == length else None


@contextlib.contextmanager
def serving(*behaviours: Behaviour, tls: ssl.SSLContext | None = None) -> Iterator[Server]:
    """A server for the length of a test."""
    server = Server(behaviours or (OK,), tls)
    try:
        yield server
    finally:
        server.close()


def report(
    number: int = 0, verdict: str = "ok", host: str = "n1", machine: str | None = "a" * 32, pad: int = 0
) -> bytes:
    """What `ship` and `fleet ingest` need of a report, and a pad that nothing makes small; `number` is its minute."""
    import random

    when = f"2026-01-{15 + number // 1440:02}T{number // 60 % 24:02}:{number % 60:02}:00Z"
    return json.dumps(
        {
            "schema": "fabricscope.report/1",
            "generated_at": "2026-02-01T00:00:00Z",
            "observed_at": when,
            "node": {"hostname": host, "machine_id": machine},
            "topology": {},
            "pad": random.Random(number).randbytes(pad).hex(),
            "summary": {"verdict": verdict},
        }
    ).encode()


def make_payload(number: int = 0, verdict: str = "ok", pad: int = 0) -> Payload:
    """The same, read."""
    return parse_payload(report(number, verdict, pad=pad))


class Run(NamedTuple):
    """A spool to run in."""

    folder: Path
    warnings: list[str]
    limit: int = 1 << 20
    count: int = 100

    @property
    def path(self) -> Path:
        """The spool."""
        return self.folder / "spool"

    @property
    def waiting(self) -> list[str]:
        """Names of what waits."""
        return sorted(item.name for item in (self.path / "waiting").iterdir())

    @property
    def state(self) -> dict[str, object]:
        """The state as a person reads it."""
        read: dict[str, object] = json.loads((self.path / "state.json").read_text())
        return read

    def spool(self) -> Spool:
        """As a new process sees it."""
        return Spool(str(self.path), self.limit, self.count, self.warnings.append)

    def file(self, data: bytes, name: str = "report.json") -> str:
        """A report's file."""
        path = self.folder / name
        path.write_bytes(data)
        return str(path)

    def ship(
        self, target: Target | None, *reports: bytes, policy: RetryPolicy = QUICK, seconds: float = 30
    ) -> RunResult:
        """One run with these reports."""
        paths = [self.file(data, f"{number}.json") for number, data in enumerate(reports)]
        return ship(paths, target, self.spool(), time.monotonic() + seconds, policy, self.warnings.append)


class Down(Target):
    """A target that never answers well."""

    def __init__(self, answer: SendResult | None = None) -> None:
        super().__init__("nowhere")
        self.answer = answer or SendResult(SendStatus.BLOCKED, "down")
        self.payloads: list[Payload] = []

    def hand_over(self, payload: Payload, until: float) -> SendResult:
        """No."""
        self.payloads.append(payload)
        return self.answer


class Up(Down):
    """A target that takes everything."""

    def __init__(self) -> None:
        super().__init__(SendResult(SendStatus.ACCEPTED))


def target(server: Server, **more: str) -> Target:
    """Of a server, as the command line opens it."""
    return open_target(TargetOptions(f"{server.url}/in?tenant=7")._replace(**more), {})
