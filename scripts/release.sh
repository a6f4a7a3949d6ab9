#!/usr/bin/env bash
# Makes what a release has besides the binaries of each system, below bin/release:
#
#   package        the program that makes bundles and the registry's entry
#   man            manual pages
#   completions    for bash, zsh, fish and PowerShell
#   rootfs         what the image has besides the binary
#   linux/ARCH     the binary of this machine, for docker build without goreleaser
#
# As "release.sh publish" it begins only if RETORT_OWNER names the account that publishes.
set -euo pipefail
if [[ ${1:-} == publish ]]; then
  if [[ ! ${RETORT_OWNER:-} =~ ^[A-Za-z0-9](-?[A-Za-z0-9])*$ || ${RETORT_OWNER^^} == OWNER ]]; then
    echo "release: RETORT_OWNER must name the account that publishes; it is \"${RETORT_OWNER:-}\"" >&2
    exit 1
  fi
fi
cd "$(dirname "$0")/.."
export CGO_ENABLED=0 GOFLAGS=-trimpath
out=bin/release
rm -rf "$out"
mkdir -p "$out/completions" "$out/rootfs/etc/ssl/certs" "$out/rootfs/home/retort/.config/retort" "$out/rootfs/home/retort/.local" "$out/rootfs/tmp"

go build -ldflags="-s -w" -o "$out/" ./cmd/retort ./cmd/package
"$out/retort" man --out "$out/man"
for shell in bash zsh fish powershell; do
  "$out/retort" completion "$shell" >"$out/completions/retort.$shell"
done

printf 'root:x:0:0:root:/:/nonexistent\nretort:x:65532:65532:retort:/home/retort:/nonexistent\n' >"$out/rootfs/etc/passwd"
for roots in /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/cert.pem; do
  [[ -e $roots ]] || continue
  cp "$roots" "$out/rootfs/etc/ssl/certs/ca-certificates.crt"
  break
done
[[ -e $out/rootfs/etc/ssl/certs/ca-certificates.crt ]] || { echo "release: there are no root certificates on this machine" >&2; exit 1; }
chmod 1777 "$out/rootfs/tmp"
touch "$out/rootfs/home/retort/.config/retort/.keep" "$out/rootfs/home/retort/.local/.keep" "$out/rootfs/tmp/.keep"

platform=$(go env GOOS)/$(go env GOARCH)
if [[ $platform == linux/* ]]; then
  mkdir -p "$out/$platform"
  cp "$out/retort" "$out/$platform/"
fi
