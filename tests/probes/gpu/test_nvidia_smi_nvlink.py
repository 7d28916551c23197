"""`nvidia-smi nvlink -s/-e/-R/-c`: links, and the sentences that stand where there are none."""

from __future__ import annotations

from typing import Any

import pytest

from probes.gpu import nvidia_smi_nvlink as nvlink_text
from probes.gpu.facts import Gpu, NvLink
from probes.text import ParseError
from tests.probes.gpu.nvidia_smi_texts import CAPABILITIES, ERRORS, NAME, REMOTES, STATUS, UUIDS

PARSERS = {
    "-s": (nvlink_text.parse_status, STATUS),
    "-e": (nvlink_text.parse_errors, ERRORS),
    "-R": (nvlink_text.parse_remotes, REMOTES),
    "-c": (nvlink_text.parse_capabilities, CAPABILITIES),
}


def test_states_and_speeds() -> None:
    """A link that is down has no speed, and no number is skipped or sorted as text."""
    result = nvlink_text.parse_status(STATUS)

    assert result.missing is None
    assert [(index, NAME, uuid) for index, uuid in enumerate(UUIDS)] == [(g.index, g.name, g.uuid) for g in result.gpus]
    assert (
        NvLink(0, "active", speed_gbyte_s=14.062),
        NvLink(1, "active", speed_gbyte_s=14.062),
        NvLink(2, "inactive"),
        NvLink(10, "active", speed_gbyte_s=14.062),
    ) == result.gpus[3].nvlinks
    assert result.gpus[3].nvlink_supported is True


def test_errors_of_both_generations_by_one_set_of_names() -> None:
    """Traffic and FEC buckets are no errors; a rate is packed as NVML packs it."""
    links = nvlink_text.parse_errors(ERRORS).gpus[0].nvlinks

    assert {"replay": 12, "recovery": 0, "crc": 3} == links[0].errors
    assert {"malformed_packets": 0, "receive": 7, "effective_ber_packed": 15 << 8 | 255} == links[1].errors


def test_far_ends() -> None:
    """An address as the kernel writes it, and the link number over there."""
    gpus = nvlink_text.parse_remotes(REMOTES).gpus

    assert (NvLink(0, "unknown", remote_address="0000:41:00.0", remote_link=12),) == gpus[0].nvlinks


def test_capabilities() -> None:
    """As nvidia-smi names them."""
    link = nvlink_text.parse_capabilities(CAPABILITIES).gpus[1].nvlinks[0]

    assert {"P2P is supported": True, "SLI is supported": False} == link.capabilities


@pytest.mark.parametrize(
    ("sentence", "supported"),
    [
        ("Device does not have or support Nvlink", False),
        ("Nvlink queries are not supported for Devices in MIG mode", None),
        ("NVML: Unable to retrieve NVLink information as all links are inActive", True),
        ("NVML: Unable to retrieve NVLink information: Unknown Error", None),
    ],
)
@pytest.mark.parametrize("parser", PARSERS)
def test_a_sentence_in_place_of_links(parser: str, sentence: str, supported: bool | None) -> None:
    """Having none, not telling and all being down are three things; the sentence is the reason."""
    parse, _ = PARSERS[parser]

    gpu = parse(f"GPU 0: NVIDIA L40S (UUID: {UUIDS[0]})\n{sentence}\n").gpus[0]

    assert Gpu(0, uuid=UUIDS[0], name="NVIDIA L40S", nvlink_supported=supported, nvlink_reason=sentence) == gpu


@pytest.mark.parametrize(("word", "state"), [("inactive", "inactive"), ("sleep", "sleep"), ("recovering", "unknown")])
def test_states_in_brackets(word: str, state: str) -> None:
    """A word that is newer than we are is neither up nor down."""
    gpu = nvlink_text.parse_status(f"GPU 0: NVIDIA B200\n\t Link 4: <{word}>\n").gpus[0]

    assert (NvLink(4, state),) == gpu.nvlinks


@pytest.mark.parametrize("parser", ["-e", "-R", "-c"])
def test_a_link_that_is_down_is_still_a_link(parser: str) -> None:
    """Nothing is known of its far end or errors."""
    parse, _ = PARSERS[parser]

    assert (NvLink(4, "unknown"),) == parse("GPU 0: NVIDIA B200\n\t Link 4: <inactive>\n").gpus[0].nvlinks


@pytest.mark.parametrize("uuid", [" (UUID: ...)", " (UUID: GPU-81..bcd)", ""])
def test_a_masked_uuid_is_none(uuid: str) -> None:
    """An elided UUID would join what does not belong together."""
    gpu = nvlink_text.parse_status(f"GPU 3: Tesla V100-SXM2-32GB{uuid}\n         Link 0: 25.781 GB/s\n").gpus[0]

    assert (3, "Tesla V100-SXM2-32GB", None) == (gpu.index, gpu.name, gpu.uuid)


@pytest.mark.parametrize("mark", ["...", "[...]", "         [...]"])
def test_an_authors_cut_is_said(mark: str) -> None:
    """GPUs may be missing."""
    assert (
        "its author cut the text"
        == nvlink_text.parse_status(f"GPU 0: NVIDIA H800\n Link 0: 26.562 GB/s\n{mark}\n").missing
    )


