"""Contracts, records and errors: what the other rooms agree on.  No arithmetic happens here."""
