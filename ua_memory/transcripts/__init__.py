"""Transcripts of every client as turns: who said what, in order, and nothing that a machine put in between.

reading = read(stream)              # any client, told apart by content
for turn in reading: …              # the conversation's path, in order
reading.usage.context               # tokens, as the last reply reported them
"""

from ua_memory.transcripts.reading import Reading, read
from ua_memory.transcripts.sniff import CLIENTS, sniff
from ua_memory.transcripts.transcript import Transcript
from ua_memory.transcripts.turns import Boundary, Session, Turn, Usage

__all__ = [
    "CLIENTS",
    "Boundary",
    "Reading",
    "Session",
    "Transcript",
    "Turn",
    "Usage",
    "read",
    "sniff",
]
