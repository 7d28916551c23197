"""A recording written as a capture (a folder or tar), and the extra files that it holds for later versions.

Reading a capture is in `probes/sources/capture.py`; what is taken out of a recording is in `probes/redact`.
"""
