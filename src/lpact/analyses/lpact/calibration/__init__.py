"""OPERATING CHARACTERISTICS: how often the gates err, and what a design could have found."""
