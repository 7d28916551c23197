"""AMD Instinct GPUs: hives, XGMI links, partitions, resets, and what RCCL needs of the kernel.

Their PCIe links are in `pcie`, ACS and IOMMU on the way to their rails in `gpudirect`.
"""
