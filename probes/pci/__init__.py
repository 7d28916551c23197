"""PCI functions: facts, the tree, the configuration space; read from sysfs, or from saved outputs of `lspci`.

What a device does beyond its bus is in `gpu/`, `rdma/` and `netdev/`.
"""
