"""What the history of findings shows: what is new, back, gone or flapping, and which parts fail again and again.

Reads tables of findings and their history. Not here: how an answer is printed (agent.fleet.text), and the comparison of
two moments of a node (agent.fleet.questions).
"""
