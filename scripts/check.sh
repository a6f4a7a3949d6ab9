#!/usr/bin/env bash
# Checks the sources without running them. Every check runs, whatever the others
# say; the exit code is that of the last that failed.
set -uo pipefail
cd "$(dirname "$0")/.."
export CGO_ENABLED=0 GOFLAGS=-trimpath
status=0

# check WHAT COMMAND... runs a check and prints what it says if it fails.
check() {
  local what=$1 out rc start=$SECONDS
  shift
  out=$("$@" 2>&1 </dev/null)
  rc=$?
  if [[ $rc == 0 ]]; then
    printf 'check: %-28s ok, %d s\n' "$what" $((SECONDS - start))
  else
    printf 'check: %-28s FAILED\n%s\n' "$what" "$out"
    status=$rc
  fi
}

# tool NAME runs one of the pinned tools.
tool() { go tool -modfile=tools/go.mod "$@"; }

formatted() {
  local files
  files=$(find . -name node_modules -prune -o -name '*.go' -print0 | xargs -0 gofmt -l -s) || return 1
  [[ -z $files ]] || { printf 'gofmt -s -w is needed for:\n%s\n' "$files"; return 1; }
}

# builds OS ARCH compiles and links the command for another system. Without
# optimisation: half the time, and the same answer.
builds() { GOOS=$1 GOARCH=$2 go build -gcflags=all='-N -l' -o /dev/null ./cmd/retort; }

# others vets the packages with files for systems and processors that no other check compiles.
others() {
  GOOS=linux GOARCH=riscv64 go vet ./internal/sandbox/confine ./internal/sandbox/vm &&
    GOOS=freebsd GOARCH=amd64 go vet ./internal/sandbox/process
}

vulnerabilities() {
  local out rc
  out=$(tool govulncheck ./... 2>&1)
  rc=$?
  if [[ $rc != 0 && $out == *"fetching vulnerabilities"* ]]; then
    printf 'check: %-28s left out, its database cannot be reached\n' govulncheck >&3
    return 0
  fi
  printf '%s\n' "$out"
  return "$rc"
}

exec 3>&1
check gofmt formatted
check "go vet" go vet ./...
check "go vet (typescript)" go vet github.com/microsoft/typescript-go/tsc/...
check "layers and house rules" go test ./internal
check "go build for darwin" builds darwin arm64
check "go build for windows" builds windows amd64
check "go vet for other systems" others
check staticcheck tool staticcheck ./... github.com/microsoft/typescript-go/tsc/...
check golangci-lint tool golangci-lint run ./...
check govulncheck vulnerabilities
exit "$status"
