"""The configuration file: what it says is in the report, what it misspells is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.cli.configuration import format_configuration
from agent.config import Configuration, ConfigurationError, load_configuration
from agent.rules.context import Silence

NAMES = frozenset({"ib-port-down", "roce-mtu-small"})


def write(tmp_path: Path, text: str) -> str:
    place = tmp_path / "config.toml"
    place.write_text(text)
    return str(place)


def test_every_change_is_a_line_of_the_report(tmp_path: Path) -> None:
    """Rules that are off and declared facts are told, in a fixed order."""
    configuration = load_configuration(
        write(tmp_path, '[rules]\noff = ["roce-mtu-small", "ib-port-down"]\n[facts]\nroce_mode = "lossy"\n'), NAMES
    )

    assert configuration.changed == ["rules.off: ib-port-down", "rules.off: roce-mtu-small", "facts.roce_mode = lossy"]
    assert frozenset({"ib-port-down", "roce-mtu-small"}) == configuration.settings.disabled


def test_facts_and_limits_reach_the_rules(tmp_path: Path) -> None:
    """As they are written, and each is told; a limit may stand below a table of its rule, or quoted."""
    configuration = load_configuration(
        write(
            tmp_path,
            "[facts]\nroce_traffic_class = 106\ncable_metres = 30\n"
            '[thresholds]\nroce-ets-starved.percent = 20\n"roce-pfc-multi.classes" = 3\n',
        ),
        NAMES,
    )

    assert {"roce_traffic_class": 106, "cable_metres": 30.0} == dict(configuration.settings.facts)
    assert {"roce-ets-starved.percent": 20.0, "roce-pfc-multi.classes": 3.0} == dict(configuration.settings.thresholds)
    assert configuration.changed == [
        "facts.cable_metres = 30.0",
        "facts.roce_traffic_class = 106",
        "thresholds.roce-ets-starved.percent = 20",
        "thresholds.roce-pfc-multi.classes = 3",
    ]


def test_the_default_changes_nothing() -> None:
    """Without a file nothing is switched off."""
    assert Configuration().changed == []
    assert frozenset() == Configuration().settings.disabled


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ('[rules]\noff = ["no-such-rule"]\n', "no-such-rule"),
        ("[rule]\noff = []\n", "rule"),
        ('[facts]\nroce_mode = "maybe"\n', "maybe"),
        ("[rules]\noff = 3\n", "rules.off"),
        ("[facts]\nroce_traffic_class = 256\n", "roce_traffic_class"),
        ("[facts]\nroce_traffic_class = -1\n", "roce_traffic_class"),
        ("[facts]\nroce_traffic_class = true\n", "roce_traffic_class"),
        ("[facts]\ncable_metres = 0\n", "cable_metres"),
        ("[facts]\ncable_metres = inf\n", "cable_metres"),
        ("[thresholds]\nno-such-rule.percent = 3\n", "no-such-rule.percent"),
        ("[thresholds]\nroce-ets-starved.no_word = 3\n", "no_word"),
        ("[thresholds]\nroce-ets-starved = 3\n", "roce-ets-starved"),
        ("[thresholds]\nroce-ets-starved.percent = -1\n", "roce-ets-starved.percent"),
        ("[thresholds]\nroce-ets-starved.percent = nan\n", "roce-ets-starved.percent"),
        ('[thresholds]\nroce-ets-starved.percent = "3"\n', "thresholds: Expected"),
        ("not toml", "config.toml"),
        ("\udcff", "config.toml"),
    ],
)
def test_what_cannot_be_used_is_refused_with_its_name(tmp_path: Path, text: str, part: str) -> None:
    """A misspelt rule, key or value is an error that names it: it must not pass in silence."""
    place = tmp_path / "config.toml"
    place.write_bytes(text.encode("utf-8", "surrogateescape"))

    with pytest.raises(ConfigurationError, match=r"config\.toml") as refused:
        load_configuration(str(place), NAMES)
    assert part in str(refused.value)


def test_a_missing_or_huge_file_is_refused(tmp_path: Path) -> None:
    """The reason is the system's own word, or the limit."""
    with pytest.raises(ConfigurationError, match="No such file"):
        load_configuration(str(tmp_path / "none.toml"), NAMES)
    with pytest.raises(ConfigurationError, match="larger than"):
        load_configuration(write(tmp_path, "#" * (2 << 20)), NAMES)


def test_silences_are_read_with_their_days(tmp_path: Path) -> None:
    """Each is a line of the report; a day may be a date of TOML or a text."""
    entries = (
        '[[silence]]\nrule = "ib-port-down"\nreason = "riser ordered"\ndevice = "mlx5_3"\nuntil = 2026-03-31\n'
        'ticket = "OPS-1"\n[[silence]]\nrule = "roce-mtu-small"\nreason = "by design"\nuntil = "2026-04-01"\n'
        "all = true\n"
    )
    configuration = load_configuration(write(tmp_path, entries), NAMES)

    assert configuration.changed == [
        "silence: ib-port-down of mlx5_3 until 2026-03-31: riser ordered (OPS-1)",
        "silence: roce-mtu-small of all devices and what it explains until 2026-04-01: by design",
    ]
    assert configuration.settings.silences == (
        Silence("ib-port-down", "riser ordered", "mlx5_3", "2026-03-31", "OPS-1"),
        Silence("roce-mtu-small", "by design", None, "2026-04-01", None, True),
    )
    output = write(tmp_path, format_configuration(configuration, None, ()))
    assert load_configuration(output, NAMES) == configuration


