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

func (h HTTP) defaults() HTTP {
	state(&h.Addr, "127.0.0.1:7337")
	state(&h.MaxBody, core.DefaultHTTPBody)
	state(&h.MaxHeader, core.DefaultHTTPHeader)
	state(&h.Connections, core.DefaultConnections)
	state(&h.Sessions, core.DefaultSessions)
	state(&h.AllSessions, core.DefaultAllSessions)
	state(&h.Executions, core.DefaultExecutions)
	state(&h.Rate, Rate{Count: core.DefaultHTTPRequests, Per: time.Minute})
	state(&h.Idle, core.DefaultSessionIdle)
	state(&h.ReadTimeout, core.DefaultReadTimeout)
	state(&h.Drain, core.DefaultDrainTimeout)
	return h
}

func (h *HTTP) read() into {
	return object(
		field{"addr", func(r *reader, n *node) { checked(&h.Addr, "host:port", isAddress)(r, n) }},
		field{"allowedHosts", list(&h.AllowedHosts, domain)},
		field{"allowedOrigins", list(&h.AllowedOrigins, origin)},
		field{"tls", object(field{"cert", folder(&h.TLS.Cert)}, field{"key", folder(&h.TLS.Key)})},
		field{"oauth", h.OAuth.read()},
		field{"maxBody", size(&h.MaxBody, kib, gib)},
		field{"maxHeader", size(&h.MaxHeader, 4*kib, mib)},
		field{"connections", integer(&h.Connections, 1, 1_000_000)},
		field{"connectionsPerAddress", integer(&h.PerAddress, 1, 1_000_000)},
		field{"sessions", integer(&h.Sessions, 1, 100_000)},
		field{"allSessions", integer(&h.AllSessions, 1, 1_000_000)},
		field{"executions", integer(&h.Executions, 1, 100_000)},
		field{"programs", integer(&h.Programs, 1, 100_000)},
		field{"rate", rate(&h.Rate, 10_000_000)},
		field{"idle", duration(&h.Idle, time.Second, 30*24*time.Hour)},
		field{"readTimeout", duration(&h.ReadTimeout, 100*time.Millisecond, time.Hour)},
		field{"drain", duration(&h.Drain, 0, time.Hour)},
	)
}

func isAddress(s string) bool {
	_, port, err := net.SplitHostPort(s)
	return err == nil && port != ""
}

func origin(s *string) into {
	return checked(s, "an origin such as https://app.example.com", func(o string) bool {
		u, err := url.Parse(o)
		return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.Path == "" && u.RawQuery == ""
	})
}
