"""Faults to plant, each with the rule and the port that must be named."""

from __future__ import annotations

import random
from collections.abc import Callable

from bench.switches.fabric import DSCP, MadeFabric, MadePort


def _dscp_lossy(fabric: MadeFabric, port: MadePort) -> None:
    port.priorities = {**port.priorities, DSCP: 0}


def _pfc_one_end(fabric: MadeFabric, port: MadePort) -> None:
    port.pfc = []


def _class_differs(fabric: MadeFabric, port: MadePort) -> None:
    port.priorities, port.pfc = {**port.priorities, DSCP: 4}, [4]


def _trust(fabric: MadeFabric, port: MadePort) -> None:
    port.trust = "none"


def _ecn_missing(fabric: MadeFabric, port: MadePort) -> None:
    port.ecn = None


def _ecn_order(fabric: MadeFabric, port: MadePort) -> None:
    port.ecn = (2_000_000, 1_000_000)


def _ecn_drops(fabric: MadeFabric, port: MadePort) -> None:
    port.wred_only = True


def _watchdog_off(fabric: MadeFabric, port: MadePort) -> None:
    port.watchdog = False


def _watchdog_blind(fabric: MadeFabric, port: MadePort) -> None:
    port.watches = [5]


def _watchdog_weak(fabric: MadeFabric, port: MadePort) -> None:
    port.action = "alert"


def _mtu(fabric: MadeFabric, port: MadePort) -> None:
    port.mtu = 1500


def _fec(fabric: MadeFabric, port: MadePort) -> None:
    port.fec = "none"


def _speed(fabric: MadeFabric, port: MadePort) -> None:
    port.speed = 200


def _headroom(fabric: MadeFabric, port: MadePort) -> None:
    lower = port if (port.switch, port.name) in fabric.lengths else fabric.port(port.far, port.far_port)
    fabric.lengths[lower.switch, lower.name] = 150
    for end in (lower, fabric.port(lower.far, lower.far_port)):
        end.metres = 300
    port.metres = 40


def _drops(fabric: MadeFabric, port: MadePort) -> None:
    port.now["group_drops"] = port.before["group_drops"] + 4211


def _storm(fabric: MadeFabric, port: MadePort) -> None:
    port.stormed = True


def _unheard(fabric: MadeFabric, port: MadePort) -> None:
    port.now["tx"] = port.before["tx"] + 88_123


def _fec_errors(fabric: MadeFabric, port: MadePort) -> None:
    port.now["uncorrected"] = port.before["uncorrected"] + 57


def _flaps(fabric: MadeFabric, port: MadePort) -> None:
    port.now["flaps"] = port.before["flaps"] + 3


def _neighbor(fabric: MadeFabric, port: MadePort) -> None:
    """The host was moved: its report is newer than the switch's output, or older."""
    for rail in fabric.rails:
        if (rail.switch, rail.port) == (port.switch, port.name):
            other = next(p for p in fabric.ports(host=False) if p.switch == port.switch)
            rail.port, rail.alias = other.name, other.alias


Plant = Callable[[MadeFabric, MadePort], None]
ALL, SONIC, BOTH = ("sonic", "cumulus", "other"), ("sonic",), (True, False)
# Rule, how it is planted, on which systems, on ports to hosts (True) or trunks (False)
FAULTS: tuple[tuple[str, Plant, tuple[str, ...], tuple[bool, ...]], ...] = (
    ("sw-dscp-lossy", _dscp_lossy, ALL, BOTH),
    ("sw-pfc-one-end", _pfc_one_end, ALL, BOTH),
    ("sw-class-differs", _class_differs, ALL, BOTH),
    ("sw-trust-differs", _trust, ALL, BOTH),
    ("sw-ecn-missing", _ecn_missing, ALL, BOTH),
    ("sw-ecn-order", _ecn_order, ALL, BOTH),
    ("sw-ecn-drops", _ecn_drops, ("sonic", "cumulus"), BOTH),
    ("sw-pfcwd-off", _watchdog_off, ALL, BOTH),
    ("sw-pfcwd-blind", _watchdog_blind, SONIC, BOTH),
    ("sw-pfcwd-weak", _watchdog_weak, ("sonic", "other"), BOTH),
    ("sw-mtu-small", _mtu, ALL, BOTH),
    ("sw-fec-differs", _fec, ALL, BOTH),
    ("sw-speed-differs", _speed, ALL, BOTH),
    ("sw-headroom-short", _headroom, ALL, (False,)),
    ("sw-lossless-drops", _drops, ALL, BOTH),
    ("sw-storm", _storm, ALL, BOTH),
    ("sw-pause-unheard", _unheard, ALL, (False,)),
    ("sw-fec-errors", _fec_errors, ("sonic", "other"), BOTH),
    ("sw-flaps", _flaps, ("sonic", "other"), BOTH),
    ("sw-neighbor-disagrees", _neighbor, SONIC, (True,)),
)


def plant(fabric: MadeFabric, each: int, seed: int = 1) -> None:
    """Each fault on `each` links that have no other one, as far as there are such links."""
    chance = random.Random(seed)
    free = list(fabric.ports())
    chance.shuffle(free)
    used: set[tuple[str, str]] = set()
    for rule, change, systems, kinds in FAULTS:
        left = each
        for port in free:
            system = fabric.switches[port.switch].system
            ends = {(port.switch, port.name), (port.far, port.far_port)}
            if not left or system not in systems or port.far_is_host not in kinds or ends & used:
                continue
            change(fabric, port)
            used |= ends
            fabric.planted.append((rule, port.subject))
            left -= 1
