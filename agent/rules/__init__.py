"""What is wrong with a node: rules over the body of a report, and the engine that runs them."""
