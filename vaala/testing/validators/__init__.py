"""Strict validators of model requests, one for each wire format.

They are written from the formats' documentation and the error texts of strict servers, not from
the encoders, so that the two check each other.
"""

from vaala.testing.validators.chat import validate_chat_request
from vaala.testing.validators.common import Violation

__all__ = ["Violation", "validate_chat_request"]
