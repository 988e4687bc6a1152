"""Tables of numbers, whatever the file format."""
