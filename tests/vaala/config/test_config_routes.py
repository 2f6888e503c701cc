"""Where keys are asked for and how servers are reached, as providers.yaml says it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import trustme

from vaala.config import Config, ConfigError, load_config
from vaala.config.concealed import conceal
from vaala.models.keys.places import KEYRING_MISSING
from vaala.models.keys.source import KeyCommand, KeyFile, KeyringEntry
from vaala.models.provider import Provider, Route
from vaala.models.secret import Secret


def _load(directory: Path, *lines: str) -> Config:
    head = "team:\n  base_url: https://x.test/v1\n"
    file = directory / "providers.yaml"
    file.write_text(head + "".join(f"  {line}\n" for line in lines))
    file.chmod(0o600)
    return load_config(directory, {})


def _provider(directory: Path, *lines: str) -> Provider:
    (provider,) = _load(directory, *lines).providers
    return provider


@pytest.mark.parametrize("line", ["pass show 'my key'", '[pass, show, "my key"]'])
def test_a_command_is_a_line_or_a_list(tmp_path: Path, line: str) -> None:
    provider = _provider(tmp_path, f"api_key_command: {line}")
    assert isinstance(provider.key_source, KeyCommand)
    assert provider.key_source.argv == ("pass", "show", "my key")
    assert (provider.key, provider.key_from) == (None, "the command pass")


def test_a_command_inherits_no_key_of_another_provider(tmp_path: Path) -> None:
    text = "b:\n  base_url: https://b.test\n  api_key_env: KEY_OF_B\n"
    _load(tmp_path, "api_key_command: [a]")
    file = tmp_path / "providers.yaml"
    file.write_text(file.read_text() + text)
    source = load_config(tmp_path, {}).providers[0].key_source
    assert isinstance(source, KeyCommand)
    assert {"KEY_OF_B", "ANTHROPIC_API_KEY"} <= set(source.withheld)


def test_a_file_is_looked_for_beside_the_configuration_or_at_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _provider(tmp_path, "api_key_file: k").key_source == KeyFile(tmp_path / "k")
    monkeypatch.setenv("HOME", "/home/me")
    assert _provider(tmp_path, "api_key_file: ~/k").key_source == KeyFile(Path("/home/me/k"))


def test_a_file_that_is_missing_or_open_to_others_is_remarked(tmp_path: Path) -> None:
    (remark,) = _load(tmp_path, "api_key_file: k").remarks
    assert str(remark).endswith(f"team.api_key_file: there is no file {tmp_path / 'k'}")
    (tmp_path / "k").write_text("k")
    (tmp_path / "k").chmod(0o640)
    (remark,) = _load(tmp_path, "api_key_file: k").remarks
    assert remark.text.endswith(f"(mode 0640): chmod 600 {tmp_path / 'k'}")
    (tmp_path / "k").chmod(0o600)
    assert _load(tmp_path, "api_key_file: k").remarks == ()


def test_the_keyring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", {"keyring": sys}.get)
    config = _load(tmp_path, "api_key_keyring: my/own/me")
    assert config.providers[0].key_source == KeyringEntry("my/own", "me")
    assert (dict(config.unusable), config.remarks) == ({}, ())


def test_without_its_library_a_key_in_the_keyring_cannot_be_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", {}.get)
    config = _load(tmp_path, "api_key_keyring: vaala/me")
    assert config.unusable == {"team": KEYRING_MISSING}
    assert [remark.text for remark in config.remarks] == [KEYRING_MISSING]


def test_a_route(tmp_path: Path) -> None:
    assert _provider(tmp_path).route == Route()
    assert _provider(tmp_path, "proxy: none").route == Route(proxy=Secret(""))
    ca = trustme.CA().cert_pem
    ca.write_to_path(str(tmp_path / "ca.pem"))
    lines = ("proxy: http://me:pass%20word@p.test:1", "ca_file: ca.pem", "trust: system")
    provider = _provider(tmp_path, *lines)
    assert provider.route == Route(
        proxy=Secret("http://me:pass%20word@p.test:1"),
        ca_file=str(tmp_path / "ca.pem"),
        ca=ca.bytes().decode(),
        trust="system",
    )
    assert Secret("pass word") in provider.secrets
    assert "pass" not in repr(provider)


@pytest.mark.parametrize(
    ("content", "fault"), [(None, "cannot be read: No such file"), (b"", "no certificates in PEM"),
                           (b"\xff", "no certificates in PEM"), (b"text", "no certificates")]
)  # fmt: skip
def test_certificates_that_cannot_be_used_are_a_problem(  # B10-2
    tmp_path: Path, content: bytes | None, fault: str
) -> None:
    if content is not None:
        (tmp_path / "ca.pem").write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        _load(tmp_path, "ca_file: ca.pem")
    (problem,) = map(str, caught.value.problems)
    assert problem.startswith(f"{tmp_path}/providers.yaml:3: team.ca_file: {tmp_path}/ca.pem ")
    assert fault in problem


def test_parameters_and_passwords_are_never_shown(tmp_path: Path) -> None:
    config = _load(tmp_path, "query: {api-version: 1.0-preview}")
    assert Secret("1.0-preview") in config.secrets
    values = {"a": {"query": {"sig": "v"}, "proxy": "http://u:p@h:1", "api_key_file": "~/k"}}
    assert conceal("providers.yaml", (), values) == {
        "a": {"query": {"sig": "***"}, "proxy": "http://***@h:1", "api_key_file": "~/k"}
    }
