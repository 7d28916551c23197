"""Damaged outputs of nvidia-smi: every parser reads them or refuses them by its one error, and is done in no time."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from probes.gpu import nvidia_smi, nvidia_smi_query, nvidia_smi_topo
from probes.gpu import nvidia_smi_nvlink as nvlink_text
from probes.gpu.facts import normal_address
from probes.text import ParseError
from tests.probes.gpu import nvidia_smi_texts as texts

MUTATIONS = 2000 if os.environ.get("HYPOTHESIS_PROFILE") == "ci" else 60
LONGEST = 64 << 10

PARSERS: dict[str, tuple[Callable[[str], Any], str]] = {
    "-q": (nvidia_smi_query.parse_text, texts.QUERY),
    "-q -x": (nvidia_smi_query.parse_xml, texts.XML),
    "--query-gpu": (nvidia_smi_query.parse_csv, texts.CSV),
    "-L": (nvidia_smi.parse_list, texts.LIST),
    "lost": (
        nvidia_smi.lost_gpus,
        "Unable to determine the device handle for GPU3: 0000:C1:00.0: Unknown Error\n",
    ),
    "refusal": (nvidia_smi.refusal, "Failed to initialize NVML: Driver/library version mismatch\n"),
    "topo -m": (nvidia_smi_topo.parse_matrix, texts.TOPO),
    "topo -p2p": (nvidia_smi_topo.parse_p2p, texts.P2P),
    "nvlink -s": (nvlink_text.parse_status, texts.STATUS),
    "nvlink -e": (nvlink_text.parse_errors, texts.ERRORS),
    "nvlink -R": (nvlink_text.parse_remotes, texts.REMOTES),
    "nvlink -c": (nvlink_text.parse_capabilities, texts.CAPABILITIES),
    "address": (normal_address, "00000000:1B:00.0"),
}

JUNK = st.one_of(
    st.text(max_size=20),
    st.sampled_from(
        ["\t", "\n", "\r", " : ", "<", "&#0;", "GPU 1", "Link 7: ", "\x1b[4m", "NV", "X", "9" * 30, '"', ",", "²", "٣"]
    ),
)


@st.composite
def damaged(draw: st.DrawFn, text: str) -> str:
    """A real-looking text of which pieces were lost, doubled, swapped for others or for junk; at most 64 KiB."""
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, len(text)))
        to = draw(st.integers(at, min(len(text), at + 200)))
        other = draw(st.integers(0, len(text)))
        piece = draw(st.one_of(JUNK, st.sampled_from(["", text[at:to] * 3, text[other : other + 80]])))
        text = text[:at] + piece + text[to:]
    return text[:LONGEST]


@pytest.mark.parametrize("parser", PARSERS)
def test_any_damage_is_read_or_refused(parser: str) -> None:
    """Nothing but the declared error, whatever is lost or added."""
    parse, text = PARSERS[parser]

    @settings(max_examples=MUTATIONS)
    @given(damaged(text))
    def survives(mutation: str) -> None:
        refused_or_read(parse, mutation)

    survives()


@pytest.mark.parametrize("parser", PARSERS)
def test_any_text_is_read_or_refused(parser: str) -> None:
    """Also one that was never nvidia-smi's."""
    parse, _ = PARSERS[parser]

    @given(st.text(max_size=500))
    def survives(anything: str) -> None:
        refused_or_read(parse, anything)

    survives()


def refused_or_read(parse: Callable[[str], Any], text: str) -> None:
    with contextlib.suppress(ParseError):
        parse(text)


PATTERNS = {
    "blanks": " ",
    "lines": "\n",
    "opened": "GPU 0: a (",
    "rows": "GPU0 X\n",
    "headings": "GPU0 GPU1\n",
    "wide heading": "GPU0 mlx5_1 ",
    "wide row": "GPU0\t X ",
    "addresses": "00000000:",
    "deeper": "    \n  a\n",
    "entries": "a : b\n",
    "tags": "<nvidia_smi_log>",
    "nested": "<gpu>",
    "quotes": '"name,',
    "links": "Link 1: ",
    "nics": "\n\n  NIC0: ",
}


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("parser", PARSERS)
def test_no_input_takes_more_than_its_share_of_time(parser: str, pattern: str) -> None:
    """Four times the text takes nowhere near sixteen times as long; the slack is for a busy machine."""
    parse, text = PARSERS[parser]

    def seconds(size: int) -> float:
        made = text[: len(text) // 2] + PATTERNS[pattern] * (size // len(PATTERNS[pattern])) + text[len(text) // 2 :]
        started = time.process_time()
        refused_or_read(parse, made)
        return time.process_time() - started

    small = min(seconds(16 << 10) for _ in range(2))
    large = min(seconds(LONGEST) for _ in range(2))

    assert large < max(12 * small, 0.25)
