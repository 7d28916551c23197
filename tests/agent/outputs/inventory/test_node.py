"""The desired inventory objects of a report, and the NetBox types of its ports."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agent.model.nic import Neighbor, Netdev, Nic, Port, TransceiverModule
from agent.model.report import Report
from agent.outputs.inventory import node as inventory_node
from agent.outputs.inventory import objects as fit
from agent.outputs.inventory.node import build_desired, choose_port_type
from agent.outputs.inventory.objects import DesiredNode
from tests.agent.outputs.export.given import H100, bare, hostile, with_topology
from tests.machines import HOSTS, scan_machine
from tests.texts import read_fields

H200, VM, L40S = (
    "8xh200-sxm-2s-16xcx7-roce-4nvsw",
    "8xh100-vm-kvm-8xvf-ib",
    "8xl40s-pcie-2s-2xcx7-roce",
)


def kinds(desired: DesiredNode) -> dict[str, int]:
    """How many modules of each kind."""
    return {kind: sum(module.kind == kind for module in desired.modules) for kind in ("GPU", "NIC", "NVSwitch")}


def with_netdev(report: Report, label: str, **changes: Any) -> Report:
    """The report with one interface changed."""
    rows = [msgspec.structs.replace(r, **changes) if r.label == label else r for r in report.topology.netdevs]
    return with_topology(report, netdevs=rows)


def test_an_hgx_machine() -> None:
    """GPUs by what is printed on them, cards by board, ports by what they can do."""
    report = build_desired(scan_machine(H100))

    assert {"GPU": 8, "NIC": 9, "NVSwitch": 4} == kinds(report)  # 8 rails and one card of two ports
    gpu = report.modules[0]
    assert ("GPU 0000:19:00.0", "NVIDIA", "H100 80GB HBM3", "1510470499492", "21") == read_fields(
        gpu, "bay manufacturer model serial position"
    )
    assert gpu.description == scan_machine(H100).topology.gpus[0].uuid
    card = next(module for module in report.modules if module.bay == "NIC 0000:27:00.0")
    assert ("Mellanox", "ConnectX-6 Dx MT_0000000359", "MT_0000000359") == read_fields(
        card, "manufacturer model part_number"
    )
    assert ("b8-3f-d2-03-00-df-5c-fa", False) == (card.serial, card.board_serial)
    assert "NVSwitch 3" == report.modules[-1].model
    ports = {port.name: port for port in report.interfaces}
    assert ("NIC 0000:27:00.0", "NIC 0000:27:00.0") == (ports["enp39s0f0np0"].bay, ports["enp39s0f1np0"].bay)
    assert ("infiniband-ndr", "B8:3F:D2:03:00:76:F9:6B", None, None) == read_fields(
        ports["ibp26s0"], "type wwn mac speed_kbit_s"
    )
    assert ("100gbase-x-qsfp28", "B8:3F:D2:DC:64:9D", 100_000_000, None) == read_fields(
        ports["enp39s0f0np0"], "type mac speed_kbit_s wwn"
    )


def test_other_machines() -> None:
    """A card in each slot is one module; virtual functions and functions of the baseboard are none."""
    assert {"GPU": 8, "NIC": 9, "NVSwitch": 4} == kinds(build_desired(scan_machine(H200)))
    assert 18 == len(build_desired(scan_machine(H200)).interfaces)
    assert {"GPU": 8, "NIC": 0, "NVSwitch": 0} == kinds(build_desired(scan_machine(VM)))
    assert [] == build_desired(scan_machine(VM)).interfaces
    assert {"400gbase-x-osfp"} == {port.type for port in build_desired(scan_machine(L40S)).interfaces}
    hidden = scan_machine("8xb200-sxm-2s-8xcx7-ib-hidden-nvsw")
    limited = {nic.id for nic in hidden.topology.nics if nic.limited}
    assert limited
    assert not [module for module in build_desired(hidden).modules if module.bay.removeprefix("NIC ") in limited]


def test_a_card_in_two_slots_is_one_card() -> None:
    """Socket Direct: two PCI functions on two CPUs, one system image GUID."""
    report = scan_machine(H100)
    rails = [nic for nic in report.topology.nics if nic.role == "rail"]
    twin = msgspec.structs.replace(rails[1], system_image_guid=rails[0].system_image_guid)
    desired = build_desired(with_topology(report, nics=[rails[0], twin]))

    assert ({"GPU": 8, "NIC": 1, "NVSwitch": 4}, 2) == (kinds(desired), len(desired.interfaces))
    zero = [msgspec.structs.replace(nic, system_image_guid="0000:0000:0000:0000") for nic in rails]
    assert len(rails) == kinds(build_desired(with_topology(report, nics=zero)))["NIC"]


def test_what_changes_from_hour_to_hour_is_not_in_it() -> None:
    """Link speeds of the moment, states, counters: a port that is down is the same port."""
    report = scan_machine(H200)
    down = [
        msgspec.structs.replace(row, operstate="down", speed_gbit_s=None, counters={"rx_errors": 7}, addresses=[])
        for row in report.topology.netdevs
    ]
    ports = [
        msgspec.structs.replace(
            nic, ports=[msgspec.structs.replace(p, state="DOWN", rate_gbit_s=None, speed=None) for p in nic.ports]
        )
        for nic in report.topology.nics
    ]

    assert build_desired(report) == build_desired(with_topology(report, netdevs=down, nics=ports))
    assert build_desired(scan_machine(H100)).interfaces == build_desired(scan_machine("", "ib-port-down")).interfaces


def test_the_member_of_a_bond_lends_no_address() -> None:
    """All members have the bond's."""
    bonded = with_netdev(scan_machine(H100), "enp39s0f0np0", master="bond0")

    assert None is next(port.mac for port in build_desired(bonded).interfaces if port.name == "enp39s0f0np0")


