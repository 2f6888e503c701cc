# `make demo` and `make test` do all their own set-up: a virtual environment in .venv.
# Needed on the machine: Python 3.11 or newer, make, git.

.PHONY: demo test setup format clean

setup:
	@python="$$(.ci/find-python)" && "$$python" .ci/setup.py .venv

demo: setup
	@.venv/bin/python .ci/demo.py

test: setup
	@.venv/bin/python .ci/check.py

format: setup
	@.venv/bin/ruff check --fix .
	@.venv/bin/ruff format .

clean:
	rm -rf .venv .venv-3.* dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis
	rm -rf .import_linter_cache
