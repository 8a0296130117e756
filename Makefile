# make run      a broker on 127.0.0.1:9092, in the foreground
# make test     the checks, then all tests
# make check    style, types, imports
# make simulate SEEDS=N MINUTES=M SIMULATIONS="raft cluster"    runs of simulated worlds that `make test` does not make
# make record   Apache Kafka's half of the comparisons in compat_tests/: asks it anew what is stale in compat_tests/recorded/
# make referee  asks Apache Kafka all of it again, and fails where it answers something else than what is recorded
# make chaos MINUTES=N     a cluster of processes whose nodes are killed, frozen and cut off, under clients
# make crash-states STATES=N SEED=S   starts on what crashes leave of log directories' lives that a seed draws
# make power-cuts CUTS=N SEED=S      a broker whose file system loses its power under clients; as root
# make mutations PACKAGE=P  plants bugs in the source, one by one, and tells which of them the tests find
# make fuzz MINUTES=N      inputs that reach new lines of what reads bytes of others, and what they bring about
# make differential SEQUENCES=N SEED=S   sequences of requests that nobody drew before, to Apache Kafka and to pykbroker
# make hostile  requests that cost a broker much more than their client, beside an honest one
# make kafka-tests  Apache Kafka's own integration tests on pykbroker: all, CLASSES="…", or a part that takes MINUTES=N
# make examples the projects in examples/: those in Python, and with Maven, npm and Go where they are there
# make screenshots  the pictures of the console in docs/images
# make spark    a gigabyte of real text through the pipeline of Spark and back; leaves spark-audit.html
# make reference  the pages of the documentation that are made of the code, where they are stale
# make site     the documentation as a site, in build/site
# make dist     a wheel, a source distribution and a list of what comes with them (SBOM), in dist/
# make release-check PYTHONS="/path/to/python3.14 …"   their tests on each Python that is there
# make bench    pykbroker beside Apache Kafka
# make bench-report ROUNDS=N   what finds limits, measured, with profiles, as a page; of RESULTS=FILE if given
# make clean    removes what the above made

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
CHECKS := check-style check-mypy check-pyright check-imports

.PHONY: run test check $(CHECKS) compiled apache-kafka simulate record referee chaos crash-states power-cuts mutations \
	differential fuzz hostile kafka-tests examples screenshots spark reference site dist release-check bench \
	bench-report clean system-packages
.DELETE_ON_ERROR:
# A test run starts hundreds of Python processes: modules are compiled once, whatever the environment says. Output has
# buffers, as users have it: without them a full disk is met at another place.
unexport PYTHONDONTWRITEBYTECODE PYTHONUNBUFFERED

run: $(VENV)/.run-installed
	@exec $(BIN)/pykbroker start

# Tests with brokers mostly wait: twice as many workers as cores keep the cores at work. More than eight would wait for
# memory instead, since each has brokers of its own.
WORKERS ?= $(shell cores=$$(getconf _NPROCESSORS_ONLN); echo $$((cores > 4 ? 8 : 2 * cores)))
test: $(VENV)/.all-installed
	@$(MAKE) --no-print-directory -j4 $(CHECKS) apache-kafka compiled
	$(BIN)/pytest -n $(WORKERS) --dist loadgroup --no-loadscope-reorder --durations 20 $(PYTEST_ARGS)

check: $(VENV)/.all-installed
	@$(MAKE) --no-print-directory -j4 $(CHECKS)

$(CHECKS) compiled: $(VENV)/.all-installed

check-style:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

check-mypy:
	$(BIN)/mypy

check-pyright:
	$(BIN)/pyright

check-imports:
	$(BIN)/lint-imports

# The workers of a test run find all tests compiled; each of them would do it otherwise.
compiled:
	@$(BIN)/pytest --collect-only -q > /dev/null || true

# Where Apache Kafka cannot be had, the tests that need it are left out.
apache-kafka: $(VENV)/.all-installed system-packages
	$(BIN)/python -m compat_tests.apache_kafka || true
	$(BIN)/python -m spark_compat.class_archive 2>/dev/null || echo "Spark's JVMs will start slowly"

