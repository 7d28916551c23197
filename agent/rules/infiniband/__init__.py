"""InfiniBand ports: links, subnet and counters.

Ethernet ports are in `roce`; what any NIC has (firmware, modules) is in `nic`.
"""
