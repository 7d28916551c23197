"""What the history of findings shows: what is new, back, gone or flapping, and which parts fail again and again.

How that is worded is in agent/fleet/text. A comparison of two moments of a node is no episode: see questions/drift.py.
"""