# Each of the simulations runs these seeds, or as many as there is time for. The base seed is another one in every run.
SIMULATIONS ?= coordination raft replication/simulation cluster sim
SEEDS ?= 3000
BASE_SEED ?= $(shell date +%s)000
simulate: BASE_SEED := $(BASE_SEED)
simulate: $(VENV)/.all-installed
	@echo "seeds from $(BASE_SEED) on; the same runs again: make simulate SEEDS=$(SEEDS) BASE_SEED=$(BASE_SEED)"
	@failed=0; for each in $(SIMULATIONS); do \
		PYKBROKER_SIMULATION_SEEDS=$(SEEDS) PYKBROKER_SIMULATION_BASE_SEED=$(BASE_SEED) \
		PYKBROKER_SIMULATION_SECONDS=$(if $(MINUTES),$$(($(MINUTES) * 60 / $(words $(SIMULATIONS)))),inf) \
		$(BIN)/pytest -n auto --dist worksteal -m simulation $(PYTEST_ARGS) tests/$$each || failed=1; \
	done; exit $$failed

# `make test` runs the scenarios on pykbroker alone, and compares with what is recorded of Apache Kafka. A stamp is stale
# when a scenario or what it imports has changed, or Kafka's version. RECORD_ARGS="-k topics" asks for a part of it.
record: $(VENV)/.all-installed system-packages
	$(BIN)/python -m compat_tests.apache_kafka
	$(BIN)/python -m compat_tests.referee.conversations
	$(BIN)/pytest --record $(RECORD_ARGS) compat_tests spark_compat

referee: $(VENV)/.all-installed system-packages
	$(BIN)/python -m compat_tests.apache_kafka
	$(BIN)/pytest --referee $(RECORD_ARGS) compat_tests spark_compat

chaos: $(VENV)/.all-installed system-packages
	$(BIN)/python -m compat_tests.chaos --minutes $(or $(MINUTES),5) $(CHAOS_ARGS)

crash-states: $(VENV)/.all-installed
	$(BIN)/python -m tests.storage.search_crash_states --states $(or $(STATES),100000) $(if $(SEED),--seed $(SEED))

power-cuts: $(VENV)/.all-installed
	$(BIN)/python -m compat_tests.power_cuts --cuts $(or $(CUTS),100) $(if $(SEED),--seed $(SEED))

# MUTATIONS_ARGS="--sample 10" plants bugs that nobody chose; `python -m tests.mutations --help` tells the rest.
mutations: $(VENV)/.mutations-installed
	nice $(BIN)/python -m tests.mutations $(addprefix --package ,$(PACKAGE)) $(MUTATIONS_ARGS)

# FUZZ_ARGS="messages scram" searches with these targets alone; `python -m tests.fuzz --help` tells the rest.
fuzz: $(VENV)/.fuzz-installed
	$(BIN)/python -m tests.fuzz --minutes $(or $(MINUTES),5) $(FUZZ_ARGS)
	PYKBROKER_FUZZ_SEED=$$(date +%s) PYKBROKER_FUZZ_ROUNDS=100 PYKBROKER_FUZZ_SEQUENCES=30 $(BIN)/pytest -q tests/fuzz

differential: $(VENV)/.all-installed system-packages
	$(BIN)/python -m compat_tests.apache_kafka
	$(BIN)/python -m compat_tests.differential --sequences $(or $(SEQUENCES),100) --seed $(or $(SEED),$(shell date +%s))

hostile: $(VENV)/.all-installed
	$(BIN)/python -m compat_tests.hostile.load $(HOSTILE_ARGS)

# With BROKER=apache-kafka the nodes are Apache Kafka's; RECORD=1 keeps the results, and writes docs/conformance.md.
kafka-tests: $(VENV)/.all-installed system-packages
	@compat_tests/install-system-packages.sh javac
	$(BIN)/python -m compat_tests.kafkas_own_tests $(if $(MINUTES),--minutes $(MINUTES)) $(if $(PART),--part $(PART)) \
		$(if $(BROKER),--broker $(BROKER)) $(if $(RECORD),--record) $(KAFKA_TESTS_ARGS) $(CLASSES)

examples: $(VENV)/.all-installed
	PYKBROKER_EXAMPLES=1 $(BIN)/pytest -rs $(PYTEST_ARGS) compat_tests/test_examples.py

screenshots: $(VENV)/.all-installed
	@compat_tests/install-system-packages.sh chromium chromedriver
	PYKBROKER_SCREENSHOTS=$(CURDIR)/docs/images $(BIN)/pytest -rs $(PYTEST_ARGS) compat_tests/console/test_console_screenshots.py

spark: $(VENV)/.all-installed system-packages
	$(BIN)/python -m spark_compat.real_input $(SPARK_ARGS)

