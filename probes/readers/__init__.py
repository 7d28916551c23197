"""Files that somebody else's reader of a machine wrote: each is read straight into the facts that probes give."""
