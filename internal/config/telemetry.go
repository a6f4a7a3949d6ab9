package config

import (
	"net"
	"net/netip"
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

// Price holds the price of a million tokens that a model reads. 0 means that the price is unknown.
type Price struct {
	Input    float64
	Currency string // as it is shown before the amount
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
		fieldReader{"prometheus", "Address of this machine at which Prometheus can read metrics.", readChecked(&t.Prometheus, "an address of this machine such as 127.0.0.1:9464", isLoopback)},
	)
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
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return false
	}
	n, err := strconv.Atoi(port)
	address, failed := netip.ParseAddr(host)
	return err == nil && n >= 0 && n <= 65_535 && (host == "localhost" || failed == nil && address.IsLoopback())
}
