"""Profiles: built-in ones, a site's file, and one learnt from a good node that its siblings are judged with."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from agent.config import Configuration
from agent.diagnose import evaluate_report
from agent.model.node import Platform
from agent.model.profile import BadProfile
from agent.platforms.profiles import choose_profile, learn_profile, list_profiles, load_profile, profile_to_toml
from agent.toml_file import LIMIT_BYTES
from tests.machines import HOSTS, scan_machine

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

H100 = "8xh100-sxm-2s-8xcx7-ib-4nvsw"


@pytest.mark.parametrize("name", list_profiles())
def test_a_built_in_profile_is_whole(name: str) -> None:
    """Its name is its file's, every value has a source, and devices are vendor:device."""
    profile = load_profile(name)

    assert name == profile.name
    assert profile.title
    for key in profile.__struct_fields__:
        value = getattr(profile, key)
        if key not in ("name", "title", "gpu_devices", "devices") and value is not None:
            assert value.source, key
            assert value.confidence in ("high", "medium", "low"), key
    assert all(len(gpu_device) == 9 and gpu_device[4] == ":" for gpu_device in profile.gpu_devices)


@pytest.mark.parametrize("shape", HOSTS)
def test_a_node_fits_the_profile_that_was_learnt_from_it(shape: str, tmp_path: Path) -> None:
    """As TOML and back; nothing is found, and the report says what it was judged with."""
    report = scan_machine(shape)
    if not report.topology.gpus and not report.topology.nics:
        return
    place = tmp_path / "site.toml"
    place.write_text(profile_to_toml(learn_profile(report, "site")))
    again = evaluate_report(report, Configuration(), str(place))

    assert {"profile-differs", "device-count-low"}.isdisjoint(finding.rule for finding in again.findings)
    assert ("site", "exact") == (again.platform.profile, again.platform.confidence)
    assert "profile: site" in again.config.changed
    assert tomllib.loads(place.read_text())["name"] == "site"


def test_a_sibling_that_lost_a_gpu_is_found_by_the_learnt_profile(tmp_path: Path) -> None:
    """On the bus nothing is wrong with the other seven."""
    place = tmp_path / "site.toml"
    place.write_text(profile_to_toml(learn_profile(scan_machine(H100), "site")))
    whole = scan_machine(H100)
    import msgspec

    lost = whole.topology.gpus[3].pci
    fewer = msgspec.structs.replace(
        whole,
        topology=msgspec.structs.replace(
            whole.topology,
            pci=[f for f in whole.topology.pci if f.id != lost],
            gpus=[g for g in whole.topology.gpus if g.pci != lost],
        ),
    )
    findings = [f for f in evaluate_report(fewer, Configuration(), str(place)).findings if f.rule == "device-count-low"]

    assert ["critical"] == [finding.severity for finding in findings]
    assert str(lost) in findings[0].summary
    assert "device-count-low" not in {f.rule for f in evaluate_report(fewer, Configuration(), "none").findings}


def test_what_is_chosen() -> None:
    """Recognized, by name, none, and what is not known."""
    platform = Platform(profile="hgx-h100-8", confidence="likely", evidence=["PCI: 10de:2330 x8"])

    assert "hgx-h100-8" == choose_profile("auto", platform).profile.name  # type: ignore[union-attr]
    assert "likely" == choose_profile("auto", platform).platform.confidence
    assert choose_profile("none", platform).profile is None
    assert choose_profile("auto", Platform(profile="geforce", confidence="likely")).profile is None
    assert "exact" == choose_profile("gb200-tray", platform).platform.confidence
    with pytest.raises(BadProfile, match="no built-in profile"):
        choose_profile("hgx-h999", platform)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"name = 1\n", "Expected `str`"),
        (b"nonsense = 1\n", "site.toml"),
        (b"name = 'x'\ngpus = { value = 8 }\n", "source"),
        (b"\xff\xfe", "site.toml"),
        (b"[[[", "site.toml"),
        (b"#" * (LIMIT_BYTES + 1), "larger than"),
    ],
)
def test_a_bad_file_is_refused_in_one_line(text: bytes, message: str, tmp_path: Path) -> None:
    """It names the file and what is wrong."""
    place = tmp_path / "site.toml"
    place.write_bytes(text)

    with pytest.raises(BadProfile, match=message) as why:
        choose_profile(str(place), Platform())
    assert "\n" not in str(why.value)
    with pytest.raises(BadProfile, match="directory"):
        choose_profile(str(tmp_path), Platform())
