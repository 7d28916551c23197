"""What answers about fleets once got wrong or left out can be planted: tests/agent/fleet asks whether it is named."""

from __future__ import annotations

import pytest

from bench.fleet.fabric import LAYOUTS
from bench.fleet.kinds import KINDS
from bench.fleet.plan import FABRIC_FORMS
from bench.fleet.platforms import BY_NAME

# a mistake -> what plants it: kinds; platforms, forms of a fabric's file and layouts where it is no oddity
MISTAKES = {
    "one swapped pair of uplinks joins two pods": {"uplink-swapped"},
    "clocks that are wrong make others stale": {"clock-ahead", "clock-behind"},
    "machines without a name of their own are one node": {"same-name"},
    "rails behind a lost NIC are at the wrong leaf": {"nic-lost", "port-down"},
    "a file that lost its tabs is many fabrics": {"ibnetdiscover"},
    "a plan in UFM's form": {"ndt"},
    "different causes are one answer": {"mtu-1500", "mtu-1500-first"},
    "findings of nodes that are gone are current": {"stale", "stale-finding"},
    "a tray in another rack's NVLink domain": {"nvlink-domain", "nvlink-domain-other", "nvlink-clique"},
    "one address with two prefix lengths": {"duplicate-ip", "duplicate-ip-prefix"},
    "nodes that are asked for and never reported": {"node-never"},
    "two RoCE switches per rack follow no pattern": {"l40s-tor"},
    "two hosts at one port of a switch": {"port-shared"},
    "pairs of switches are counted twice": {"pair"},
    "a link that can do no more is slow": {"uplink-older", "iblinkinfo"},
    "a long map is printed whole": {"dscp-map"},
    "a GPU that moved is several changes": {"gpu-moved"},
    "nodes without most of their GPUs are a class of their own": {"gpus-half-lost", "gpus-all-lost"},
    "small classes are compared with nothing": {
        "small-class-kernel", "small-class-os", "small-class-cmdline", "small-class-driver", "small-class-nccl-version",
        "small-class-nccl-setting", "h200-twin-1",
    },
    "attributes that were not compared": {
        "nic-board", "nic-numa", "gpu-numa", "numa-memory", "smt-off", "gid-index", "payload-small",
        "read-request-small", "acs-on", "relaxed-ordering-off", "prio-tc", "cnp-dscp", "cnp-priority", "nccl-setting",
        "nccl-version",
    },
    "a spine that is off is silent": {"spine-dark"},
    "a pod that is half wired is many lines": {"uplink-half-unit"},
    "a finding that comes and goes": {"flapping"},
}  # fmt: skip
# what no node and no cable can show: tables that `fleet load` replaced (tests/agent/fleet/engines/test_postgres.py),
# SQL in the documentation (test_queries.py), names of groups (test_synthetic.py has all names of a fabric)


@pytest.mark.parametrize("mistake", MISTAKES)
def test_it_can_be_planted(mistake: str) -> None:
    assert MISTAKES[mistake] <= {*KINDS, *BY_NAME, *FABRIC_FORMS, *LAYOUTS}
