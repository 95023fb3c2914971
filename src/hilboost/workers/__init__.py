"""Training of one model by several workers, each of which has some of the rows."""
