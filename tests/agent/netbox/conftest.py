"""A NetBox to talk to: ours, or a real one where FABRICSCOPE_NETBOX_URL and NETBOX_TOKEN name it."""

from __future__ import annotations

import os
import shutil
import ssl
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.netbox.api import Client, NetBoxAccess
from tests.agent.netbox.server import Server

NEW = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-days", "30", "-nodes"]
NONE = "no pynetbox here: pip install 'pynetbox>=7.4'"


class House:
    """A NetBox with a site, a role and a device type, as an administrator sees it."""

    def __init__(self, url: str, token: str) -> None:
        import requests

        self.url, self.token = url, token
        self._make_session = requests.Session()
        self._make_session.headers["Authorization"] = f"{'Bearer' if token.startswith('nbt_') else 'Token'} {token}"
        self.mark = os.urandom(4).hex()  # a real one keeps what earlier tests made
        self.site = self.post("dcim/sites", name=f"Lab {self.mark}", slug=f"lab-{self.mark}")["id"]
        self.role = self.post("dcim/device-roles", name=f"Node {self.mark}", slug=f"node-{self.mark}")["id"]
        maker = self.post("dcim/manufacturers", name=f"Maker {self.mark}", slug=f"maker-{self.mark}")["id"]
        self.type = self.post("dcim/device-types", manufacturer=maker, model="XE9680", slug=f"xe-{self.mark}")["id"]

    def client(self, timeout: float = 60.0) -> Client:
        """The client that is tested."""
        from agent.netbox.client import NetBox

        return NetBox(NetBoxAccess(self.url, self.token, None, timeout), backoff_seconds=0.01)

    def post(self, path: str, **fields: Any) -> dict[str, Any]:
        """Make one object."""
        reply = self._make_session.post(f"{self.url}/api/{path}/", json=fields, timeout=60)
        assert reply.status_code == 201, reply.text
        return dict(reply.json())

    def patch(self, path: str, number: int, **fields: Any) -> None:
        """Alter one object."""
        reply = self._make_session.patch(f"{self.url}/api/{path}/", json=[{"id": number, **fields}], timeout=60)
        assert reply.status_code == 200, reply.text

    def rows(self, path: str, **filters: Any) -> list[dict[str, Any]]:
        """What is there."""
        reply = self._make_session.get(f"{self.url}/api/{path}/", params={"limit": 0, **filters}, timeout=60)
        assert reply.status_code == 200, reply.text
        return list(reply.json()["results"])

    def device(self, name: str, **fields: Any) -> int:
        """Make a device; its number."""
        place = {"site": self.site, "role": self.role, "device_type": self.type}
        return int(self.post("dcim/devices", name=f"{name}-{self.mark}", **place, **fields)["id"])


@pytest.fixture
def server() -> Iterator[Server]:
    """A NetBox of ours, which can be told to misbehave."""
    pytest.importorskip("pynetbox", reason=NONE)
    result = Server()
    yield result
    result.close()


@pytest.fixture
def own(server: Server) -> House:
    """The same, with something in it; requests up to here are forgotten."""
    result = House(server.url, server.token)
    server.requests.clear()
    return result


@pytest.fixture(params=["ours", "real"])
def house(request: pytest.FixtureRequest) -> House:
    """Ours, and a real one where there is one: both have to answer alike."""
    pytest.importorskip("pynetbox", reason=NONE)
    if request.param == "ours":
        result = request.getfixturevalue("own")
        assert isinstance(result, House)
        return result
    url, token = os.environ.get("FABRICSCOPE_NETBOX_URL"), os.environ.get("NETBOX_TOKEN")
    if not url or not token:
        pytest.skip("no real NetBox here (FABRICSCOPE_NETBOX_URL, NETBOX_TOKEN)")
    return House(url, token)


@pytest.fixture
def tls(tmp_path: Path, real_commands: None) -> Iterator[Callable[[str], tuple[str, str]]]:
    """Starts a NetBox of ours behind TLS, with a certificate for a name: its address, and the file of its authority."""
    pytest.importorskip("pynetbox", reason=NONE)
    if shutil.which("openssl") is None:
        pytest.skip("no openssl here to make certificates")
    servers: list[Server] = []

    def start(name: str) -> tuple[str, str]:
        files = [str(tmp_path / f"{name}.{suffix}") for suffix in ("key", "pem")]
        kind = "IP" if name[0].isdigit() else "DNS"
        subprocess.run(
            [
                *NEW,
                "-keyout",
                files[0],
                "-out",
                files[1],
                "-subj",
                f"/CN={name}",
                "-addext",
                f"subjectAltName={kind}:{name}",
            ],
            check=True,
            capture_output=True,
            timeout=60,
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(files[1], files[0])
        servers.append(Server(tls=context))
        return servers[-1].url, files[1]

    yield start
    for server in servers:
        server.close()
