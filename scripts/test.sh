#!/usr/bin/env bash
# Installs what the tests of a tier need, and runs them.
#
#   scripts/test.sh [TIER] [flags of go test]
#   scripts/test.sh setup TIER    only installs
#   scripts/test.sh list TIER     prints a line for each package: its path, a tab, and a go test -run pattern
#
# Tiers:
#   tests      the tests that need nothing but Go, Node.js, Python and PostgreSQL (the default)
#   sandboxes  containers, gVisor and virtual machines; containers need root
#   race       the race detector over all packages that start no processes; it needs a C compiler
#   all        tests and sandboxes; RETORT_FULL=1 runs every combination of cases, not only a selection
#
# Tests that need something this machine lacks are skipped, and the last line of output lists what was
# missing. RETORT_REQUIRE is a comma-separated list of what must not be missing, such as "postgres,bun". If one
# of them is, the run fails:
#   node    real MCP servers from npm as upstreams, pinned in testdata/npm
#   node22  MCP Inspector and the conformance suite, with their own Node.js, in testdata/npm22
#   bun, deno  runtimes for programs, in testdata/npm-runtimes
#   python  the machine's own python3
#   postgres  a PostgreSQL server that the tests start in a temporary folder
#   dockerd  a Docker daemon that the tests start in a temporary folder
#   runsc   gVisor, which go install builds at a pinned version
#   qemu    QEMU, and a Debian or Ubuntu kernel in testdata/kernel
#   firecracker  Firecracker in PATH with a working KVM, and the same kernel; nothing is installed for it
# As root on Debian and Ubuntu, what is missing is installed with apt-get.
set -euo pipefail
cd "$(dirname "$0")/.."
export CGO_ENABLED=0 GOFLAGS=-trimpath RETORT_REQUIRE="${RETORT_REQUIRE:-}"

action=run tier=tests
case "${1-}" in setup|list) action=$1; shift ;; esac
case "${1-}" in tests|sandboxes|race|all) tier=$1; shift ;; esac

say() { printf '%s\n' "test: $*" >&2; }
have() { command -v "$1" >/dev/null 2>&1; }
required() { [[ " ${RETORT_REQUIRE//,/ } " == *" $1 "* ]]; }

# leave_out NAME WHY records that the tests that need NAME are skipped, or that a requirement is missing
# if RETORT_REQUIRE contains NAME.
left_out=() missing=0
leave_out() {
  if required "$1"; then
    say "RETORT_REQUIRE names $1, but $2"
    missing=1
  else
    left_out+=("$1 ($2)")
  fi
}

