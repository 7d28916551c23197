"""The fleet as one page for browsers: what is shown is plain data (`scene.py`), how is `page.py` and its script."""
