"""The machine apart from its devices: processors, NUMA nodes, firmware (DMI), services, limits of jobs.

Kernel, modules and log are in `kernel/`, devices on the bus in `pci/`.
"""
