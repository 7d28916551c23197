"""What command lines of switches print of their ports, whichever vendor's: names of ports, tables by the names of their
columns, lines of labels and values below the name of a port, members of link aggregations.

No fault is decided here, and no configuration is read: `probes.tool_reports` and `probes.switches` do.
"""
