#!/usr/bin/env bash
# Runs all tests with what this machine has, and says what it leaves out.
#
#   scripts/test.sh [flags of go test]
#
# RETORT_REQUIRE=node,node22,bun,deno,python,dockerd,runsc,qemu,firecracker,postgres makes it a failure to leave one of these out:
#   node    real MCP servers from npm as upstreams, pinned in testdata/npm
#   node22  MCP inspector and conformance suite, with their own Node, in testdata/npm22
#   bun, deno  runtimes for programs, in testdata/npm-runtimes
#   python  the machine's own python3
#   dockerd  a Docker daemon that the tests start in a temporary folder; they need root
#   runsc   gVisor, which is built by go install at a pinned version
#   qemu    QEMU, and a kernel of Debian's or Ubuntu's in testdata/kernel
#   firecracker  Firecracker in PATH, with a KVM that works, and the same kernel: nothing is installed for it
#   postgres  a PostgreSQL server that the tests start in a temporary folder
# As root on Debian and Ubuntu, what is missing is installed with apt-get.
set -euo pipefail
cd "$(dirname "$0")/.."
export CGO_ENABLED=0 RETORT_REQUIRE="${RETORT_REQUIRE:-}"

say() { printf '%s\n' "test: $*" >&2; }
have() { command -v "$1" >/dev/null 2>&1; }
required() { [[ " ${RETORT_REQUIRE//,/ } " == *" $1 "* ]]; }

# leave_out NAME WHY: the tests of NAME do not run here.
leave_out() {
  if required "$1"; then
    say "$1 is required, but $2"
    missing=1
  else
    say "without $1: $2"
  fi
}

# apt_install COMMAND:PACKAGE... installs the packages of commands that are not there.
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

# postgres_install installs PostgreSQL's programs. Debian's package also makes and starts a
# server of its own, unless postgresql-common was told before not to.
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

# docker_install installs Docker's programs. The daemon that Debian's package would start is
# none of the tests', and stays off where services can be told so.
docker_install() {
  [[ $(uname -s) == Linux && $(id -u) == 0 ]] || { leave_out dockerd "the tests start it as root on Linux"; return; }
  have dockerd || RUNLEVEL=1 apt_install dockerd:docker.io
  have docker || apt_install docker:docker-cli
  have dockerd && have docker || leave_out dockerd "there is no dockerd, or no docker"
}

# runsc_install builds gVisor's program. No release of it is on the module proxy but this kind.
runsc_install() {
  local version=v0.0.0-20260701204157-69c2d17aea96
  [[ $(uname -s) == Linux ]] || { leave_out runsc "gVisor is for Linux"; return; }
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
  [[ $stamp -nt $dir/package-lock.json ]] && return
  say "npm ci in $dir"
  if (cd "$dir" && npm ci --no-audit --no-fund --loglevel=error --fetch-retries=2 </dev/null >&2); then
    touch "$stamp"
  else
    rm -rf "$dir/node_modules"
    leave_out "$name" "npm ci failed in $dir"
  fi
}

have go || { say "there is no go; see https://go.dev/dl"; exit 1; }
missing=0
apt_install python3:python3 node:nodejs npm:npm
postgres_install
! required dockerd || docker_install
! required runsc || runsc_install
! required qemu && ! required firecracker || qemu_install
have python3 || leave_out python "there is no python3"
npm_install node testdata/npm
if [[ $(uname -sm) == "Linux x86_64" ]]; then
  npm_install node22 testdata/npm22
  [[ ! -d testdata/npm22/node_modules || -x testdata/npm22/node_modules/.bin/node ]] || leave_out node22 "its Node was not installed"
else
  leave_out node22 "its Node is for Linux on x86_64"
fi
npm_install bun testdata/npm-runtimes
runtimes=testdata/npm-runtimes/node_modules
[[ ! -d $runtimes || -x $runtimes/.bin/bun ]] || leave_out bun "it was not installed"
[[ -x $runtimes/@deno/linux-x64-glibc/deno ]] || leave_out deno "it was not installed, and the pinned one is for Linux on x86_64"
[[ $missing == 0 ]] || exit 1

status=0
# Containers and machines have the machine to themselves, after all else: what they are asked to keep
# are limits of time and memory.
heavy=() light=()
for name in ${RETORT_REQUIRE//,/ }; do
  case $name in dockerd|runsc|qemu|firecracker) heavy+=("$name") ;; *) light+=("$name") ;; esac
done
joined() { local IFS=,; printf '%s' "$*"; }
RETORT_REQUIRE=$(joined "${light[@]}") go test -timeout 60m "$@" ./... || status=$?
# Through the main module, so that both share versions and the build cache.
go test "$@" github.com/microsoft/typescript-go/tsc/... || status=$?
if [[ ${#heavy[@]} -gt 0 ]]; then
  sandboxes=internal/pipeline/isolate
  go test -p 1 -timeout 60m "$@" ./$sandboxes/docker ./$sandboxes/gvisor ./$sandboxes/vm || status=$?
  go test -timeout 60m "$@" -run 'TestProgramsIn|TestContainedNetwork' . || status=$?
  go test -timeout 60m "$@" -run 'TestScripts/.*(docker|vm|commands|sandbox|egress)' ./cmd/retort || status=$?
fi
exit "$status"
