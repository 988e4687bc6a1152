"""From text to words and from words to counts."""
