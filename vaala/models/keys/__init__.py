"""Keys that are not in the configuration or the environment: files, commands, the keyring."""
