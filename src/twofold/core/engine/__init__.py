"""Where blocks are visited: local threads, or a dask cluster."""
