"""`watch`: stays, and evaluates again when the kernel reports that something changed.

probes.kernel.events -> pace.py: when, and what of it -> judging.py: scan that part again -> lines.py: the changes.
Reading a host and rules do not belong here: judging.py calls the pipeline for both.
"""
