"""Parts that should be alike: what one of them has otherwise, what two have that only one can have, and counts that no
other part has."""
