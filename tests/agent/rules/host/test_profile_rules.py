"""The node against its profile: counts, sockets, switches, and what a learnt device was."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from agent.model.gpu import (
    GpuLink,
    Mig,
    NvSwitch,
)
from agent.model.profile import Device
from agent.model.report import History, Known
from agent.rules.host.profile import device_count_low, gpu_module_missing, nvswitch_missing, profile_differs
from agent.rules.rule import (
    Fail,
    NotApplicable,
    Pass,
    Unknown,
)
from tests.agent.rules.build import (
    answers,
    changed_gpu,
    changed_gpus,
    changed_nic,
    changed_nics,
    changed_port,
    fails,
    function,
    gpu_id,
    kinds,
    nic_id,
    node,
    probe,
    relinked,
    server,
    topology,
    virtual,
)
from tests.agent.rules.host.machines import due, like, short, with_profile, without_gpu
from tests.agent.rules.rows import link, nvlinks


def test_a_missing_gpu_is_critical() -> None:
    """Both numbers and where the second is from."""
    (fault,) = fails(device_count_low, short())

    assert ("node", "critical", "GPUs") == (fault.subject, fault.severity, fault.cause)
    assert "3 GPUs on the PCI bus, 4 expected" == fault.summary
    assert "a good source" == fault.evidence[1].source


@pytest.mark.parametrize(
    ("confidence", "sure", "severity"),
    [
        ("high", "exact", "critical"),
        ("high", "likely", "error"),
        ("medium", "exact", "error"),
        ("low", "exact", "info"),
        ("low", "likely", "info"),
    ],
)
def test_what_is_not_sure_weighs_less(confidence: str, sure: str, severity: str) -> None:
    """A value of low confidence gives info at most."""
    case = with_profile(without_gpu(server()), sure, gpus=due(4, confidence))

    assert [severity] == [fault.severity for fault in fails(device_count_low, case)]


def test_a_learnt_profile_names_the_empty_place() -> None:
    """By address and slot; not where the slot is filled."""
    devices = [Device(kind="gpu", pci=gpu_id(n), slot=str(20 + n)) for n in range(4)]
    (fault,) = fails(device_count_low, short(devices=devices))
    (moved,) = fails(device_count_low, replace(function(short(devices=devices), nic_id(0), slot="23")))

    assert fault.summary.endswith(f"nothing is at {gpu_id(3)} (slot 23)")
    assert {gpu_id(3), "count of GPUs"} <= fault.places
    assert "nothing is at" not in moved.summary


def test_what_the_last_run_saw_is_part_of_it() -> None:
    """So that inventory-lost and this one are one fault."""
    history = History(inventory=[Known(subject=f"gpu:{gpu_id(3)}", label="GPU3")])
    (fault,) = fails(device_count_low, replace(short(), history=history))

    assert gpu_id(3) in fault.places


def test_missing_rails_are_an_error() -> None:
    """Of the rails' model, whatever their role is now."""
    case = with_profile(server(), rails=due(5))
    (fault,) = fails(device_count_low, case)
    devices = [Device(kind="nic", pci="0000:99:00.0", role="rail", vendor_device="15b3:1021")]
    (named,) = fails(device_count_low, with_profile(server(), rails=due(5), devices=devices))

    assert ("error", "rails") == (fault.severity, fault.cause)
    assert "4 NICs of the rails' model, 5 expected" == fault.summary
    assert named.summary.endswith("nothing is at 0000:99:00.0")
    assert {Pass} == kinds(device_count_low, with_profile(changed_nic(server(), 1, role="unused"), rails=due(4)))
    assert fails(device_count_low, with_profile(changed_nic(server(), 1, role="storage"), rails=due(4)))


@pytest.mark.parametrize(
    ("case", "kind"),
    [
        pytest.param(without_gpu(server()), NotApplicable, id="no profile"),
        pytest.param(with_profile(server(), gpus=due(4)), Pass, id="all are here"),
        pytest.param(with_profile(server(), gpus=due(3)), Pass, id="more than expected"),
        pytest.param(virtual(with_profile(without_gpu(server()), "likely", gpus=due(4))), NotApplicable, id="a guest"),
        pytest.param(probe(short(), "pci", "failed", "broken"), Unknown, id="bus not read"),
        pytest.param(with_profile(without_gpu(server()), gpus=due("four")), None, id="a word"),
        pytest.param(
            with_profile(changed_nics(server(), role="unknown"), rails=due(9)), Unknown, id="rails are not known"
        ),
    ],
)
def test_what_keeps_the_count_silent(case, kind) -> None:
    """The firing case and a circumstance."""
    assert ({kind} if kind else set()) == kinds(device_count_low, case)


