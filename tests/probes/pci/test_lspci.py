"""The lspci probe: which outputs it asks for, and how text and bytes complete each other."""

from __future__ import annotations

from probes.catalogue import probe
from probes.pci.lspci import HEX, TEXT
from probes.probe import Outcome, Status, outcome_of
from tests.probes.pci.lspci_sample import SAMPLE, hex_rows
from tests.probes.pci.pci_machine import PciHost, express

PROBE = probe("lspci")


def asked(host: PciHost) -> Outcome:
    return outcome_of(PROBE, host)  # type: ignore[arg-type]  # a stand-in host for tests


def test_a_live_host_is_asked_once() -> None:
    """One command, and the reason where there is no such tool."""
    host = PciHost(live=True).output(TEXT, SAMPLE).output(HEX, "not asked for")

    outcome = asked(host)

    assert (Status.OK, 5) == (outcome.status, len(outcome.facts.functions))
    assert ["lspci -D -nn -vvv"] == host.asked
    assert (Status.ABSENT, "no lspci") == (asked(PciHost(live=True)).status, asked(PciHost(live=True)).reason)


def test_a_source_without_outputs_is_absent() -> None:
    """Recorded sources have the output or not; asking them starts nothing."""
    assert Status.ABSENT is asked(PciHost()).status
    assert not PROBE.evidence(PciHost())


def test_text_and_bytes_of_one_function_become_one() -> None:
    """The text's numbers stay, the bytes add what it hides; functions of either are listed."""
    text = "0000:16:00.0 3D controller [0302]: NVIDIA Corporation GH100 [10de:2331]\n"
    text += "\tNUMA node: 1\n\tCapabilities: <access denied>\n"
    rows = hex_rows(express(link=(0x0105, 0, 0x1105)))
    bytes_ = f"0000:16:00.0 3D controller [0302]: x [10de:2331]\n{rows}\n\n0000:17:00.0 Bridge [0680]: y [10de:22a3]\n"

    both = asked(PciHost().output(TEXT, text).output(HEX, bytes_))
    alone = asked(PciHost().output(TEXT, text))

    gpu = both.facts.functions[0]
    assert (Status.OK, 2, 1, "GH100", 32.0, 4096, True) == (
        both.status,
        len(both.facts.functions),
        gpu.numa_node,
        gpu.name,
        gpu.current_link_speed_gt_s,
        gpu.config_bytes,
        gpu.acs_known,
    )
    assert (Status.PARTIAL, "lspci hid capabilities: it needs CAP_SYS_ADMIN (1 of 1 functions)") == (
        alone.status,
        alone.reason,
    )


def test_an_output_that_is_none_is_a_failure_with_its_words() -> None:
    """What the tool said on stderr is the reason."""
    host = PciHost().output(
        TEXT, "", "pcilib: Cannot open /proc/bus/pci\nlspci: Cannot find any working access method.\n", 1
    )

    outcome = asked(host)

    assert Status.FAILED is outcome.status
    assert "lspci -D -nn -vvv: pcilib: Cannot open /proc/bus/pci (exit 1)" == outcome.reason
