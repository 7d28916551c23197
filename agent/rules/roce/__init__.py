"""RoCE ports: lossless classes, pause, addresses, links and counters.

InfiniBand ports are in `infiniband`; what any NIC has (firmware, modules) is in `nic`.
"""