reference: $(VENV)/.all-installed
	$(BIN)/python -m tests.reference

site: $(VENV)/.docs-installed
	$(BIN)/python -m sphinx -q -W --keep-going -d build/doctrees docs build/site

# The same commit gives the same bytes: times are the commit's, or those of the source distribution that this tree was.
SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || stat -c %Y pyproject.toml)
export SOURCE_DATE_EPOCH
# What the SBOM counts beside the core, as the container image has it
SBOM_EXTRAS ?= console,metrics,tls
dist: $(VENV)/.release-installed
	rm -rf dist build/sdist build/clean
	mkdir -p dist build/sdist
	$(BIN)/python -m build --sdist --outdir build
	tar -xzf build/pykbroker-*.tar.gz -C build/sdist && rm build/pykbroker-*.tar.gz
	name=$$(ls build/sdist) && tar --format=gnu --sort=name --mtime=@$(SOURCE_DATE_EPOCH) --owner=0 --group=0 --numeric-owner \
		--mode=u=rwX,go=rX -C build/sdist -c $$name | gzip -9n > dist/$$name.tar.gz
	$(BIN)/python -m build --wheel --outdir dist build/sdist/*
	$(BIN)/twine check --strict dist/*
	$(PYTHON) -m venv --without-pip build/clean
	$(BIN)/pip --python build/clean/bin/python install --quiet "$$(echo dist/*.whl)[$(SBOM_EXTRAS)]"
	build/clean/bin/pykbroker --version
	build/clean/bin/python -c 'from pykbroker import __version__ as each; \
		print("[project]\nname = \"pykbroker\"\nversion = \"%s\"" % each)' > build/clean/pyproject.toml
	$(BIN)/cyclonedx-py environment --pyproject build/clean/pyproject.toml --output-reproducible \
		--output-file dist/$$(ls build/sdist).cdx.json build/clean

# Each Python from 3.11 to 3.14 that is on the path or among PYTHONS; one that is missing is named.
release-check: dist
	rm -rf build/release-check
	mkdir -p build/release-check
	tar -xzf dist/*.tar.gz -C build/release-check --strip-components 1
	$(BIN)/tox run --conf build/release-check/pyproject.toml --installpkg dist/*.whl $(if $(PYTHONS),--discover $(PYTHONS)) \
		$(if $(RELEASE_ARGS),-- $(RELEASE_ARGS))

bench: $(VENV)/.all-installed system-packages
	$(BIN)/python -m benchmarks $(BENCH_ARGS)

# The page of a file of results, which is measured first unless RESULTS names one that is there. The page is beside it.
BENCH_SCENES ?= limits cores growth logs tails
ROUNDS ?= 3
bench-report: $(VENV)/.all-installed system-packages
	$(if $(RESULTS),,$(BIN)/python -m benchmarks $(foreach scene,$(BENCH_SCENES),--scene $(scene)) --rounds $(ROUNDS) \
		--json benchmarks/results/results.json --profile benchmarks/results/profiles $(BENCH_ARGS))
	$(BIN)/python -m benchmarks.page $(or $(RESULTS),benchmarks/results/results.json) \
		$(basename $(or $(RESULTS),benchmarks/results/results.json)).html

# What the tests use from outside of Python. Where it cannot be installed, one line says so and its tests are left out.
system-packages:
	@compat_tests/install-system-packages.sh java kcat ip iptables

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "needs Python 3.11 or newer: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.run-installed: pyproject.toml | $(VENV)/bin/python
	$(BIN)/pip install --quiet -e ".[console,metrics,tls]"
	@touch $@

$(VENV)/.all-installed: pyproject.toml | $(VENV)/bin/python
	$(BIN)/pip install --quiet -e ".[test,check,spark,bench]"
	@touch $@ $(VENV)/.run-installed

$(VENV)/.docs-installed: $(VENV)/.all-installed
	$(BIN)/pip install --quiet -e ".[docs]"
	@touch $@

$(VENV)/.release-installed: pyproject.toml | $(VENV)/bin/python
	$(BIN)/pip install --quiet -e ".[release]"
	@touch $@

$(VENV)/.mutations-installed: $(VENV)/.all-installed
	$(BIN)/pip install --quiet -e ".[mutation]"
	@touch $@

$(VENV)/.fuzz-installed: $(VENV)/.all-installed
	$(BIN)/pip install --quiet -e ".[fuzz]"
	@touch $@
