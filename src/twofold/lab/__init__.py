"""The lab: a page on this machine where every method can be watched at work, on bundled data or on one's own file.

    browser  ⇄  app (FastAPI, behind `guard`)  ⇄  jobs (one process each)  →  estimators and analyses

The server process holds no data and fits nothing: it starts processes, passes their frames on, and stays quick.
"""
