"""What a client's event is, and what the bank does with it."""
