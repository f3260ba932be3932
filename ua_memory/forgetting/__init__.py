"""Forgetting: out of files, index, caches and what waits, with all that was derived, and proved by a search.

forgets    the part of `Memory`          forgetting  one revision, then all beside the files, then the proof
plan       what goes, what is changed, what of a person's is left
derived    what follows, through all files          changing  the files after it
searching  looks for the words everywhere           purging   the history without them
"""
