"""Which probes an event touches: every kind has its row, every row its probes."""

from __future__ import annotations

import pytest

from agent.watch.touched import ALWAYS, TOUCHED, touched
from probes.catalogue import probes
from probes.kernel import events
from probes.kernel import log_events as kernel_log_events

CATALOGUE = probes()
NAMES = {probe.name for probe in CATALOGUE}
OF_THE_LOG = {form.kind for form in kernel_log_events._FORMS} | {"aer", "gpu_lost"}


def test_every_kind_of_event_has_a_row_and_no_row_is_of_none() -> None:
    """But for what was missed, which is everything."""
    kinds = {events.INTERFACE, events.SOFTWARE_INTERFACE, events.RDMA, events.PCI, events.GPU, events.MODULE}

    assert kinds | OF_THE_LOG == TOUCHED.keys()
    assert events.MISSED not in TOUCHED


@pytest.mark.parametrize("kind", TOUCHED)
def test_every_name_is_a_probe(kind: str) -> None:
    """And is told once."""
    assert set(TOUCHED[kind]) <= NAMES
    assert len(TOUCHED[kind]) == len(set(TOUCHED[kind]))


@pytest.mark.parametrize("kind", [kind for kind, names in TOUCHED.items() if names])
def test_with_a_probe_goes_what_stands_in_for_it_and_the_time(kind: str) -> None:
    """A fall-back that was not asked because its probe answered must be asked where it does not any more."""
    read = touched([kind], CATALOGUE)

    assert {probe.name for probe in CATALOGUE if probe.fallback_for in TOUCHED[kind]} <= read
    assert set(ALWAYS) <= read
    assert read < NAMES


def test_some_rows() -> None:
    """A cable is pulled: no GPU is asked. A GPU falls off: it is. A container's interface touches nothing."""
    assert {"nvml", "nvidia_smi", "pci", "dmi"}.isdisjoint(touched([events.INTERFACE], CATALOGUE))
    assert {"nvml", "nvidia_smi", "pci", "lspci", "kernel_log"} <= touched(["xid"], CATALOGUE)
    assert frozenset() == touched([events.SOFTWARE_INTERFACE], CATALOGUE)
    assert touched(["xid", events.INTERFACE], CATALOGUE) == touched(["xid"], CATALOGUE) | touched(
        ["link_up"], CATALOGUE
    )
