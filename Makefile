# Everything runs in .venv, made on demand from requirements/dev.txt and made anew when that file changes.
SHELL := /bin/sh
.DEFAULT_GOAL := help
.PHONY: help demo admin screenshots test bench lint format types lock clean

PYTHON := .venv/bin/python
# The file that says "complete" carries the checksum: a changed list of packages asks for one that is not there.
INSTALLED := .venv/installed-$(shell cksum < requirements/dev.txt | cut -d ' ' -f 1)
# The benchmarks have packages of their own, which nothing else needs: those that they compare with, and for the plots.
BENCH_PYTHON := .venv-bench/bin/python
BENCH_INSTALLED := .venv-bench/installed-$(shell cksum < requirements/bench.txt | cut -d ' ' -f 1)
SIZE := short
# What to hand to pytest: make test ARGS="-k chains -n 0"
ARGS :=

help: ## List these targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

demo: $(INSTALLED) ## Run both jobs on 20,000 sample rows in a PostgreSQL of its own
	@DJANGO_SETTINGS_MODULE=settings.local $(PYTHON) manage.py demo

admin: $(INSTALLED) ## Serve the admin on sample rows at http://127.0.0.1:8000/admin/
	@DJANGO_SETTINGS_MODULE=settings.local $(PYTHON) manage.py demo_admin

screenshots: $(INSTALLED) ## Take the pictures of the admin in docs/images anew, with Chromium
	@DJANGO_SETTINGS_MODULE=settings.local $(PYTHON) manage.py demo_screenshots

test: $(INSTALLED) ## Run the tests, on the bundled PostgreSQL or on DATABASE_URL
	$(PYTHON) -m pytest -n auto --maxprocesses 4 $(ARGS)

bench: $(BENCH_INSTALLED) ## Measure against raw SQL and peers in some minutes; SIZE=full records docs/benchmarks.md
	@$(BENCH_PYTHON) -m benchmarks --size $(SIZE) $(if $(filter full,$(SIZE)),--record)

lint: $(INSTALLED) ## Check style and formatting
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .

format: $(INSTALLED) ## Mend what ruff can mend
	$(PYTHON) -m ruff check --fix .
	$(PYTHON) -m ruff format .

types: $(INSTALLED) ## Check the types
	$(PYTHON) -m mypy

# Run it with the oldest supported Python (3.11): what only that one needs must be in the lists.
# UPGRADE=--upgrade takes the newest releases that pyproject.toml allows, instead of keeping the pins.
COMPILE = CUSTOM_COMPILE_COMMAND="make lock" $(PYTHON) -m piptools compile --quiet $(UPGRADE) --allow-unsafe \
	--generate-hashes --strip-extras --no-emit-index-url --no-emit-find-links --no-emit-trusted-host pyproject.toml
lock: $(INSTALLED) ## Pin the packages of pyproject.toml anew in requirements/
	$(COMPILE) --extra otlp --output-file requirements/production.txt
	$(COMPILE) --extra otlp --extra local --extra dev \
		--constraint requirements/production.txt --output-file requirements/dev.txt
	$(COMPILE) --extra otlp --extra local --extra bench \
		--constraint requirements/dev.txt --output-file requirements/bench.txt

clean: ## Remove the environment, the embedded database and all caches
	rm -rf .venv .venv-bench var .mypy_cache .pytest_cache .ruff_cache .coverage
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(INSTALLED): LIST = dev
$(BENCH_INSTALLED): LIST = bench
$(INSTALLED) $(BENCH_INSTALLED):
	@for python in python3.13 python3.12 python3.11 python3; do \
		$$python -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || continue; \
		echo "Installing the pinned packages into $(@D) (once, until they change) ..."; \
		rm -rf $(@D) && $$python -m venv $(@D) && $(@D)/bin/python -m pip install -qq --disable-pip-version-check \
			--require-hashes -r requirements/$(LIST).txt && touch "$@"; \
		exit; \
	done; \
	echo "Python 3.11 or newer with its venv module is needed: install it (Debian: python3-venv), then try again." >&2; \
	exit 1
