"""What rules of several families ask of a device: its maker, its model, where its facts and its log lines are."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from agent.model.gpu import C2c
from agent.model.node import Event
from agent.model.report import History, Known
from agent.rules.devices import (
    find_lost_addresses,
    find_offered,
    gpu_model,
    is_nvidia,
    is_on_c2c,
    kernel_log_evidence,
    list_log_words,
    pci_source,
    states_driver_cause,
    why_location_unknown,
    why_unreachable,
)
from agent.rules.rule import NotApplicable, Pass, Unknown
from agent.rules.wording import count_of, find_median, join_labels, name_pairs
from tests.agent.rules.build import changed_gpu, function, gpu_id, nic_id, probe, server, topology

GPU = gpu_id(0)


def test_addresses_of_the_last_run_are_lost_where_nothing_is_now() -> None:
    """Without an earlier run none is."""
    known = [Known(subject=f"gpu:{address}", label="GPU") for address in (GPU, "0000:ff:00.0")]

    assert {"0000:ff:00.0"} == find_lost_addresses(replace(server(), history=History(inventory=known)))
    assert set() == find_lost_addresses(server())


def test_words_that_find_a_line_again_are_whole() -> None:
    """The longest run of plain words is cut between two words."""
    text = "NVRM: installed in this system requires use of the NVIDIA open kernel modules, version 580"

    found = list_log_words([Event(kind="driver", text=text, source="dmesg")])

    assert (("LOG_WORDS", "installed in this system requires use of the NVIDIA open"),) == found


@pytest.mark.parametrize(
    ("bus", "driver", "nvidia"),
    [
        ("0x10de", "AMD", True),
        ("0x1002", "NVIDIA", False),
        (None, "NVIDIA", True),
        (None, "AMD", False),
        (None, None, True),
    ],
)
def test_the_maker_is_the_bus_s_word_then_the_driver_s(bus: str | None, driver: str | None, nvidia: bool) -> None:
    """Of a GPU that neither names the probe knows: NVIDIA's."""
    context = changed_gpu(function(server(), GPU, vendor=bus), 0, vendor=driver)

    assert nvidia == is_nvidia(context, context.topology.gpus[0])


def test_a_model_without_a_number_is_its_name() -> None:
    """Device, else what the driver calls it."""
    context = server()
    blind = function(context, GPU, device=None)

    assert "0x10de:0x2330" == gpu_model(context, context.topology.gpus[0])
    assert "NVIDIA H100 80GB HBM3" == gpu_model(blind, blind.topology.gpus[0])


@pytest.mark.parametrize(
    ("state", "on_bus", "kind"),
    [
        ("open", "present", Pass),
        ("error", "present", Pass),
        ("vfio", "present", NotApplicable),
        ("no_driver", "present", NotApplicable),
        ("unknown", "present", Unknown),
        ("not_open", "present", None),
        ("not_open", "gone", None),
        ("not_open", "asleep", NotApplicable),
    ],
)
def test_a_device_that_its_driver_need_not_offer(state: str, on_bus: str, kind: type | None) -> None:
    """It is bound to another or none, asleep, or the driver's list was not read; one that left the bus is a fault."""
    context = changed_gpu(function(server(), GPU, state=on_bus), 0, driver_state=state)
    answer = find_offered(context, context.topology.gpus[0], "habanalabs", "not listed", ("open", "error"))

    assert kind is (None if answer is None else type(answer))


@pytest.mark.parametrize(("c2c", "there"), [(None, False), (C2c(enabled=False), False), (C2c(enabled=True), True)])
def test_c2c_counts_where_it_is_switched_on(c2c: C2c | None, there: bool) -> None:
    """Whatever the device number says."""
    context = changed_gpu(server(), 0, c2c=c2c)

    assert there == is_on_c2c(context, context.topology.gpus[0])


def test_why_a_place_on_the_bus_is_not_known() -> None:
    """The bus could not be read, or nothing shows which function it is; one that the whole bus lacks is simply gone."""
    context = server(2)
    nic = context.topology.nics[0]
    elsewhere = topology(context, pci=[f for f in context.topology.pci if f.id != nic.pci])
    unread = probe(probe(topology(context, pci=[]), "pci", "absent", "no sysfs"), "lspci", "absent", "no output")
    placeless = msgspec.structs.replace(nic, pci=None)

    assert None is why_location_unknown(context, nic)
    assert None is why_location_unknown(elsewhere, nic)
    assert "where it is on the PCI bus is not known" == why_location_unknown(context, placeless)
    assert unread.why_bus_unread
    assert unread.why_bus_unread == why_location_unknown(unread, nic) == why_location_unknown(unread, placeless)
    assert None is why_location_unknown(probe(context, "pci", "failed", "x"), nic)


def test_the_source_is_where_the_fact_came_from() -> None:
    """sysfs, or lspci."""
    assert pci_source(server(), GPU, "vendor").startswith("/sys/bus/pci/devices/")
    assert pci_source(probe(server(), "pci", "absent"), GPU, "vendor").startswith("lspci")


