"""Whether RoCE is lossless from host to host: what switches' saved outputs and hosts' reports state of each hop.

The outputs are read in `probes/switches`; nothing here reads a file or a switch. Judgement of a single host belongs to
`agent/rules`.
"""
