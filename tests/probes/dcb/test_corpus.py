"""Real outputs of mlnx_qos, dcb and lldpctl: what their index states."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.dcb.facts import Application
from probes.dcb.tools import parse_dcb, parse_mlnx_qos
from probes.netdev.lldp import parse_lldp
from probes.text import ParseError


def test_mlnx_qos(corpus: Path) -> None:
    said = parse_mlnx_qos((corpus / "text/qos-mlnx_qos/cx-dscp-pfc3-vendor-tsa.txt").read_text())
    assert (said.trust, said.dcbx_owner, said.delay, said.pfc and said.pfc.index(True)) == ("dscp", "host", 7, 3)
    assert (said.tc_tsa, said.prio_tc) == (("vendor",) * 8, (1, 0, 2, 3, 4, 5, 6, 7))
    with pytest.raises(ParseError):
        parse_mlnx_qos((corpus / "text/qos-mlnx_qos/not-supported-vlan-iface.txt").read_text())


@pytest.mark.parametrize(("name", "on"), [("pfc-show-cx3-before-alloff", 0), ("pfc-show-cx3-prio3", 1)])
def test_dcb_pfc(corpus: Path, name: str, on: int) -> None:
    pfc = parse_dcb("pfc", (corpus / f"text/qos-dcb/{name}.txt").read_text()).pfc
    assert pfc is not None
    assert pfc.count(True) == pfc[3:4].count(True) == on


def test_dcb_app(corpus: Path) -> None:
    said = parse_dcb("app", (corpus / "text/qos-dcb/app-show-cx3-af31.txt").read_text())
    assert said.applications == (Application("dscp", 26, 3),)


@pytest.mark.parametrize(
    ("name", "interface", "port", "frame"),
    [("bjg45", "ens11f0", "25GE1/0/39", 9216), ("dracog24", "eth1", "ethernet12a", None)],
)
def test_lldpctl(corpus: Path, name: str, interface: str, port: str, frame: int | None) -> None:
    (said,) = parse_lldp((corpus / f"text/lldp/lldpctl-json-{name}.txt").read_text()).neighbors
    assert (said.interface, said.port, said.max_frame_bytes, said.system is not None) == (interface, port, frame, True)