def test_the_log_is_that_of_the_device() -> None:
    """Its last two lines, by either way to write its address."""
    rows = [Event(kind="x", text=str(n), source="dmesg", subject=GPU) for n in range(2)]
    rows += [Event(kind="x", text="3", source="dmesg", subject=f"pci:{GPU}")]
    rows += [Event(kind="x", text="other", source="dmesg", subject=nic_id(0))]

    assert ["1", "3"] == [row.value for row in kernel_log_evidence(replace(server(), events=tuple(rows)), GPU)]


@pytest.mark.parametrize(("count", "end"), [(7, "g"), (8, "h"), (9, "h and 1 more"), (10, "h and 2 more")])
def test_labels_are_cut_after_eight(count: int, end: str) -> None:
    """And the rest is counted."""
    assert join_labels(list("abcdefghij"[:count])).endswith(end)


@pytest.mark.parametrize(
    ("labels", "text"),
    [
        pytest.param(["GPU0", "GPU1"], "GPU0, GPU1", id="two are no range"),
        pytest.param(["GPU0", "GPU1", "GPU2", "GPU7"], "GPU0-2,7", id="a range"),
        pytest.param(["lo", "eth1", "ib0"], "lo, eth1, ib0", id="nothing in common: in their order"),
        pytest.param(["mlx5_0/1 (eth0)", "mlx5_1/1 (eth1)", "mlx5_2/1"], "mlx5_0-2", id="first ports"),
        pytest.param(["mlx5_0/1", "mlx5_0/2", "mlx5_1/1"], "mlx5_0/1,2, mlx5_1/1", id="other ports"),
        pytest.param(
            ["GPU0 - GPU1", "GPU0 - GPU2", "GPU0 - GPU3"], "GPU0 - GPU1, GPU0 - GPU2, GPU0 - GPU3", id="pairs"
        ),
    ],
)
def test_many_labels_are_ranges(labels: list[str], text: str) -> None:
    """Of devices that differ in their number only."""
    assert text == join_labels(labels)


@pytest.mark.parametrize(
    ("pairs", "text"),
    [
        (["0 1"], "between them"),
        (["0 1", "1 2", "1 3"], "to GPU0,2,3"),
        (["0 1", "0 2", "1 2"], "between any two of GPU0-2"),
        (["0 1", "2 3"], "between GPU0 - GPU1, GPU2 - GPU3"),
        (["0 1", "0 2", "1 2", "2 3"], "between GPU0 - GPU1, GPU0 - GPU2, GPU1 - GPU2, GPU2 - GPU3"),
    ],
)
def test_pairs_are_named_by_what_they_share(pairs: list[str], text: str) -> None:
    """A label before it names the one pair, or the device of all."""
    named = [tuple(f"GPU{end}" for end in pair.split()) for pair in pairs]

    assert text == name_pairs([(a, b) for a, b in named])


@pytest.mark.parametrize(
    ("number", "things", "text"),
    [
        (2, "fatal PCIe errors", "2 fatal PCIe errors"),
        (0, "partitions", "0 partitions"),
        (1, "recoveries of the link", "1 recovery of the link"),
        (1, "errors and buffer overruns", "1 error and buffer overrun"),
        (1, "seconds in which writes waited", "1 second in which writes waited"),
    ],
)
def test_one_thing_is_singular(number: int, things: str, text: str) -> None:
    """Its first noun, and one that "and" joins to it."""
    assert text == count_of(number, things)


@pytest.mark.parametrize(
    ("change", "stated"),
    [({}, True), ({"kind": "mlx5"}, False), ({"subject": gpu_id(1)}, False), ({"code": "rdma-port"}, False)],
)
def test_only_a_sentence_of_the_driver_about_this_gpu_states_why_it_did_not_start(change: dict, stated: bool) -> None:
    """Its kind, its subject and its code all count."""
    event = Event(kind="driver", text="NVRM: x", source="/dev/kmsg", subject=GPU, code="open-modules")
    context = replace(server(), events=[replace(event, **change)])

    assert stated is states_driver_cause(context, GPU)


@pytest.mark.parametrize(
    ("state", "why"),
    [
        ("present", None),
        ("asleep", "asleep: a scan does not wake it"),
        ("gone", "it does not answer: see pcie-device-gone"),
        ("frozen", "frozen"),
    ],
)
def test_why_a_function_cannot_be_asked(state: str, why: str | None) -> None:
    """A state that has no sentence of its own is named."""
    context = function(server(), GPU, state=state)

    assert why == why_unreachable(context.functions[GPU])


@pytest.mark.parametrize(
    ("error", "said"), [("nvmlInit: driver not loaded", "nvmlInit: driver not loaded"), (None, "not listed")]
)
def test_why_a_device_is_not_offered_is_the_driver_s_word_first(error: str | None, said: str) -> None:
    """Else that the list lacks it."""
    context = changed_gpu(server(), 0, driver_state="unlisted", driver_error=error)
    answer = find_offered(context, context.topology.gpus[0], "the driver", "not listed")

    assert isinstance(answer, Unknown)
    assert said in str(answer.reason)


@pytest.mark.parametrize(
    ("values", "median"), [([3, 1, 2], 2), ([4.0, 1.0], 2.5), ([9, 1, 2, 4], 3), ([7], 7), ([0, 0, 5, 9], 2.5)]
)
def test_the_median_of_an_even_number_is_between_the_middle_two(values: list[float], median: float) -> None:
    assert find_median(values) == median
