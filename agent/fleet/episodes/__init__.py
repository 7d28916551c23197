"""What the history of findings shows: what is new, back, gone or flapping, and which parts fail again and again."""
