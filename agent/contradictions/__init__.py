"""Saved outputs that cannot be of one host at one time: what each states of its host, and where two differ.

The report of such a source joins nothing: each output is judged alone. Running probes on an output is not here.
"""
