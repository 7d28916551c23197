"""The door to a machine: `door` is what may be asked; every other file is one kind of source that answers."""
