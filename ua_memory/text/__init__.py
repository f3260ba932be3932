"""Pure functions on strings: names, dates, redaction, tokens, grounding."""