# apt_install COMMAND:PACKAGE... installs the packages of the commands that are missing.
apt_install() {
  local wanted=() pair
  for pair in "$@"; do
    have "${pair%%:*}" || wanted+=("${pair##*:}")
  done
  [[ ${#wanted[@]} -gt 0 && $(id -u) == 0 && -e /etc/debian_version ]] && have apt-get || return 0
  say "installing ${wanted[*]}"
  local apt=(apt-get -qq -o Acquire::Retries=1 -o Acquire::http::Timeout=20 -o Dpkg::Use-Pty=0)
  DEBIAN_FRONTEND=noninteractive "${apt[@]}" update </dev/null >&2 || true
  DEBIAN_FRONTEND=noninteractive "${apt[@]}" install -y --no-install-recommends "${wanted[@]}" </dev/null >&2 || true
}

# postgres_install installs PostgreSQL's programs. Debian's package also creates and starts a server,
# unless that is disabled in postgresql-common's configuration first.
postgres_install() {
  have initdb || compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null && return
  apt_install pg_createcluster:postgresql-common
  local file=/etc/postgresql-common/createcluster.conf
  if have pg_createcluster && [[ -w $file ]]; then
    sed -i 's/^#\?create_main_cluster.*/create_main_cluster = false/' "$file"
    apt_install initdb:postgresql
  fi
  have initdb || compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || leave_out postgres "there is no initdb"
}

# docker_install installs Docker's programs. The tests start a daemon of their own. RUNLEVEL=1 keeps
# Debian's package from starting another one, if the init system supports that.
docker_install() {
  [[ $(uname -s) == Linux && $(id -u) == 0 ]] || { leave_out dockerd "the tests start it as root on Linux"; return; }
  have dockerd || RUNLEVEL=1 apt_install dockerd:docker.io
  have docker || apt_install docker:docker-cli
  have dockerd && have docker || leave_out dockerd "there is no dockerd, or no docker"
}

# runsc_install builds gVisor's runsc. The module proxy has only pseudo-versions of it.
runsc_install() {
  local version=v0.0.0-20260701204157-69c2d17aea96
  [[ $(uname -s) == Linux ]] || { leave_out runsc "gVisor runs only on Linux"; return; }
  have runsc || [[ -x $(go env GOPATH)/bin/runsc ]] && return
  say "building gVisor"
  go install "gvisor.dev/gvisor/runsc@$version" </dev/null >&2 || leave_out runsc "gVisor could not be built"
}

# qemu_install installs QEMU, and unpacks a kernel for its machines without installing it.
qemu_install() {
  [[ $(uname -sm) == "Linux x86_64" ]] || { leave_out qemu "its machines are for Linux on x86_64"; return; }
  apt_install qemu-system-x86_64:qemu-system-x86
  have qemu-system-x86_64 || { leave_out qemu "there is no qemu-system-x86_64"; return; }
  compgen -G 'testdata/kernel/boot/vmlinuz-*' >/dev/null && return
  say "fetching a kernel for machines"
  local image part=testdata/kernel.part
  image=$(apt-cache show --no-all-versions linux-image-cloud-amd64 linux-image-virtual 2>/dev/null | grep -om1 'linux-image-[0-9][a-z0-9.+-]*') || true
  rm -rf "$part" && mkdir -p "$part/tree"
  if [[ -n $image ]] && (cd "$part" && apt-get -qq -o Acquire::Retries=1 download "$image" && { apt-get -qq download "linux-modules-${image#linux-image-}" 2>/dev/null || true; }) >&2; then
    local deb
    for deb in "$part"/*.deb; do dpkg-deb -x "$deb" "$part/tree" || true; done
    rm -rf testdata/kernel && mv "$part/tree" testdata/kernel
  fi
  rm -rf "$part"
  compgen -G 'testdata/kernel/boot/vmlinuz-*' >/dev/null || leave_out qemu "no package with a kernel could be fetched"
}

# npm_install NAME DIR installs the locked packages of DIR, once for each lock file.
npm_install() {
  local name=$1 dir=$2 stamp=$2/node_modules/.package-lock.json
  [[ -e $dir/package-lock.json ]] || { leave_out "$name" "there is no $dir/package-lock.json"; return; }
  have node && have npm || { leave_out "$name" "there is no node with npm"; return; }
  if [[ -L $dir/node_modules ]]; then # it belongs to another checkout, where npm ci would delete the packages
    [[ -e $stamp ]] || leave_out "$name" "$dir/node_modules is a link to a folder without packages"
    return
  fi
  [[ $stamp -nt $dir/package-lock.json ]] && return
  say "npm ci in $dir"
  if (cd "$dir" && npm ci --no-audit --no-fund --loglevel=error --fetch-retries=2 </dev/null >&2); then
    touch "$stamp"
  else
    rm -rf "$dir/node_modules"
    leave_out "$name" "npm ci failed in $dir"
  fi
}

# skip_python_shim puts the directory of the interpreter behind python3 first in PATH. If python3 is a script that
# chooses a version, as pyenv installs, it costs 50 ms per start, and the tests start Python a thousand times.
skip_python_shim() {
  local real
  real=$(python3 -I -S -c 'import os, sys; print(os.path.dirname(sys.executable))' 2>/dev/null) || return 0
  [[ ! -x $real/python3 ]] || PATH=$real:$PATH
}

setup_tests() {
  apt_install python3:python3 node:nodejs npm:npm
  postgres_install
  have python3 || leave_out python "there is no python3"
  npm_install node testdata/npm
  if [[ $(uname -sm) == "Linux x86_64" ]]; then
    npm_install node22 testdata/npm22
    [[ ! -d testdata/npm22/node_modules || -x testdata/npm22/node_modules/.bin/node ]] || leave_out node22 "its Node.js was not installed"
  else
    leave_out node22 "its Node.js is for Linux on x86_64"
  fi
  npm_install bun testdata/npm-runtimes
  local runtimes=testdata/npm-runtimes/node_modules
  [[ ! -d $runtimes || -x $runtimes/.bin/bun ]] || leave_out bun "it was not installed"
  [[ -x $runtimes/@deno/linux-x64-glibc/deno ]] || leave_out deno "it was not installed, and the pinned one is for Linux on x86_64"
}

setup_sandboxes() {
  apt_install python3:python3
  have python3 || leave_out python "there is no python3"
  docker_install
  runsc_install
  qemu_install
  if ! have firecracker; then leave_out firecracker "there is no firecracker in PATH"; fi
}

# list_tests lists the tier "tests". The TypeScript compiler's packages are tested from the main module,
# so that they use its dependency versions and share its build cache.
list_tests() { go list ./... github.com/microsoft/typescript-go/tsc/... | sed 's/$/\t./'; }

# list_sandboxes lists the packages of the sandboxes, and the tests of other packages that need a sandbox.
list_sandboxes() {
  printf '%s\t.\n' retort/internal/sandbox/{vm,docker,gvisor}
  printf 'retort/internal/engine\tTestProgramsIn|TestContainedNetwork\n'
  printf 'retort/cmd/retort\tTestScripts/.*(docker|vm|commands|sandbox|egress)\n'
}

# list_race lists the packages that start no processes: neither the package nor its tests import
# os/exec or the engine.
list_race() {
  go list -f '{{.ImportPath}}{{"\t.\t"}}{{join .Imports " "}} {{join .TestImports " "}} {{join .XTestImports " "}} ' ./... |
    grep -vE '\t.*(os/exec|retort|retort/internal/engine|retort/internal/sandbox/((process|docker|gvisor|vm|confine|warmpool|procgroup|hostcmd|interpreter|sandboxtest)[a-z/]*|guest)) ' | cut -f1,2
}

# run_sandboxes [FLAGS] runs the tests that list_sandboxes lists, one package per core at a time. Results are not cached,
# for the reason that "longest" gives below.
run_sandboxes() {
  list_sandboxes | tr '\t' '\n' |
    RETORT_SANDBOXES=1 xargs -d '\n' -n 2 -P "$(getconf _NPROCESSORS_ONLN)" bash -c 'flags=("${@:1:$#-2}"); exec go test -ldflags=-s -vet=off -timeout 60m -count=1 "${flags[@]}" -run "${@: -1}" "${@: -2:1}"' bash "$@" || status=$?
}

# The packages that take longest, in this order. They run first and without go's cache of results: they open a million
# files of other processes, and comparing them for the cache would take go half a minute.
longest=(retort/cmd/retort retort/internal/engine retort/internal/sandbox/process retort/internal/sandbox/guest retort/internal/mcp/client
  retort/internal/sandbox/guest/python retort/internal/mcp/server retort/internal/audit/sqlstore)

# run_tests [FLAGS] runs the tests that list_tests lists. -s leaves out debug information and symbols, which would take half
# of the time of linking. Vetting is left to make check, which covers all packages.
run_tests() {
  local packages
  mapfile -t packages < <(list_tests | cut -f1 | grep -vxFf <(printf '%s\n' "${longest[@]}"))
  go test -ldflags=-s -vet=off -timeout 60m -count=1 "$@" "${longest[@]}" || status=$?
  go test -ldflags=-s -vet=off -timeout 60m "$@" "${packages[@]}" || status=$?
}

if [[ $action == list ]]; then
  [[ $tier != all ]] || { list_tests; list_sandboxes; exit; }
  "list_$tier"
  exit
fi

have go || { say "there is no go; see https://go.dev/dl"; exit 1; }
case $tier in
  tests) setup_tests ;;
  sandboxes) setup_sandboxes ;;
  race) apt_install gcc:gcc; have gcc || { say "the race detector needs gcc"; exit 1; } ;;
  all) setup_tests; setup_sandboxes ;;
esac
[[ $missing == 0 ]] || exit 1
[[ $action == run ]] || exit 0
skip_python_shim

status=0
case $tier in
  tests) run_tests "$@" ;;
  sandboxes) run_sandboxes "$@" ;;
  race)
    mapfile -t packages < <(list_race | cut -f1)
    CGO_ENABLED=1 go test -race -timeout 60m "$@" "${packages[@]}" || status=$?
    ;;
  all)
    export RETORT_FULL=1
    run_tests "$@"
    run_sandboxes "$@"
    ;;
esac

# Print in one line what was skipped.
case $tier in
  tests) others="containers, gVisor and virtual machines (make test-sandboxes)" ;;
  race) others="packages that start processes (make test)" ;;
  sandboxes) others="everything else (make test)" ;;
  all) others="" ;;
esac
if [[ ${#left_out[@]} -gt 0 ]]; then
  printf -v names '%s, ' "${left_out[@]}"
  others="${names%, }${others:+, $others}"
fi
if [[ -n $others ]]; then say "left out: $others"; else say "nothing was left out"; fi
exit "$status"
