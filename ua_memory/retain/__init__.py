"""From conversations and texts to facts: the queue, the flush, the sub-agent, extraction."""
