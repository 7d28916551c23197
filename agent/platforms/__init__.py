"""Which platforms and devices there are: device names, how a platform is recognized, and profiles of what it has.

Data with its sources belongs here, and its readers. Comparing a node with a profile does not: that is a rule.
"""
