"""The thin client against a server that misbehaves: retries, pages, refusals, and a token that goes nowhere else."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent.netbox.api import NetBoxAccess, NetBoxError, OutcomeUnknown, RequestForbidden, RequestRejected
from tests.agent.netbox.conftest import NONE, House
from tests.agent.netbox.server import TOKEN, Reply, Request, Server, dripping

DEVICES, BAYS = "GET dcim/devices", "POST dcim/module-bays"
TLS_RECORD = b"\x16\x03\x03\x3f\xff"  # the head of one of 16 KiB
EXCEPTION = {"error": "duplicate key\nDETAIL: (7)", "exception": "IntegrityError", "netbox_version": "4.6.8"}


def netbox(url: str, timeout: float = 60.0, ca: str | None = None, token: str = TOKEN) -> Any:
    """A client that waits for next to nothing between its tries."""
    pytest.importorskip("pynetbox", reason=NONE)
    from agent.netbox.client import NetBox

    return NetBox(NetBoxAccess(url, token, ca, timeout), backoff_seconds=0.001)


def test_a_list_is_whole_however_small_its_pages_are(server: Server, own: House) -> None:
    """NetBox gives as many as it likes, not as many as were asked for."""
    server.page = 3
    device = own.device("gpu01")
    for at in range(7):
        own.post("dcim/module-bays", device=device, name=f"bay {at}")

    rows = netbox(server.url).read("module bay", device_id=[device])

    assert [f"bay {at}" for at in range(7)] == [row["name"] for row in rows]
    assert [] == netbox(server.url).read("module bay", name=["none"])


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_reading_goes_on_after_a_server_that_is_busy(server: Server, own: House, status: int) -> None:
    """Three times, and then it answers."""
    own.device("gpu01")
    server.trick(DEVICES, *[Reply(status, {"detail": "busy"}, {"Retry-After": "0"})] * 3)

    assert 1 == len(netbox(server.url).read("device"))


def test_a_server_that_stays_busy_is_given_up(server: Server) -> None:
    """After six tries, with its own words."""
    server.trick(DEVICES, *[Reply(503, {"detail": "maintenance"})] * 100)

    with pytest.raises(NetBoxError, match=r"GET devices: 503 .*maintenance"):
        netbox(server.url).read("device")
    assert 6 == len(server.requests)


def test_retry_after_is_heeded_and_has_a_bound(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """A day is not waited for; nonsense is a second."""
    waited: list[float] = []
    monkeypatch.setattr(time, "sleep", waited.append)
    server.trick(DEVICES, *[Reply(429, None, {"Retry-After": after}) for after in ("7", "86400", "soon")])

    netbox(server.url).read("device")

    assert [7, 60, 1] == waited


@pytest.mark.parametrize("status", [429, 503])
def test_making_goes_on_where_the_server_says_that_it_did_nothing(server: Server, own: House, status: int) -> None:
    """The same request again, and made once."""
    device = own.device("gpu01")
    server.trick(BAYS, Reply(status, None), Reply(status, None))

    assert [1] == netbox(server.url).create("module bay", [{"device": device, "name": "a"}])
    assert 1 == len(server.store.rows("dcim/module-bays"))


@pytest.mark.parametrize("reply", [Reply(502), Reply(504), Reply(500, "<html>"), Reply(cut=True)], ids=str)
@pytest.mark.parametrize("after", [False, True])
def test_making_is_never_tried_again_where_it_may_have_been_done(
    server: Server, own: House, reply: Reply, after: bool
) -> None:
    """Who asked has to look."""
    device = own.device("gpu01")
    server.trick(BAYS, reply._replace(after=after))

    with pytest.raises(OutcomeUnknown):
        netbox(server.url).create("module bay", [{"device": device, "name": "a"}])
    assert after == bool(server.store.rows("dcim/module-bays"))
    assert 1 == sum(request.told == BAYS for request in server.requests)


@pytest.mark.parametrize("reply", [Reply(502), Reply(cut=True, after=True)], ids=str)
def test_altering_and_deleting_are_tried_again(server: Server, own: House, reply: Reply) -> None:
    """Twice done is once done."""
    device = own.device("gpu01")
    bay = own.post("dcim/module-bays", device=device, name="a")["id"]
    server.trick("PATCH dcim/module-bays", reply)
    server.trick("DELETE dcim/module-bays", reply)

    netbox(server.url).update("module bay", [{"id": bay, "position": "7"}])
    assert "7" == server.store.rows("dcim/module-bays")[0]["position"]
    netbox(server.url).delete("module bay", [bay])
    assert [] == server.store.rows("dcim/module-bays")


def test_a_refusal_says_which_object_and_why(server: Server, own: House) -> None:
    """NetBox answers a list of errors, one an object."""
    device = own.device("gpu01")

    with pytest.raises(RequestRejected) as result:
        netbox(server.url).create("interface", [{"device": device, "name": "a", "type": at} for at in ("other", "no")])
    assert ("", "type: no is not a valid choice.") == result.value.by_object

    with pytest.raises(RequestRejected, match="slug: Enter a valid"):
        netbox(server.url).create("manufacturer", [{"name": "a", "slug": "not good"}])


def test_an_exception_in_netbox_is_a_refusal_and_was_rolled_back(server: Server, own: House) -> None:
    """Its answer says so; nobody has to look."""
    server.trick(BAYS, Reply(500, EXCEPTION))
    server.trick("PATCH dcim/module-bays", Reply(500, EXCEPTION))

    with pytest.raises(RequestRejected, match=r"500 .*: duplicate key$"):
        netbox(server.url).create("module bay", [{"device": own.device("gpu01"), "name": "a"}])
    with pytest.raises(RequestRejected, match="duplicate key"):
        netbox(server.url).update("module bay", [{"id": 1}])


def test_altering_what_is_gone_is_a_refusal(server: Server) -> None:
    """NetBox passes over it and says 200."""
    with pytest.raises(RequestRejected, match="1 of 1 are no longer there"):
        netbox(server.url).update("device", [{"id": 99, "serial": "x"}])


def test_a_token_that_may_not_is_told_apart_from_one_that_is_wrong(server: Server) -> None:
    """403 both, and 401 by other servers."""
    server.denied.add("POST extras/tags")

    with pytest.raises(RequestForbidden, match="You do not have permission"):
        netbox(server.url).create("tag", [{"name": "a", "slug": "a"}])
    with pytest.raises(NetBoxError, match=r"does not let this token read devices: 403 .*Invalid v2 token"):
        netbox(server.url, token="nbt_other.token").read("device")


def test_tokens_of_old_go_by_their_own_word(server: Server) -> None:
    """NetBox before 4.5: "Token", since then "Bearer"."""
    with pytest.raises(NetBoxError):
        netbox(server.url, token="0123456789abcdef").read("device")

    assert "Token 0123456789abcdef" == server.requests[-1].headers["authorization"]


def test_the_token_of_netrc_is_not_ours(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The HTTP library would prefer it to a header."""
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login me password other")
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))

    netbox(server.url).read("device")

    assert f"Bearer {TOKEN}" == server.requests[-1].headers["authorization"]


