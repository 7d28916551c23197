"""A NetBox of ours: the REST endpoints that fabricscope uses, in memory, behind a real HTTP server on this machine.

Modelled on NetBox 4.6's documentation and source (docs/integrations/rest-api.md, netbox/dcim/api, netbox/dcim/models),
and held against a real 4.6.8 by test_contract.py. It is no NetBox: what fabricscope does not use is not here.
"""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlencode, urlsplit

from tests.agent.netbox.rules import Refused
from tests.agent.netbox.store import Store

TOKEN = "nbt_abcdefabcdef.0123456789012345678901234567890123456789"
MOST_IN_A_PAGE = 1000  # MAX_PAGE_SIZE


class Request(NamedTuple):
    """What a client asked."""

    method: str
    path: str  # "dcim/devices"
    query: dict[str, list[str]]
    body: Any
    headers: dict[str, str]  # names in lower case

    @property
    def told(self) -> str:
        """In one line."""
        return f"{self.method} {self.path}"


class Reply(NamedTuple):
    """An answer. `cut`: the connection ends without it; `after`: the request is carried out all the same."""

    status: int = 200
    body: Any = None
    headers: dict[str, str] = {}  # noqa: RUF012  # never altered
    cut: bool = False
    after: bool = False


Trick = Callable[[Request], "Reply | None"]


class Server:
    """One NetBox. `tricks` may answer before it does, each as often as it wishes."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.store = Store()
        self.requests: list[Request] = []
        self.tricks: list[Trick] = []
        self.denied: set[str] = set()  # "POST extras/custom-fields"
        self.page, self.version, self.token = MOST_IN_A_PAGE, "4.6", TOKEN
        self.lock = threading.Lock()
        self._http = _Listener(("127.0.0.1", 0), _handler(self))
        if tls is not None:
            self._http.socket = tls.wrap_socket(self._http.socket, server_side=True, do_handshake_on_connect=False)
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self._http.server_address[1]}"
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """No more answers."""
        self._http.shutdown()
        self._http.server_close()

    @property
    def writes(self) -> list[Request]:
        """Requests that change something."""
        return [request for request in self.requests if request.method != "GET"]

    def trick(self, told: str, *replies: Reply | None) -> None:
        """Answer the next requests like this ("POST dcim/modules") so, one reply each; None: as it should."""
        left = list(replies)

        def play(request: Request) -> Reply | None:
            return left.pop(0) if left and request.told == told else None

        self.tricks.append(play)

    def answer(self, request: Request) -> Reply:
        """As NetBox would."""
        if request.path == "":
            return Reply(200 if self._known(request) else 403, {"detail": "who are you?"})
        if not self._known(request):
            return Reply(403, {"detail": "Invalid v2 token"})
        if request.told in self.denied:
            return Reply(403, {"detail": "You do not have permission to perform this action."})
        try:
            return self._done(request)
        except Refused as error:
            return Reply(error.status, error.body)

    def _known(self, request: Request) -> bool:
        return request.headers.get("authorization") == f"Bearer {self.token}"

    def _done(self, request: Request) -> Reply:
        store, body = self.store, request.body
        if request.path not in store.tables:
            return Reply(404, "<!doctype html><title>Page not found</title>")
        if request.method == "GET":
            return Reply(200, self._list(request))
        if request.method == "POST":
            result = store.create(request.path, body)
            rows = [store.shown(request.path, item) for item in result]
            return Reply(201, rows if isinstance(body, list) else rows[0])
        if request.method == "PATCH":
            return Reply(200, [store.shown(request.path, item) for item in store.update(request.path, body)])
        if request.method == "DELETE":
            store.delete(request.path, [item["id"] for item in body])
            return Reply(204)
        return Reply(405, {"detail": f'Method "{request.method}" not allowed.'})

    def _list(self, request: Request) -> dict[str, Any]:
        query = dict(request.query)
        limit = min(int(query.pop("limit", ["50"])[0]) or self.page, self.page)
        offset = int(query.pop("offset", ["0"])[0])
        fields = query.pop("fields", [""])[0]
        query.pop("ordering", None)
        rows = self.store.found(request.path, query)
        output = [self.store.shown(request.path, row) for row in rows[offset : offset + limit]]
        if fields:
            output = [{name: row[name] for name in fields.split(",") if name in row} for row in output]
        more = urlencode({**request.query, "limit": limit, "offset": offset + limit}, doseq=True)
        following = f"{self.url}/api/{request.path}/?{more}" if offset + limit < len(rows) else None
        return {"count": len(rows), "next": following, "previous": None, "results": output}


class _Listener(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that goes away, or that does not believe us, is what it is."""


def _handler(server: Server) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # head and body in one packet: two would wait for each other
        disable_nagle_algorithm = True

        def _serve(self) -> None:
            url = urlsplit(self.path)
            data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            request = Request(
                self.command,
                url.path.removeprefix("/api").strip("/"),
                parse_qs(url.query),
                json.loads(data) if data else None,
                {name.lower(): value for name, value in self.headers.items()},
            )
            with server.lock:
                server.requests.append(request)
                reply = next((result for result in (play(request) for play in server.tricks) if result), None)
                if reply is None or reply.after:
                    done = server.answer(request)
                    reply = reply or done
            if reply.cut:
                self.connection.shutdown(socket.SHUT_RDWR)
                self.close_connection = True
                return
            self._send(reply)

        def _send(self, reply: Reply) -> None:
            text = isinstance(reply.body, str)
            data = b"" if reply.status == 204 else (reply.body if text else json.dumps(reply.body)).encode()
            self.send_response(reply.status)
            self.send_header("API-Version", server.version)
            self.send_header("Content-Type", "text/html" if text else "application/json")
            self.send_header("Content-Length", str(len(data)))
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PATCH = do_DELETE = _serve  # noqa: N815  # the library's names

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Nothing on stderr."""

    return Handler


@contextlib.contextmanager
def dripping(start: bytes) -> Iterator[int]:
    """The port of a server that sends this and then byte after byte, each in time."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        ended = threading.Event()

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    threading.Thread(target=drip, args=(listening.accept()[0],), daemon=True).start()

        def drip(sock: socket.socket) -> None:
            with sock, contextlib.suppress(OSError):
                sock.sendall(start)
                while not ended.wait(0.02):
                    sock.sendall(b"x")

        threading.Thread(target=serve, daemon=True).start()
        yield listening.getsockname()[1]
        ended.set()
        listening.shutdown(socket.SHUT_RDWR)
