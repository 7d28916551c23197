"""A fragment in which all ports have one setting, or no output names an RDMA device: notes of low confidence."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.model.report import Report
from tests.agent.contradictions.test_mixed import scan_outputs
from tests.agent.rules.test_fragments import devinfo
from tests.machines import scan_text


def rdma_links(count: int = 4) -> str:
    return "".join(f"link mlx5_{n}/1 state ACTIVE physical_state LINK_UP netdev ens{n}np0 \n" for n in range(count))


def ip_links(mtu: int, count: int = 4) -> str:
    return "".join(
        f"{n + 2}: ens{n}np0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu {mtu} qdisc mq state UP mode DEFAULT\n"
        f"    link/ether 94:6d:ae:00:00:0{n} brd ff:ff:ff:ff:ff:ff promiscuity 0 minmtu 68 maxmtu 9978 \n"
        for n in range(count)
    )


def gid_table(version: str, count: int = 4) -> str:
    rows = (
        f"mlx5_{n}\t1\t0\t0000:0000:0000:0000:0000:ffff:0a00:000{n}\t10.0.0.{n}  \t{version}\tens{n}np0\n"
        for n in range(count)
    )
    head = "DEV\tPORT\tINDEX\tGID\tIPv4\tVER\tDEV\n---\t----\t-----\t---\t---\t---\t---\n"
    return f"{head}{''.join(rows)}n_gids_found={count}\n"


def notes_of(report: Report) -> set[tuple[str, str, str, str]]:
    return {(f.rule, f.subject, f.severity, f.confidence) for f in report.findings}


@pytest.mark.parametrize(
    ("outputs", "rule"),
    [
        ({"rdma_link.txt": rdma_links(), "ip_-d_link.txt": ip_links(1500)}, "roce-mtu-small"),
        ({"rdma_link.txt": rdma_links(), "show_gids.txt": gid_table("v1")}, "roce-gid-v1-only"),
        ({"show_gids.txt": gid_table("v1")}, "roce-gid-v1-only"),
        (
            {"rdma_link.txt": rdma_links().replace("ACTIVE physical_state LINK_UP", "DOWN physical_state DISABLED")},
            "roce-link-down",
        ),
    ],
)
def test_a_setting_that_all_ports_have_is_a_note(outputs: dict[str, str], rule: str) -> None:
    """Chosen, or wrong alike: the text cannot show which."""
    report = scan_outputs(outputs)

    assert {(rule, "node", "info", "low")} == notes_of(report)
    assert "What this means here depends on what these ports are for" in report.findings[0].impact


@pytest.mark.parametrize(("index", "found"), [(0, "warning"), (7, None), (1, None)])
def test_an_index_that_a_job_sets_is_judged_on_all_ports(tmp_path: Path, index: int, found: str | None) -> None:
    """The setting is NCCL's: GPU jobs use these ports. An index that a cut table does not show may be there."""
    rows = gid_table("v1", 2).splitlines(keepends=True)
    second = [row.replace("\t0\t", "\t1\t").replace("v1", "v2") for row in rows[2:4]]
    text = f"export NCCL_IB_GID_INDEX={index}\nexport NCCL_IB_HCA=mlx5\n\n$ show_gids\n{''.join(rows[:4] + second)}"
    report = scan_text(tmp_path, text)
    assert {f.severity for f in report.findings if f.rule == "roce-gid-index-wrong"} == ({found} if found else set())


@pytest.mark.parametrize(
    "outputs",
    [
        {"rdma_link.txt": rdma_links(), "ip_-d_link.txt": ip_links(9000)},
        {"show_gids.txt": gid_table("v2")},
        {
            "show_gids.txt": gid_table("v1").replace(
                "0000:0000:0000:0000:0000:ffff:0a00", "fe80:0000:0000:0000:0000:00ff:0a00"
            )
        },
    ],
    ids=["large packets", "version 2", "no address: down, perhaps"],
)
def test_what_all_healthy_or_unused_ports_have_is_no_note(outputs: dict[str, str]) -> None:
    assert set() == notes_of(scan_outputs(outputs))


def classes(pfc: str) -> str:
    return (
        "DCBX mode: OS controlled\nPriority trust state: dscp\ndefault priority:\nPFC configuration:\n"
        f"\tpriority    0   1   2   3   4   5   6   7\n\tenabled     {'   '.join(pfc)}\n"
    )


@pytest.mark.parametrize(
    ("pfc", "rules"),
    [("00000000", {"roce-pfc-off"}), ("11111111", {"roce-pfc-multi"}), ("00010000", set())],
    ids=["off", "on for all", "on for one"],
)
def test_classes_of_an_interface_alone_are_a_note_of_the_interface(pfc: str, rules: set[str]) -> None:
    """No output names an RDMA device: what is said is said of the interface, and what was not read is no evidence."""
    report = scan_outputs({"mlnx_qos_-i_ens6np0.txt": classes(pfc)})

    assert {(rule, "netdev:ens6np0", "info", "low") for rule in rules} == notes_of(report)
    assert not any("global pause" in row.what for finding in report.findings for row in finding.evidence)
    assert all("`ibstat`" in finding.steps[0].do for finding in report.findings)


def test_classes_of_all_interfaces_alone_are_one_note() -> None:
    report = scan_outputs({f"mlnx_qos_-i_ens{n}np0.txt": classes("00000000") for n in range(4)})

    assert {("roce-pfc-off", "node", "info", "low")} == notes_of(report)


def test_classes_of_an_interface_beside_a_list_without_its_nic_are_no_note() -> None:
    outputs = {"lspci_-nn.txt": "00:01.0 Host bridge [0600]: Intel Corporation Device [8086:09a2] (rev 04)\n"}

    assert set() == notes_of(scan_outputs({**outputs, "mlnx_qos_-i_ens6np0.txt": classes("00000000")}))


@pytest.mark.parametrize(
    ("sizes", "notes"),
    [
        ([4096] * 7 + [2048], {("ib-rate-mixed", "node", "warning", "low")}),
        ([4096] * 4 + [2048] * 4, set()),
        ([2048] * 8, set()),
        ([2048] * 7 + [4096], {("peer-differs", "port:mlx5_7/1", "warning", "low")}),
    ],
    ids=["one of eight", "half", "all", "one that has more"],
)
def test_one_port_of_eight_with_smaller_infiniband_packets(
    sizes: list[int], notes: set[tuple[str, str, str, str]]
) -> None:
    text = devinfo(*sizes).replace("link_layer:\t\tEthernet", "link_layer:\t\tInfiniBand")

    assert notes == notes_of(scan_outputs({"ibv_devinfo.txt": text}))
