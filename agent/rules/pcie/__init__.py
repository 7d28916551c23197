"""PCIe: links, slots, bandwidth, settings and error counters of GPUs, NICs, drives and switches.

What hangs on NUMA nodes is in `affinity`; what matters only for GPUDirect (ACS, IOMMU) is in `gpudirect`.
"""
