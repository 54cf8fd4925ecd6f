# `make help` lists the targets. Everything that is built or downloaded once lies in the cache
# folder ($GCU_DRA_CACHE, by default ~/.cache/gcu-dra-driver), never in the checkout.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
NODES ?= 2
K8S ?= 1.37.2
export GCU_DRA_KUBERNETES := $(K8S)
COMMAND ?=
# As it was typed: a $ in it is for the shell of the cluster.
export CLUSTER_COMMAND := $(value COMMAND)
BASE ?=
SNAPSHOTS ?=
ARGS ?=
IMAGE_FLAGS = --base "$(BASE)" --snapshots "$(SNAPSHOTS)" $(if $(REPOSITORY),--repository "$(REPOSITORY)") $(if $(TAG),--tag "$(TAG)")
# Programs start in a quarter of the time with compiled sources; empty means that they are written.
export PYTHONDONTWRITEBYTECODE :=
CACHE := $(or $(GCU_DRA_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/gcu-dra-driver)
export PYTHONPYCACHEPREFIX := $(CACHE)/bytecode
# In a fresh checkout mypy takes half a minute without what it found out in the last one.
export MYPY_CACHE_DIR := $(CACHE)/mypy
export RUFF_CACHE_DIR := $(CACHE)/ruff

# Recursive on purpose: only the targets that use it make the environment.
VENV = $(shell scripts/venv)
PY = $(VENV)/bin/python

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z%-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 22

.PHONY: demo
demo: ## start a real cluster with simulated GCUs, install the chart, run the examples [K8S=1.37.2] (root)
	@$(PY) -m tests.cluster packages
	@$(PY) -m tests.cluster build --kubernetes $(K8S)
	@$(PY) -m tests.e2e.demo --kubernetes $(K8S)

.PHONY: venv
venv: ## make the virtual environment and print its path
	@scripts/venv

# What each tier runs is in tests/tiers.py; docs/dev/testing.md says which to run for which change.
TIERS = unit component property chart kill control-plane cluster matrix

.PHONY: test
test: ## everything that must pass; its last lines say how long each part took (root)
	@$(PY) -m tests.tiers

.PHONY: $(TIERS:%=test-%)
test-unit: ## pure code and the simulated machine: a minute, no root, no cluster
test-component: ## whole programs, real processes and sockets: half a minute, no root, no cluster
test-property: ## thousands of random cases, a kill at every effect: minutes, no root, no cluster
test-chart: ## the chart as helm renders it: half a minute (root; builds the programs once)
test-kill: ## a real agent killed at a sample of all moments, in every operation and at every point (root)
test-control-plane: ## tests against a real control plane without kubelets [K8S=1.37.2] (root)
test-cluster: ## real control planes, clusters and kills, side by side (root)
test-matrix: ## what users do, and what a version decides, on 1.30.14, 1.34.4, 1.35.4 and 1.36.3 themselves (root)
$(TIERS:%=test-%): test-%:
	@$(PY) -m tests.tiers $*

.PHONY: test-upgrade
test-upgrade: ## Kubernetes 1.34 becomes 1.37 under pods that hold GCUs [VERSIONS=1.35.4,1.36.3] (root; five minutes)
	@$(PY) -m tests.cluster packages
	@$(PY) -m tests.cluster build --all
	@GCU_DRA_UPGRADE=$(or $(VERSIONS),all) $(PY) -m pytest --verbose tests/e2e/test_upgrade_with_claims.py

.PHONY: test-all
test-all: ## that, and what depends on a version on the real older ones: before a change of behaviour is done (root)
	@$(MAKE) --no-print-directory test
	@$(MAKE) --no-print-directory test-matrix

.PHONY: fuzz
fuzz: ## a million hostile inputs to each parser [PARSER=] [INPUTS=] [SEED=] [FIRST=] (hours)
	@ulimit -v 4194304; nice $(PY) -m tests.fuzz $(if $(PARSER),--parser $(PARSER)) \
		$(if $(INPUTS),--inputs $(INPUTS)) $(if $(SEED),--seed $(SEED)) $(if $(FIRST),--first $(FIRST))

.PHONY: mutants
mutants: ## break the programs' code at random places and see which test finds it [SEED=] [COUNT=40] [ARGS=--help] (hours)
	@nice $(PY) -m tests.mutants $(if $(SEED),--seed $(SEED)) $(if $(COUNT),--count $(COUNT)) $(ARGS)

.PHONY: soak
soak: soak-kills soak-allocate soak-histories soak-memory soak-controller soak-chaos ## all six of them (root; hours)

.PHONY: soak-kills
soak-kills: ## the agent killed at every moment, in every mode, whatever comes next, and beside another [PART=3/8] (root; hours)
	@$(PY) -m tests.cluster packages
	@$(PY) -m tests.cluster build --kubernetes $(K8S)
	@GCU_KILLS=$(or $(PART),all) $(PY) -m pytest tests/kill/test_matrix.py $(if $(PART),,tests/kill/test_killed_side_by_side.py)

.PHONY: soak-allocate
soak-allocate: ## the agent's pod killed at every moment of Allocate on a cluster without DRA (root; half an hour)
	@$(PY) -m tests.cluster packages
	@$(PY) -m tests.cluster build
	@GCU_KILLS=all $(PY) -m pytest tests/e2e/test_without_dra_kills.py

.PHONY: soak-histories
soak-histories: ## 200,000 random histories of a node and all other random cases, of seeds never played before (hours)
	@GCU_CASES=all GCU_SEED=$$(date +%s)000 $(PY) -m pytest --numprocesses auto tests/property

.PHONY: soak-memory
soak-memory: ## the agent's memory over a million prepares and unprepares [CYCLES=1000000] (root; an hour)
	@$(PY) -m tests.cluster packages
	@$(PY) -m tests.cluster build
	@PYTEST_DEBUG_TEMPROOT=/dev/shm GCU_CYCLES=$(or $(CYCLES),1000000) $(PY) -m pytest tests/kill/test_memory.py

.PHONY: soak-controller
soak-controller: ## two hours of pods that come and go, on a real control plane [MINUTES=120] (root)
	@$(PY) -m tests.cluster packages
	@$(PY) -m tests.cluster build
	@GCU_CHURN=$(or $(MINUTES),120) $(PY) -m pytest tests/control_plane/test_controller_churn.py

.PHONY: soak-chaos
soak-chaos: ## a cluster under churn while its parts are killed, stopped and cut off [MINUTES=30] [SEED=] [ARGS=--help] (root)
	@$(PY) -m tests.cluster packages
	@$(PY) -m tests.cluster build
	@$(PY) -m tests.chaos $(if $(MINUTES),--minutes $(MINUTES)) $(if $(SEED),--seed $(SEED)) $(ARGS)

bench-%: ## run one measurement: a table, then JSON on the last line [ARGS='--fleet openb --nodes 15000']
	@$(PY) -m bench.$* $(ARGS)

.PHONY: picture
picture: ## draw docs/images/: the page of `kubectl gcu view`, and the dashboards, of the cluster that `make demo` left (root)
	@$(PY) -m tests.browser.picture
	@$(PY) -m tests.browser.dashboards

.PHONY: lint
lint: ## ruff, mypy --strict, import-linter: all of them, even if one fails
	@$(PY) -m tests.tiers lint

.PHONY: format
format: ## let ruff format and sort imports
	@$(VENV)/bin/ruff check --fix-only --quiet .
	@$(VENV)/bin/ruff format .

.PHONY: proto
proto: ## generate the kubelet API's Python code from proto/
	@PYTHON=$(PY) scripts/generate-proto

.PHONY: docs
docs: ## write the tables of docs/ whose source is code
	@$(PY) -m tests.generated_docs

.PHONY: docs-behind
docs-behind: ## list the Chinese pages whose English page has changed since
	@$(PY) -m tests.chinese_pages

.PHONY: golden
golden: ## write all stored files that tests compare with: what docs and proto write, and printed tables
	@$(PY) -m tests.golden

.PHONY: image
image: ## build the driver's image [ENGINE=buildah] [REPOSITORY=] [TAG=] [BASE=name@digest] [SNAPSHOTS=URL] [OUT=build]
	@$(if $(filter-out buildah,$(ENGINE)),,$(PY) -m tests.cluster packages)
	@$(PY) -m tests.release image $(IMAGE_FLAGS) $(if $(ENGINE),--engine "$(ENGINE)") $(if $(OUT),--out "$(OUT)")

.PHONY: release
release: ## write all files of a release [VERSION=0.1.0] [OUT=build/release] [URL=] [DRAFT=yes]; of the image as above (root)
	@$(PY) -m tests.cluster packages
	@$(PY) -m tests.release release $(IMAGE_FLAGS) --version "$(VERSION)" --out "$(or $(OUT),build/release)" \
		$(if $(DRAFT),--draft) $(if $(URL),--url "$(URL)") $(if $(ARCHIVE),--archive "$(ARCHIVE)")

.PHONY: manifests
manifests: ## write an install.yaml for those without Helm, one for each way to serve GCUs [OUT=build/manifests] [VALUES=file]
	@$(PY) -m tests.release manifests --out "$(or $(OUT),build/manifests)" $(if $(VALUES),--values "$(VALUES)")

.PHONY: cluster-up
cluster-up: ## start a real cluster on this machine [NODES=2] [K8S=1.37.2]
	@$(PY) -m tests.cluster up --nodes $(NODES) --kubernetes $(K8S)

.PHONY: cluster-down
cluster-down: ## end it and remove every trace
	@$(PY) -m tests.cluster down

.PHONY: cluster-shell
cluster-shell: ## a shell with kubectl, kubectl gcu and helm for that cluster [COMMAND='kubectl get pods -A'; also by a pipe]
	@$(PY) -m tests.cluster shell $(if $(COMMAND),-- bash -c "$$CLUSTER_COMMAND")
