"""What is handed to hosts that build nothing: one file, a wheelhouse, a .deb, an .rpm, the manual and completions.

It packages the program and is no part of it: no module of agent/ or probes/ imports it.
"""
