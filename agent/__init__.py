"""The program: from the facts of a host to topology, findings, report, and everything that is made of reports.

Reading a host does not belong here: that is probes/, which imports nothing of this package.
"""
