"""The project's own scorer: how well a ranking finds what people asked for, in conversations of theirs.

`read` turns a data set into dialogues, `measure` puts every question to ours, to BM25 and to grep, `draw`
plots what came out. Every conversation becomes a bank of its own in a temporary folder.
"""

from ua_memory.bench.dialogue import Dialogue, Question, Session, Turn
from ua_memory.bench.formats import read
from ua_memory.bench.plot import draw, drawable
from ua_memory.bench.report import Ranking, Report, Row, measure

__all__ = [
    "Dialogue", "Question", "Ranking", "Report", "Row", "Session", "Turn", "draw", "drawable", "measure",
    "read",
]  # fmt: skip
