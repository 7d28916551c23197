"""What an inventory should contain for a node, in NetBox's terms: modules in bays, interfaces, cables, a verdict.

Only identity and position of devices belong here; counters, current link speeds and the requests to NetBox do not.
"""
