"""Where rows come from: sources, blocks of rows, known cells, patterns of missing cells."""
