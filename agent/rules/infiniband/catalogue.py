"""Rules of this family: InfiniBand ports and subnets."""

from __future__ import annotations

from agent.rules.infiniband.ar_disabled import ib_ar_disabled
from agent.rules.infiniband.counter_saturated import ib_counter_saturated
from agent.rules.infiniband.limited_pf import ib_limited_pf
from agent.rules.infiniband.no_sm import ib_no_sm
from agent.rules.infiniband.pkey_limited import ib_pkey_limited
from agent.rules.infiniband.pkey_mismatch import ib_pkey_mismatch
from agent.rules.infiniband.port_down import ib_port_down
from agent.rules.infiniband.rate_degraded import ib_rate_degraded
from agent.rules.infiniband.rate_mixed import ib_rate_mixed
from agent.rules.infiniband.rate_unparsed import ib_rate_unparsed
from agent.rules.infiniband.sharp_not_ready import ib_sharp_not_ready
from agent.rules.infiniband.sm_changed import ib_sm_changed
from agent.rules.infiniband.subnet_mixed import ib_subnet_mixed
from agent.rules.rule import Rule

RULES: tuple[Rule, ...] = (
    ib_port_down,
    ib_no_sm,
    ib_rate_degraded,
    ib_rate_mixed,
    ib_pkey_mismatch,
    ib_ar_disabled,
    ib_sharp_not_ready,
    ib_counter_saturated,
    ib_sm_changed,
    ib_rate_unparsed,
    ib_limited_pf,
    ib_subnet_mixed,
    ib_pkey_limited,
)
