"""LEVELS: source audit and the four evidence levels. Each measures; none decides."""
