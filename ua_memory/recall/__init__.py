"""Search: from a query to an ordered list of hits, each checked against its file."""
