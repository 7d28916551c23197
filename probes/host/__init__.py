"""The interface through which every probe reads a machine (`interface.py`), and the live access behind it: files,
tools, netlink, NVML, udev, the kernel's log.

Recorded machines are in `probes/sources`, captures in `probes/capture`; nothing here imports a package of facts.
"""
