# What there is to do with Rollcall's source. `make help` lists it.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# The version is handed in rather than read from the build's VCS stamp, which -buildvcs=false leaves out.
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
FUZZTIME ?= 30s
FUZZ ?= ./probe
BENCHTIME ?= 1s
SOAK ?= 10m
SOAK_OUTAGE ?= 0s
SCREENSHOTS ?= screenshots

# golangci-lint has two hundred dependencies, so it is pinned in a module of its own.
golangci-lint := go tool -modfile=.ci/tools/go.mod golangci-lint

# SQLite is C, translated to Go, with an allocator of its own: what they work on comes from mmap, where the race detector looks
# at nothing, yet watching them makes SQLite five times as slow. The driver and libc stay watched: a connection that two
# goroutines use at once is seen there. GOFLAGS, so that what tests build is made of the same packages.
unwatched := modernc.org/sqlite/lib modernc.org/memory
race_goflags = $$(go env GOFLAGS) $(unwatched:%=-gcflags=%=-race=false)

step = printf '\n\033[1m== %s\033[0m\n'

.PHONY: help
help: ## list what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: test
test: deps check race crash fuzz ## install what is missing, then check and test everything; what .ci/run calls
	@$(step) "all good"

.PHONY: deps
deps: ## install what the tests need where possible, else say how to
	@$(step) "what the tests need"
	@.ci/deps

.PHONY: check
check: format tidy vet staticcheck lint ## the five below

.PHONY: format
format: ## what gofmt would change
	@$(step) "gofmt"
	@unformatted=$$(find . \( -name node_modules -o -name .git \) -prune -o -name '*.go' -exec gofmt -l {} +); \
	  [ -z "$$unformatted" ] || { printf 'not formatted, run gofmt -w on:\n%s\n' "$$unformatted"; exit 1; }

.PHONY: tidy
tidy: ## what go mod tidy would change
	@$(step) "go mod tidy -diff"
	@go mod tidy -diff

.PHONY: vet
vet: ## go vet
	@$(step) "go vet"
	@go vet ./...

.PHONY: staticcheck
staticcheck: ## honnef.co/go/tools
	@$(step) "staticcheck"
	@go tool staticcheck ./...

.PHONY: lint
lint: ## golangci-lint
	@$(step) "golangci-lint"
	@$(golangci-lint) run ./...

.PHONY: crash
crash: ## more than two hundred processes killed on the way from a check to a settled notice, without the race detector
	@$(step) "go test ./alerts, all kills"
	@.ci/gotest -timeout 30m -run '^Test(Crash|Kill)$$' ./alerts

.PHONY: race
race: ## every test with the race detector: SQLite, Postgres, real peers
	@$(step) "go test -race ./..."
	@GOFLAGS="$(race_goflags)" .ci/gotest -race -vet=off -timeout 30m ./...

.PHONY: build
build: ## the static binary ./rollcall
	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o rollcall ./cmd/rollcall

.PHONY: bench
bench: ## every benchmark, BENCHTIME=1s each
	@go test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) -timeout 1h ./...

.PHONY: soak
soak: ## 10,200 endpoints on Postgres for SOAK=10m, without it for SOAK_OUTAGE=0s in the middle
	@SOAK=$(SOAK) SOAK_OUTAGE=$(SOAK_OUTAGE) go test -tags soak -count=1 -v -timeout 24h -run '^TestSoak$$' ./cmd/rollcall

.PHONY: screenshots
screenshots: ## pictures of every page, light, dark and on a phone, in SCREENSHOTS=screenshots; SHOTS=login for these alone
	@mkdir -p $(SCREENSHOTS)
	@SCREENSHOTS=$(abspath $(SCREENSHOTS)) go test -tags screenshots -count=1 -timeout 15m -run '^TestScreenshots$$' ./cmd/rollcall

.PHONY: fuzz
fuzz: ## every fuzz test of what reads strangers' bytes, FUZZTIME=30s each; FUZZ=./... for all
	@$(step) "fuzz tests of $(FUZZ), $(FUZZTIME) each"
	@FUZZTIME=$(FUZZTIME) .ci/fuzz $(FUZZ)

.PHONY: clean
clean: ## remove what was built here; databases and keys stay
	rm -rf rollcall .ci/cache .ci/peers/node_modules .ci/pages/node_modules
