"""Rules: what is wrong with a node, judged from the body of a report alone, and the engine that runs them.

Nothing here reads a host, a file of the user or a clock; how findings are printed is in `agent.outputs`.
"""
