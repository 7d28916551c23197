"""Made-up RoCE fabrics with both ends of every link, planted faults, and what is planted where.

Outputs are rendered from the forms of their systems' own references and share nothing with the readers: an error of a
reader is not repeated here. Start at `python -m bench.switches.recall`.
"""
