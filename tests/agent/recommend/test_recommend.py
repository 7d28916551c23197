"""Predictions for described machines and platforms: what they reach, what bounds them, what a fault costs."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from agent.cli.main import run
from agent.cli.request import ReportRequest
from agent.config import Configuration
from agent.diagnose import evaluate_report
from agent.model.node import Nccl, NcclLibrary, NcclSetting
from agent.model.prediction import Recommendation
from agent.model.report import Report
from agent.outputs.grouping import describe_cost
from agent.outputs.html.recommend import render_recommendation_page
from agent.outputs.text.lines import to_plain_text
from agent.outputs.text.page import render_page
from agent.outputs.text.recommend import describe_bound, render_recommendation
from agent.platforms.profiles import load_profile
from agent.recommend.answer import Question, answer_nodes, answer_profile, answer_report
from agent.recommend.cost import SETTING_RULES, add_costs, find_costs
from agent.recommend.machine import assume_node, read_node
from agent.recommend.predict import AS_IS, HEALTHY, Request, predict, version_of
from agent.recommend.rails import merge_rails
from agent.recommend.settings import compare_platform, to_lines
from agent.reports import encode_report
from tests.machines import HOSTS, scan_faults, scan_machine

H100 = "8xh100-sxm-2s-8xcx7-ib-4nvsw"
GIB = 1 << 30


def busbw(report: Report, collective: str = "all_reduce", nodes: int = 4, case: str = AS_IS) -> float:
    """GB/s of one row for the host of a report."""
    row = predict([read_node(report)], Request(collective, GIB, nodes), case)
    assert row.busbw_gbyte_s is not None
    return row.busbw_gbyte_s


def with_settings(report: Report, **settings: str) -> Report:
    """The report of a host on which these variables of NCCL are set."""
    rows = [NcclSetting(key=key, value=value, source="/etc/nccl.conf:1") for key, value in settings.items()]
    software = msgspec.structs.replace(report.software, nccl=Nccl(settings=rows))
    return msgspec.structs.replace(report, software=software)


@pytest.mark.parametrize("host", HOSTS)
def test_every_machine_has_an_answer_or_a_reason(host: str) -> None:
    """A healthy machine reaches what it should; a row without a figure says why."""
    answer = answer_report(scan_machine(host), Question())

    assert answer.predictions
    for row in answer.predictions:
        assert (row.busbw_gbyte_s is None) == (row.known_by == "not-modelled")
        assert row.note if row.busbw_gbyte_s is None else row.range_gbyte_s
        if row.range_gbyte_s and row.busbw_gbyte_s:
            assert row.range_gbyte_s[0] <= row.busbw_gbyte_s <= row.range_gbyte_s[1]
    for collective in ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "sendrecv"):
        for nodes in (1, 2, 3, 4, 16):
            have = predict([read_node(scan_machine(host))], Request(collective, GIB, nodes), AS_IS)
            healthy = predict([read_node(scan_machine(host))], Request(collective, GIB, nodes), HEALTHY)
            assert have.busbw_gbyte_s == healthy.busbw_gbyte_s, (collective, nodes)


def test_a_narrow_link_halves_the_rings_between_nodes_and_costs_nothing_inside() -> None:
    """NCCL plans with the link's maximum; every channel carries the same share, so the slowest wire sets the pace."""
    report = scan_machine(H100, "gpu-width-x8")
    row = predict([read_node(report)], Request("all_reduce", GIB, 4), AS_IS)

    assert 0.5 == pytest.approx(busbw(report) / busbw(report, case=HEALTHY), abs=0.001)
    assert busbw(report, nodes=1) == busbw(report, nodes=1, case=HEALTHY)
    assert ("ring", "Simple", 8, 48) == (row.algorithm, row.protocol, row.channels, row.channel_gbyte_s)
    assert row.bound is not None
    assert ("pcie", "GPU2") == (row.bound.kind, row.bound.device)
    assert "the PCIe link of GPU2" == describe_bound(row.bound)


