# Everything here needs Go, and the module proxy for the tools.

GOLANGCI = go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
# A number of inputs, not a time: in Go before 1.27 a time can end a target with "context
# deadline exceeded" and no failing input (golang/go#75804).
FUZZTIME ?= 5000x
RACE ?=

.DEFAULT_GOAL := help

.PHONY: help
help: ## show this text
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "%-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: test
test: ## run all tests
	go test ./...

.PHONY: race
race: ## run all tests with the race detector: needs a C compiler as well
	go test -timeout 20m -race ./...

.PHONY: soak
soak: ## run the long soak, of 1,000,000 calls, and one of 100,000 with the race detector
	go test -timeout 3h -run '^TestSoak$$' ./tests -soak.calls=100000
	go test -timeout 3h -run '^TestSoak$$' -race ./tests -soak.calls=10000

.PHONY: vet
vet: ## vet, also for other systems than this one
	go vet ./...
	go vet -tags real ./tests/real
	go vet -tags conformance ./tests/conformance/...
	cd tests/browser && go vet ./...
	GOOS=darwin go vet ./messages ./mcpbridge/... ./actors ./supervisor/... ./toolset/... ./config ./resume/... ./internal/... ./cmd/... ./tests/faults
	GOOS=windows go vet ./messages ./mcpbridge/... ./actors ./supervisor/... ./toolset/... ./config ./resume/... ./internal/... ./cmd/... ./tests/faults

.PHONY: lint
lint: ## run the linters, and check the format (gofumpt, gci)
	$(GOLANGCI) run --build-tags real,conformance ./...
	cd tests/browser && $(GOLANGCI) run ./...
	cd docs/operating && $(GOLANGCI) run ./...
	cd resume/redis && $(GOLANGCI) run ./...
	cd tests/cluster && $(GOLANGCI) run ./...

.PHONY: fmt
fmt: ## format the code
	$(GOLANGCI) fmt ./...
	cd docs/operating && $(GOLANGCI) fmt ./...
	cd resume/redis && $(GOLANGCI) fmt ./...
	cd tests/cluster && $(GOLANGCI) fmt ./...

.PHONY: operating
operating: ## vet and test docs/operating, a module of its own: telemetry with the SDK of OpenTelemetry, the dashboard, the alerts
	go -C docs/operating mod tidy -diff
	go -C docs/operating vet ./...
	go -C docs/operating test $(RACE) ./...

.PHONY: cluster
cluster: ## vet and test the modules tests/cluster, which has a server of etcd, and resume/redis
	go -C tests/cluster mod tidy -diff
	go -C tests/cluster vet ./...
	go -C tests/cluster test $(RACE) ./...
	go -C resume/redis mod tidy -diff
	go -C resume/redis vet ./...
	go -C resume/redis test $(RACE) ./...

.PHONY: bench
bench: bench-others ## measure all, each beside its baselines, and write docs/performance.md anew: about half an hour
	go run ./cmd/mcpactor bench --benchfmt docs/performance.txt
	go run ./cmd/mcpactor bench report docs/performance.txt

.PHONY: bench-cluster
bench-cluster: ## measure a cluster in 7 rounds, and print a table: about 10 minutes
	for round in 1 2 3 4 5 6 7; do go test -run '^$$' -bench . -benchtime 300ms ./supervisor/cluster/internal/bench || exit 1; done > bench-cluster.txt
	go run golang.org/x/perf/cmd/benchstat -col /how -confidence 0.9 bench-cluster.txt

.PHONY: bench-others
bench-others: ## install the clients of other libraries that are measured as well: needs Node and npm
	internal/bench/others/install

.PHONY: load
load: ## show the load test's figures: 1,000 keys, with and without faults
	go test -run '^TestLoad' -v ./tests -load.keys=1000

.PHONY: real
real: ## run the tests with real servers: needs Node, npm, Chromium and nginx, and installs what is missing; RACE=-race for the race detector
	tests/real/install
	go test $(RACE) -tags real ./tests/real

.PHONY: conformance
conformance: ## run the official conformance suites for clients: needs npm, and installs the rest
	tests/conformance/install
	go test -count=1 -tags conformance ./tests/conformance

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
	@set -e; for pkg in $$(go list ./...); do \
		for target in $$(go test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
			echo "$$pkg $$target"; \
			go test -run '^$$' -fuzz "^$$target\$$" -fuzzminimizetime 1x -fuzztime $(FUZZTIME) $$pkg; \
		done; \
	done

.PHONY: demo
demo: ## run the shows: of one process, and of a cluster
	go run ./cmd/demo
	go run ./cmd/demo cluster

.PHONY: picture
picture: ## run the show, and make the picture of the README (docs/demo.svg) from it
	go run ./docs/picture
