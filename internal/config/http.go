package config

import (
	"net"
	"net/url"
	"time"

	"retort/internal/core"
)

// HTTP configures the listener for MCP clients.
type HTTP struct {
	Addr           string   // of retort serve --http on
	AllowedHosts   []string // further names that requests may name as their host
	AllowedOrigins []string // of web pages
	TLS            TLS
	OAuth          OAuth
	MaxBody        int64 // bytes of a request
	MaxHeader      int64 // bytes of its headers
	Connections    int   // at once
	PerAddress     int   // of these from one address; 0 is a quarter
	Sessions       int   // of one principal
	AllSessions    int   // of all
	Executions     int   // of one principal that have not ended
	Programs       int   // that run at once, of all; 0 is what suits the machine
	Rate           Rate  // of requests of one principal
	Idle           time.Duration
	ReadTimeout    time.Duration
	Drain          time.Duration
}

// TLS holds the absolute paths of PEM files.
type TLS struct{ Cert, Key string }

func (h HTTP) withDefaults() HTTP {
	setDefault(&h.Addr, "127.0.0.1:7337")
	setDefault(&h.MaxBody, core.DefaultHTTPBody)
	setDefault(&h.MaxHeader, core.DefaultHTTPHeader)
	setDefault(&h.Connections, core.DefaultConnections)
	setDefault(&h.Sessions, core.DefaultSessions)
	setDefault(&h.AllSessions, core.DefaultAllSessions)
	setDefault(&h.Executions, core.DefaultExecutions)
	setDefault(&h.Rate, Rate{Count: core.DefaultHTTPRequests, Per: time.Minute})
	setDefault(&h.Idle, core.DefaultSessionIdle)
	setDefault(&h.ReadTimeout, core.DefaultReadTimeout)
	setDefault(&h.Drain, core.DefaultDrainTimeout)
	return h
}

func (h *HTTP) readFunc() readFunc {
	return readObject(
		fieldReader{"addr", func(r *nodeReader, n *valueNode) { readChecked(&h.Addr, "host:port", isAddress)(r, n) }},
		fieldReader{"allowedHosts", readList(&h.AllowedHosts, readDomain)},
		fieldReader{"allowedOrigins", readList(&h.AllowedOrigins, readOrigin)},
		fieldReader{"tls", readObject(fieldReader{"cert", readPath(&h.TLS.Cert)}, fieldReader{"key", readPath(&h.TLS.Key)})},
		fieldReader{"oauth", h.OAuth.readFunc()},
		fieldReader{"maxBody", readSize(&h.MaxBody, kib, gib)},
		fieldReader{"maxHeader", readSize(&h.MaxHeader, 4*kib, mib)},
		fieldReader{"connections", readInt(&h.Connections, 1, 1_000_000)},
		fieldReader{"connectionsPerAddress", readInt(&h.PerAddress, 1, 1_000_000)},
		fieldReader{"sessions", readInt(&h.Sessions, 1, 100_000)},
		fieldReader{"allSessions", readInt(&h.AllSessions, 1, 1_000_000)},
		fieldReader{"executions", readInt(&h.Executions, 1, 100_000)},
		fieldReader{"programs", readInt(&h.Programs, 1, 100_000)},
		fieldReader{"rate", readRate(&h.Rate, 10_000_000)},
		fieldReader{"idle", readDuration(&h.Idle, time.Second, 30*24*time.Hour)},
		fieldReader{"readTimeout", readDuration(&h.ReadTimeout, 100*time.Millisecond, time.Hour)},
		fieldReader{"drain", readDuration(&h.Drain, 0, time.Hour)},
	)
}

func isAddress(s string) bool {
	_, port, err := net.SplitHostPort(s)
	return err == nil && port != ""
}

func readOrigin(s *string) readFunc {
	return readChecked(s, "an origin such as https://app.example.com", func(o string) bool {
		u, err := url.Parse(o)
		return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.Path == "" && u.RawQuery == ""
	})
}
