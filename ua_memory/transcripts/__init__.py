"""Transcripts of every client as turns: one reader per client."""