def test_lldp_names_the_far_end() -> None:
    """The switch, and both names of its port."""
    far = Neighbor(system="leaf1.example.com", port="swp7", port_description="to h100-01")
    report = build_desired(with_netdev(scan_machine(H100), "enp39s0f0np0", neighbor=far)).cables

    assert [("enp39s0f0np0", "leaf1.example.com", ["swp7", "to h100-01"])] == [
        (cable.interface, cable.device, cable.ports) for cable in report
    ]
    for less in (Neighbor(system="leaf1"), Neighbor(port="swp7")):
        assert [] == build_desired(with_netdev(scan_machine(H100), "enp39s0f0np0", neighbor=less)).cables


def test_a_card_without_its_driver_has_ports_that_nobody_tells() -> None:
    """It stays a module."""
    report = build_desired(scan_machine("", "nic-no-driver"))

    blind = [module.bay for module in report.modules if not module.ports_known]
    assert 1 == len(blind)
    assert not [port for port in report.interfaces if port.bay in blind]


@pytest.mark.parametrize("status", ["partial", "failed", "timed_out", "denied", "skipped"])
def test_a_scan_that_missed_something_says_so(status: str) -> None:
    """Else what it did not see would be pruned."""
    report = scan_machine(H100)

    def without(name: str) -> DesiredNode:
        runs = [msgspec.structs.replace(run, status=status) if run.name == name else run for run in report.probes]
        return build_desired(msgspec.structs.replace(report, probes=runs))

    assert (True, True) == (build_desired(report).modules_known, build_desired(report).interfaces_known)
    assert (False, True) == (without("pci").modules_known, without("pci").interfaces_known)
    assert (True, False) == (without("rdma").modules_known, without("rdma").interfaces_known)
    assert (False, False) == (build_desired(bare(report)).modules_known, build_desired(bare(report)).interfaces_known)


@pytest.mark.parametrize("names_only", [True, False])
@pytest.mark.parametrize("host", HOSTS)
def test_everything_fits_netbox(host: str, names_only: bool) -> None:
    """Lengths, one line each, no name twice, addresses that are some; of hostile reports too."""
    for report in (scan_machine(host), hostile(scan_machine(host), names_only)):
        desired = build_desired(report)
        bays, ports = [module.bay for module in desired.modules], [port.name for port in desired.interfaces]

        assert len(bays) == len({bay.lower() for bay in bays})
        assert len(ports) == len({port.lower() for port in ports})
        assert {port.bay for port in desired.interfaces} <= set(bays)
        for module in desired.modules:
            texts = [(module.bay, 64), (module.model, 100), (module.serial, 50), (module.part_number, 50)]
            texts += [(module.description, 200), (module.position, 30), (module.manufacturer, 100)]
            assert [] == [text for text, most in texts if text is not None and not fits(text, most)]
        for port in desired.interfaces:
            assert fits(port.name, 64)
            assert port.mac is None or port.mac == fit.format_mac(port.mac)
        assert all(re.fullmatch(r"[0-9A-Za-z?]{1,64}", finding.fingerprint) for finding in desired.findings)


def fits(text: str, most: int) -> bool:
    """As NetBox takes a text and gives it back."""
    return 0 < len(text) <= most and text == text.strip() and text.isprintable()


