"""Reports on their way to a fleet inventory: a spool that survives what a week can bring, and three kinds of target.

`run.py` is the whole of it on one page. What is decided, and why: docs/decisions/0010-ship-and-spool.md.
"""