def test_a_line_that_is_not_understood_is_said_and_not_guessed() -> None:
    """Counters where states were asked for."""
    result = nvlink_text.parse_status("GPU 0: NVIDIA H800\n\t Link 0: Raw Tx: 25305739 KiB\n")

    assert "GPU0: 'Link 0: Raw Tx: 25305739 KiB' is not understood" == result.missing
    assert (None, ()) == (result.gpus[0].nvlink_supported, result.gpus[0].nvlinks)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("NVIDIA-SMI has failed because of you\n", "no GPU; it begins with: NVIDIA-SMI has failed"),
        ("+---+\nGPUs:\n gpuId 0:\n", "no GPU; it begins with: "),
        ("", "no output, as where the driver offers no NVLink"),  # as with NvLinkDisable=1
        ("\n \n", "no output"),
    ],
)
@pytest.mark.parametrize("parser", PARSERS)
def test_a_text_without_gpus_is_refused(parser: str, text: str, why: str) -> None:
    """With the line that it begins with; none may be an answer, or a file that was saved badly."""
    parse, _ = PARSERS[parser]

    with pytest.raises(ParseError, match=why):
        parse(text)


@pytest.mark.parametrize("parser", PARSERS)
def test_a_cut_text_says_nothing_that_the_whole_does_not(parser: str) -> None:
    """Wherever it is cut, what is said of a GPU and of each link is what the whole says, or nothing."""
    parse, text = PARSERS[parser]
    whole = {gpu.index: gpu for gpu in parse(text).gpus}

    for end in range(len(text)):
        try:
            start = parse(text[:end])
        except ParseError:
            continue
        for gpu in start.gpus:
            known = {link.link: link for link in whole[gpu.index].nvlinks}
            assert (gpu.name, gpu.uuid) == (whole[gpu.index].name, whole[gpu.index].uuid), end
            assert all(within(link, known[link.link]) for link in gpu.nvlinks), end


def within(said: NvLink, known: NvLink) -> bool:
    """No field of a link says something else."""
    return all(part(getattr(said, name), getattr(known, name)) for name in NvLink._fields)


def part(said: Any, known: Any) -> bool:
    return said is None or said == known or (isinstance(said, dict) and said.items() <= known.items())


def test_the_comparison_of_the_test_above_can_fail() -> None:
    """A speed that is a prefix of another would be caught."""
    link = NvLink(0, "active", speed_gbyte_s=26.562)

    assert not within(link._replace(speed_gbyte_s=26.0), link)


SENTENCE = "\t NVML: Unable to retrieve NVLink information as all links are inActive\n"
UP = "".join(f"\t Link {link}: 25 GB/s\n" for link in range(3))


@pytest.mark.parametrize(
    ("text", "states"),
    [
        (f"GPU 0: H100\n{UP}GPU 1: H100\n{SENTENCE}GPU 2: H100\n{UP}", ["inactive"] * 3),
        (f"GPU 0: H100\n{UP}GPU 1: L40S\n{SENTENCE}", []),
        (f"GPU 0: H100\n{UP}\t Link 3: 25 GB/s\nGPU 1: H100\n{SENTENCE}GPU 2: H100\n{UP}", []),
        (f"GPU 0: H100\n{SENTENCE}GPU 1: H100\n{SENTENCE}", []),
        (f"GPU 0: H100\n{UP}GPU 1: H100\n\t Device does not have or support Nvlink\n", []),
    ],
)
def test_all_links_inactive_are_the_links_that_its_peers_have(text: str, states: list[str]) -> None:
    """Where the peers of its model agree on them; otherwise the sentence is the reason, as before."""
    gpu = nvlink_text.parse_status(text).gpus[1]

    assert states == [link.state for link in gpu.nvlinks or ()]
    assert bool(states) == (gpu.nvlink_reason is None)


FOUR_UP = "".join(f"\t Link {link}: 26.562 GB/s\n" for link in range(4))
H100 = "NVIDIA H100 80GB HBM3"


@pytest.mark.parametrize(
    ("before", "rest"),
    [
        (f"GPU 0: {H100}\n{FOUR_UP}", "\t Link 0: 26.562 GB/s\n\t Link 1: 26.562 GB/s\n"),
        (f"GPU 0: {H100}\n{FOUR_UP}", "\t Link 0: 26.562 GB/s\n\t Link 1: 26.5"),
        ("", "\t Link 0: 26.562 GB/s\n\t Link 1: 26.5"),
        ("", "\t Link 0: 26.562 GB/s\n\t Link 1: 26.562 GB"),
        ("", "\t Link 0: 26.562 GB/s\n\t L"),
    ],
)
def test_a_text_that_ends_among_links_does_not_show_how_many_there_are(before: str, rest: str) -> None:
    """The last GPU has fewer links than its peers, or the last line is cut: its links are not known."""
    said = nvlink_text.parse_status(f"{before}GPU 1: {H100}\n{rest}")

    assert (None, ()) == (said.gpus[-1].nvlink_supported, said.gpus[-1].nvlinks)
    assert str(said.gpus[-1].nvlink_reason).startswith("the text may end early: it has ")
    assert str(said.gpus[-1].nvlink_reason) in str(said.missing)
    assert not before or len(said.gpus[0].nvlinks) == 4


@pytest.mark.parametrize("before", ["", f"GPU 0: {H100}\n{FOUR_UP}"])
@pytest.mark.parametrize("rest", [FOUR_UP, FOUR_UP.removesuffix("\n")])
def test_a_whole_text_without_its_last_line_end_is_whole(before: str, rest: str) -> None:
    """Editors and web pages take the last line end away."""
    said = nvlink_text.parse_status(f"{before}GPU 1: {H100}\n{rest}")

    assert (None, 4) == (said.missing, len(said.gpus[-1].nvlinks))


def test_a_link_that_is_down_counts_wherever_the_text_ends() -> None:
    """A cut hides no fault that stands before it."""
    said = nvlink_text.parse_status(f"GPU 0: {H100}\n{FOUR_UP}GPU 1: {H100}\n\t Link 0: <inactive>\n\t Link 1: 26.")

    assert ["inactive"] == [link.state for link in said.gpus[1].nvlinks]
