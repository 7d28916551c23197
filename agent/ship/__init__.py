"""`ship`: reports on their way to a fleet inventory, with a spool for when it does not answer, and one module per kind
of target. What a report contains, how a scan makes one, and how the fleet reads it do not belong here.
"""
