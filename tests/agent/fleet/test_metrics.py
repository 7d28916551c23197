"""The fleet's metrics and the alert rules on them: promtool reads both, and alerts fire where they should."""

from __future__ import annotations

import re
import shutil
import subprocess
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
import yaml

from agent.cli.main import run
from tests.agent.fleet.small import finding, report, take
from tests.conftest import ROOT

pytest.importorskip("duckdb")
RULES = ROOT / "packaging" / "prometheus" / "fabricscope-fleet.rules.yaml"
PROMTOOL = shutil.which("promtool")
NOW = datetime.now(timezone.utc)


def seen(host: str, hours_ago: float, verdict: str = "ok", *rules: str) -> bytes:
    """A report of a moment before now."""
    moment = (NOW - timedelta(hours=hours_ago)).isoformat()
    result = [finding(rule, severity="critical") for rule in rules]
    summary = {"verdict": verdict, "counts": {"critical": len(rules)}, "unknown_rules": []}
    return report(host, observed_at=moment, generated_at=moment, findings=result, summary=summary)


@pytest.fixture
def text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    """Of five nodes: one critical since an hour, one stale."""
    take(
        tmp_path / "d", seen("n1", 30), seen("n1", 1, "critical", "gpu-lost"), seen("n2", 1), seen("n3", 1),
        seen("n4", 1), seen("n5", 60), b"{",
    )  # fmt: skip
    monkeypatch.setenv("FABRICSCOPE_DATASET", str(tmp_path / "d"))
    assert 0 == run(["fleet", "export", "prometheus"])
    return capsys.readouterr().out


def value(text: str, name: str, **labels: str) -> float:
    """Of the only series with these labels."""
    (match,) = [
        line.rpartition(" ")[2]
        for line in text.splitlines()
        if re.match(rf"fabricscope_{name}[{{ ]", line)
        and all(f'{key}="{word}"' in line for key, word in labels.items())
    ]
    return float(match)


def test_what_is_counted(text: str) -> None:
    assert (3, 1, 1) == (
        value(text, "fleet_nodes", verdict="ok"), value(text, "fleet_nodes", verdict="critical"),
        value(text, "fleet_stale_nodes"),
    )  # fmt: skip
    assert 1 == value(text, "fleet_finding_nodes", rule="gpu-lost", severity="critical")
    assert 1 == value(text, "fleet_news_24h", kind="new", severity="critical")
    assert 0 == value(text, "fleet_news_24h", kind="flapping", severity="critical")
    assert 1 == value(text, "fleet_quarantined_reports")
    age = NOW.timestamp() - value(text, "fleet_newest_report_timestamp_seconds")
    assert 3590 < age < 3610


@pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed (Debian: prometheus)")
def test_promtool_has_nothing_to_say(text: str, real_commands: None) -> None:
    for words, given in ((["metrics"], text.encode()), (["rules", str(RULES)], b"")):
        done = subprocess.run([str(PROMTOOL), "check", *words], input=given, capture_output=True, timeout=60)
        assert 0 == done.returncode, done.stderr.decode() + done.stdout.decode()


def test_every_metric_of_the_rules_is_written(text: str) -> None:
    names = {word for rule in rules().values() for word in re.findall(r"fabricscope_\w+", rule)}

    assert names
    assert names <= set(re.findall(r"^# TYPE (\w+)", text, re.MULTILINE))


def rules() -> dict[str, str]:
    """Alert -> expression."""
    groups = yaml.safe_load(RULES.read_text())["groups"]
    return {rule["alert"]: rule["expr"] for group in groups for rule in group["rules"]}


SERIES = {
    'fabricscope_fleet_build_info{version="1"}': "1x300",
    'fabricscope_fleet_newest_report_timestamp_seconds': "0+60x60 3600x240",
    'fabricscope_fleet_nodes{hardware_class="H100",verdict="ok"}': "90x300",
    'fabricscope_fleet_nodes{hardware_class="H100",verdict="critical"}': "0x60 2x240",
    'fabricscope_fleet_stale_nodes{hardware_class="H100"}': "0x60 5x240",
    'fabricscope_fleet_news_24h{kind="new",severity="critical"}': "0x60 2x240",
    'fabricscope_fleet_news_24h{kind="flapping",severity="warning"}': "0x60 1x240",
    'fabricscope_fleet_quarantined_reports': "7x60 9x240",
}  # fmt: skip


@pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed (Debian: prometheus)")
def test_alerts_fire_and_are_silent(tmp_path: Path, real_commands: None) -> None:
    """An hour in which all is well, then four in which everything is wrong."""
    fires = [name for name in rules() if name != "FabricscopeFleetMetricsMissing"]
    checks = [
        {"expr": f'count(ALERTS{{alertname="{name}",alertstate="firing"}})', "eval_time": at,
         "exp_samples": [{"value": 1}] if firing else []}
        for name in fires for at, firing in (("55m", False), ("4h55m", True))
    ]  # fmt: skip
    missing = {"expr": 'count(ALERTS{alertname="FabricscopeFleetMetricsMissing"})', "eval_time": "90m"}
    tests = [
        {
            "interval": "1m",
            "input_series": [{"series": name, "values": values} for name, values in SERIES.items()],
            "promql_expr_test": [*checks, {**missing, "exp_samples": []}],
        },
        {
            "interval": "1m",
            "input_series": [{"series": "up", "values": "1x300"}],
            "promql_expr_test": [{**missing, "exp_samples": [{"value": 1}]}],
        },
    ]
    path = tmp_path / "test.yaml"
    path.write_text(yaml.safe_dump({"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": tests}))

    done = subprocess.run([str(PROMTOOL), "test", "rules", str(path)], capture_output=True, timeout=120)

    assert 0 == done.returncode, done.stdout.decode() + done.stderr.decode()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["prometheus", "host"], "prometheus exports no table"), (["csv"], "which table? tables: host, pci")],
)
def test_asked_the_wrong_way(arguments: list[str], said: str, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert 2 == run(["fleet", "export", *arguments])
    assert said in capsys.readouterr().err
