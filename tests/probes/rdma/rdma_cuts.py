"""What every parser of a tool's text must keep: any text is survived, and a cut text says nothing that is not true."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st

from probes.rdma.facts import RdmaDevice, RdmaPort
from probes.rdma.normalize import ParsedTool
from probes.text import ParseError

Parser = Callable[[str], ParsedTool]
KEYED = frozenset({"name", "port", "ports", "gids", "gids_known", "netdevs"})


@st.composite
def damaged(draw: st.DrawFn, text: str) -> str:
    """A real text with pieces cut out, doubled or replaced by anything."""
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = draw(st.integers(start, min(len(text), start + 40)))
        text = text[:start] + draw(st.sampled_from(("", text[start:end] * 2)) | st.text(max_size=12)) + text[end:]
    return text


def understood(parse: Parser, text: str) -> ParsedTool | None:
    """The answer, or None where the parser declares the text unparsable; any other error is the test's failure."""
    try:
        return parse(text)
    except ParseError:
        return None


def says_only_what_is_true(parse: Parser, text: str, length: int) -> None:
    """The first `length` characters tell nothing that the whole text does not tell."""
    whole = {device.name: device for device in parse(text).devices}
    start = understood(parse, text[:length])
    for device in start.devices if start else ():
        assert_told(device, whole[device.name])
        ports = {port.port: port for port in whole[device.name].ports}
        for port in device.ports:
            assert_told(port, ports[port.port])
            assert set(port.netdevs) <= set(ports[port.port].netdevs)
            assert set(port.gids) <= set(ports[port.port].gids)
            assert not port.gids_known or port.gids == ports[port.port].gids


def assert_told(part: RdmaDevice | RdmaPort, whole: RdmaDevice | RdmaPort) -> None:
    for field in part._fields:
        said = getattr(part, field)
        assert field in KEYED or said in (None, False) or said == getattr(whole, field), field
