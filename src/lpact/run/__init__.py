"""RUN: plan what will be computed, compute it, resume where it stopped."""
