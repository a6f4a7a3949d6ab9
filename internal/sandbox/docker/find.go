package docker

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"retort/internal/core"
)

// daemonAddress holds the address of a daemon: a network and a path or host.
type daemonAddress struct {
	network, path string // "unix" if the address is the path of a socket, "tcp" if it is a host with a port
}

func (a daemonAddress) String() string { return a.network + "://" + a.path }

// isLocal reports whether the daemon probably runs on this machine, so that it can mount files of this machine.
func (a daemonAddress) isLocal() bool { return a.network == "unix" }

func (a daemonAddress) dialDaemon(ctx context.Context) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, a.network, a.path)
}

// parseAddress parses an address in the format of DOCKER_HOST and of Docker contexts.
func parseAddress(host string) (daemonAddress, error) {
	network, path, ok := strings.Cut(host, "://")
	switch {
	case ok && network == "unix" && filepath.IsAbs(path):
		return daemonAddress{network, path}, nil
	case ok && network == "tcp":
		name, _, err := net.SplitHostPort(path)
		if ip := net.ParseIP(name); err == nil && (name == "localhost" || ip != nil && ip.IsLoopback()) {
			return daemonAddress{network, path}, nil
		}
		return daemonAddress{}, fmt.Errorf(
			"%s names another machine without authentication: programs and their calls would be sent unencrypted", host,
		)
	}
	return daemonAddress{}, fmt.Errorf("%q is neither unix:///path nor tcp://localhost:port", host)
}

// findDaemon returns the address of the daemon. It comes from the first of these that is set: the setting, the
// environment, the current context of the docker command, the first usual socket that exists.
func findDaemon(setting string) (daemonAddress, *core.Error) {
	for _, said := range []struct{ host, by string }{
		{setting, "the setting docker.host"}, {os.Getenv("DOCKER_HOST"), "DOCKER_HOST"},
		{currentContext(), "the docker command's context"},
	} {
		if said.host == "" {
			continue
		}
		a, err := parseAddress(said.host)
		if err != nil {
			return daemonAddress{}, core.Errorf(core.KindSandboxUnavailable, Name, "%s sets the address of Docker, but %w", said.by, err).
				WithHint("set a socket of this machine, such as unix:///var/run/docker.sock")
		}
		return a, nil
	}
	usual := usualSockets()
	for _, path := range usual {
		if info, err := os.Stat(path); err == nil && info.Mode()&os.ModeSocket != 0 {
			return daemonAddress{"unix", path}, nil
		}
	}
	return daemonAddress{}, core.Errorf(
		core.KindSandboxUnavailable, Name, "neither Docker nor Podman was found on this machine: none of %s is a socket",
		strings.Join(usual, ", "),
	).
		WithHint(
			"install one of them and start it: sudo apt-get install docker.io (Debian, Ubuntu); sudo dnf install podman && systemctl --user start podman.socket (Fedora); colima start, or Docker Desktop (macOS)",
		)
}

// usualSockets lists the paths of the sockets on which daemons listen by default.
func usualSockets() []string {
	list := []string{"/var/run/docker.sock"}
	runtime := cmp.Or(os.Getenv("XDG_RUNTIME_DIR"), filepath.Join("/run/user", strconv.Itoa(os.Getuid())))
	list = append(list, filepath.Join(runtime, "docker.sock"))
	if home, err := os.UserHomeDir(); err == nil {
		list = append(list, filepath.Join(home, ".docker", "run", "docker.sock"), filepath.Join(home, ".docker", "desktop", "docker.sock"),
			filepath.Join(home, ".colima", "default", "docker.sock"), filepath.Join(home, ".colima", "docker.sock"))
	}
	return append(list, filepath.Join(runtime, "podman", "podman.sock"), "/run/podman/podman.sock")
}

// currentContext returns the daemon's address from the current context of the docker command, or "".
func currentContext() string {
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	dir := cmp.Or(os.Getenv("DOCKER_CONFIG"), filepath.Join(home, ".docker"))
	name := os.Getenv("DOCKER_CONTEXT")
	if name == "" {
		var config struct{ CurrentContext string }
		readJSON(filepath.Join(dir, "config.json"), &config)
		name = config.CurrentContext
	}
	if name == "" || name == "default" {
		return ""
	}
	sum := sha256.Sum256([]byte(name))
	var meta struct {
		Endpoints map[string]struct{ Host string }
	}
	readJSON(filepath.Join(dir, "contexts", "meta", hex.EncodeToString(sum[:]), "meta.json"), &meta)
	return meta.Endpoints["docker"].Host
}

// readJSON decodes a JSON file of another program, such as the docker command, into the variable into. It ignores
// errors, for example if the file is missing.
func readJSON(file string, into any) {
	if data, err := os.ReadFile(file); err == nil {
		_ = json.Unmarshal(data, into)
	}
}
