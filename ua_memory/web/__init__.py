"""The page: a server on this machine that shows a bank to its owner, in a browser."""
