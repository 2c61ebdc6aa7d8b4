# Everything a person or CI does with this tree. `make help` lists it. Each target does its own
# set-up: system packages (apt, when root), a virtual environment in .venv, torch, and the build.

TORCH_VERSION ?= 2.13.0
# An index to take torch from. Without CUDA: https://download.pytorch.org/whl/cpu
TORCH_INDEX ?=
# Ranks of `make train`, and compilers at once of the C++ builds.
NP ?= 2
JOBS ?= 2

BIN := .venv/bin
STAMPS := .venv/stamps
CPP_TEST_TIMEOUT_S := 1800

.DELETE_ON_ERROR:
.PHONY: help train test ci-quick nightly wheels docs test-cpp test-python test-examples test-suite \
	test-hosts test-horovod test-bare sim faults soak fuzz test-slurm test-rdma rdma-shell build \
	build-cpp style tidy fmt asan tsan bench clean

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' Makefile

train: build  ## a data-parallel training run on NP=2 ranks
	$(BIN)/rdmarun -np $(NP) examples/01_train_digits.py

test: test-cpp test-python  ## the C++ and the Python tests

ci-quick: tidy test-cpp build  ## what to run while working: tidy, C++ units, the small worlds
	$(BIN)/python -m pytest -q tests/torch -k "not world4 and not world7"

nightly:  ## all of CI whole: nothing rotated, long tests, a bare machine (root; takes hours)
	.ci/run --whole

# --- set-up: the stamps live and die with the environment -----------------------------------------

$(STAMPS)/system: .ci/system-packages
	.ci/system-packages
	$(BIN)/python -m pip --version >/dev/null 2>&1 || python3 -m venv .venv
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/torch-$(TORCH_VERSION): | $(STAMPS)/system
	$(BIN)/python -m pip install $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX)) \
		torch==$(TORCH_VERSION)
	@rm -f $(STAMPS)/torch-* && touch $@

REQUIREMENTS := examples/requirements.txt tests/requirements.txt .ci/requirements.txt \
	rdmacoll/bench/requirements.txt rdmacoll/top/requirements.txt tests/frameworks/requirements.txt \
	website/requirements.txt

$(STAMPS)/packages: $(REQUIREMENTS) $(STAMPS)/torch-$(TORCH_VERSION)
	$(BIN)/python -m pip install "setuptools>=77" wheel $(REQUIREMENTS:%=-r %)
	@touch $@

# Editable, and incremental. Folders are among the prerequisites: a file that goes away matters too.
$(STAMPS)/built: $(shell find csrc torch_ext fuse_ext building) setup.py pyproject.toml \
		$(STAMPS)/packages
	$(BIN)/python -m pip install --no-build-isolation --editable .
	@touch $@

build: $(STAMPS)/built  ## the environment and the extension

$(STAMPS)/guest: .ci/system-packages-rdma .ci/link-pyverbs $(STAMPS)/packages
	.ci/system-packages-rdma
	.ci/link-pyverbs
	@touch $@

wheels: build  ## a wheel in dist/, for this Python and this torch
	$(BIN)/python -m building.wheels

docs: build  ## the documentation as a site, in build/site; a broken link is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --config-file website/mkdocs.yml
	@echo "read it: python3 -m http.server --bind 127.0.0.1 --directory build/site"

# --- tests ----------------------------------------------------------------------------------------

# cpp_build(<build folder>, <sanitizers>, <targets; empty: all>)
# In CI, where no file is changed and built again, several files are compiled as one.
define cpp_build
	$(BIN)/cmake -S . -B $(1) -G Ninja -DCMAKE_MAKE_PROGRAM=$(CURDIR)/$(BIN)/ninja \
		-DCMAKE_UNITY_BUILD=$(if $(CI),ON,OFF) -DRDMACOLL_SANITIZE=$(2) \
		-DRDMACOLL_TESTS_PART=$(if $(2),$(SANITIZED_PART),0/1) >/dev/null
	$(BIN)/ninja -C $(1) -j $(JOBS) --quiet $(3)
endef
# cpp_test(<build folder>)
define cpp_test
	$(BIN)/ctest --test-dir $(1) --output-on-failure --no-tests=error --parallel $(JOBS) \
		--timeout $(CPP_TEST_TIMEOUT_S)
endef
ASAN := address,undefined
TSAN := thread

build-cpp: $(STAMPS)/packages  ## the engine alone, with its tests and benchmarks
	$(call cpp_build,build/cpp,)

test-cpp: build-cpp  ## the engine's tests, without torch
	$(call cpp_test,build/cpp)

# `make sim SEED=n` replays the schedule that a failure named.
SEED ?=
SEEDS ?= 2000
# Here and below: K/N is every Nth, from the Kth.
SEEDS_PART ?= 0/1
MUTANTS_PART ?= 0/1

sim: build-cpp  ## the engine on simulated networks: SEEDS=2000 of each test, and planted bugs
	$(BIN)/python tests/sim/run.py $(if $(SEED),--seed $(SEED),--seeds $(SEEDS) --part $(SEEDS_PART))
	$(if $(SEED),,$(BIN)/python tests/sim/mutants.py --part $(MUTANTS_PART))

FAULTS_PART ?= 0/1

faults: build-cpp  ## real processes killed, stopped and gone whatever they are at; FAULTS_PART=0/1
	build/cpp/fault_matrix --part $(FAULTS_PART)
	build/cpp/remote_fault_matrix shm,tcp --part $(FAULTS_PART)

# Executions of each target.
RUNS ?= 1000000

