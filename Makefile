# make demo   the whole story on bundled servers
# make test   all tests, with what this machine has; says what it leaves out
# make check  formatting, vet, other systems, linters, known vulnerabilities
# make bench  what the engine costs on this machine
# make build  bin/retort
# make install  retort into GOBIN

export CGO_ENABLED = 0

# Without -trimpath, so that the tests and the command share the build cache: the
# compiler in it takes minutes to build.
STRIP = -ldflags="-s -w"

.PHONY: help demo test check bench build install clean

help:
	@sed -n 's/^# \(make .*\)/\1/p' Makefile

demo: build
	bin/retort demo

test:
	scripts/test.sh

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
