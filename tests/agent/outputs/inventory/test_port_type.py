"""Type slugs of ports: certain, or "other"; and each is one that NetBox has."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from agent.model.nic import Netdev, Nic, Port, TransceiverModule
from agent.outputs.inventory import node as inventory_node
from agent.outputs.inventory.node import choose_port_type

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
