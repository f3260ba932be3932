"""The background process of one bank, and how commands reach it."""