def test_a_guest_whose_instance_type_is_its_shape_is_counted() -> None:
    """The cloud promised eight."""
    assert ["critical"] == [fault.severity for fault in fails(device_count_low, virtual(short()))]


def test_virtual_gpus_do_not_count() -> None:
    """A function of a GPU that is there is no second GPU."""
    case = function(with_profile(server(), gpus=due(4)), gpu_id(3), physical_function=gpu_id(2))

    assert 1 == len(fails(device_count_low, case))


def switches(count: int):
    rows = [NvSwitch(id=f"0000:c{n}:00.0", pci=f"0000:c{n}:00.0") for n in range(count)]
    return topology(server(), nvswitches=rows)


def test_a_missing_switch_is_critical() -> None:
    """The fabric manager does not start."""
    (fault,) = fails(nvswitch_missing, with_profile(switches(3), nvswitches=due(4)))

    assert ("node", "critical", "3 NVSwitches on the PCI bus, 4 expected") == (
        fault.subject, fault.severity, fault.summary,
    )  # fmt: skip
    gone = function(with_profile(switches(3), nvswitches=due(4)), nic_id(0), state="gone")
    assert nic_id(0) in fails(nvswitch_missing, gone)[0].places


@pytest.mark.parametrize(
    ("case", "kind"),
    [
        pytest.param(switches(3), NotApplicable, id="no profile"),
        pytest.param(with_profile(switches(3), nvswitches=due(0)), NotApplicable, id="none is expected"),
        pytest.param(with_profile(switches(3)), NotApplicable, id="nothing is said of them"),
        pytest.param(virtual(with_profile(switches(3), nvswitches=due(4))), NotApplicable, id="a guest"),
        pytest.param(probe(with_profile(switches(3), nvswitches=due(4)), "pci", "failed", "x"), Unknown, id="not read"),
        pytest.param(with_profile(switches(4), nvswitches=due(4)), Pass, id="all are here"),
    ],
)
def test_what_keeps_switches_silent(case, kind) -> None:
    """The firing case and a circumstance."""
    assert {kind} == kinds(nvswitch_missing, case)


def socketed(*modules: int | None):
    case = with_profile(server(), module_ids=due(4))
    for n, module in enumerate(modules):
        case = changed_gpu(case, n, module_id=module)
    return case


def test_an_empty_socket_is_named() -> None:
    """Addresses move up, sockets do not."""
    case = without_gpu(socketed(1, 2, 4, 3), 3)
    (fault,) = fails(gpu_module_missing, case)

    assert ("warning", "no GPU in socket 3 of the baseboard") == (fault.severity, fault.summary)
    assert "count of GPUs" in fault.places
    lost = changed_gpu(socketed(1, 2, 3, 4), 1, driver_state="error")
    assert gpu_id(1) in fails(gpu_module_missing, lost)[0].places


@pytest.mark.parametrize(
    ("case", "kind"),
    [
        pytest.param(socketed(1, 2, 3, 4), Pass, id="all sockets"),
        pytest.param(changed_gpus(server(), module_id=1), NotApplicable, id="no profile"),
        pytest.param(with_profile(changed_gpus(server(), module_id=1)), NotApplicable, id="no sockets"),
        pytest.param(socketed(0, 0, 0, 0), NotApplicable, id="no baseboard"),
        pytest.param(socketed(1, 2, None, 4), Unknown, id="one does not tell"),
        pytest.param(virtual(socketed(1, 1, 1, 1)), NotApplicable, id="a guest"),
        pytest.param(node(socketed(1, 1, 1, 1), container="docker"), NotApplicable, id="a container"),
    ],
)
def test_what_keeps_sockets_silent(case, kind) -> None:
    """The firing case and a circumstance."""
    assert {kind} == kinds(gpu_module_missing, case)


def test_a_slower_link_than_the_good_nodes() -> None:
    """Though every device of this node may be as slow."""
    case = relinked(with_profile(server(), devices=[like(gpu_id(1))]), gpu_id(1), link(16.0, 8))
    (fault,) = fails(profile_differs, case)

    assert (f"pci:{gpu_id(1)}", "GPU1", "warning", "slower") == (
        fault.subject, fault.label, fault.severity, fault.cause,
    )  # fmt: skip
    assert "PCIe x8, x16 in the profile; PCIe 16 GT/s, 32 in the profile" == fault.summary


