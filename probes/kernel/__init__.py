"""The kernel: its release and boot, modules and the NVIDIA driver, its log (Xid, AER, link messages) and its events
while `watch` runs.

Hardware of the machine is in `system/`, services are in `services/`.
"""
