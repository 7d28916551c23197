"""Faults that tools state in tables and sentences of their own: health columns, diagnostics, Kubernetes, containers."""
