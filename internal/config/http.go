package config

import (
	"net"
	"net/url"
	"time"

	"retort/internal/core"
)

// HTTP configures the HTTP listener for MCP clients, and its limits.
type HTTP struct {
	Addr           string   // address that `retort serve --http on` uses
	AllowedHosts   []string // additional values of the Host header that requests may have
	AllowedOrigins []string // origins of web pages that may send requests
	TLS            TLS
	OAuth          OAuth
	MaxBody        int64 // bytes of a request's body
	MaxHeader      int64 // bytes of a request's headers
	Connections    int   // concurrent connections
	PerAddress     int   // concurrent connections from one address; 0: a quarter of Connections
	Sessions       int   // sessions of one principal
	AllSessions    int   // sessions of all principals
	Executions     int   // unfinished executions of one principal
	Programs       int   // running programs of all principals; 0: as many as suit the machine
	Rate           Rate  // requests of one principal
	Idle           time.Duration
	ReadTimeout    time.Duration
	Drain          time.Duration
}

// TLS holds the absolute paths of the PEM files with the certificate and its key.
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

func (h *HTTP) reader() settingReader {
	return readObject(
		fieldReader{"addr", "Address of retort serve --http on.", readChecked(&h.Addr, "host:port", isAddress)},
		fieldReader{"allowedHosts", "Further names that requests may name as their host.", readList(&h.AllowedHosts, readDomain)},
		fieldReader{"allowedOrigins", "Origins of web pages that may send requests.", readList(&h.AllowedOrigins, readOrigin)},
		fieldReader{"tls", "Certificate and key of the listener, as PEM files.", readObject(
			fieldReader{"cert", "File with the certificate and its chain.", readPath(&h.TLS.Cert)},
			fieldReader{"key", "File with the private key.", readPath(&h.TLS.Key)},
		)},
		fieldReader{"oauth", "Authorization server whose access tokens are accepted.", h.OAuth.reader()},
		fieldReader{"maxBody", "Maximum size of a request.", readSize(&h.MaxBody, kib, gib)},
		fieldReader{"maxHeader", "Maximum size of a request's headers.", readSize(&h.MaxHeader, 4*kib, mib)},
		fieldReader{"connections", "Maximum number of connections at once.", readInt(&h.Connections, 1, 1_000_000)},
		fieldReader{"connectionsPerAddress", "Maximum number of connections from one address. The default is a quarter of connections.", readInt(&h.PerAddress, 1, 1_000_000)},
		fieldReader{"sessions", "Maximum number of sessions of one principal.", readInt(&h.Sessions, 1, 100_000)},
		fieldReader{"allSessions", "Maximum number of sessions.", readInt(&h.AllSessions, 1, 1_000_000)},
		fieldReader{"executions", "Maximum number of unfinished executions of one principal.", readInt(&h.Executions, 1, 100_000)},
		fieldReader{"programs", "Maximum number of programs that run at once. The default suits the machine.", readInt(&h.Programs, 1, 100_000)},
		fieldReader{"rate", "Maximum rate of one principal's requests. It counts as whole requests per minute, at least one.", readRate(&h.Rate, 10_000_000)},
		fieldReader{"idle", "Time without a request after which a session ends.", readDuration(&h.Idle, time.Second, 30*24*time.Hour)},
		fieldReader{"readTimeout", "Time in which a request must have arrived.", readDuration(&h.ReadTimeout, 100*time.Millisecond, time.Hour)},
		fieldReader{"drain", "Time for running requests to finish when Retort stops.", readDuration(&h.Drain, 0, time.Hour)},
	)
}

func isAddress(s string) bool {
	_, port, err := net.SplitHostPort(s)
	return err == nil && port != ""
}

func readOrigin(s *string) settingReader {
	return readChecked(s, "an origin such as https://app.example.com", func(o string) bool {
		u, err := url.Parse(o)
		return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.Path == "" && u.RawQuery == ""
	})
}
