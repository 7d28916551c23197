"""The dashboards: as Grafana's classic JSON model wants them, every query runs, every metric and column exists.

The model: grafana.com/docs, "Dashboard JSON model", classic: panels on a grid of 24 columns (gridPos x, y, w, h), ids
unique within the dashboard, `schemaVersion` a number; an export for others names its data source in `__inputs`.
"""

from __future__ import annotations

import itertools
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from agent.outputs.export import prometheus
from tests.conftest import ROOT
from tests.machines import scan_machine

FOLDER = ROOT / "packaging" / "grafana"
DASHBOARDS = {path.stem: json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))}
CORE_PANELS = {"row", "stat", "table", "timeseries", "bargauge"}  # of Grafana itself: no plug-in is needed
PROMTOOL = shutil.which("promtool")


def targets(name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Title of the panel, and query."""
    for panel in DASHBOARDS[name]["panels"]:
        for target in panel.get("targets", []):
            yield panel["title"], target


@pytest.mark.parametrize("name", DASHBOARDS)
def test_the_model_is_grafanas(name: str) -> None:
    """Panels do not overlap, ids are unique, and the data source is the one that an import asks for."""
    dashboard = DASHBOARDS[name]
    (source,) = dashboard["__inputs"]
    panels = dashboard["panels"]

    assert dashboard["uid"] == name
    assert dashboard["id"] is None
    assert isinstance(dashboard["schemaVersion"], int)
    assert CORE_PANELS >= {panel["type"] for panel in panels}
    assert len(panels) == len({panel["id"] for panel in panels})
    places = [tuple(panel["gridPos"][key] for key in "xywh") for panel in panels]
    for x, _, width, height in places:
        assert 0 <= x < x + width <= 24
        assert height > 0
    for one, other in itertools.combinations(places, 2):
        apart = one[0] + one[2] <= other[0] or other[0] + other[2] <= one[0]
        assert apart or one[1] + one[3] <= other[1] or other[1] + other[3] <= one[1]
    for panel in panels:
        if panel["type"] != "row":
            wanted = {"type": source["pluginId"], "uid": f"${{{source['name']}}}"}
            assert {json.dumps(wanted)} == {json.dumps(item["datasource"]) for item in (panel, *panel["targets"])}
            assert len(panel["targets"]) == len({target["refId"] for target in panel["targets"]})
    variables = {variable["name"] for variable in dashboard["templating"]["list"]}
    texts = json.dumps([target for _, target in targets(name)])
    assert variables == set(re.findall(r"\$\{?([a-z]\w*)", texts))


def test_every_metric_and_label_is_exported() -> None:
    """By `export prometheus`, or `fleet export prometheus`."""
    source = "".join(
        (ROOT / "agent" / path).read_text() for path in ("outputs/export/prometheus.py", "fleet/metrics.py")
    )
    names = {f"fabricscope_{name}" for name in re.findall(r'(?:\(\s*|[01], )"([a-z]\w*)"', source)}
    queries = [target["expr"] for _, target in targets("fabricscope-prometheus")]
    variables = [variable["definition"] for variable in DASHBOARDS["fabricscope-prometheus"]["templating"]["list"]]
    used = set(re.findall(r"\bfabricscope_\w+", " ".join([*queries, *variables])))

    assert used <= names
    assert len(used) > 15
    exported = prometheus.export(scan_machine("", "gpu-width-x8"))
    labels = {name: set(re.findall(r'(\w+)="', text)) for name, text in re.findall(r"^(\w+)\{(.*)\}", exported, re.M)}
    for query in queries:
        for name, matchers in re.findall(r"(fabricscope_\w+)\{([^}]*)\}", query):
            if name in labels:
                assert set(re.findall(r"(\w+)[=!]", matchers)) <= labels[name] | {"instance"}


@pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed")
def test_promtool_runs_every_query(tmp_path: Path, real_commands: None) -> None:
    """As recording rules: their syntax is checked, and each is evaluated over one series per metric."""
    rules, series = [], set()
    for number, (_, target) in enumerate(targets("fabricscope-prometheus")):
        expression = re.sub(r"\$\w+", ".*", target["expr"])
        rules.append({"record": f"query_{number}", "expr": expression})
        series |= set(re.findall(r"\bfabricscope_\w+", expression))
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"groups": [{"name": "g", "rules": rules}]}))
    labels = 'instance="n1",gpu="GPU0",rule="r",severity="error",verdict="ok",state="active",kind="new",probe="p"'
    inputs = [{"series": f'{name}{{{labels},hardware_class="c"}}', "values": "0x5"} for name in sorted(series)]
    count = {"expr": "count(fabricscope_fleet_nodes)", "eval_time": "2m", "exp_samples": [{"labels": "{}", "value": 1}]}
    test = {
        "rule_files": ["rules.yaml"],
        "evaluation_interval": "1m",
        "tests": [{"interval": "1m", "input_series": inputs, "promql_expr_test": [count]}],
    }
    (tmp_path / "test.yaml").write_text(yaml.safe_dump(test))
    for command in (["check", "rules", "rules.yaml"], ["test", "rules", "test.yaml"]):
        done = subprocess.run([str(PROMTOOL), *command], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert 0 == done.returncode, done.stdout + done.stderr
