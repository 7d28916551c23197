"""What is handed to hosts that build nothing: one file, a wheelhouse, a Debian package, the manual and completions."""