def test_a_version_is_read_and_an_old_one_is_refused(server: Server) -> None:
    """Modules came with 4.3 in place of inventory items."""
    assert "4.6" == netbox(server.url).connect()
    server.version = "4.2"

    with pytest.raises(NetBoxError, match=r"is NetBox 4\.2; 4\.3 or later is needed"):
        netbox(server.url).connect()


@pytest.mark.parametrize(
    ("trick", "said"),
    [
        (Reply(301, None, {"Location": "http://127.0.0.1:1/"}), "redirects to another address"),
        (
            Reply(200, "<html>a login page</html>"),
            "is not a NetBox: no JSON in its response, but 25 bytes that begin '<html>a login page",
        ),
        (Reply(200, ""), "is not a NetBox: no JSON in its response, but 0 bytes$"),
        (Reply(200, "\n\x1b[31m"), r"is not a NetBox: no JSON in its response, but 6 bytes that begin '[^\n\x1b]*'$"),
        (Reply(200, {"count": 1, "results": ["?"], "next": None}), "an unexpected response"),
        (Reply(404, "<html>"), "could not|404"),
        (Reply(200, "[" * 100_000), "an unexpected response"),
        (Reply(404, "[" * 100_000), "404"),
        (Reply(404, {"detail": "gone\n\x1b[31m\u202e" + "x" * 10_000}), r"404 Not Found: .*gone\?\?\[31m\?x{9}"),
    ],
)
def test_what_is_no_netbox_is_told(server: Server, trick: Reply, said: str) -> None:
    """In one line."""
    server.trick(DEVICES, *[trick] * 9)

    with pytest.raises(NetBoxError, match=said) as result:
        netbox(server.url).read("device")
    assert str(result.value).isprintable()
    assert len(str(result.value)) < 500


