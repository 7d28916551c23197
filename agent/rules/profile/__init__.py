"""Rules that compare a node with its profile: what its platform, or the site, expects of it."""
