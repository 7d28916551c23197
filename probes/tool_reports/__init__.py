"""Faults that tools state in tables and sentences of their own: health columns, diagnostics, Kubernetes, containers.

A reader per tool, and the probe that asks them. What such an output states of the parts themselves (GPUs, ports, links)
is not here but with its subject.
"""
