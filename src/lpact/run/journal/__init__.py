"""Progress of a run: shown on a terminal, logged, and readable from outside while it works.

``progress`` shows it, ``model`` estimates what is left, ``log`` writes ``log.jsonl`` and ``summary`` reads it,
``status`` is what others read, and ``journal`` does all of it for one attempt at a run.
"""