# netbox/dcim/choices.py of NetBox 4.6, of the kinds that servers have
OTHERS = "other 50gbase-x-sfp56 100gbase-x-qsfpdd 100gbase-x-sfp112 200gbase-x-qsfpdd 400gbase-x-osfp-rhs"
PLUGS = "10gbase-x-sfpp 25gbase-x-sfp28 40gbase-x-qsfpp 100gbase-x-qsfp28 200gbase-x-qsfp56 400gbase-x-qsfp112"
WIDE = "400gbase-x-qsfpdd 400gbase-x-osfp 800gbase-x-qsfpdd 800gbase-x-osfp"
KNOWN = {word for words in (OTHERS, PLUGS, WIDE) for word in words.split(" ")} | {
    f"infiniband-{rate}" for rate in ("sdr", "ddr", "qdr", "fdr10", "fdr", "edr", "hdr", "ndr", "xdr")
}


def of(model: str | None, form: str | None, most: float | None) -> str:
    """An Ethernet port with such a module in it."""
    nic = Nic(id="0000:27:00.0", label="mlx5_1", model=model)
    module = TransceiverModule(identifier=form) if form else None
    return choose_port_type(nic, None, Netdev(id=nic.id, label="ens1", max_speed_gbit_s=most, module=module))


@pytest.mark.parametrize(
    ("form", "most", "slug"),
    [
        ("SFP", 10.0, "10gbase-x-sfpp"),
        ("SFP", 25.0, "25gbase-x-sfp28"),
        ("SFP", 100.0, "other"),  # an adapter in a QSFP cage, or SFP112
        ("QSFP+", 40.0, "40gbase-x-qsfpp"),
        ("QSFP28", 100.0, "100gbase-x-qsfp28"),
        ("QSFP+", 100.0, "100gbase-x-qsfp28"),  # a slower cable in it
        ("QSFP28", 200.0, "200gbase-x-qsfp56"),
        ("QSFP+ CMIS", 200.0, "200gbase-x-qsfp56"),
        ("QSFP+ CMIS", 400.0, "400gbase-x-qsfp112"),
        ("QSFP28", 400.0, "other"),  # QSFP112 or QSFP-DD
        ("QSFP-DD", 400.0, "400gbase-x-qsfpdd"),
        ("OSFP", 400.0, "400gbase-x-osfp"),
        ("OSFP", 800.0, "800gbase-x-osfp"),
        ("0x7f", 400.0, "other"),
        (None, 400.0, "other"),
        ("OSFP", None, "other"),
        ("OSFP", 123.0, "other"),
    ],
)
def test_ethernet(form: str | None, most: float | None, slug: str) -> None:
    """By the cage's form and the most that the port can do."""
    assert slug == of("ConnectX-7", form, most)


def test_the_cage_of_other_makers_is_not_guessed() -> None:
    """Some have QSFP-DD cages, which take QSFP112 modules."""
    assert "other" == of("BCM57608", "QSFP+ CMIS", 400.0)


@pytest.mark.parametrize(
    ("model", "speed", "slug"),
    [
        ("ConnectX-7", "NDR", "infiniband-ndr"),
        ("ConnectX-7", "HDR", "infiniband-ndr"),  # behind an older switch
        ("ConnectX-7", None, "infiniband-ndr"),  # down
        ("ConnectX-6", "HDR", "infiniband-hdr"),
        ("ConnectX-8", None, "infiniband-xdr"),
        ("ConnectX-4", "EDR", "infiniband-edr"),
        ("ConnectX-4", "FDR", "other"),  # a slower variant, or an older switch
        ("ConnectX-3", "FDR", "infiniband-fdr"),
        ("unheard of", "NDR", "other"),
        (None, "NDR", "other"),
    ],
)
def test_infiniband(model: str | None, speed: str | None, slug: str) -> None:
    """By what the family can do, not by what the link runs at."""
    nic = Nic(id="0000:1a:00.0", label="mlx5_0", model=model)

    assert slug == choose_port_type(nic, Port(port=1, link_layer="InfiniBand", speed=speed), None)


def test_every_slug_is_one_of_netbox() -> None:
    """NetBox refuses any other."""
    families = set(inventory_node._INFINIBAND.values()) | set(inventory_node._INFINIBAND_AT_MOST.values())
    slugs = {f"infiniband-{family}" for family in families} | {
        s for table in inventory_node._ETHERNET.values() for s in table.values()
    }
    written = set(re.findall(r'return "([^"]+)"', Path(inventory_node.__file__).read_text()))

    assert slugs | written <= KNOWN
