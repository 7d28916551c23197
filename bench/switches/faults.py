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


def _near_limit(fabric: MadeFabric, port: MadePort) -> None:
    port.now["near_limit"] = port.before["near_limit"] + 57


def _flaps(fabric: MadeFabric, port: MadePort) -> None:
    port.now["flaps"] = port.before["flaps"] + 3


def _neighbor(fabric: MadeFabric, port: MadePort) -> None:
    """The host was moved: its report is newer than the switch's output, or older."""
    for rail in fabric.rails:
        if (rail.switch, rail.port) == (port.switch, port.name):
            other = next(p for p in fabric.ports(host=False) if p.switch == port.switch)
            rail.port, rail.alias = other.name, other.alias


def _pfc_extra(fabric: MadeFabric, port: MadePort) -> None:
    port.pfc = [3, 4, 5]


def _cnp(fabric: MadeFabric, port: MadePort) -> None:
    port.cnp_strict = False


def _asymmetric(fabric: MadeFabric, port: MadePort) -> None:
    port.asymmetric = True


def _pause(fabric: MadeFabric, port: MadePort) -> None:
    port.pause = True


def _retry(fabric: MadeFabric, port: MadePort) -> None:
    fabric.port(port.far, port.far_port).retry = 40


def _starved(fabric: MadeFabric, port: MadePort) -> None:
    port.weight = 10
    port.now["first"] = port.before["first"] + (port.now["bytes"] - port.before["bytes"]) // 2


def _no_class(fabric: MadeFabric, port: MadePort) -> None:
    port.pfc_mode, port.pfc = "on", []


def _not_operational(fabric: MadeFabric, port: MadePort) -> None:
    port.pfc_mode, port.in_use = "auto", []


def _rail_elsewhere(fabric: MadeFabric, port: MadePort) -> tuple[MadePort, ...]:
    """The cables of two rails of a host in each other's place: the other's port."""
    one = next(rail for rail in fabric.rails if (rail.switch, rail.port) == (port.switch, port.name))
    other = next(rail for rail in fabric.rails if rail.host == one.host and rail is not one)
    far = fabric.port(other.switch, other.port)
    port.far_port, far.far_port = other.name, one.name
    one.switch, one.port, one.alias, other.switch, other.port, other.alias = (
        other.switch, other.port, other.alias, one.switch, one.port, one.alias
    )  # fmt: skip
    return (far,)


def _lossy_drops(fabric: MadeFabric, port: MadePort) -> None:
    port.pfc_known = False
    port.now["drops"] = port.before["drops"] + 917


Plant = Callable[[MadeFabric, MadePort], tuple[MadePort, ...] | None]  # other ports that must be named, too
ALL, SONIC, BOTH = ("sonic", "cumulus", "other"), ("sonic",), (True, False)
# Rule, how it is planted, on which systems, on ports to hosts (True) or trunks (False)
FAULTS: tuple[tuple[str, Plant, tuple[str, ...], tuple[bool, ...]], ...] = (
    ("sw-rail-elsewhere", _rail_elsewhere, ALL, (True,)),
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
    ("sw-fec-errors", _near_limit, ("sonic", "other"), BOTH),
    ("sw-flaps", _flaps, ("sonic", "other"), BOTH),
    ("sw-pfc-extra", _pfc_extra, ALL, BOTH),
    ("sw-cnp-not-strict", _cnp, ALL, BOTH),
    ("sw-pfc-asymmetric", _asymmetric, ("sonic", "other"), (False,)),
    ("sw-global-pause", _pause, ("other",), BOTH),
    ("sw-llr-one-end", _retry, SONIC, (False,)),
    ("sw-data-starved", _starved, ALL, BOTH),
    ("sw-pfc-on-no-class", _no_class, ("other",), BOTH),
    ("sw-pfc-not-operational", _not_operational, ("other",), BOTH),
    ("sw-lossy-drops", _lossy_drops, ("other",), BOTH),
    ("sw-neighbor-disagrees", _neighbor, SONIC, (True,)),
)


BOTH_STATE = ("sw-pfc-asymmetric", "sw-llr-one-end")  # only where the far end's system states it, too


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
            far = fabric.switches.get(port.far)
            if rule in BOTH_STATE and far is not None and far.system not in systems:
                continue
            if not left or system not in systems or port.far_is_host not in kinds or ends & used:
                continue
            more = change(fabric, port) or ()
            used |= ends | {(end.switch, end.name) for end in more} | {(end.far, end.far_port) for end in (port, *more)}
            fabric.planted += [(rule, end.subject) for end in (port, *more)]
            left -= 1
