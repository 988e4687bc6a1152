"""Side-by-side measurements against the best tools of each field: `python -m bench`. One file an event."""
