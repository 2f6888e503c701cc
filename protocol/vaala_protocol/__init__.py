"""vaala's vocabulary: items, states, events, methods and refusals. Sans-I/O.

The modules are the public names: `items`, `state`, `events`, `content`, `calls`, `settings`,
`errors`, `base`, `ids`, `pages`; `methods` and `rpc` (one side of a connection), `public` (what may
leave a server), `limits`, `schema` (the same for other languages). What is used everywhere is
exported here.
"""

from vaala_protocol.base import Malformed, Value, decode, encode, from_json, to_json
from vaala_protocol.ids import is_id, new_id

__all__ = ["Malformed", "Value", "decode", "encode", "from_json", "is_id", "new_id", "to_json"]
