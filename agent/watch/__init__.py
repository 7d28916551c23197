"""`watch`: stays, and judges again when the kernel says that something changed.

events (probes/kernel/events.py) -> pace.py: when, and what of it -> judging.py: read that, keep the rest,
judge -> lines.py.
"""
