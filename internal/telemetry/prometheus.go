package telemetry

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// Handler serves metrics to Prometheus at /metrics. It refuses requests that a web page in a browser could cause:
// those with an Origin header, from another site or, if no token is required, with the host name of another machine.
func (t *Telemetry) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case t.token != "" && !t.hasToken(r):
			w.Header().Set("WWW-Authenticate", `Bearer realm="retort metrics"`)
			http.Error(w, "send the token of telemetry.prometheus: Authorization: Bearer …", http.StatusUnauthorized)
		case t.token == "" && !isLoopbackHost(r.Host):
			http.Error(w, "requests to this host are not answered", http.StatusForbidden)
		case r.Header.Get("Origin") != "" || fromOtherSite(r):
			http.Error(w, "requests from web pages are not answered", http.StatusForbidden)
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			http.Error(w, "GET only", http.StatusMethodNotAllowed)
		case r.URL.Path != "/metrics":
			http.NotFound(w, r)
		default:
			t.serveMetrics(w, r)
		}
	})
}

// hasToken reports whether a request has the token. How long the comparison takes does not depend on the token.
func (t *Telemetry) hasToken(r *http.Request) bool {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	sent, wanted := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(t.token))
	return strings.EqualFold(scheme, "Bearer") && subtle.ConstantTimeCompare(sent[:], wanted[:]) == 1
}

// fromOtherSite reports whether a browser has marked the request as caused by a page of another site. A request for
// an image, for example, has this mark but no Origin header.
func fromOtherSite(r *http.Request) bool {
	site := strings.ToLower(r.Header.Get("Sec-Fetch-Site"))
	return site != "" && site != "same-origin" && site != "none"
}

// isLoopbackHost reports whether a Host header names this machine.
func isLoopbackHost(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.Trim(host, "[]")
	}
	address, err := netip.ParseAddr(name)
	return name == "localhost" || err == nil && address.IsLoopback()
}

func (t *Telemetry) serveMetrics(w http.ResponseWriter, r *http.Request) {
	var all metricdata.ResourceMetrics
	if t.reader == nil || t.reader.Collect(r.Context(), &all) != nil {
		http.Error(w, "the metrics cannot be collected", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(formatMetrics(&all))
}

// formatMetrics returns metrics in the text format of Prometheus, with the names that OpenTelemetry
// specifies.
func formatMetrics(all *metricdata.ResourceMetrics) []byte {
	var b bytes.Buffer
	fmt.Fprintf(
		&b, "# HELP target_info Attributes of this engine.\n# TYPE target_info gauge\ntarget_info%s 1\n",
		formatLabels(all.Resource.Attributes()),
	)
	for _, s := range all.ScopeMetrics {
		for _, m := range s.Metrics {
			formatMetric(&b, m)
		}
	}
	return b.Bytes()
}

func formatMetric(b *bytes.Buffer, m metricdata.Metrics) {
	name := prometheusName(m.Name)
	head := func(name, kind string) {
		fmt.Fprintf(b, "# HELP %s %s\n# TYPE %s %s\n", name, strings.NewReplacer("\\", `\\`, "\n", `\n`).Replace(m.Description), name, kind)
	}
	switch d := m.Data.(type) {
	case metricdata.Gauge[int64]:
		head(name, "gauge")
		formatPoints(b, name, d.DataPoints)
	case metricdata.Sum[int64]:
		if !d.IsMonotonic {
			head(name, "gauge")
			formatPoints(b, name, d.DataPoints)
			return
		}
		head(name+"_total", "counter")
		formatPoints(b, name+"_total", d.DataPoints)
	case metricdata.Histogram[float64]:
		head(name+"_seconds", "histogram")
		for _, p := range d.DataPoints {
			formatHistogram(b, name+"_seconds", p)
		}
	}
}

func formatPoints(b *bytes.Buffer, name string, all []metricdata.DataPoint[int64]) {
	for _, p := range all {
		fmt.Fprintf(b, "%s%s %d\n", name, formatLabels(p.Attributes.ToSlice()), p.Value)
	}
}

func formatHistogram(b *bytes.Buffer, name string, p metricdata.HistogramDataPoint[float64]) {
	of := p.Attributes.ToSlice()
	var sum uint64
	for i, n := range p.BucketCounts {
		sum += n
		bound := "+Inf"
		if i < len(p.Bounds) {
			bound = strconv.FormatFloat(p.Bounds[i], 'g', -1, 64)
		}
		fmt.Fprintf(b, "%s_bucket%s %d\n", name, formatLabels(append(of[:len(of):len(of)], attribute.String("le", bound))), sum)
	}
	fmt.Fprintf(
		b, "%s_sum%s %s\n%s_count%s %d\n", name, formatLabels(of), strconv.FormatFloat(p.Sum, 'g', -1, 64), name,
		formatLabels(of), p.Count,
	)
}

func formatLabels(all []attribute.KeyValue) string {
	if len(all) == 0 {
		return ""
	}
	escape := strings.NewReplacer("\\", `\\`, "\"", `\"`, "\n", `\n`)
	var each []string
	for _, a := range all {
		each = append(each, prometheusName(string(a.Key))+`="`+escape.Replace(strings.ToValidUTF8(a.Value.String(), "\ufffd"))+`"`)
	}
	return "{" + strings.Join(each, ",") + "}"
}

// prometheusName replaces the dots of a name, which Prometheus does not allow.
func prometheusName(name string) string { return strings.ReplaceAll(name, ".", "_") }
