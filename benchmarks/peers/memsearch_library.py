"""memsearch's library on standard input, one JSON-RPC request a line: run by its own Python."""

import asyncio
import json
import sys

from memsearch import MemSearch

loop = asyncio.new_event_loop()
searcher = MemSearch(milvus_uri=sys.argv[1], embedding_provider="openai", embedding_model=sys.argv[2])
for line in sys.stdin:
    asked = json.loads(line)
    found = loop.run_until_complete(searcher.search(**asked["params"]))
    print(json.dumps({"id": asked["id"], "result": found}), flush=True)
