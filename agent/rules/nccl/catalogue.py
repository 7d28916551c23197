"""Rules of this family: NCCL: its settings, its libraries, and what its jobs may use."""

from __future__ import annotations

from agent.rules.nccl.conf_shadowed import gdr_nccl_conf_shadowed
from agent.rules.nccl.conf_syntax import gdr_nccl_conf_syntax
from agent.rules.nccl.debug_leftover import gdr_nccl_debug_leftover
from agent.rules.nccl.devnodes_missing import gdr_devnodes_missing
from agent.rules.nccl.disabled_by_env import gdr_disabled_by_env
from agent.rules.nccl.efa_stack import gdr_efa_stack
from agent.rules.nccl.gdrcopy_missing import gdr_gdrcopy_missing
from agent.rules.nccl.gds_not_ready import gdr_gds_not_ready
from agent.rules.nccl.hca_mismatch import gdr_nccl_hca_mismatch
from agent.rules.nccl.ibgda_regkey import gdr_ibgda_regkey
from agent.rules.nccl.memlock_low import gdr_memlock_low
from agent.rules.nccl.shm_small import gdr_shm_small
from agent.rules.nccl.socket_ifname import gdr_nccl_socket_ifname
from agent.rules.nccl.topo_file_stale import nccl_topo_file_stale
from agent.rules.rule import Rule

RULES: tuple[Rule, ...] = (
    gdr_disabled_by_env,
    gdr_nccl_conf_syntax,
    gdr_nccl_conf_shadowed,
    gdr_nccl_hca_mismatch,
    gdr_nccl_socket_ifname,
    gdr_nccl_debug_leftover,
    nccl_topo_file_stale,
    gdr_memlock_low,
    gdr_devnodes_missing,
    gdr_shm_small,
    gdr_ibgda_regkey,
    gdr_gdrcopy_missing,
    gdr_gds_not_ready,
    gdr_efa_stack,
)
