"""`watch`: evaluates the host again when the kernel reports a change; debounce.py decides when and which probes run,
evaluate.py what changed, output.py what is printed, loop.py waits. Reading the host does not belong here.
"""
