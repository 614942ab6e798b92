"""Learn from files larger than memory, with metrics and checkpoints on the way."""

from toprank.files.rows import BadLine, BadLineError
from toprank.streams.run import StreamResult, stream
from toprank.streams.table_stream import stream_table

__all__ = ["BadLine", "BadLineError", "StreamResult", "stream", "stream_table"]
