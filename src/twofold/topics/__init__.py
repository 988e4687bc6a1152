"""Documents as mixtures of topics."""
