"""What the sources of a study allow, its tasks stage by stage, and their cost."""
