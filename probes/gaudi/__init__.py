"""Intel Gaudi: what habanalabs shows in sysfs of cards and of their Ethernet ports, and how boards join these.

Imported where a Gaudi is on the bus. Counters of its ports are never read: each is a question to its firmware.
"""
