"""One file a gate: measured rows in, the gate's criteria for every claim out."""
