#!/usr/bin/env bash
# Makes a release.
#
#   scripts/release.sh            makes bin/release, see below
#   scripts/release.sh dry        makes all files of a release in dist, and publishes nothing
#   scripts/release.sh check      checks that a release can be published: accounts, tag and version
#   scripts/release.sh publish    makes all files, and uploads them to the accounts in packaging/accounts.env
#   scripts/release.sh sign       signs the files and the image that publish has made, and uploads the signatures
#
# TARGETS="linux/amd64 darwin/arm64" limits a dry run to some targets. Each one compiles the TypeScript compiler
# once, which takes some minutes.
#
# bin/release contains what is not a binary of one system:
#
#   package        cmd/package, which makes the files that GoReleaser does not make
#   files          what it made: npm packages, bundles, bills of materials
#   man, man-gz    manual pages
#   completions    for bash, zsh, fish and PowerShell
#   rootfs         what the image has besides the binary
#   linux/ARCH     the binary of this machine, for docker build without GoReleaser
set -euo pipefail
cd "${BASH_SOURCE[0]%/*}/.."
export CGO_ENABLED=0 GOFLAGS=-trimpath

# The version of GoReleaser is the newest whose modules this project's Go and the module proxy can serve.
goreleaser_version=v2.16.0
goreleaser=bin/tools/goreleaser-$goreleaser_version
out=bin/release

fail() { printf 'release: %s\n' "$*" >&2; exit 1; }
say() { printf 'release: %s\n' "$*" >&2; }

# read_accounts exports the variables of packaging/accounts.env.
read_accounts() {
  set -a
  # shellcheck source=/dev/null
  . packaging/accounts.env
  set +a
}

# check_accounts fails unless every account exists.
check_accounts() {
  local name
  for name in RELEASE_OWNER RELEASE_NPM_SCOPE RELEASE_NPM_PACKAGE RELEASE_IMAGE RELEASE_HOMEBREW_TAP RELEASE_MAINTAINER RELEASE_BUILDER; do
    [[ -n ${!name:-} && ${!name} != *placeholder* ]] ||
      fail "$name in packaging/accounts.env is \"${!name:-}\", which is not an account; write the name of the account there"
  done
}

# check_tag fails unless the commit has the tag of the version in the source code.
check_tag() {
  local version
  version=$(go run ./cmd/package version)
  [[ $(git describe --tags --exact-match 2>/dev/null) == "v$version" ]] ||
    fail "the commit does not have the tag v$version; set it first"
}

# sign_release signs the checksums, the provenance statement and the image, with the identity of the workflow that runs
# this script, and adds the signatures to the draft release. It signs the image by its digest, because a tag can later
# point to another image.
sign_release() {
  local tool version digest
  for tool in cosign docker gh; do
    command -v "$tool" >/dev/null || fail "$tool is not installed, so nothing was signed"
  done
  [[ -e dist/SHA256SUMS ]] || fail "dist/SHA256SUMS does not exist; run scripts/release.sh publish first"
  version=$("$out/package" version)
  digest=$(docker buildx imagetools inspect "$RELEASE_IMAGE:$version" --format '{{.Manifest.Digest}}')
  [[ $digest =~ ^sha256:[0-9a-f]{64}$ ]] || fail "\"$digest\" is not the digest of $RELEASE_IMAGE:$version"
  cosign sign-blob --yes --new-bundle-format --bundle dist/SHA256SUMS.sigstore.json dist/SHA256SUMS
  cosign attest-blob --yes --new-bundle-format --bundle "dist/retort_$version.sigstore.json" \
    --statement "dist/retort_$version.intoto.json"
  cosign sign --yes "$RELEASE_IMAGE@$digest"
  gh release upload "v$version" dist/SHA256SUMS.sigstore.json "dist/retort_$version.sigstore.json" \
    --repo "$RELEASE_OWNER/retort"
}

