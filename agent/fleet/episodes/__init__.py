"""What the history of findings shows: what is new, back, gone or flapping, and which parts fail again and again.

<<<<<<< HEAD
Reads tables of findings and their history. Not here: how an answer is printed (agent.fleet.text), and what nodes have
that differs (agent.fleet.questions).
=======
How that is worded is in agent/fleet/text. A comparison of two moments of a node is no episode: see questions/drift.py.
>>>>>>> main
"""
