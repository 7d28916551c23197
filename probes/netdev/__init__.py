"""Network interfaces: facts, links and addresses by rtnetlink, /sys/class/net or `ip link`, and their LLDP neighbours.

Settings of drivers are in `ethtool/`, traffic classes and PFC in `dcb/`, modules and cables in `optics/`.
"""
