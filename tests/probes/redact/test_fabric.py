"""`--redact` on outputs of a fabric: no name and no GUID is left, and the fabric is the same."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from probes.fabric.files import read_fabric
from probes.fabric.topology import Fabric
from probes.host.interface import Completed, Refusal
from probes.host.recording import Recording
from probes.redact.fabric import learn, rewrite_fabric_output
from probes.redact.redact import redact_recording
from probes.redact.text import Pseudonyms, TextRedactor
from tests.probes.fabric.fabric_texts import EVERY, HCA0, HCA1, LEAF1, LEAF2, SHARP

TEXTS = ["ibnetdiscover", "iblinkinfo", "iblinkinfo -l", "ibnetdiscover -p"]
GUIDS = (HCA0, HCA1, LEAF1, LEAF2, SHARP)


def hidden(text: str, *argv: str, files: dict[str, bytes] | None = None) -> tuple[str, Recording]:
    """What is left of one output."""
    recording = Recording(files=dict(files or {}))
    recording.commands[argv] = Completed(argv, 0, text, "", 0.0)
    new, _ = redact_recording(recording)
    answer = new.commands[argv]
    assert isinstance(answer, Completed)
    return answer.stdout, new


def shape(fabric: Fabric) -> list[tuple[object, ...]]:
    """Kinds, ports, LIDs and what runs: what no pseudonym may change."""
    kinds = {guid: node.kind for guid, node in fabric.nodes.items()}
    return [
        (kinds[link.a.guid], link.a.port, link.a.lid, link.b and (kinds[link.b.guid], *link.b[1:2]), *link[2:])
        for link in fabric.links
    ]


@pytest.mark.parametrize("name", TEXTS)
def test_the_fabric_stays_and_nobody_is_named(name: str) -> None:
    """Models of switches and vendors' words stay; GUIDs go with and without their leading zeros."""
    result, _ = hidden(EVERY[name], *name.split())
    before, after = read_fabric(EVERY[name], "f"), read_fabric(result, "f")

    assert not [
        word for word in ("gpu-7", "leaf-1", "leaf-2", *GUIDS, *(g.lstrip("0") for g in GUIDS)) if word in result
    ]
    assert "Aggregation Node" in result
    assert ":MQM9700/U1" in result
    assert shape(before) == shape(after)
    assert () == after.problems


def test_a_host_has_its_own_pseudonym_there_too() -> None:
    """So that a replayed capture still finds itself: by its GUIDs, and under its name."""
    ibstat = f"CA 'mlx5_0'\n\tNode GUID: 0x{HCA0}\n"
    result, new = hidden(
        EVERY["ibnetdiscover"], "ibnetdiscover", files={"/etc/hostname": b"gpu-7\n", "/x": ibstat.encode()}
    )
    host, guid = new.files["/etc/hostname"].decode().strip(), new.files["/x"].decode().split("0x")[1].strip()

    assert f'"{host} mlx5_0"' in result
    assert f'"{host} HCA-2"' in result
    assert re.search(rf'"H-{guid}"\[1\]\(0*{guid.lstrip("0")}\)', result)  # one pseudonym in 16 begins with a zero


def test_a_name_that_is_part_of_its_model_or_of_a_word() -> None:
    """Only the name is written anew."""
    text = EVERY["iblinkinfo"].replace("leaf-1", "QM9700").replace("leaf-2", "0")
    result, _ = hidden(text, "iblinkinfo")

    assert ":MQM9700/U1" in result
    assert ";QM9700:" not in result
    assert "MF0;host-" in result
    assert "MF0;0:" not in result


def test_lines_of_no_known_form_are_left_out() -> None:
    """Nobody can say what in them is a name."""
    for name in TEXTS:
        result, _ = hidden(EVERY[name] + "connected to secretname via cable\nHostname: secretname\n", *name.split())
        assert "secretname" not in result
        assert len(result) > 400


@pytest.mark.parametrize(
    ("argv", "text"),
    [
        (("ibdiagnet2.db_csv",), EVERY["ibdiagnet db_csv"]),
        (("ibdiagnet2.net_dump",), EVERY["ibdiagnet net_dump"]),
        (("ibnetdiscover",), "ibwarn: secretname\n"),
    ],
)
def test_what_is_not_understood_is_left_out_whole(argv: tuple[str, ...], text: str) -> None:
    """ibdiagnet's files hold serials of cables, and more."""
    recording = Recording()
    recording.commands[argv] = Completed(argv, 0, text, "", 0.0)
    new, _ = redact_recording(recording)

    assert isinstance(new.commands[argv], Refusal)
    assert "left out by --redact" in new.commands[argv].reason


@pytest.mark.slow
def test_a_real_fabric_of_thousands(corpus: Path) -> None:
    """Their pseudonyms are long enough to differ."""
    text = (corpus / "fabric/topograph-example.out").read_text()
    result, _ = hidden(text, "ibnetdiscover")
    before, after = read_fabric(text, "f"), read_fabric(result, "f")

    assert (len(before.nodes), shape(before)) == (len(after.nodes), shape(after))
    assert not any(guid in result for guid in before.nodes)
    assert not [n.name for n in before.nodes.values() if n.name in result and "Mellanox" not in n.name]
    assert os.linesep in result


@pytest.mark.parametrize("name", TEXTS)
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_no_damage_leaves_a_name(name: str, data: st.DataObject) -> None:
    """Something cut out, something put in: what is no longer understood is left out, not left as it is."""
    text = EVERY[name]
    at, gap = data.draw(st.integers(0, len(text))), data.draw(st.integers(0, 90))
    noise = data.draw(st.sampled_from(["", "\0", '"', "'", "#", "[", "==(", "==>", "\n", "\r\n", ":", " - ", "\x85"]))
    texts = TextRedactor(Pseudonyms(bytes(32)))
    learn(texts, text)
    texts.know({})
    result = texts.text(rewrite_fabric_output(texts, text[:at] + noise + text[at + gap :]) or "")

    assert not [word for word in ("gpu-7", "leaf-1", "leaf-2") if word in result]
    assert not [guid for guid in GUIDS if guid in result]
