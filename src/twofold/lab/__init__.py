"""The lab: a page on which every method can be watched at work, on data of your own."""
