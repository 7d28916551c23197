"""profile-differs: models that are the same, texts that name both, places of a GPU whose id is no address."""

from __future__ import annotations

from agent.rules.host.profile import profile_differs
from tests.agent.rules.build import changed_gpu, changed_nic, fails, gpu_id, nic_id, relinked, server
from tests.agent.rules.host.machines import due, like, with_profile
from tests.agent.rules.rows import link, nvlinks


def test_the_same_model_is_compared() -> None:
    """The profile names the model, and it stands here."""
    case = with_profile(server(), devices=[like(gpu_id(1), vendor_device="10de:2330")])

    assert ["slower"] == [fault.cause for fault in fails(profile_differs, relinked(case, gpu_id(1), link(16.0, 8)))]


def test_another_firmware_is_told_with_both_versions() -> None:
    """In the summary and as evidence."""
    case = with_profile(server(), devices=[like(nic_id(1), kind="nic", firmware="28.43.2026")])
    (fault,) = fails(profile_differs, changed_nic(case, 1, firmware="28.39.1002"))

    assert "firmware 28.39.1002, 28.43.2026 in the profile" == fault.summary == fault.evidence[0].value


def test_missing_nvlinks_are_where_the_gpu_is() -> None:
    """By its id and by its address, so that what explains them finds them."""
    case = with_profile(server(), nvlinks_per_gpu=due(18), gpu_devices=["10de:2330"])
    (fault,) = fails(profile_differs, changed_gpu(case, 1, id="GPU-1", links=nvlinks(16)))

    assert {"GPU-1", gpu_id(1)} == fault.places
