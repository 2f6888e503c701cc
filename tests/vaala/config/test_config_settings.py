"""The settings of the server, of the environment, of telemetry; and secrets."""

from __future__ import annotations

from pathlib import Path

import pytest

from vaala.config import ConfigError, load_config
from vaala.config.concealed import conceal, is_secret
from vaala.config.settings import ServerSettings
from vaala.models.secret import Secret
from vaala.telemetry.settings import LogSettings, TelemetrySettings

PROVIDER = "team:\n  base_url: https://models.example/v1\n"


def _problems(directory: Path) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load_config(directory, {})
    return [str(problem).replace(f"{directory}/", "") for problem in caught.value.problems]


def _secrets(directory: Path, text: str, mode: int = 0o600) -> None:
    file = directory / "secrets.yaml"
    file.write_text(text)
    file.chmod(mode)


def test_what_is_not_set_has_its_default(tmp_path: Path) -> None:
    (tmp_path / "server.yaml").write_text("# nothing\n")
    config = load_config(tmp_path, {})
    assert (config.server, config.telemetry) == (ServerSettings(), TelemetrySettings())
    assert (config.forward, config.secrets, config.remarks) == ((), (), ())


def test_the_server(tmp_path: Path) -> None:
    (tmp_path / "server.yaml").write_text(
        "host: '::1'\nport: 0\nallowed_hosts: [box.example]\n"
        "allowed_origins: ['https://app.example']\nidle_exit_minutes: 0\n"
    )
    assert load_config(tmp_path, {}).server == ServerSettings(
        "::1", 0, ("box.example",), ("https://app.example",), 0
    )


def test_the_environment_and_telemetry(tmp_path: Path) -> None:
    (tmp_path / "environment.yaml").write_text("forward: [JAVA_HOME, GOPATH]\n")
    (tmp_path / "telemetry.yaml").write_text(
        "enabled: true\nmetrics: false\nendpoint: http://127.0.0.1:4318\n"
        "headers: {X-Key: secret-key}\nmetrics_period_s: 5\n"
        "logs: {level: debug, file_bytes_max: 65536, files_max: 2}\n"
    )
    config = load_config(tmp_path, {})
    assert config.forward == ("JAVA_HOME", "GOPATH")
    assert config.telemetry == TelemetrySettings(
        enabled=True, traces=True, metrics=False, endpoint="http://127.0.0.1:4318",
        headers={"X-Key": Secret("secret-key")}, metrics_period_s=5,
        logs=LogSettings("debug", 65536, 2),
    )  # fmt: skip
    assert config.secrets == (Secret("secret-key"),)


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("server", "port: 65536\n", "server.yaml:1: port: expected a number less than or equal to "
         "65535, found the number 65536"),
        ("server", "allowed_origins: [app.example]\n", "server.yaml:1: allowed_origins.0: expected "
         "a URL that begins with http:// or https://, found the text 'app.example'"),
        ("environment", "forward: [A B]\n", "environment.yaml:1: forward.0: expected the name of a "
         "variable: letters, digits and underscore, found the text 'A B'"),
        ("telemetry", "headers: {X-Key: 31415926}\n",
         "telemetry.yaml:1: headers.X-Key: expected text, found a number"),
        ("telemetry", "logs:\n  levle: info\n",
         "telemetry.yaml:2: logs.levle: is an unknown key; did you mean 'level'?"),
    ],
)  # fmt: skip
def test_a_problem_is_told(tmp_path: Path, name: str, text: str, problem: str) -> None:
    (tmp_path / f"{name}.yaml").write_text(text)
    assert _problems(tmp_path) == [problem]


def test_a_provider_takes_its_key_from_the_secrets(tmp_path: Path) -> None:
    _secrets(tmp_path, "team: secret-key\n")
    (tmp_path / "providers.yaml").write_text(f"{PROVIDER}  api_key_secret: team\n")
    config = load_config(tmp_path, {})
    (provider,) = config.providers
    assert (provider.key, provider.key_from) == (Secret("secret-key"), "secrets.yaml")
    assert set(config.secrets) == {Secret("secret-key")}


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o622])
def test_secrets_that_others_can_use_are_a_problem_with_the_way_out(
    tmp_path: Path, mode: int
) -> None:
    _secrets(tmp_path, "team: secret-key\n", mode)
    assert _problems(tmp_path) == [
        f"secrets.yaml: holds secrets and others can use it (mode {mode:04o}): "
        "chmod 600 secrets.yaml"
    ]


def test_a_key_in_the_open_is_remarked(tmp_path: Path) -> None:
    file = tmp_path / "providers.yaml"
    file.write_text(f"{PROVIDER}  api_key: secret-key\n")
    file.chmod(0o644)
    (remark,) = load_config(tmp_path, {}).remarks
    assert remark.text.endswith(f"chmod 600 {file}")
    file.chmod(0o600)
    assert load_config(tmp_path, {}).remarks == ()


@pytest.mark.parametrize(
    ("secrets", "key", "problem"),
    [
        ("team: k\n", "api_key_secret: taem",
         "providers.yaml:3: team.api_key_secret: secrets.yaml has no secret 'taem'; did you mean "
         "'team'?"),
        ("", "api_key_secret: team",
         "providers.yaml:3: team.api_key_secret: secrets.yaml has no secret 'team': add it there"),
        ("team: k\n", "api_key_env: K\n  api_key_secret: team",
         "providers.yaml:3: team.api_key_env: stands beside api_key_secret; keep one of the two"),
        ("team: 31415926\n", "api_key_env: K",
         "secrets.yaml:1: team: expected text, found a number"),
    ],
)  # fmt: skip
def test_a_secret_that_is_wrong(tmp_path: Path, secrets: str, key: str, problem: str) -> None:
    _secrets(tmp_path, secrets)
    (tmp_path / "providers.yaml").write_text(f"{PROVIDER}  {key}\n")
    assert _problems(tmp_path) == [problem]


def test_what_is_a_secret() -> None:
    assert is_secret("secrets.yaml", ("team",))
    assert is_secret("providers.yaml", ("team", "api_key"))
    assert is_secret("agents.yaml", ("a", "options", "nested", "X-Api-Key"))
    assert not is_secret("providers.yaml", ("headers", "base_url"))
    assert not is_secret("agents.yaml", ("secret-agent", "options", "max_tokens"))
    assert not is_secret("agents.yaml", ("api_key", "instructions"))


def test_secrets_are_concealed_wherever_they_stand() -> None:
    values = {"a": {"base_url": "http://u:p@h/v1", "api_key": "k", "headers": {"H": "v"}}}
    assert conceal("providers.yaml", (), values) == {
        "a": {"base_url": "http://***@h/v1", "api_key": "***", "headers": {"H": "***"}}
    }
