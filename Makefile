# make demo   the whole story on bundled servers
# make test   all tests but those of containers and virtual machines; says what it leaves out
# make test-sandboxes  the tests of containers, gVisor and virtual machines
# make test-race  the tests of packages that start no processes, with the race detector
# make test-all  test and test-sandboxes with every combination, for releases
# make soak   the tests of make test, 20 times in random order on a busy machine
# make release-dry  the files of a release in dist, without publishing; TARGETS=linux/amd64 makes those of one target
# make test-release  release-dry for this machine; installs the packages in empty folders and runs them
# make check  formatting, vet, other systems, linters, known vulnerabilities
# make bench  what the engine costs on this machine
# make build  bin/retort
# make install  retort into GOBIN

export CGO_ENABLED = 0

# Everything is built with -trimpath, the tests too: the build cache then serves every clone. The
# TypeScript compiler alone takes minutes to build.
export GOFLAGS = -trimpath
STRIP = -ldflags="-s -w"

.PHONY: help demo test test-sandboxes test-race test-all release-dry test-release soak check bench build install clean

help:
	@sed -n 's/^# \(make .*\)/\1/p' Makefile

demo: build
	bin/retort demo

test:
	scripts/test.sh tests

test-sandboxes:
	scripts/test.sh sandboxes

test-race:
	scripts/test.sh race

test-all:
	scripts/test.sh all

release-dry:
	TARGETS="$(TARGETS)" scripts/release.sh dry

test-release:
	TARGETS="$$(go env GOOS)/$$(go env GOARCH)" scripts/release.sh dry
	RETORT_REQUIRE=$(RETORT_REQUIRE) RETORT_DIST=$(CURDIR)/dist go test -count=1 -v ./internal/devel/packaging \
		-run '^(TestDebianPackage|TestRPMPackage|TestArchive|TestNPMInstall|TestReleaseFiles)$$'

soak:
	scripts/soak.sh

check:
	scripts/check.sh

bench: build
	bin/retort bench

build:
	go build $(STRIP) -o bin/retort ./cmd/retort

install:
	go install $(STRIP) ./cmd/retort

clean:
	rm -rf bin dist
