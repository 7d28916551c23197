"""Rules of this family: GPUDirect RDMA."""

from __future__ import annotations

from agent.rules.gpudirect.acs_directnic import gdr_acs_directnic
from agent.rules.gpudirect.acs_on_path import gdr_acs_on_path
from agent.rules.gpudirect.ats_vm import gdr_ats_vm
from agent.rules.gpudirect.bar1_small import gdr_bar1_small
from agent.rules.gpudirect.datadirect_missing import gdr_datadirect_missing
from agent.rules.gpudirect.dmabuf_prereq import gdr_dmabuf_prereq
from agent.rules.gpudirect.iommu_group_directnic import gdr_iommu_group_directnic
from agent.rules.gpudirect.iommu_translated import gdr_iommu_translated
from agent.rules.gpudirect.legacy_nv_peer_mem import gdr_legacy_nv_peer_mem
from agent.rules.gpudirect.mrrs_small import gdr_mrrs_small
from agent.rules.gpudirect.netns_exclusive import gdr_netns_exclusive
from agent.rules.gpudirect.nic_gpu_ratio import gdr_nic_gpu_ratio
from agent.rules.gpudirect.no_path import gdr_no_path
from agent.rules.gpudirect.peermem_broken import gdr_peermem_broken
from agent.rules.gpudirect.relaxed_ordering_off import gdr_relaxed_ordering_off
from agent.rules.gpudirect.soft_rdma import gdr_soft_rdma
from agent.rules.gpudirect.topology_hidden import gdr_topology_hidden
from agent.rules.rule import Rule

RULES: tuple[Rule, ...] = (
    gdr_no_path,
    gdr_mrrs_small,
    gdr_relaxed_ordering_off,
    gdr_bar1_small,
    gdr_peermem_broken,
    gdr_acs_on_path,
    gdr_iommu_translated,
    gdr_ats_vm,
    gdr_acs_directnic,
    gdr_iommu_group_directnic,
    gdr_datadirect_missing,
    gdr_dmabuf_prereq,
    gdr_legacy_nv_peer_mem,
    gdr_topology_hidden,
    gdr_nic_gpu_ratio,
    gdr_netns_exclusive,
    gdr_soft_rdma,
)
