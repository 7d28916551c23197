"""What kinds of nodes and devices there are, and how they are recognized."""