fuzz: $(STAMPS)/packages  ## every parser of bytes from outside, fuzzed: RUNS=1000000 of each
	.ci/system-packages-fuzz
	$(BIN)/cmake -S . -B build/fuzz -G Ninja -DCMAKE_MAKE_PROGRAM=$(CURDIR)/$(BIN)/ninja \
		-DCMAKE_CXX_COMPILER=clang++ -DRDMACOLL_FUZZ=ON >/dev/null
	$(BIN)/ninja -C build/fuzz -j $(JOBS) --quiet
	$(BIN)/python tests/fuzz/run.py --runs $(RUNS) --jobs $(JOBS)

SOAK_SECONDS ?= 60

soak: build-cpp  ## ranks under all load at once: many groups, threads, signals, forks; no leaks
	build/cpp/soak --seconds $(SOAK_SECONDS)

$(STAMPS)/slurm: .ci/system-packages-slurm $(STAMPS)/packages
	.ci/system-packages-slurm
	@touch $@

# Without build isolation, for two of them compile against the torch that is there.
$(STAMPS)/frameworks: tests/frameworks/nightly.txt $(STAMPS)/packages
	$(BIN)/python -m pip install --no-build-isolation torch==$(TORCH_VERSION) -r $<
	$(BIN)/python -m pip install --no-deps timm
	@touch $@

FOR_NIGHTLY := $(if $(RDMACOLL_NIGHTLY),$(STAMPS)/slurm $(STAMPS)/frameworks)

test-python: build $(FOR_NIGHTLY)  ## all under tests/ that pytest runs, but torch's own suite
	$(BIN)/python -m pytest tests

test-slurm: build $(STAMPS)/slurm  ## jobs on a real Slurm, of two nodes in namespaces (root)
	RDMACOLL_NIGHTLY=1 $(BIN)/python -m pytest tests/slurm

test-examples: build  ## every example, as its first lines say, and otherwise
	$(BIN)/python -m pytest tests/torch/test_examples.py

HOSTS ?= 2x1,2x2,3+1
HOSTS_PART ?= 0/1
comma := ,

test-hosts: build  ## tests/torch and torch's own tests in worlds over several hosts: HOSTS=2x1,3+1
	set -e; for hosts in $(subst $(comma), ,$(HOSTS)); do for tests in torch suite; do \
		$(BIN)/python -m pytest tests/$$tests --hosts $$hosts --part $(HOSTS_PART); done; done

test-horovod: build  ## Horovod's own tests and examples, from its checkout: HOROVOD=DIR
	@test -n "$(HOROVOD)" || { echo "HOROVOD=DIR: name a checkout of Horovod" >&2; exit 2; }
	$(BIN)/python -m pip install filelock mock packaging
	for np in 2 4; do $(BIN)/rdmarun -np $$np --horovod tests/horovod/upstream/rank.py \
		$(HOROVOD)/test/parallel/test_torch.py \
		$(HOROVOD)/test/parallel/test_timeline.py || exit 1; done
	$(BIN)/rdmarun -np 1 --horovod tests/horovod/upstream/rank.py \
		$(HOROVOD)/test/single/test_torch_elastic.py
	$(BIN)/python tests/horovod/upstream/scripts.py $(HOROVOD)

SUITE_PART ?= 0/1

test-suite: build  ## torch's own distributed tests, on our backend
	$(BIN)/python -m pytest tests/suite --part $(SUITE_PART)

# Some of the stages of tests/rdma/run.py; empty: all of them.
RDMA_STAGES ?=
RDMA_GROUPS ?= 0/1
RDMA_PART ?= 0/1

# A machine with an RDMA device of its own, and active, needs no guest.
ACTIVE_RDMA := $(shell grep -ls ACTIVE /sys/class/infiniband/*/ports/*/state)

test-rdma: build build-cpp $(if $(ACTIVE_RDMA),,$(STAMPS)/guest)  ## all that needs an RDMA device
	$(BIN)/python tests/rdma/run.py --groups $(RDMA_GROUPS) --part $(RDMA_PART) $(RDMA_STAGES)

rdma-shell: build $(STAMPS)/guest  ## a prompt on a machine with a software RDMA device
	$(BIN)/python tests/guest

$(STAMPS)/debootstrap: | $(STAMPS)/system
	command -v debootstrap >/dev/null || \
		{ apt-get update && apt-get install -y --no-install-recommends debootstrap; }
	@touch $@

test-bare: $(STAMPS)/debootstrap  ## make train and make test on a bare Debian 12 (root; takes long)
	.ci/chroot-test

# Of the folders of tests.
SANITIZED_PART ?= 0/1

asan: $(STAMPS)/packages  ## the engine's tests under AddressSanitizer and UBSan
	$(call cpp_build,build/asan,$(ASAN),tests)
	$(call cpp_test,build/asan)

tsan: $(STAMPS)/packages  ## the engine's tests under ThreadSanitizer
	$(call cpp_build,build/tsan,$(TSAN),tests)
	$(call cpp_test,build/tsan)

# --- style ----------------------------------------------------------------------------------------

style: $(STAMPS)/packages  ## formatting, lint and types
	.ci/style

tidy: $(STAMPS)/packages  ## the rules of the house: floors, sizes, headers
	$(BIN)/python -m pytest -q tests/tidy

fmt: $(STAMPS)/packages  ## format everything in place
	.ci/style --fix

bench: build  ## all_reduce side by side with gloo and MPI, on NP ranks
	$(BIN)/rdmacoll bench -np $(NP) --vs gloo,mpi

clean:  ## drop what was built (not .venv)
	rm -rf build dist out rdmacoll.egg-info rdmacoll/_*.so $(STAMPS)/built