def test_a_slower_port_and_another_firmware() -> None:
    """A rate is a warning, a firmware is worth knowing."""
    devices = [like(nic_id(1), kind="nic", rate_gbit_s=400.0, firmware="28.43.2026")]
    slow = changed_port(with_profile(server(), devices=devices), 1, rate_gbit_s=200.0)
    other = changed_nic(with_profile(server(), devices=devices), 1, firmware="28.39.1002")

    assert ["warning"] == [fault.severity for fault in fails(profile_differs, slow)]
    assert [("info", "firmware")] == [(fault.severity, fault.cause) for fault in fails(profile_differs, other)]
    down = changed_port(slow, 1, state="DOWN")
    assert [] == fails(profile_differs, down)


def test_fewer_nvlinks_than_the_model_has() -> None:
    """Where all GPUs have as few, none differs from its siblings."""
    case = with_profile(server(), nvlinks_per_gpu=due(18), gpu_devices=["10de:2330"])
    few = changed_gpus(case, links=nvlinks(16))

    assert 4 == len(fails(profile_differs, few))
    assert "16 NVLinks are up, 18 expected" == fails(profile_differs, few)[0].summary
    asleep = [msgspec.structs.replace(each, state="sleep") for each in nvlinks()]
    assert {Pass} == kinds(profile_differs, changed_gpus(case, links=asleep))


@pytest.mark.parametrize(
    ("case", "subject", "kind"),
    [
        pytest.param(server(), "node", NotApplicable, id="no profile"),
        pytest.param(
            function(with_profile(server(), devices=[like(gpu_id(1))]), gpu_id(1), state="gone"),
            f"pci:{gpu_id(1)}", NotApplicable, id="gone",
        ),
        pytest.param(
            with_profile(server(), devices=[like(gpu_id(1), vendor_device="10de:2335", link_width=32)]),
            f"pci:{gpu_id(1)}", NotApplicable, id="another model",
        ),
        pytest.param(
            relinked(with_profile(server(), devices=[like(gpu_id(1))]), gpu_id(1), link(8.0, 8, "idle")),
            f"pci:{gpu_id(1)}", Unknown, id="idle",
        ),
        pytest.param(with_profile(server(), devices=[like(gpu_id(1))]), f"pci:{gpu_id(1)}", Pass, id="like it"),
        pytest.param(
            changed_gpus(
                with_profile(server(), nvlinks_per_gpu=due(18), gpu_devices=["10de:2330"]),
                links=[], links_known=False, links_reason="denied",
            ),
            f"gpu:{gpu_id(1)}", Unknown, id="links not known",
        ),
        pytest.param(
            virtual(
                changed_gpus(
                    with_profile(server(), nvlinks_per_gpu=due(18), gpu_devices=["10de:2330"]), links=nvlinks(9)
                )
            ),
            f"gpu:{gpu_id(1)}", Pass, id="a guest's share",
        ),
    ],
)  # fmt: skip
def test_what_keeps_differences_silent(case, subject: str, kind) -> None:
    """Each circumstance alone."""
    (answer,) = answers(profile_differs, case, subject)

    assert isinstance(answer, kind), answer
    assert [] == [fault for fault in fails(profile_differs, case) if fault.subject == subject]


def test_nvlinks_of_other_models_and_closed_gpus_are_not_counted() -> None:
    """An H800 has eight by design; a GPU that the driver cannot open tells none."""
    other = with_profile(changed_gpus(server(), links=nvlinks(8)), nvlinks_per_gpu=due(18), gpu_devices=["10de:2335"])
    closed = with_profile(
        changed_gpus(server(), links=[], driver_state="error"), nvlinks_per_gpu=due(18), gpu_devices=["10de:2330"]
    )

    assert [] == list(profile_differs.check(other))
    assert [] == list(profile_differs.check(closed))


def linked(**more: Any):
    """GPU 1 has 16 of the 18 links that the profile expects."""
    case = with_profile(server(), nvlinks_per_gpu=due(18), gpu_devices=["10de:2330"])
    return changed_gpu(case, 1, **({"links": nvlinks(16)} | more))


@pytest.mark.parametrize(
    ("case", "kind"),
    [
        pytest.param(linked(), Fail, id="two links are missing"),
        pytest.param(linked(mig=Mig(current=False)), Fail, id="MIG is off"),
        pytest.param(linked(mig=Mig(current=True)), Pass, id="MIG is on"),
        pytest.param(topology(linked(), bandwidth_mode="half"), NotApplicable, id="mode of the system"),
        pytest.param(linked(nvlink_bandwidth_mode="min"), NotApplicable, id="mode of the GPU"),
        pytest.param(
            linked(links=[*nvlinks(16), GpuLink(link=16, state="unknown")]), Unknown, id="the state of one is not known"
        ),
        pytest.param(
            linked(links=[*nvlinks(16), GpuLink(link=16, state="inactive"), GpuLink(link=17, state="inactive")]),
            Fail,
            id="two are inactive",
        ),
    ],
)
def test_what_keeps_nvlinks_of_a_profile_silent(case, kind) -> None:
    """Each circumstance alone, and one answer."""
    (answer,) = answers(profile_differs, case, f"gpu:{gpu_id(1)}")

    assert isinstance(answer, kind), answer


