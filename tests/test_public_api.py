"""The public names of the packages: a change here is a change for everyone who uses them."""

from __future__ import annotations

import importlib

import pytest

PUBLIC = {
    "vaala": """
        AgentDefinition Allow ApprovalOption Ask Budgets ConversationHandle Deny Model ModelFailure
        PermissionGate PermissionRequest Provider Runtime Settings Tool ToolContext ToolFailure
        ToolResult TurnResult open_models open_runtime open_store tool
    """,
    "vaala.client": """
        CannotConnect CannotStart Client ClientError ClientTool Disconnected Files Reader
        RemoteConversation Terminals connect
    """,
    "vaala.config": """
        Config ConfigError DEFAULT_AGENT Problem default_agent load_config
    """,
    "vaala.discovery": """
        AUTHORIZATION_HEADER Failed NoRecord PROOF_HEADER Place Ready Report ServerRecord
        WEBSOCKET_PATH bearer challenge_of client_proof is_bearer is_client_proof is_owned
        is_proof new_challenge new_token owner_pid parse_report place_of proof read_record
        remove_record write_record write_report
    """,
    "vaala.testing": """
        CUT ChatServer DroppingProxy FixedModels Reply Request STALL ScriptedModel chat_server
        dropping_proxy
    """,
    "vaala_executors": """
        BadPattern Command CutOutput DirEntry Executor ExecutorError ExecutorLost Exit
        FileDenied FileExists FileFailed FileFull FileMissing FileProblem FileStat
        FileTooLarge Match NotADirectory NotAFile OutputCapture OutsideWorkspace PathMoved
        Place Process SearchQuery SearchResult Sink StartFailed TextCleaner WholeFile
        Workspace clean fold_lines
    """,
    "vaala_protocol": """
        Malformed Value decode encode from_json is_id new_id to_json
    """,
    "vaala_storage": """
        ALL AlreadyExists BlobStorage BlobWriter Conflict Damage Document Entry Hit
        HitPage LogStorage Namespace NotFound Page PathPage Query ReadOnly Record
        RecordPage RecordStorage Scalar SearchIndex StorageCorrupt StorageError
        StorageFailed StorageFull Stored StreamBroken TooLarge
    """,
}


@pytest.mark.parametrize("package", PUBLIC)
def test_a_package_exports_what_this_list_says(package: str) -> None:
    exported: list[str] = importlib.import_module(package).__all__
    assert sorted(exported) == PUBLIC[package].split()


@pytest.mark.parametrize("package", PUBLIC)
def test_each_exported_name_is_there(package: str) -> None:
    module = importlib.import_module(package)
    assert [name for name in module.__all__ if not hasattr(module, name)] == []


def test_an_unknown_name_is_an_attribute_error() -> None:
    """The top package looks names up when they are used, and must not invent any."""
    with pytest.raises(AttributeError, match="open_runtme"):
        _ = importlib.import_module("vaala").open_runtme