@pytest.mark.parametrize(
    ("fault", "rule", "percent", "nodes"),
    [
        ("gpu-width-x8", "pcie-width-downgraded", 50.0, 4),
        ("nic-width-x8", "pcie-width-downgraded", 50.0, 4),
        ("ib-rate-hdr", "ib-rate-degraded", 46.4, 4),
        ("switch-uplink-x4", "pcie-width-downgraded", None, 0),  # its traffic to the rail below it stays below it
    ],
)
def test_the_cost_of_a_finding_is_that_of_its_fault_alone(
    fault: str, rule: str, percent: float | None, nodes: int
) -> None:
    """Found by fingerprint; a finding that the model has no figure for has none."""
    report = scan_machine(H100, fault)
    (finding,) = (finding for finding in report.findings if finding.rule == rule)
    cost = find_costs(report).get(finding.fingerprint)

    if percent is None:
        assert cost is None
    else:
        assert cost is not None
        assert (percent, nodes) == (pytest.approx(cost.percent, abs=1.0), cost.nodes)
        assert cost.until is not None


@pytest.mark.parametrize(
    ("faults", "costs"),
    [
        (
            ("no-peermem", "gpu-width-x8", "ib-port-down", "nic-fw-mixed"),
            {"gdr-no-path": 70, "pcie-width-downgraded": 50, "ib-port-down": 12, "nic-fw-mixed": None},
        ),
        (("no-peermem", "nic-fw-mixed", "nvlink-one-inactive"), {"nic-fw-mixed": None, "nvlink-inactive": 24}),
        (
            ("nvlink-asymmetric", "gpu-speed-gen3", "ib-rate-hdr"),  # the first two on the same GPU
            {"nvlink-asymmetric": 24, "pcie-speed-downgraded": 75, "ib-rate-degraded": 47},
        ),
        (("gpu-not-in-nvml", "ib-rate-2x"), {"ib-rate-degraded": 47, "gpu-missing": None}),
        (("roce-gid-v1-only", "roce-mtu-1500"), {"roce-gid-v1-only": None, "roce-mtu-small": None}),
    ],
)
def test_a_fault_costs_the_same_beside_others(faults: tuple[str, ...], costs: dict[str, float | None]) -> None:
    """Of several faults each has its own cost, also on one device, and below a fault of the whole node."""
    findings = {finding.rule: finding.cost for finding in scan_faults(*faults).findings}

    for rule, percent in costs.items():
        cost = findings[rule]
        assert (cost and cost.percent) == (pytest.approx(percent, abs=1.0) if percent else None), rule


def test_a_report_has_the_cost_of_its_findings() -> None:
    """In its JSON and in the text; a healthy machine has none."""
    report = scan_machine(H100, "gpu-width-x8")
    (finding,) = report.findings

    assert finding.cost is not None
    assert ("all_reduce", 4, 50.0, "model") == (
        finding.cost.collective, finding.cost.nodes, finding.cost.percent, finding.cost.known_by,
    )  # fmt: skip
    assert "50% of all-reduce bandwidth (176 GB/s) lost in every job on 4 nodes with this one" == describe_cost(finding)
    assert "costs     50% of all-reduce" in to_plain_text(render_page(report, 100))
    assert all(finding.cost is None for finding in scan_machine(H100).findings)


def test_a_rail_that_is_down_leaves_seven() -> None:
    """7 x 48 of 8 x 48."""
    report = scan_machine(H100, "ib-port-down")

    assert 7 / 8 == pytest.approx(busbw(report, "all_gather") / busbw(report, "all_gather", case=HEALTHY), abs=0.02)


def test_lost_nvlinks_slow_the_node_itself() -> None:
    """The GPU with the fewest links bounds every ring and NVLS."""
    report = scan_machine(H100, "nvlink-one-inactive")
    node = read_node(report)

    assert min(node.links) < node.healthy_links
    assert busbw(report, "all_gather", 1) < busbw(report, "all_gather", 1, HEALTHY)
    assert node.weakest_gpu is not None


