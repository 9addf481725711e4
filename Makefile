# Everything here needs Go, and the module proxy for the tools.

# The collector of golangci-lint, and of the compiler below it, runs seldom: that takes 2.5 GB for the root module.
GOLANGCI = GOGC=400 go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
# A number of inputs, not a time: in Go before 1.27 a time can end a target with "context
# deadline exceeded" and no failing input (golang/go#75804).
FUZZTIME ?= 5000x
RACE ?=
SHORT ?=
SIMULATE ?= 5m
SUITE ?=
ALL ?=
CUTS ?= 5
CALLS ?= 5000
AGENTS ?= 64
BENCH ?= .
ROWS ?=

# All modules of the repository, the root first. CONTRIBUTING.md says what is one.
MODULES := . $(patsubst %/,%,$(dir $(shell git ls-files '*/go.mod')))
# The tests of tests/browser need Chromium: make browser.
TESTED := $(filter-out tests/browser,$(MODULES))
comma := ,
# Runs a command in some modules.
define each
	@set -e; for module in $(1); do echo "== $$module: $(2)"; (cd $$module && $(2)); done
endef

.DEFAULT_GOAL := help

.PHONY: help
help: ## show this text
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "%-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: test
test: ## run all tests, of all modules
	$(call each,$(TESTED),go test ./...)

.PHONY: unit
unit: ## run the tests of the packages of the module, without those of the whole in tests
	go test $$(go list ./... | grep -v /mcpactor/tests)

.PHONY: race
race: ## run the tests of the module, and of resume/redis, with the race detector, but those of packages with a single goroutine: needs a C compiler as well; SHORT=-short tries fewer seeds and odd answers
	# Those that take longest begin first. By default the race detector sleeps for a second at the end of each package.
	GORACE=atexit_sleep_ms=10 go test -timeout 20m -race $(SHORT) ./tests ./mcpbridge/internal/bridge ./tests/faults $$(.ci/concurrent)
	$(call each,resume/redis,go test -timeout 20m -race ./...)

.PHONY: tidy
tidy: ## check go.mod and go.sum of all modules
	$(call each,$(MODULES),go mod tidy -diff)

.PHONY: consume
consume: ## build programs that require the modules by version, and install mcpactor as docs/install.md says
	go run ./tests/consume

.PHONY: dist
dist: ## make the files of a release into the folder dist, from the last commit: archives, packages, an image
	rm -rf dist
	source=$$(mktemp -d) && trap 'rm -rf "$$source"' EXIT && git clone --quiet --shared . "$$source" && go -C "$$source/packaging" run . "$(CURDIR)/dist"

.PHONY: soak
soak: ## run the long soak, of 1,000,000 calls, and one of 100,000 with the race detector
	go test -timeout 3h -run '^TestSoak$$' ./tests -soak.calls=100000
	go test -timeout 3h -run '^TestSoak$$' -race ./tests -soak.calls=10000

.PHONY: simulation
simulation: ## run schedules for SIMULATE (5m) each from a fresh seed: of the actors, of handles, of doubt about sessions, of records of calls, of a cluster
	go test -timeout 1h -run '^TestSimulation$$' -v ./actors/registry ./actors/internal/handles ./mcpbridge/internal/doubt ./internal/callbook -simulation.seed=0 -simulation.time=$(SIMULATE)
	go -C cluster test -timeout 1h -run '^TestSimulation$$' -v ./internal/node -simulation.seed=0 -simulation.time=$(SIMULATE)
	go -C cluster test -timeout 1h -run '^TestEveryCut$$' ./internal/node -simulation.cuts=1
	go test -timeout 1h -run '^TestSimulation$$' -race ./actors/registry -simulation.seed=0 -simulation.seeds=1000

.PHONY: mutations
mutations: ## check that directed tests find the bugs that are planted for them, and the simulations others, within a minute on one processor; SUITE=-mutation.suite also runs the other tests with each, up to the first that fails
	go test -timeout 12h -tags mutations -run '^TestDirectedMutations$$' -v ./actors/registry
	go test -timeout 12h -tags mutations -run '^TestMutations$$' -v ./actors/registry -mutation.time=1m $(SUITE)

.PHONY: vet
vet: ## vet all modules, and those that programs require for macOS and Windows, too
	$(call each,$(MODULES),go vet ./...)
	go vet -tags real,claude ./tests/real
	go -C cluster vet -tags real .
	go vet -tags mutations ./actors/registry
	go vet -tags containers,packages ./tests/containers ./tests/packages
	go vet -tags conformance,eras,handles ./tests/conformance/... ./tests/eras ./tests/handles
	for system in darwin windows; do GOOS=$$system $(MAKE) --no-print-directory vet-system MODULES='. cluster resume/redis' || exit 1; done

.PHONY: vet-system
vet-system: # all modules with their tests, for the system GOOS
	$(call each,$(MODULES),go vet ./...)

.PHONY: lint
lint: ## run the linters on all modules, and check the format (gofumpt, gci)
	$(call each,$(MODULES),$(GOLANGCI) run --build-tags real$(comma)claude$(comma)conformance$(comma)eras$(comma)handles$(comma)mutations$(comma)containers$(comma)packages ./...)

.PHONY: fmt
fmt: ## format the code of all modules
	$(call each,$(MODULES),$(GOLANGCI) fmt ./...)

.PHONY: operating
operating: ## test docs/operating: telemetry with the SDK of OpenTelemetry, the dashboard, the alerts
	go -C docs/operating test $(RACE) ./...

