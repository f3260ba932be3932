"""Facts into beliefs and answers: consolidation, refreshed pages, reflection, and the prompts they send."""
