"""The proofs of the handshake, and the line that a server tells its starter."""

from __future__ import annotations

import os

import pytest

from vaala.discovery import (
    Failed,
    Ready,
    bearer,
    challenge_of,
    client_proof,
    is_bearer,
    is_client_proof,
    is_proof,
    limits,
    new_challenge,
    new_token,
    parse_report,
    proof,
    write_report,
)
from vaala_protocol import Malformed


def test_only_the_token_proves_and_only_for_its_challenge() -> None:
    token, challenge = new_token(), new_challenge()
    assert is_proof(proof(token, challenge), token, challenge)
    assert not is_proof(proof(token, new_challenge()), token, challenge)
    assert not is_proof(proof(new_token(), challenge), token, challenge)
    assert not is_proof("", token, challenge)
    assert not is_proof("\xe9", token, challenge)


def test_a_client_proves_itself_for_its_challenge_alone() -> None:
    token, challenge = new_token(), new_challenge()
    shown = client_proof(token, challenge)
    assert is_client_proof(shown, token)
    assert challenge_of(shown) == challenge
    assert not is_client_proof(shown, new_token())
    assert not is_client_proof(shown.replace(challenge, new_challenge()), token)
    for wrong in ("", bearer(token), f"Vaala {challenge}.", f"Vaala {challenge}.\xe9"):
        assert not is_client_proof(wrong, token)


def test_no_side_can_show_what_the_other_one_did() -> None:
    token, challenge = new_token(), new_challenge()
    theirs = client_proof(token, challenge).rpartition(".")[2]
    assert not is_proof(theirs, token, challenge)
    assert not is_client_proof(f"Vaala {challenge}.{proof(token, challenge)}", token)


def test_a_proof_does_not_tell_the_token() -> None:
    token = new_token()
    assert token not in proof(token, "c") + client_proof(token, "c")


@pytest.mark.parametrize("length", [0, limits.CHALLENGE_CHARACTERS_MAX + 1])
def test_a_challenge_has_a_bound(length: int) -> None:
    assert proof("t", "c" * limits.CHALLENGE_CHARACTERS_MAX)
    with pytest.raises(ValueError, match=f"not {length}"):
        proof("t", "c" * length)
    with pytest.raises(ValueError, match=f"not {length}"):
        is_client_proof(f"Vaala {'c' * length}.00", "t")


def test_the_header_holds_the_token() -> None:
    token = new_token()
    assert is_bearer(bearer(token), token)
    for wrong in ("", token, f"bearer {token}", bearer(token) + " ", "Bearer \xe9"):
        assert not is_bearer(wrong, token)


@pytest.mark.parametrize(
    "report",
    [
        Ready(pid=5, instance="one"),
        Failed(message="the data directory is in use by pid 7", locked=True),
        Failed(message="\N{GRINNING FACE}\n" * 5_000),
    ],
)
def test_a_report_comes_through_a_pipe_whole(report: Ready | Failed) -> None:
    reader, writer = os.pipe()
    write_report(writer, report)
    with open(reader, "rb") as pipe:
        (line,) = pipe.readlines()
    found = parse_report(line)
    if isinstance(report, Failed) and isinstance(found, Failed):
        assert report.message.startswith(found.message)
        assert len(found.message) == min(len(report.message), limits.FAILURE_CHARACTERS_MAX)
    else:
        assert found == report


def test_a_starter_that_is_gone_is_no_problem() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    write_report(writer, Ready(pid=5, instance="one"))


@pytest.mark.parametrize("line", [b"", b"ready\n", b'{"type": "other"}', b" " * (1 << 20)])
def test_another_line_is_malformed(line: bytes) -> None:
    with pytest.raises(Malformed):
        parse_report(line)
