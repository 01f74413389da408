"""Tables that L-PACT writes."""
