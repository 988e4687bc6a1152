"""Words: meaning from company."""
