package config

import (
	"net"
	"net/netip"
	"regexp"
	"strconv"
)

// Telemetry configures where traces and metrics of executions are exported. An empty address turns that export off.
type Telemetry struct {
	Traces     string            // collector that takes OTLP over HTTP
	Metrics    string            // such a collector
	Headers    map[string]string // sent to both
	Ratio      float64           // of traces that begin here, above 0 and up to 1
	Prometheus string            // address on this machine where metrics can be asked for
}

// Stats configures how usage is shown.
type Stats struct{ Price Price }

// Price holds what a million tokens cost that a model reads. 0 means unknown.
type Price struct {
	Input    float64
	Currency string // as it is shown before the amount
}

func (t *Telemetry) readFunc() readFunc {
	collector := func(s *string) readFunc {
		return readChecked(s, "an address such as http://127.0.0.1:4318, or nothing", func(a string) bool { return a == "" || isHTTP(a) })
	}
	return readObject(
		fieldReader{"traces", collector(&t.Traces)},
		fieldReader{"metrics", collector(&t.Metrics)},
		fieldReader{"headers", readMap(&t.Headers, checkHeaderName, readHeaderValue)},
		fieldReader{"ratio", readFloat(&t.Ratio, 0.0001, 1)},
		fieldReader{"prometheus", readChecked(&t.Prometheus, "an address of this machine such as 127.0.0.1:9464", isLoopback)},
	)
}

func (s *Stats) readFunc() readFunc {
	return readObject(fieldReader{"price", readObject(
		fieldReader{"input", readFloat(&s.Price.Input, 0, 1_000_000)},
		fieldReader{"currency", readChecked(&s.Price.Currency, "a currency such as $ or EUR", regexp.MustCompile(`^[\p{Sc}A-Za-z ]{1,8}$`).MatchString)},
	)})
}

func readFloat(v *float64, lo, hi float64) readFunc {
	show := func(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
	return readQuantity(v, lo, hi, "a number", func(s string) (float64, bool) {
		f, err := strconv.ParseFloat(s, 64)
		return f, err == nil && f == f
	}, show)
}

// isLoopback reports whether s is a loopback address with a port, which only this machine can reach.
func isLoopback(s string) bool {
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return false
	}
	n, err := strconv.Atoi(port)
	address, failed := netip.ParseAddr(host)
	return err == nil && n >= 0 && n <= 65_535 && (host == "localhost" || failed == nil && address.IsLoopback())
}
