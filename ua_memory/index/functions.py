"""The embedder of a name: the bundled one, or one of Chroma's own functions, which give no token vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ua_memory.index.embed import Embedder, EmbeddingUnavailable, halved

if TYPE_CHECKING:
    from ua_memory.index.embed import Embeds, Vectors32


class ChromaFunction:
    """One of Chroma's own embedding functions by name, as `index.embedding` may ask for."""

    def __init__(self, name: str) -> None:
        try:
            from chromadb.utils import embedding_functions

            self._function: Any = embedding_functions.known_embedding_functions[name]()
        except ImportError as error:
            raise EmbeddingUnavailable(f"{error.name or error} cannot be imported") from error
        except KeyError as error:
            raise EmbeddingUnavailable(f"Chroma knows no embedding function {name!r}") from error
        except Exception as error:  # each of them fails in its own way: no key, no package, no network
            raise EmbeddingUnavailable(f"{name}: {error}") from error
        self.model = f"chroma-{name}"

    def texts(self, texts: Sequence[str]) -> Vectors32:
        """(n, d) float32 of length 1, half-precision values."""
        import numpy as np

        try:
            return halved(np.asarray(self._function(list(texts)), dtype=np.float32))
        except Exception as error:  # see above
            raise EmbeddingUnavailable(f"{self.model}: {error}") from error


def embedder(name: str) -> Embeds:
    """The embedder of a setting's name. EmbeddingUnavailable if there is none such."""
    return Embedder() if name == "minilm-int8" else ChromaFunction(name)
