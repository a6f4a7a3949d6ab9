package interpreter

import (
	"os"
	"path/filepath"
	"strconv"
)

// ProxyNetwork describes how programs reach their network proxy. It applies to interpreters that are marked as
// Proxied.
type ProxyNetwork struct {
	Certificates string // path of a PEM file with certificate authorities; empty means the host's own file
}

// CertificatesPath is the path in a sandbox of the file with the trusted certificate authorities.
const CertificatesPath = "/etc/ssl/certs/ca-certificates.crt"

// certificateFiles lists the files in which operating systems keep the certificate authorities that they trust.
var certificateFiles = []string{
	CertificatesPath, "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem", "/etc/pki/tls/cacert.pem",
	"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ssl/cert.pem",
}

// ProxyEnvironment adds to env the variables that make the interpreter use a proxy at a port of its own loopback
// address. It returns, as authorities, the file of the host that must appear at CertificatesPath, or "". A nil
// ProxyNetwork adds nothing.
func (n *ProxyNetwork) ProxyEnvironment(env []string, port int) (joined []string, authorities string) {
	joined = append([]string{}, env...)
	if n == nil {
		return joined, ""
	}
	proxy := "http://127.0.0.1:" + strconv.Itoa(port)
	joined = append(joined, "HTTP_PROXY="+proxy, "HTTPS_PROXY="+proxy, "NO_PROXY=")
	candidates := certificateFiles
	if n.Certificates != "" {
		candidates = []string{n.Certificates}
	}
	for _, file := range candidates {
		real, err := filepath.EvalSymlinks(file)
		if err != nil {
			continue
		}
		if info, err := os.Stat(real); err == nil && info.Mode().IsRegular() {
			return append(joined, "SSL_CERT_FILE="+CertificatesPath), real
		}
	}
	return joined, ""
}