def test_a_job_is_as_fast_as_its_worst_node() -> None:
    """The node and the device that set it are named."""
    good, bad = scan_machine(H100), scan_machine(H100, "gpu-width-x8")
    bad = msgspec.structs.replace(bad, node=msgspec.structs.replace(bad.node, hostname="h100-07"))
    answer = answer_nodes([*[read_node(good)] * 3, read_node(bad)], Question("all_reduce", GIB), [])
    rows = {row.case: row for row in answer.predictions}

    assert 0.5 == pytest.approx((rows[AS_IS].busbw_gbyte_s or 0) / (rows[HEALTHY].busbw_gbyte_s or 1), abs=0.001)
    assert rows[AS_IS].bound is not None
    assert ("h100-07", "GPU2") == (rows[AS_IS].bound.host, rows[AS_IS].bound.device)


def test_platforms_without_a_machine() -> None:
    """Only healthy rows, marked as assumed; without rails nothing between nodes."""
    answer = answer_profile(load_profile("hgx-h100-8"), (8, 400.0), Question("all_reduce", GIB, 4))
    alone = answer_profile(load_profile("hgx-h100-8"), None, Question("all_reduce", GIB, 4))

    assert [("healthy", "assumed", 32)] == [(row.case, row.known_by, row.ranks) for row in answer.predictions]
    assert [("not-modelled", None)] == [(row.known_by, row.busbw_gbyte_s) for row in alone.predictions]
    assert "--rails" in (alone.predictions[0].note or "")


def test_a_topology_file_has_a_refusal_or_the_figures_of_a_platform(corpus: Path) -> None:
    """Links that it does not list are not taken for none; a bridge's own uplink does not bound what is below it."""
    files = corpus / "nccl-topo" / "azhpc-images"

    def read(path: Path, profile: str = "auto") -> Recommendation:
        request = ReportRequest(str(path), None, None, None, None, 30.0, None, True, profile=profile)
        return answer_report(request.make_report()[0], Question("all_reduce", GIB, 4))

    bare, filled = read(files / "ndv5-topo.xml"), read(files / "ndv5-topo.xml", "dgx-h100")
    assert (["topology.gpus[].links"], None) == (bare.missing, bare.predictions[0].busbw_gbyte_s)
    assert "bare metal" not in " ".join(row.reason for row in bare.not_needed)
    assert ([], "assumed") == (filled.missing, filled.predictions[0].known_by)
    assert 351 == pytest.approx(filled.predictions[0].busbw_gbyte_s, abs=1)
    assert "dgx-h100" in filled.assumed[0]
    tray = read(corpus / "measured" / "logs" / "gb300-oci-topo.xml")
    assert 300 < (tray.predictions[0].busbw_gbyte_s or 0)


@pytest.mark.parametrize(
    ("profile", "kind", "figure", "known_by"),
    [("mi300x-8", "xgmi", 315, "assumed"), ("ascend-a2", "hccs", 138, "assumed")],
)
def test_meshes_of_other_vendors(profile: str, kind: str, figure: float, known_by: str) -> None:
    """A share of the links for all-reduce; no figure for what no public table has."""
    facts = assume_node(load_profile(profile), None)
    row = predict([facts], Request("all_reduce", GIB, 1), HEALTHY)
    half = predict([facts._replace(links=(facts.links[0] / 2, *facts.links[1:]))], Request("all_reduce", GIB, 1), AS_IS)

    assert (kind, known_by) == (row.bound and row.bound.kind, row.known_by)
    assert figure == pytest.approx(row.busbw_gbyte_s, abs=1)
    assert 0.5 == pytest.approx((half.busbw_gbyte_s or 0) / (row.busbw_gbyte_s or 1), abs=0.001)
    assert predict([facts], Request("sendrecv", GIB, 1), HEALTHY).busbw_gbyte_s is None


