"""Answers of the fleet's questions as text and tables: which nodes, the value, the baseline, out of how many.

Host lists are folded and cut to the width. An answer as data is in agent/fleet/questions.
"""