@pytest.mark.parametrize(
    ("entry", "line", "part"),
    [
        ('rule = "ib-port-dwn"\nreason = "x"', 7, "did you mean ib-port-down?"),
        ('reason = "x"', 6, "missing required field `rule`"),
        ('rule = "ib-port-down"', 6, "missing required field `reason`"),
        ('rule = "ib-port-down"\nreason = ""', 8, "silence.reason"),
        ('rule = "ib-port-down"\nreason = "x"\ndevice = ""', 9, "silence.device"),
        ('rule = "ib-port-down"\nreason = "x"\nuntil = "tomorrow"', 9, "silence.until"),
        ('rule = "ib-port-down"\nreason = "x"\nuntil = 2026-03-31T00:00:00', 9, "silence.until"),
        ('rule = "ib-port-down"\nreason = "x"\nuntil = 2026-02-30', 9, "Invalid date"),
        ('rule = "ib-port-down"\nreason = "x"\nall = "yes"', 9, "silence.all"),
        ('rule = "ib-port-down"\nreason = "x"\nunitl = 2026-03-31', 9, "unitl"),
    ],
)
def test_a_wrong_silence_is_refused_with_its_line(tmp_path: Path, entry: str, line: int, part: str) -> None:
    """Not with that of the first entry, which is right."""
    first = '# ours\n[[silence]]\nrule = "ib-port-down"\nreason = "x"\n\n'
    with pytest.raises(ConfigurationError) as caught:
        load_configuration(write(tmp_path, f"{first}[[silence]]\n{entry}\n"), NAMES)

    assert part in str(caught.value)
    assert f":{line}:" in str(caught.value) or f"(at line {line}," in str(caught.value)


def test_old_names_of_rules_keep_working_with_a_note(tmp_path: Path) -> None:
    """Renamed ones go by their new name; what is no rule any more is left out."""
    notes: list[str] = []
    path = write(
        tmp_path,
        '[rules]\noff = ["roce-module-fault", "pcie-aspm-on"]\n[thresholds]\npcie-uplink-oversubscribed.ratio = 3\n'
        '[[silence]]\nrule = "roce-module-fault"\nreason = "known"\n',
    )
    configuration = load_configuration(path, NAMES | {"port-module-fault"}, notes.append)

    assert ["port-module-fault"] == configuration.rules.off
    assert {} == configuration.limits
    assert ["port-module-fault"] == [entry.rule for entry in configuration.silence]
    assert f"{path}: roce-module-fault is called port-module-fault now" == notes[0]
    assert f"{path}: pcie-aspm-on is not a rule any more: the report has it as topology.pci[].aspm" == notes[1]
    assert 4 == len(notes)


@pytest.mark.parametrize("text", ["ib-rcv-errors.per_hour = 99\n", "[thresholds.ib-rcv-errors]\nper_hour = 99\n"])
def test_thresholds_of_a_merged_rule_keep_working_with_a_note(text: str, tmp_path: Path) -> None:
    """They have a name of their own in the rule that reports its fault now."""
    notes: list[str] = []
    path = write(tmp_path, f'[rules]\noff = ["ib-link-integrity"]\n[thresholds]\n{text}')
    configuration = load_configuration(path, NAMES | {"ib-symbol-errors"}, notes.append)

    assert {"ib-symbol-errors.received_per_hour": 99} == configuration.limits
    assert ["ib-symbol-errors"] == configuration.rules.off
    assert [
        f"{path}: ib-link-integrity is part of ib-symbol-errors now: what is set for the one is set for the other",
        f"{path}: ib-rcv-errors.per_hour is called ib-symbol-errors.received_per_hour now",
    ] == notes


def test_fields_that_may_differ_reach_the_rules(tmp_path: Path) -> None:
    """A field is left out of the comparison, or a finding of it is silenced; both are lines of the report."""
    text = '[peers]\nfree = ["netdev.mtu"]\n[[silence]]\nrule = "ib-port-down"\nfield = "gpu.vbios"\nreason = "x"\n'
    configuration = load_configuration(write(tmp_path, text), NAMES)

    assert frozenset({"netdev.mtu"}) == configuration.settings.free_fields
    assert (Silence("ib-port-down", "x", field="gpu.vbios"),) == configuration.settings.silences
    assert ["peers.free: netdev.mtu", "silence: ib-port-down (gpu.vbios) of all devices: x"] == configuration.changed
    assert 'free = ["netdev.mtu"]' in format_configuration(configuration, "f", [])


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('[peers]\nfree = ["netdev.mtuu"]\n', "2: no field 'netdev.mtuu' is compared among peers; near: netdev.mtu"),
        ('[peers]\nfree = ["zzzzzzzzzz"]\n', "peers; docs/peer-fields.md lists them"),
        ('[peers]\nfree = ["gpu.label"]\n', "no field 'gpu.label'"),
        ('[[silence]]\nrule = "ib-port-down"\nreason = "x"\nfield = "netdev.x"\n', "4: no field 'netdev.x'"),
    ],
)
def test_a_field_that_is_not_compared_is_refused(tmp_path: Path, text: str, error: str) -> None:
    """A misspelt field would be compared all the same."""
    with pytest.raises(ConfigurationError) as caught:
        load_configuration(write(tmp_path, text), NAMES)

    assert error in str(caught.value)
