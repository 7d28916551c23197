"""Sentences in which tools and services of user space state a fault: one table by subject, and its reader.

A row is the form of a sentence and its code. Not here: what a code means (`agent/rules/host/meanings`), tables
and lists of tools (`probes/tool_reports`), lines of the kernel (`probes/kernel`) and of services (`probes/services`).
"""