# prepare makes bin/release.
prepare() {
  local shell roots platform page
  rm -rf "$out"
  mkdir -p "$out/files" "$out/completions" "$out/man-gz" "$out/rootfs/etc/ssl/certs" "$out/rootfs/home/retort/.config/retort" \
    "$out/rootfs/home/retort/.local" "$out/rootfs/tmp"

  go build -ldflags="-s -w" -o "$out/" ./cmd/retort ./cmd/package
  "$out/package" wrapper >/dev/null
  "$out/retort" man --out "$out/man"
  for page in "$out"/man/*; do gzip -9nc "$page" >"$out/man-gz/${page##*/}.gz"; done
  for shell in bash zsh fish powershell; do
    "$out/retort" completion "$shell" >"$out/completions/retort.$shell"
  done

  printf 'root:x:0:0:root:/:/nonexistent\nretort:x:65532:65532:retort:/home/retort:/nonexistent\n' >"$out/rootfs/etc/passwd"
  for roots in /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/cert.pem; do
    [[ -e $roots ]] || continue
    cp "$roots" "$out/rootfs/etc/ssl/certs/ca-certificates.crt"
    break
  done
  [[ -e $out/rootfs/etc/ssl/certs/ca-certificates.crt ]] || fail "there are no root certificates on this machine"
  chmod 1777 "$out/rootfs/tmp"
  touch "$out/rootfs/home/retort/.config/retort/.keep" "$out/rootfs/home/retort/.local/.keep" "$out/rootfs/tmp/.keep"

  platform=$(go env GOOS)/$(go env GOARCH)
  if [[ $platform == linux/* ]]; then
    mkdir -p "$out/$platform"
    cp "$out/retort" "$out/$platform/"
  fi
}

# install_goreleaser builds the pinned GoReleaser. The first build takes about ten minutes of processor time.
install_goreleaser() {
  [[ -x $goreleaser ]] && return
  say "building GoReleaser $goreleaser_version"
  mkdir -p bin/tools
  GOBIN=$PWD/bin/tools go install -ldflags="-s -w" "github.com/goreleaser/goreleaser/v2@$goreleaser_version" </dev/null >&2 ||
    fail "GoReleaser $goreleaser_version could not be built, so nothing was made; the messages above give the reason"
  mv bin/tools/goreleaser "$goreleaser"
}

# write_config writes GoReleaser's configuration for the targets in TARGETS, or for all.
write_config() {
  local target list=()
  for target in ${TARGETS:-}; do
    grep -q "^    targets: .*[[ ]${target/\//_}[],]" .goreleaser.yaml || fail "\"$target\" in TARGETS is not a target of .goreleaser.yaml"
    list+=("${target/\//_}")
  done
  if [[ ${#list[@]} == 0 ]]; then
    cp .goreleaser.yaml "$out/goreleaser.yaml"
  else
    printf -v target '%s, ' "${list[@]}"
    sed "s/^    targets: .*/    targets: [${target%, }]/" .goreleaser.yaml >"$out/goreleaser.yaml"
  fi
}

# finish writes what is not uploaded to the release: the formula, the registry's entry, and in a dry run also copies of
# the files that GoReleaser leaves in bin/release.
finish() {
  cp "$out"/files/* dist/
  mkdir -p dist/homebrew dist/registry
  "$out/package" formula -sums dist/SHA256SUMS -out dist/homebrew/retort.rb >/dev/null ||
    say "left out: the Homebrew formula, which needs an archive for macOS or Linux"
  "$out/package" registry -sums dist/SHA256SUMS -out dist/registry/server.json >/dev/null
}

# build_images makes the image of each Linux target with docker build, as a file that docker load reads. GoReleaser
# needs buildx and pushes, so a dry run does not let it make images.
build_images() {
  local binary arch
  docker info >/dev/null 2>&1 || { say "left out: the image, because no Docker daemon answers"; return; }
  for binary in dist/retort_linux_*/retort; do
    [[ -e $binary ]] || continue
    arch=${binary#dist/retort_linux_} arch=${arch%%_*}
    mkdir -p "$out/linux/$arch"
    cp "$binary" "$out/linux/$arch/"
    docker build -q --platform "linux/$arch" -f packaging/Dockerfile --build-arg ROOTFS=rootfs \
      --build-arg "TARGETPLATFORM=linux/$arch" --label "io.modelcontextprotocol.server.name=io.github.$RELEASE_OWNER/retort" \
      --label org.opencontainers.image.title=Retort --label "org.opencontainers.image.version=$RELEASE_VERSION" \
      --label org.opencontainers.image.licenses=Apache-2.0 -t "$RELEASE_IMAGE:$RELEASE_VERSION-$arch" "$out" >/dev/null
    docker save "$RELEASE_IMAGE:$RELEASE_VERSION-$arch" | gzip -n >"dist/retort_${RELEASE_VERSION}_linux_$arch.image.tar.gz"
  done
}

# describe_commit exports what GoReleaser's own variables tell about the commit only in a clone that has a remote.
describe_commit() {
  export RELEASE_VERSION RELEASE_COMMIT RELEASE_TIMESTAMP RELEASE_TIME RELEASE_MODIFIED=true
  RELEASE_VERSION=$("$out/package" version)
  RELEASE_COMMIT=$(git rev-parse HEAD)
  RELEASE_TIMESTAMP=$(git log -1 --format=%ct)
  RELEASE_TIME=$(TZ=UTC git log -1 --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%cd)
  [[ -n $(git status --porcelain) ]] || RELEASE_MODIFIED=false
}

# release OPTIONS... makes the files with GoReleaser. One target is built at a time, because go build uses all
# processors for one.
release() {
  prepare
  describe_commit
  write_config
  "$goreleaser" release --clean --parallelism 1 --config "$out/goreleaser.yaml" "$@"
  finish
}

read_accounts
case ${1:-prepare} in
  prepare) prepare ;;
  dry)
    install_goreleaser
    release --snapshot --skip=docker
    build_images
    say "the files are in dist; SHA256SUMS lists those that a release publishes"
    ;;
  publish)
    check_accounts
    [[ -z ${TARGETS:-} ]] || fail "TARGETS is only for dry runs; a release has all targets"
    install_goreleaser
    check_tag
    release
    ;;
  check)
    check_accounts
    check_tag
    ;;
  sign)
    check_accounts
    sign_release
    ;;
  *) fail "\"$1\" is not one of prepare, dry, check, publish and sign" ;;
esac
