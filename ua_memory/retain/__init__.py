"""Conversations and texts into facts: the flush, its queue, extraction, and that nothing is made up."""
