"""What an inventory should hold of a node, in the words of NetBox: modules in bays, interfaces, cables, a verdict.

Identity only: what a device is and where it sits, not what it counts or how fast its links run at the moment.
"""