def test_several_nics_of_a_gpu_are_one_device() -> None:
    """32 x 100 Gb/s of p5.48xlarge are eight devices; four NICs of eight GPUs stay four."""
    assert (50.0,) * 8 == merge_rails([12.5] * 32, 8)
    assert (25.0,) * 4 == merge_rails([25.0] * 4, 8)
    assert 8 == len(assume_node(load_profile("p5.48xlarge"), None).search_input(2, (2, 30), True).rails_gbyte_s)


def test_what_is_not_modelled_says_why() -> None:
    """Small messages, PCIe-only machines, one GPU."""
    h100 = [read_node(scan_machine(H100))]
    pcie = [read_node(scan_machine("8xl40s-pcie-2s-2xcx7-roce"))]

    assert "8 MB" in (predict(h100, Request("all_reduce", 1 << 20, 1), HEALTHY).note or "")
    assert "measure" in (predict(pcie, Request("all_reduce", GIB, 1), HEALTHY).note or "")
    one = [h100[0]._replace(gpus=("GPU0",), links=(370.8,))]
    assert "two GPUs" in (predict(one, Request("all_reduce", GIB, 1), HEALTHY).note or "")


def test_the_oldest_version_of_the_nodes_counts() -> None:
    """Unless one is asked for; the newest where none is known."""
    node = read_node(scan_machine(H100))
    old, new = node._replace(nccl="2.21.5"), node._replace(nccl="2.27.7+cuda12.8")

    assert (2, 21) == version_of(None, [new, old])
    assert (2, 18) == version_of("2.18.5", [new])
    assert (2, 30) == version_of(None, [node._replace(nccl=None)])


@pytest.mark.parametrize(
    ("libraries", "version"),
    [
        ([("/usr/lib/libnccl.so.2.18.1", "2.18.1", 0), ("/w/libnccl.so.2", None, 8)], None),
        ([("/usr/lib/libnccl.so.2.18.1", "2.18.1", 0), ("/w/libnccl.so.2.27.3", "2.27.3", 8)], "2.27.3"),
        ([("/a/libnccl.so.2.27.3", "2.27.3", 1), ("/b/libnccl.so.2.9.1", "2.9.1", 1)], "2.9.1"),
        ([("/usr/lib/libnccl.so.2", None, 0), ("/usr/lib/libnccl.so.2.18.1", "2.18.1", 0)], "2.18.1"),
        ([], None),
    ],
)
def test_the_version_that_jobs_use_is_that_of_the_node(
    libraries: list[tuple[str, str | None, int]], version: str | None
) -> None:
    """What is installed beside it is no job's; one without a number in its name is not known."""
    report = scan_machine(H100)
    rows = [NcclLibrary(path=path, version=number, used_by=jobs) for path, number, jobs in libraries]
    software = msgspec.structs.replace(report.software, nccl=Nccl(libraries=rows))

    assert version == read_node(msgspec.structs.replace(report, software=software)).nccl


@pytest.mark.parametrize(
    ("width", "lacks"),
    [(97, set()), (96, {"NCCL chooses"}), (71, {"NCCL chooses"}), (70, {"NCCL chooses", "range"}),
     (61, {"NCCL chooses", "range", "size"})],
)  # fmt: skip
def test_a_narrow_table_has_fewer_columns(width: int, lacks: set[str]) -> None:
    """And no line of it is too long."""
    lines = to_plain_text(render_recommendation(answer_report(scan_machine(H100), Question()), width)).splitlines()
    head = next(line for line in lines if line.startswith("  collective"))
    table = lines[lines.index(head) :][:13]

    assert lacks == {name for name in ("NCCL chooses", "range", "size", "as it is", "bound") if name not in head}
    assert max(map(len, table)) <= width


