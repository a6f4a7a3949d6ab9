package config

import (
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// Telemetry configures where traces and metrics of executions are exported. An empty address turns that export off.
type Telemetry struct {
	Traces  string            // URL of a collector for OTLP over HTTP
	Metrics string            // URL of a collector for OTLP over HTTP
	Headers map[string]string // sent to both collectors
	// Ratio is the share of traces that are exported, of those that begin in Retort. It is above 0 and at most 1.
	Ratio      float64
	Prometheus Prometheus
}

// Prometheus configures the listener at which Prometheus reads metrics. If Address is empty, there is no listener.
type Prometheus struct {
	Address string // host:port
	Token   string // bearer token that requests must have; required for an address that other machines can reach
}

// Stats configures how usage statistics are shown.
type Stats struct{ Price Price }

// Price holds the price of a million tokens that a model reads. 0 means that the price is unknown.
type Price struct {
	Input    float64
	Currency string // shown before the amount
}

func (t *Telemetry) reader() settingReader {
	collector := func(s *string) settingReader {
		return hidePath(readChecked(s, "an address such as http://127.0.0.1:4318, or nothing", func(a string) bool { return a == "" || isHTTP(a) }))
	}
	return readObject(
		fieldReader{"traces", "Collector that receives traces, as OTLP over HTTP.", collector(&t.Traces)},
		fieldReader{"metrics", "Collector that receives metrics, as OTLP over HTTP.", collector(&t.Metrics)},
		fieldReader{"headers", "Headers that are sent to both collectors.", readMap(&t.Headers, checkHeaderName, readHeaderValue)},
		fieldReader{"ratio", "Part of the traces that is exported, from 0.0001 to 1.", readFloat(&t.Ratio, 0.0001, 1)},
		fieldReader{"prometheus", "Where Prometheus can read metrics: an address of this machine, or an object with any address and a token.", t.Prometheus.reader()},
	)
}

// reader returns a reader for a loopback address, or for an object with any address and a token.
func (p *Prometheus) reader() settingReader {
	address := readChecked(&p.Address, "an address such as 127.0.0.1:9464", func(s string) bool {
		_, ok := splitAddress(s)
		return ok
	})
	whole := requireKeys(readObject(
		fieldReader{"address", "Address to listen on.", address},
		fieldReader{"token", "Token that Prometheus must send, usually a variable such as ${METRICS_TOKEN}.", secret(readChecked(&p.Token, "a token of 16 to 512 letters, digits or other visible characters", isMetricsToken))},
	), "address")
	read := func(r *nodeReader, n *valueNode) {
		before := len(r.problems)
		if n.kind == objectKind {
			whole.read(r, n)
		} else {
			address.read(r, n)
		}
		if len(r.problems) == before && p.Token == "" && !isLoopback(p.Address) {
			r.addProblem(
				n, `write prometheus: {address: "0.0.0.0:9464", token: "${METRICS_TOKEN}"}, or listen on 127.0.0.1`,
				"other machines can reach this address, so reading metrics there needs a token",
			)
		}
	}
	show := func() any {
		if p.Token == "" {
			return address.show()
		}
		return whole.show()
	}
	return settingReader{read, anyOf(textSchema, whole.schema), show}
}

// isMetricsToken reports whether s is long enough to be a secret and can be sent in a header.
func isMetricsToken(s string) bool {
	return len(s) >= 16 && len(s) <= 512 && !strings.ContainsFunc(s, func(r rune) bool { return r < '!' || r > '~' })
}

func (s *Stats) reader() settingReader {
	return readObject(fieldReader{"price", "Price of a million tokens that your model reads, for the costs that retort stats shows.", readObject(
		fieldReader{"input", "Price of a million tokens.", readFloat(&s.Price.Input, 0, 1_000_000)},
		fieldReader{"currency", "Currency, as it is shown before the amount.", readCurrency(&s.Price.Currency)},
	)})
}

func readFloat(v *float64, lo, hi float64) settingReader {
	parse := func(s string) (float64, bool) {
		f, err := strconv.ParseFloat(s, 64)
		return f, err == nil && f == f
	}
	show := func(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
	return readQuantity(v, quantity[float64]{lo, hi, "a number", floatPattern, 1, parse, show})
}

// isLoopback reports whether s is a loopback address with a port, which only this machine can reach.
func isLoopback(s string) bool {
	host, ok := splitAddress(s)
	address, err := netip.ParseAddr(host)
	return ok && (host == "localhost" || err == nil && address.IsLoopback())
}

// splitAddress returns the host of an address with a port, and whether the address is valid. The host may be empty.
func splitAddress(s string) (host string, ok bool) {
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return "", false
	}
	n, err := strconv.Atoi(port)
	return host, err == nil && n >= 0 && n <= 65_535
}
