"""Rules of this family: NICs of any kind."""

from __future__ import annotations

from agent.rules.nic.fw_mixed import nic_fw_mixed
from agent.rules.nic.mixed_linklayer import ib_mixed_linklayer
from agent.rules.nic.ofed_inbox_mix import ofed_inbox_mix
from agent.rules.rule import Rule

RULES: tuple[Rule, ...] = (nic_fw_mixed, ib_mixed_linklayer, ofed_inbox_mix)
