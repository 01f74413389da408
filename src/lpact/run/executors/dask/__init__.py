"""Tasks on a Dask cluster.

::

    connect.py   a client of a scheduler, or of SLURM jobs of one's own
    client.py    tasks handed out, a few at a time, and what comes back
    inbox.py     what arrives meanwhile: deaths, ends, answers; ask.py, questions to the scheduler
    crowd.py     the workers that are there, fit, refused or lost
    handed.py    what is out at the moment
    terms.py     what client and workers say to each other
    fitness.py   whether a worker would compute the same as the client
    worker.py    the worker's side; entry.py, the two functions that are called there
"""
