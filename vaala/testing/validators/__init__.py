"""Strict validators of model requests, one for each wire format.

They are written from the formats' documentation and the error texts of strict servers, not from
the encoders, so that the two check each other.
"""

from vaala.testing.validators.anthropic import check_anthropic_request
from vaala.testing.validators.chat import validate_chat_request
from vaala.testing.validators.common import Violation
from vaala.testing.validators.gemini import check_gemini_request
from vaala.testing.validators.responses import check_responses_request

__all__ = [
    "Violation",
    "check_anthropic_request",
    "check_gemini_request",
    "check_responses_request",
    "validate_chat_request",
]
