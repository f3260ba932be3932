"""The search index, derived from the files: words, vectors and token vectors. Always safe to delete."""
