"""Model files and the containers under them."""
