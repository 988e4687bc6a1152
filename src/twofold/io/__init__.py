"""Readers and writers of what users have: tables, ratings, documents, images, dates."""
