"""The fleet as one page for browsers: `scene.py` is what it shows, as plain data; `page.py` and the scripts are how.

The questions that it shows answers of are in agent/fleet/questions.
"""
