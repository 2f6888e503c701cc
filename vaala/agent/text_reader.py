"""`TextReader`: a text of a model that is for the runtime; nobody is shown how it comes."""

from __future__ import annotations

from vaala.models.base import (
    Finish,
    FirstByte,
    Model,
    ModelFailure,
    ModelRequest,
    TextDelta,
    UsageReport,
)
from vaala.models.caller import Answered
from vaala.text import is_blank, scrub
from vaala_protocol.settings import Usage


class TextReader:
    """Makes one call for a ``what``, such as a summary. What it used is told in ``usage``, however
    it ends."""

    def __init__(self, what: str) -> None:
        self._what = what
        self.usage = Usage()

    async def read(
        self, model: Model, request: ModelRequest, bytes_max: int, answered: Answered
    ) -> str:
        """Return the text. Raises `ModelFailure`, also for none and for one that is too long.

        ``answered`` is of the turn of a `Caller`, in whose body this runs.
        Cancel: the request is closed at once.
        """
        pieces: list[str] = []
        size, finished = 0, False
        async with model.stream(request) as events:
            async for event in events:
                match event:
                    case FirstByte():
                        answered()
                    case TextDelta(text=text):
                        pieces.append(scrub(text))
                        size += len(pieces[-1].encode())
                    case UsageReport(usage=usage):
                        self.usage = usage
                    case Finish():
                        finished = True
                    case _:
                        pass
                if size > bytes_max:
                    raise ModelFailure("incomplete", f"the {self._what} is too long")
        text = "".join(pieces).strip()
        if not finished:
            raise ModelFailure("incomplete", f"the {self._what} broke off", retryable=True)
        if is_blank(text):
            raise ModelFailure("incomplete", f"the model wrote no {self._what}")
        return text
