"""Recorded machines as hosts, one file per kind: captures, folders and tars of files, saved command outputs, bundles.

Live access is in `probes/host`; writing a capture is in `probes/capture`.
"""
