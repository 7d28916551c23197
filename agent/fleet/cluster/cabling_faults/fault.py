"""One fault of the cabling, and the kinds of faults."""

from __future__ import annotations

import msgspec

KINDS = {
    "swapped-cables": "Swapped cables",
    "rail-elsewhere": "A rail on another leaf than its unit's",
    "exchanged-rails": "Swapped rails of a unit",
    "missing-rail": "A node with fewer rails than its peers",
    "short-unit": "A unit without a leaf that its peers have",
    "no-unit": "A node in no scalable unit",
    "fewer-uplinks": "A unit or pod with fewer cables up than the others",
    "dark-spine": "A switch above without any cable to it",
    "missing-uplink": "A cable between switches that peers have",
    "swapped-uplinks": "Swapped cables between switches",
    "uplink-elsewhere": "A cable between switches that leads elsewhere than its peers'",
    "uneven-pace": "A link slower than its peers",
    "slower-than-both-ends": "A link slower than both of its ends could be",
    "not-in-fabric": "A port that its host calls up and the fabric does not show",
    "down-in-report": "A port that the fabric shows and its host calls down",
    "one-port-twice": "A switch port that several hosts report as theirs",
    "domain-size": "An NVLink domain of another size than the others, or larger than a rack",
    "domain-rack": "A host in the NVLink domain of another rack",
    "split-domain": "A host in two NVLink domains",
}


class CablingFault(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`kind`: a key of KINDS. `ports`: "SWITCH/PORT". `compared`: with what, and how many of it agree.

    `should`: where a cable belongs, by the end that is wrong: "luna-0541 mlx5_9" -> "LG28-08/1".
    """

    kind: str
    text: str
    hosts: tuple[str, ...] = ()
    ports: tuple[str, ...] = ()
    compared: str = ""
    fix: str = ""
    should: dict[str, str] = {}
