"""The machine apart from its devices: processors, NUMA nodes, firmware (DMI), limits of jobs.

Kernel, modules and log are in `kernel/`, services in `services/`, devices on the bus in `pci/`.
"""
