"""Commands of L-PACT alone."""