def test_no_table_of_dashes_where_nothing_is_predicted() -> None:
    """The reason in one line."""
    report = scan_machine(H100)
    one = msgspec.structs.replace(
        report, topology=msgspec.structs.replace(report.topology, gpus=report.topology.gpus[:1], paths=[])
    )
    text = to_plain_text(render_recommendation(answer_report(one, Question(nodes=1)), 100))

    assert "Not predicted." in text
    assert "two GPUs" in text
    assert "NCCL chooses  " not in text


def test_set_nothing_is_the_default_answer() -> None:
    """And repair first where a finding has a cost."""
    healthy = answer_report(scan_machine(H100), Question())
    text = to_plain_text(render_recommendation(answer_report(scan_machine(H100, "gpu-width-x8"), Question()), 100))

    assert [] == healthy.settings
    assert [] == healthy.repairs
    assert "Repair first\n  GPU2  pcie-width-downgraded\n    50% of all-reduce" in text
    assert "  Set nothing. Repair first.\n" in text
    assert "caps all-gather on 2 nodes at 181 of 362 GB/s: -50% for every job" in text
    assert "inside the node nothing is lost" in " ".join(text.split())
    assert "not needed" not in text
    assert "NCCL_BUFFSIZE, NCCL_NTHREADS: not needed" in to_plain_text(render_recommendation(healthy, 100, True))


def test_nothing_to_predict_is_exit_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where only the model does not fit, what hurts is written first; without a GPU nothing is."""
    request = ["recommend", "--report", str(tmp_path / "report.json")]
    pcie = with_settings(scan_machine("8xl40s-pcie-2s-2xcx7-roce"), NCCL_ALGO="Ring")
    bare = msgspec.structs.replace(pcie, topology=msgspec.structs.replace(pcie.topology, gpus=[], paths=[]))

    (tmp_path / "report.json").write_bytes(encode_report(pcie))
    assert 2 == run(request)
    out, err = capsys.readouterr()
    assert "  remove NCCL_ALGO\n" in out
    assert "error: nothing can be predicted: GPUs without direct links" in err
    assert 0 == run([*request, "--format", "conf"])
    assert capsys.readouterr().out.startswith("# remove NCCL_ALGO\n")
    (tmp_path / "report.json").write_bytes(encode_report(bare))
    for form in ("text", "conf"):
        assert 2 == run([*request, "--format", form])
        assert ("", "error: nothing can be predicted: no GPU that a driver offers\n") == capsys.readouterr()


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("NCCL_ALGO", "Ring"),
        ("NCCL_PROTO", "LL"),
        ("NCCL_NVLS_ENABLE", "0"),
        ("NCCL_P2P_DISABLE", "1"),
        ("NCCL_SHM_DISABLE", "1"),
        ("NCCL_NET_GDR_LEVEL", "LOC"),
        ("NCCL_IB_DISABLE", "1"),
    ],
)
def test_a_setting_that_hurts_is_to_be_removed(setting: str, value: str) -> None:
    """With the file it is in; another value of it is left alone."""
    answer = answer_report(with_settings(scan_machine(H100), **{setting: value}), Question())
    (advice,) = answer.settings

    assert (setting, None, "now") == (advice.name, advice.value, advice.remove)
    assert [f"/etc/nccl.conf:1: {setting}={value}"] == advice.evidence
    assert f"# remove {setting}\n" == to_lines(answer.settings)
    assert f"unset {setting}\n" == to_lines(answer.settings, export=True)
    if value in "01":
        other = {"0": "1", "1": "0"}[value]
        assert [] == answer_report(with_settings(scan_machine(H100), **{setting: other}), Question()).settings


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """JSON of the contract's shape, text, a page; wrong values are one line and exit 2."""
    request = ["recommend", "--profile", "hgx-h100-8", "--rails", "8x400"]
    row = ["--collective", "all_reduce", "--size", "1G", "--nodes", "4"]

    assert 0 == run([*request, *row, "--format", "json"])
    answer = json.loads(capsys.readouterr().out)
    assert "fabricscope.recommend/1" == answer["schema"]
    assert [("healthy", GIB, 4, "ring")] == [
        (result["case"], result["size_bytes"], result["nodes"], result["algorithm"]) for result in answer["predictions"]
    ]
    assert 2 == run([*request, "--size", "1K", "--nodes", "1", "--collective", "sendrecv"])
    assert capsys.readouterr().err.startswith("error: nothing can be predicted: below 8 MB")
    page = tmp_path / "page.html"
    assert 0 == run([*request, "--output", str(page)])
    assert page.read_text().startswith("<!DOCTYPE html>")
    assert "all-reduce" in page.read_text()
    capsys.readouterr()
    for wrong in (["--size", "1X"], ["--size", "0"], ["--rails", "8"], ["--rails", "0x400"], ["--nccl", "3"]):
        assert 2 == run([*request, *wrong])
        assert capsys.readouterr().err.startswith(f"error: {wrong[0]} ")