.PHONY: cluster
cluster: ## test the cluster and shared stores: the modules cluster, tests/cluster, which has a server of etcd, and resume/redis
	$(call each,cluster tests/cluster resume/redis,go test $(RACE) ./...)

.PHONY: cuts
cuts: ## cut the links between members, and etcd, in network namespaces: CUTS (5) cases, in a minute; CUTS=-1 is all, in 20 minutes. Needs Linux, root and iproute2
	go -C tests/cluster test -count=1 -timeout 1h -v -run '^(TestWiresDropWhatIsCut|TestEveryCutOnRealProcesses)$$' -parallel 3 . -cuts $(CUTS)

.PHONY: calls
calls: ## make CALLS (5000) durable and approved calls while all programs are killed again and again, in a minute: none runs twice. Needs Linux
	go -C tests/calls test -count=1 -timeout 2h -v -run '^TestCallsRunOnce$$' . -calls $(CALLS)

.PHONY: handles
handles: ## let AGENTS (64; 64,256,512 are three sets of runs) share 16 handles, with and without a declaration, while programs are killed and answers are lost, in a minute; RACE=-race is for the race detector. Needs Linux
	go test -count=1 -timeout 1h -v $(RACE) -tags handles ./tests/handles -agents $(AGENTS)

.PHONY: benchmarks
benchmarks: ## test the module benchmarks, and run each of its benchmarks once, or those that BENCH (.) matches
	go -C benchmarks test -short -bench '$(BENCH)' -benchtime 1x ./...

.PHONY: bench
bench: bench-others ## measure all in rounds, each beside its baselines, and write docs/performance.txt anew: about half an hour
	benchmarks/page

.PHONY: bench-cluster
bench-cluster: ## measure a cluster in 7 rounds, and print a table: about 10 minutes
	for round in 1 2 3 4 5 6 7; do go -C cluster test -run '^$$' -bench . -benchtime 300ms ./internal/bench || exit 1; done > bench-cluster.txt
	go -C benchmarks tool benchstat -col /how -confidence 0.9 $(CURDIR)/bench-cluster.txt

.PHONY: bench-others
bench-others: ## install the client for Node that is measured as well: needs Node and npm
	npm ci --prefix benchmarks/node --ignore-scripts --no-audit --no-fund --loglevel=error

.PHONY: load
load: ## show the load test's figures: 1,000 keys, with and without faults
	go test -run '^TestLoad' -v ./tests -load.keys=1000

.PHONY: real
real: ## run the tests with real servers, and clients behind mcpactor serve: needs Node, npm, Chromium and nginx, and installs what is missing; SHORT=-short leaves out most pairs of a client and a server, RACE=-race is for the race detector
	tests/real/install
	go test -timeout 20m $(RACE) $(SHORT) -tags real ./tests/real
	go -C cluster test $(RACE) -tags real -run 'ForTrying' .

.PHONY: claude
claude: ## run Claude Code with mcpactor serve, the lines of the README for it, and clients on files that mcpactor adopt has changed: needs what make real needs, and the npm registry: eight minutes
	tests/real/install
	tests/real/claude/install
	go test -timeout 20m -count=1 -tags real,claude -run '^Test(ClaudeCode|Adopted)' ./tests/real

.PHONY: containers
containers: ## run the tests with servers in containers of podman and docker: needs Debian and root, and installs the rest
	tests/containers/install
	go test -count=1 -tags containers ./tests/containers

.PHONY: wine
wine: ## run the tests of processes for Windows under Wine: needs Debian and root, and installs the rest
	tests/wine/run

.PHONY: packages
packages: ## make the files of a release from the last commit twice, install, run and remove them: needs Debian, root, Node and npm, and installs the rest; ALL=-all makes them for all platforms
	tests/packages/install
	tests/wine/install >/dev/null
	go test -count=1 -timeout 20m -tags packages ./tests/packages $(ALL)

.PHONY: conformance
conformance: ## run the official conformance suites, for clients, and for servers through mcpactor serve: needs npm, and installs the rest
	tests/conformance/install
	go test -count=1 -tags conformance ./tests/conformance

.PHONY: eras
eras: ## run old and new clients with old and new servers through mcpactor serve, in two minutes: needs Node and npm, and installs the SDKs; ROWS=new-client/old-server runs only rows whose names contain that
	tests/eras/install
	go test -count=1 -timeout 15m -parallel 3 -tags eras ./tests/eras -rows '$(ROWS)'

.PHONY: browser
browser: ## run the tests of the debug page in Chromium: needs npm, and installs what is missing
	tests/browser/install
	cd tests/browser && go test -count=1 ./...

.PHONY: screenshots
screenshots: ## make the pictures of the debug page in the documents: needs npm and Chromium
	tests/browser/install
	cd tests/browser && go run ./screenshots ../../docs

.PHONY: fuzz
fuzz: ## run each fuzz target with FUZZTIME inputs (5000x)
	@set -e; for module in . cluster; do for pkg in $$(go -C $$module list ./...); do \
		for target in $$(go -C $$module test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
			echo "$$pkg $$target"; \
			go -C $$module test -run '^$$' -fuzz "^$$target\$$" -fuzzminimizetime 1x -fuzztime $(FUZZTIME) $$pkg; \
		done; \
	done; done

.PHONY: demo
demo: ## run the shows: of one process, and of a cluster
	go run ./cmd/demo
	go -C tests/cluster run ./show

.PHONY: picture
picture: ## run the show, and make the picture of the README (docs/demo.svg) from it
	go run ./docs/picture
