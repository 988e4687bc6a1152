"""What several analyses share."""
