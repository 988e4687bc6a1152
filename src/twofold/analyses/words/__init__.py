"""Questions to word vectors."""
