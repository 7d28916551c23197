"""What drivers of interfaces report through ethtool: pause, FEC, link modes, counters, firmware; by netlink, ioctl or
saved output.

The memory of optical modules is in `optics/`, the sockets are in `probes/host`.
"""