@pytest.mark.parametrize(
    ("here", "there", "kind"),
    [("28.39", "28.43", Fail), (None, "28.43", Pass), ("28.39", None, Pass), ("28.43", "28.43", Pass)],
)
def test_firmware_is_compared_where_both_are_known(here: str | None, there: str | None, kind: type) -> None:
    """Of a NIC; its finding is about it."""
    devices = [like(nic_id(1), kind="nic", firmware=there)]
    case = changed_nic(with_profile(server(), devices=devices), 1, firmware=here)
    (answer,) = answers(profile_differs, case, f"pci:{nic_id(1)}")

    assert isinstance(answer, kind)
    assert not isinstance(answer, Fail) or answer.label == "mlx5_1"


def test_a_device_that_is_no_gpu_and_no_nic_has_its_address_for_a_name() -> None:
    """A drive of the profile, slower now; where the profile says no speed an idle link is no doubt."""
    case = relinked(with_profile(server(), devices=[like("0000:21:00.0", kind="drive")]), "0000:21:00.0", link(16.0))
    idle = with_profile(server(), devices=[like(gpu_id(1), link_gt_s=None, link_width=None)])

    assert ["0000:21:00.0"] == [fault.label for fault in fails(profile_differs, case)]
    idle = relinked(idle, gpu_id(1), link(2.5, 16, "idle"))
    assert [Pass(f"pci:{gpu_id(1)}")] == answers(profile_differs, idle, f"pci:{gpu_id(1)}")


def test_empty_places_are_of_the_kind_that_is_missing() -> None:
    """GPUs where GPUs are missing, rails where rails are; other NICs of the profile are not told."""
    gpus = [Device(kind="nic", pci="0000:98:00.0"), Device(kind="gpu", pci=gpu_id(3))]
    nics = [Device(kind="nic", pci=f"0000:9{n}:00.0", role=role) for n, role in enumerate(("storage", "rail"))]
    (gpu,) = fails(device_count_low, short(devices=gpus))
    (rail,) = fails(device_count_low, with_profile(server(), rails=due(5), devices=nics))

    assert gpu.summary.endswith(f"nothing is at {gpu_id(3)}")
    assert rail.summary.endswith("nothing is at 0000:91:00.0")


def test_rails_that_are_all_gone_are_known_by_the_profile() -> None:
    """Their model is; NICs of another model are none of them, nor is a storage NIC of the same."""
    devices = [Device(kind="nic", pci=nic_id(0), role="rail", vendor_device="15b3:1021")]
    unused = with_profile(changed_nics(server(), role="unused"), rails=due(4), devices=devices)
    other = with_profile(changed_nics(server(), role="unused"), rails=due(4))
    stores = [Device(kind="nic", pci=nic_id(0), role="storage", vendor_device="15b3:1021")]
    stored = with_profile(changed_nics(server(), role="unused"), rails=due(4), devices=stores)

    assert {Pass} == kinds(device_count_low, unused)
    assert ["0 NICs of the rails' model, 4 expected"] == [f.summary for f in fails(device_count_low, other)]
    assert 1 == len(fails(device_count_low, stored))
    mixed = function(with_profile(server(), rails=due(4)), nic_id(3), device="0x101b")
    assert [] == fails(device_count_low, mixed)
    foreign = changed_nic(mixed, 3, role="unused")
    assert ["3 NICs of the rails' model, 4 expected"] == [f.summary for f in fails(device_count_low, foreign)]


def test_what_is_gone_is_a_place_of_what_is_missing() -> None:
    """A switch, a socket; what is there is none, and what sleeps is none."""
    (some,) = fails(nvswitch_missing, function(with_profile(switches(3), nvswitches=due(4)), nic_id(1), state="gone"))
    (asleep,) = fails(
        nvswitch_missing, function(with_profile(switches(3), nvswitches=due(4)), nic_id(1), state="asleep")
    )
    lost = changed_gpu(socketed(1, 2, 3, 4), 1, driver_state="error")

    assert nic_id(1) in some.places
    assert nic_id(1) not in asleep.places
    assert nic_id(2) not in some.places
    assert gpu_id(2) not in fails(gpu_module_missing, lost)[0].places


@pytest.mark.parametrize("value", [True, "4"])
def test_what_is_no_number_expects_nothing(value) -> None:
    """A word or a switch of a profile that somebody wrote."""
    assert set() == kinds(device_count_low, with_profile(without_gpu(server()), gpus=due(value)))
