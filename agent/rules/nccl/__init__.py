"""NCCL and NVSHMEM: settings, configuration files and what jobs need of the host.

Devices and links are in the families of their kind.
"""