def test_a_page_holds_what_the_text_holds() -> None:
    """And loads nothing."""
    answer = answer_report(scan_machine(H100, "gpu-width-x8"), Question())
    page = render_recommendation_page(answer)

    assert "default-src 'none'" in page
    assert "pcie-width-downgraded" in page


@pytest.mark.parametrize(
    ("setting", "value", "nodes", "percent"),
    [
        ("NCCL_NVLS_ENABLE", "0", 1, 23.9),
        ("NCCL_NET_GDR_LEVEL", "LOC", 4, 66.7),
    ],
)
def test_a_setting_that_is_a_finding_has_its_measured_cost(
    setting: str, value: str, nodes: int, percent: float
) -> None:
    """By the public measurement, on this machine's healthy figure."""
    healthy = with_settings(scan_machine(H100), **{setting: value})
    report = add_costs(evaluate_report(healthy, Configuration(), "auto"))
    (finding,) = [row for row in report.findings if row.rule in SETTING_RULES]

    assert finding.cost is not None
    assert (nodes, percent, "measured") == (finding.cost.nodes, finding.cost.percent, finding.cost.known_by)
    assert describe_cost(finding)


def test_ranks_have_the_rails_and_cpus_that_are_near() -> None:
    """One line a GPU; what a platform's validation sets is compared, not advised."""
    answer = answer_report(scan_machine(H100), Question("all_reduce", GIB, 1))
    tray = answer_report(scan_machine("4xgb200-tray-2xgrace-4xcx7-ib"), Question("all_reduce", GIB, 1))

    assert list(range(8)) == [place.local_rank for place in answer.placement]
    assert 8 == len({place.rails[0] for place in answer.placement})
    assert {0: "0-55,112-167", 1: "56-111,168-223"} == {place.numa_node: place.cpus for place in answer.placement}
    assert "0  GPU0  mlx5_0  NUMA 0  CPUs 0-55" in to_plain_text(render_recommendation(answer, 100))
    assert answer.platform is None
    assert tray.platform is not None
    assert "NCCL_CUMEM_ENABLE=1" in tray.platform.not_set
    assert [] == tray.settings


@pytest.mark.parametrize(
    ("cloud", "setting", "value", "differs"),
    [("GCP", "NCCL_PROTO", "LL", True), ("GCP", "NCCL_PROTO", "Simple", False), ("OCI", "NCCL_IB_TC", "106", True)],
)
def test_a_cloud_is_compared_with_what_is_validated_on_it(cloud: str, setting: str, value: str, differs: bool) -> None:
    """By the cloud that the report recognized."""
    report = with_settings(scan_machine(H100), **{setting: value})
    platform = msgspec.structs.replace(report.platform, evidence=[f"cloud: {cloud}"])
    report = msgspec.structs.replace(report, platform=platform)
    result = compare_platform(report, read_node(report))

    assert result is not None
    assert (differs, not differs) == (f"{setting}={value}" in " ".join(result.differs), setting in result.same)
    assert "for comparison only" in to_plain_text(render_recommendation(answer_report(report, Question()), 100, True))