def test_the_same_page_for_ever_ends(server: Server) -> None:
    """A count that is never reached, of rows that were given before."""
    page = {"count": 10**9, "next": None, "results": [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]}
    server.trick(DEVICES, *[Reply(200, page)] * 9)

    with pytest.raises(NetBoxError, match="an unexpected response"):
        netbox(server.url).read("device")
    assert 2 == len(server.requests)


def test_a_huge_answer_is_not_read_to_its_end(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would fill the memory."""
    monkeypatch.setattr("agent.netbox.client.MOST_BYTES", 1 << 20)
    server.trick(
        DEVICES, *[Reply(200, {"count": 1, "next": None, "results": [{"id": 1, "name": "a" * (2 << 20)}]})] * 9
    )

    with pytest.raises(NetBoxError, match="an answer of more than 1 MiB"):
        netbox(server.url).read("device")


def test_a_redirected_request_is_not_followed_anywhere(server: Server) -> None:
    """A POST would become a GET there, and seem to have been done."""
    other = Server()
    server.trick("POST extras/tags", Reply(302, None, {"Location": f"{other.url}/api/extras/tags/"}))
    try:
        with pytest.raises(NetBoxError, match="redirects to another address"):
            netbox(server.url).create("tag", [{"name": "a", "slug": "a"}])
        assert [] == other.requests
    finally:
        other.close()


def test_pages_elsewhere_are_not_asked_for(server: Server, own: House) -> None:
    """An answer names its next page; it is not believed."""
    device = own.device("gpu01")
    for at in range(3):
        own.post("dcim/module-bays", device=device, name=f"{at}")
    server.page = 2

    def elsewhere(request: Request) -> Reply | None:
        if request.told != "GET dcim/module-bays":
            return None
        reply = server.answer(request)
        reply.body["next"] = "http://127.0.0.1:1/api/dcim/module-bays/?offset=2"
        return reply

    server.tricks.append(elsewhere)

    assert 3 == len(netbox(server.url).read("module bay"))


def test_nobody_there_and_nobody_answering(server: Server) -> None:
    """Exit 2 with the address and the reason."""
    free = socket.create_server(("127.0.0.1", 0))
    port = free.getsockname()[1]
    free.close()
    with pytest.raises(NetBoxError, match=f"127.0.0.1:{port}: Connection refused"):
        netbox(f"http://127.0.0.1:{port}").read("device")
    with pytest.raises(NetBoxError, match="Connection refused"):  # never left: no need to look
        netbox(f"http://127.0.0.1:{port}").create("tag", [{"name": "a", "slug": "a"}])

    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(NetBoxError, match="no answer in time"):
        netbox(f"http://127.0.0.1:{silent.getsockname()[1]}", timeout=0.1).read("device")
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(OutcomeUnknown, match="no answer in time"):
        netbox(f"http://127.0.0.1:{silent.getsockname()[1]}", timeout=0.1).create("tag", [{}])


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "start", [TLS_RECORD, b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n"]
)
def test_a_server_that_sends_byte_after_byte_is_given_up(start: bytes) -> None:
    """In its handshake (which Python bounds), its headers or its body: each byte comes in time, the answer does not."""
    with dripping(start) as port, pytest.raises(NetBoxError, match="no answer in time"):
        netbox(f"http{'s' if start == TLS_RECORD else ''}://127.0.0.1:{port}", timeout=0.1).read("device")


def test_all_pages_have_one_time_limit(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that gives a row a minute would be read for weeks."""
    monkeypatch.setattr("agent.netbox.client.READ_SECONDS", -1.0)
    with pytest.raises(NetBoxError, match="too slow: not all was read"):
        netbox(server.url).read("device")


def test_certificates_are_verified(tls: Callable[[str], tuple[str, str]], monkeypatch: pytest.MonkeyPatch) -> None:
    """By the authority that is named, whatever the environment names."""
    address, authority = tls("127.0.0.1")

    with pytest.raises(NetBoxError, match="its certificate is not trusted"):
        netbox(address).connect()
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/nonexistent")
    assert "4.6" == netbox(address, ca=authority).connect()

    other, authority = tls("other.example")
    with pytest.raises(NetBoxError, match="its certificate is not trusted"):
        netbox(other, ca=authority).connect()


def test_the_token_stands_in_no_message(server: Server) -> None:
    """Not in that of a failure, and not where somebody prints what we know."""
    client = netbox(server.url)
    server.trick(DEVICES, *[Reply(403, {"detail": "no"})] * 3)

    with pytest.raises(NetBoxError) as result:
        client.read("device")
    assert TOKEN not in str(result.value) + repr(NetBoxAccess(server.url, TOKEN)) + str(NetBoxAccess(server.url, TOKEN))
