"""One file per gate: measured rows in, the gate's criteria for every claim out."""
