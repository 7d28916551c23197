"""NVLink and NVLink-C2C: links, paths between GPUs, fabric, fabric services and error counters.

PCIe links of GPUs are in `pcie`.
"""
