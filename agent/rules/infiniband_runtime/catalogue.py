"""Rules of this family: how the counters of InfiniBand ports moved."""

from __future__ import annotations

from agent.rules.infiniband_runtime.constraint_errors import ib_constraint_errors
from agent.rules.infiniband_runtime.hwcounter_transport import ib_hwcounter_transport
from agent.rules.infiniband_runtime.link_flap import ib_link_flap
from agent.rules.infiniband_runtime.link_integrity import ib_link_integrity
from agent.rules.infiniband_runtime.link_recovery import ib_link_recovery
from agent.rules.infiniband_runtime.rcv_errors import ib_rcv_errors
from agent.rules.infiniband_runtime.symbol_errors import ib_symbol_errors
from agent.rules.infiniband_runtime.vl15_dropped import ib_vl15_dropped
from agent.rules.infiniband_runtime.xmit_discards import ib_xmit_discards
from agent.rules.infiniband_runtime.xmit_wait import ib_xmit_wait
from agent.rules.rule import Rule

RULES: tuple[Rule, ...] = (
    ib_link_flap,
    ib_symbol_errors,
    ib_link_recovery,
    ib_rcv_errors,
    ib_link_integrity,
    ib_xmit_discards,
    ib_xmit_wait,
    ib_vl15_dropped,
    ib_constraint_errors,
    ib_hwcounter_transport,
)
