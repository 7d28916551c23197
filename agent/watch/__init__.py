"""`watch`: stays, and evaluates again when the kernel reports that something changed.

events (probes/kernel/events.py) -> pace.py: when, and what of it -> judging.py: read that, keep the rest,
judge -> lines.py.
"""
