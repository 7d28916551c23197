"""Faults that tools of networks state: ports of NICs, fabrics and switches, bonds, settings of firmware, UFM.

A reader per form. Not here: sentences (`probes/tool_reports/sentences`), and what an output states of the links of a
whole fabric (`probes/fabric`) or of one switch as a part of it (`probes/switches`).
"""
