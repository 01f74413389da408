"""Files, opened strictly: every problem names file, place, found and remedy."""
