"""What NetBox calls a port: by what the port can do and the form of its cage, and "other" where that is not certain.

Slugs: netbox/dcim/choices.py, InterfaceTypeChoices, 4.6. A pluggable module tells the form of its cage only in part: a
QSFP28 cable fits QSFP56, QSFP112 and QSFP-DD cages too. So the form counts together with the most that the port can do.
"""

from __future__ import annotations

from agent.model.nic import Netdev, Nic, Port

OTHER = "other"

# The rate a lane of the family's ports; variants of one family have fewer lanes (HDR100, NDR200), not slower ones
_INFINIBAND = {
    "Connect-IB": "fdr",
    "ConnectX-5": "edr",
    "ConnectX-5 Ex": "edr",
    "ConnectX-6": "hdr",
    "ConnectX-7": "ndr",
    "ConnectX-8": "xdr",
    "BlueField-2": "hdr",
    "BlueField-3": "ndr",
}
# Families with slower variants: certain only while a port shows that it is none of these
_INFINIBAND_AT_MOST = {"ConnectX-3": "fdr", "ConnectX-3 Pro": "fdr", "ConnectX-4": "edr", "BlueField": "edr"}

_SFP = {10.0: "10gbase-x-sfpp", 25.0: "25gbase-x-sfp28"}
_QSFP = {40.0: "40gbase-x-qsfpp", 100.0: "100gbase-x-qsfp28", 200.0: "200gbase-x-qsfp56"}
_ETHERNET = {
    "SFP": _SFP,
    "QSFP": _QSFP,
    "QSFP+": _QSFP,
    "QSFP28": _QSFP,
    "QSFP+ CMIS": _QSFP,
    "QSFP-DD": {200.0: "200gbase-x-qsfpdd", 400.0: "400gbase-x-qsfpdd", 800.0: "800gbase-x-qsfpdd"},
    "OSFP": {400.0: "400gbase-x-osfp", 800.0: "800gbase-x-osfp"},
}


def port_type(nic: Nic, port: Port | None, netdev: Netdev | None) -> str:
    """The slug of a port's type."""
    if port is not None and port.link_layer == "InfiniBand":
        return _infiniband(nic.model, port.speed)
    form = netdev.module.identifier if netdev and netdev.module else None
    most = netdev.max_speed_gbit_s if netdev else None
    if form is None or most is None:
        return OTHER
    if form == "QSFP+ CMIS" and most == 400.0 and (nic.model or "").startswith(("ConnectX", "BlueField")):
        return "400gbase-x-qsfp112"  # of others, some have QSFP-DD cages, which take the same modules
    return _ETHERNET.get(form, {}).get(most, OTHER)


def _infiniband(model: str | None, speed: str | None) -> str:
    """
    >>> _infiniband("ConnectX-7", "HDR"), _infiniband("ConnectX-4", "EDR"), _infiniband("ConnectX-4", None)
    ('infiniband-ndr', 'infiniband-edr', 'other')
    """
    family = _INFINIBAND.get(model or "")
    at_most = _INFINIBAND_AT_MOST.get(model or "")
    if family is None and at_most == (speed or "").lower():
        family = at_most
    return f"infiniband-{family}" if family else OTHER
