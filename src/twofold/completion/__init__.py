"""Tables with holes, and recommenders."""
