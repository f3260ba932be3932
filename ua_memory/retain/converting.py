"""A file → its text as markdown: markdown and plain text as they are, other formats by markitdown, an extra.

Only the formats named here, each by its own converter: markitdown's own choice looks into archives, pictures
and the network. Its converters for HTML, PDF and DOCX read the bytes they are given and nothing else.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

from ua_memory.errors import Malformed, TooLarge, Usage

TEXTS = (".md", ".markdown", ".mdown", ".txt", ".text", ".rst", ".org", ".log", "")
CONVERTED = (".html", ".htm", ".pdf", ".docx")
MOST_BYTES = 50 << 20
INSTALL = "pip install 'ua-memory[ingest]'"


def is_read(name: str) -> bool:
    """Whether a file of this name is of a format that is read."""
    return PurePath(name).suffix.lower() in (*TEXTS, *CONVERTED)


def text_of(data: bytes, name: str) -> str:
    """The text of a file with these bytes, as markdown. Usage for a format that is not read or needs the
    extra, Malformed for bytes that are not what the name says, TooLarge."""
    suffix = PurePath(name).suffix.lower()
    if len(data) > MOST_BYTES:
        raise TooLarge(f"larger than {MOST_BYTES >> 20} MB", where=name, mend="split it")
    if suffix in TEXTS:
        return _plain(data, name)
    if suffix not in CONVERTED:
        known = " ".join(each for each in (*TEXTS, *CONVERTED) if each)
        raise Usage(f"{suffix} files are not read", where=name, mend=f"convert it to one of: {known}")
    return _converted(data, name, suffix)


def _plain(data: bytes, name: str) -> str:
    if b"\0" in data[:8_192]:
        raise Malformed("this is no text", where=name)
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        mend = "convert it, as with iconv -t utf-8"
        raise Malformed(f"not UTF-8 at byte {error.start}", where=name, mend=mend) from error


def _converted(data: bytes, name: str, suffix: str) -> str:
    import io

    try:
        from markitdown import StreamInfo
        from markitdown.converters import DocxConverter, HtmlConverter, PdfConverter
    except ImportError as error:
        raise Usage(f"{suffix} files need a converter", where=name, mend=INSTALL) from error
    converters: dict[str, Any] = {".pdf": PdfConverter, ".docx": DocxConverter}
    converter = converters.get(suffix, HtmlConverter)()
    try:
        text = converter.convert(io.BytesIO(data), StreamInfo(extension=suffix)).markdown
    except Exception as error:  # its parsers raise whatever they like over a broken file
        if type(error).__name__ == "MissingDependencyException":
            raise Usage(f"{suffix} files need a converter", where=name, mend=INSTALL) from error
        raise Malformed(
            f"cannot be read as {suffix[1:].upper()}: {type(error).__name__}", where=name,
            mend="open it and save it again, or convert it to text",
        ) from error  # fmt: skip
    if not str(text).strip():
        raise Malformed("there is no text in it (a scan?)", where=name, mend="have its text recognised first")
    return str(text)
