"""Rules about NICs that reach GPU memory."""
