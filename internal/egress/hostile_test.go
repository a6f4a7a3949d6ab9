package egress

import (
	"context"
	"io"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"retort/internal/core"
	"retort/internal/egress/egresstest"
)

// hostile lists URLs that a program must not reach. For each of them, a request must fail with a policy error, dial
// nothing and be reported as refused.
var hostile = []string{
	// hosts that nobody has allowed
	"https://evil.test/", "https://example.com/", "https://api.example.com.evil.test/", "https://evilapi.example.com/", "https://xapi.example.com/", "https://sub.example.com/", "https://a.api.example.com/",
	"https://sub.example.com.evil.test/", "https://banned.example.com/", "https://localhost/", "http://localhost:7337/mcp", "https://metadata.google.internal/computeMetadata/v1/", "https://host.docker.internal/",
	// addresses, in every spelling that some reader knows
	"http://169.254.169.254/latest/meta-data/", "https://169.254.169.254/", "https://127.0.0.1/", "https://127.1/", "https://127.0.1/", "https://2130706433/", "https://0x7f000001/", "https://0x7f.0x0.0x0.0x1/",
	"https://0177.0.0.1/", "https://017700000001/", "https://0x7f.1/", "https://0/", "https://0.0.0.0/", "https://0x/", "https://00000000177.1/", "https://127.0.0.1./", "https://10.0.0.1/", "https://192.168.1.1:443/",
	"https://3232235777/", "https://93.184.215.14/", "https://[::1]/", "https://[::]/", "https://[::ffff:127.0.0.1]/", "https://[::ffff:7f00:1]/", "https://[0:0:0:0:0:ffff:169.254.169.254]/", "https://[fe80::1%25eth0]/",
	"https://[64:ff9b::7f00:1]/", "https://[2002:7f00:1::]/", "https://[fd00:ec2::254]/", "https://[::127.0.0.1]/", "https://[v1.x]/", "https://[]/", "https://[::1", "https://::1/",
	"https://１２７.0.0.1/", "https://①②⑦.0.0.1/", "https://127。0。0。1/", "https://⑯⑨.254.169.254/", "https://0x7f。1/",
	// other readers see another host
	"https://api.example.com@evil.test/", "https://evil.test@api.example.com/", "https://api.example.com:443@evil.test/", "https://user:pass@api.example.com/", "https://api.example.com%40evil.test/", "https://api.example.com%2eevil.test/",
	"https://evil.test\\@api.example.com/", "https://api.example.com\\.evil.test/", "https:\\\\api.example.com/", "https://api.example.com\x00.evil.test/", "https://api.example.com\r\nHost: evil.test\r\n/", "https://api.example.com\n/", "https://api.example.com\t.evil.test/",
	"https://api.example.com /", " https://api.example.com/", "https://api.example.com/\r\nX: y", "https://api.example.com/ HTTP/1.1\r\nHost: evil.test\r\n\r\nGET /", "https:api.example.com/", "https:///api.example.com/", "//api.example.com/", "/api", "", "api.example.com",
	"https://evil.test:443#@api.example.com/", "https://evil.test#api.example.com", "https://evil.test?api.example.com", "https://%61pi.example.com/", "https://api.example.com:/", "https://api..example.com/", "https://.api.example.com/", "https://api.example.com../",
	"https://-api.example.com/", "https://api.exam\u00adple.com.evil.test/", "https://аpi.example.com/", "https://api\u2024example.com/", "https://xn--api-.example.com/", "https://xn--a.example.com/", "https://api.example.com\u200b.evil.test/", "https://api.example.com\ufffd/",
	"https://" + strings.Repeat("a", 64) + ".sub.example.com/", "https://" + strings.Repeat("a.", 130) + "sub.example.com/", "https://*.sub.example.com/", "https://_./",
	// other ports and protocols
	"https://api.example.com:22/", "https://api.example.com:80/", "https://api.example.com:8443/", "http://api.example.com/", "http://api.example.com:443/", "https://plain.example.com/", "https://api.example.com:0/", "https://api.example.com:65536/",
	"https://api.example.com:443443/", "https://api.example.com:0443/", "https://api.example.com:+443/", "https://api.example.com:-1/", "https://raw.example.com:5432/", "ftp://api.example.com/", "file:///etc/passwd", "gopher://api.example.com:25/", "data:text/plain,x", "javascript:1",
	"ws://api.example.com/", "wss://api.example.com/", "unix:///var/run/docker.sock", "dict://api.example.com:11211/", "ldap://api.example.com/", "https+unix://api.example.com/",
}

// leading holds lists of addresses, each with a description as its key. Each list contains at least one forbidden
// address. The tests make the name of an allowed host resolve to each list.
var leading = map[string][]string{
	"private": {"10.0.0.1"}, "private 2": {"172.16.0.1"}, "private 3": {"192.168.0.1"}, "loopback": {"127.0.0.1"}, "loopback 2": {"127.8.8.8"}, "metadata": {"169.254.169.254"}, "metadata of Azure": {"168.63.129.16"}, "metadata of Alibaba": {"100.100.100.200"},
	"carrier": {"100.64.0.1"}, "zero": {"0.0.0.0"}, "broadcast": {"255.255.255.255"}, "multicast": {"224.0.0.1"}, "reserved": {"240.0.0.1"}, "documentation": {"192.0.2.1"}, "documentation 2": {"198.51.100.1"}, "documentation 3": {"203.0.113.1"},
	"benchmark": {"198.18.0.1"}, "protocols": {"192.0.0.1"}, "relay": {"192.88.99.1"}, "one of several": {"93.184.215.14", "10.0.0.1"}, "the last of several": {"93.184.215.14", "93.184.215.14", "::1"},
	"loopback 6": {"::1"}, "unspecified 6": {"::"}, "mapped": {"::ffff:10.0.0.1"}, "mapped loopback": {"::ffff:127.0.0.1"}, "compatible": {"::7f00:1"}, "link-local 6": {"fe80::1"}, "link-local with a zone": {"fe80::1%eth0"}, "unique local": {"fd00::1"}, "metadata 6": {"fd00:ec2::254"},
	"site-local": {"fec0::1"}, "multicast 6": {"ff02::1"}, "6to4": {"2002:7f00:1::"}, "Teredo": {"2001::1"}, "NAT64": {"64:ff9b::7f00:1"}, "NAT64 local": {"64:ff9b:1::1"}, "documentation 6": {"2001:db8::1"}, "documentation 6 new": {"3fff::1"}, "ORCHID": {"2001:20::1"}, "benchmark 6": {"2001:2::1"}, "discard 6": {"100::1"}, "not given out": {"4000::1"},
	"blacklisted range": {"93.184.216.1"}, "this machine": {"93.184.217.1"},
}

func addrs(t *testing.T, list []string) (found []netip.Addr) {
	for _, a := range list {
		addr, err := netip.ParseAddr(a)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, addr)
	}
	return found
}

// typed reports whether an error is a *core.Error of kind policy that has a message.
func typed(e *core.Error) bool { return e != nil && e.Kind == core.KindPolicy && e.Message != "" }

func TestHostile(t *testing.T) {
	for _, target := range hostile {
		t.Run("fetch "+target, func(t *testing.T) {
			w := newWorld(t, nil)
			if _, e := w.FetchURL(context.Background(), Request{URL: target}); !typed(e) || w.refusedNotes() != 1 {
				t.Errorf("%v, %d entries", e, w.refusedNotes())
			}
			if d := w.Dialled(); d != nil || w.Resolved() != nil {
				t.Errorf("it asked for %v %v", w.Resolved(), d)
			}
		})
		t.Run("redirect "+target, func(t *testing.T) {
			w := newWorld(t, nil)
			u, _ := url.Parse("https://api.example.com/")
			if next, err := u.Parse(target); err == nil && next.Host == "api.example.com" && next.Scheme == "https" && next.User == nil {
				return // it is a reference within the origin
			}
			if !isHeaderValue(target) {
				return // no server could send it
			}
			_, e := w.FetchURL(context.Background(), Request{URL: "https://api.example.com/to?u=" + url.QueryEscape(target)})
			if target == "" {
				return // there is no redirect
			}
			if !typed(e) || w.refusedNotes() != 1 {
				t.Errorf("%v, %d entries", e, w.refusedNotes())
			}
			if d := w.Dialled(); len(d) != 1 || d[0] != egresstest.Public.String()+":443" {
				t.Errorf("it dialled %v", d)
			}
		})
		t.Run("proxy "+target, func(t *testing.T) {
			w := newWorld(t, nil)
			answer := w.proxy(t, "GET "+target+" HTTP/1.1\r\n\r\n")
			if !strings.HasPrefix(answer, "HTTP/1.1 403 ") || w.refusedNotes() != 1 || w.Dialled() != nil {
				t.Errorf("%q, %d entries, dialled %v", answer, w.refusedNotes(), w.Dialled())
			}
		})
	}
}

func TestWhereNamesLead(t *testing.T) {
	for name, list := range leading {
		for _, u := range []string{"https://lead.sub.example.com/", "http://plain2.example.com/"} {
			t.Run(name, func(t *testing.T) {
				w := newWorld(t, func(o *Options, _ *ExecutionHooks) {
					o.Allow = append(o.Allow, Rule{Domain: "plain2.example.com", Protocols: []string{http1}})
				})
				parsed, _ := url.Parse(u)
				w.Answer(parsed.Host, addrs(t, list)...)
				if _, e := w.FetchURL(context.Background(), Request{URL: u}); !typed(e) || w.refusedNotes() != 1 {
					t.Errorf("%v, %d entries", e, w.refusedNotes())
				}
				answer := w.proxy(t, "CONNECT lead.sub.example.com:443 HTTP/1.1\r\n\r\n")
				if parsed.Scheme == http1 {
					answer = w.proxy(t, "GET "+u+" HTTP/1.1\r\n\r\n")
				}
				if !strings.HasPrefix(answer, "HTTP/1.1 403 ") || w.refusedNotes() != 2 || w.Dialled() != nil {
					t.Errorf("%q, %d entries, dialled %v", answer, w.refusedNotes(), w.Dialled())
				}
			})
		}
	}
}

// TestRebinding checks that the address that was checked is the one that is dialled, even if the name resolves to
// another address the next time.
func TestRebinding(t *testing.T) {
	w := newWorld(t, nil)
	w.Answer("re.sub.example.com", egresstest.Public)
	w.Answer("re.sub.example.com", netip.MustParseAddr("127.0.0.1"))
	before := len(w.Resolved())
	_, _ = w.FetchURL(context.Background(), Request{URL: "https://re.sub.example.com/"}) // its certificate is for others
	if n := len(w.Resolved()) - before; n != 1 {
		t.Errorf("it was resolved %d times", n)
	}
	for range 3 {
		if _, e := w.FetchURL(context.Background(), Request{URL: "https://re.sub.example.com/"}); !typed(e) {
			t.Error(e)
		}
	}
	if s := w.Strangers(); s != nil {
		t.Error(s)
	}
}

// tricks returns raw requests with which a program could try to deceive its proxy, by description.
func tricks(t *testing.T) map[string]string {
	connect := "CONNECT api.example.com:443 HTTP/1.1\r\nHost: api.example.com:443\r\n\r\n"
	return map[string]string{
		"another host inside":                        connect + string(helloOf(t, "evil.test")),
		"an address inside":                          connect + string(helloOf(t, "127.0.0.1")),
		"no host inside":                             connect + string(helloOf(t, "")),
		"mail inside":                                connect + string(helloOf(t, "api.example.com", "imap")),
		"acme inside":                                connect + string(helloOf(t, "api.example.com", "acme-tls/1")),
		"HTTP inside":                                connect + "GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n",
		"HTTP/2 inside":                              connect + "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"SSH inside":                                 connect + "SSH-2.0-x\r\n",
		"a broken hello":                             connect + "\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00",
		"an old hello":                               connect + "\x80\x2e\x01\x00\x02",
		"nothing inside":                             connect,
		"tunnel to another port":                     "CONNECT api.example.com:22 HTTP/1.1\r\n\r\n",
		"tunnel to mail":                             "CONNECT api.example.com:25 HTTP/1.1\r\n\r\n",
		"tunnel to DNS":                              "CONNECT api.example.com:53 HTTP/1.1\r\n\r\n",
		"tunnel to another host":                     "CONNECT evil.test:443 HTTP/1.1\r\n\r\n",
		"tunnel to an address":                       "CONNECT 93.184.215.14:443 HTTP/1.1\r\n\r\n",
		"tunnel to loopback":                         "CONNECT 127.0.0.1:7337 HTTP/1.1\r\n\r\n",
		"tunnel to localhost":                        "CONNECT localhost:443 HTTP/1.1\r\n\r\n",
		"tunnel to IPv6":                             "CONNECT [::1]:443 HTTP/1.1\r\n\r\n",
		"tunnel to metadata":                         "CONNECT 169.254.169.254:80 HTTP/1.1\r\n\r\n",
		"tunnel without a port":                      "CONNECT api.example.com HTTP/1.1\r\n\r\n",
		"tunnel with a user":                         "CONNECT user@api.example.com:443 HTTP/1.1\r\n\r\n",
		"tunnel with an address of the web":          "CONNECT https://api.example.com/ HTTP/1.1\r\n\r\n",
		"tunnel with a path":                         "CONNECT api.example.com:443/x HTTP/1.1\r\n\r\n",
		"tunnel with NUL":                            "CONNECT api.example.com\x00.evil.test:443 HTTP/1.1\r\n\r\n",
		"tunnel with another Host":                   "CONNECT api.example.com:443 HTTP/1.1\r\nHost: evil.test:443\r\n\r\n",
		"tunnel with a body":                         "CONNECT api.example.com:443 HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello",
		"tunnel to a host with a key":                "CONNECT key.example.com:443 HTTP/1.1\r\n\r\n",
		"tunnel to a host of http":                   "CONNECT plain.example.com:443 HTTP/1.1\r\n\r\n",
		"another host in a tunnel of http":           "CONNECT plain.example.com:80 HTTP/1.1\r\n\r\nGET http://evil.test/ HTTP/1.1\r\n\r\n",
		"another Host in a tunnel of http":           "CONNECT plain.example.com:80 HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\nHost: evil.test\r\n\r\n",
		"a tunnel in a tunnel":                       "CONNECT plain.example.com:80 HTTP/1.1\r\n\r\nCONNECT plain.example.com:80 HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n",
		"another Host":                               "GET http://plain.example.com/ HTTP/1.1\r\nHost: evil.test\r\n\r\n",
		"two Hosts":                                  "GET http://plain.example.com/ HTTP/1.1\r\nHost: plain.example.com\r\nHost: evil.test\r\n\r\n",
		"no whole address":                           "GET / HTTP/1.1\r\nHost: plain.example.com\r\n\r\n",
		"https without a tunnel":                     "GET https://api.example.com/ HTTP/1.1\r\n\r\n",
		"both a content length and chunked encoding": "POST http://plain.example.com/ HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
		"a length and chunks":                        "POST http://plain.example.com/ HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET http://evil.test/ HTTP/1.1\r\n\r\n",
		"a strange encoding":                         "POST http://plain.example.com/ HTTP/1.1\r\nTransfer-Encoding: xchunked\r\n\r\n",
		"two encodings":                              "POST http://plain.example.com/ HTTP/1.1\r\nTransfer-Encoding: chunked, identity\r\n\r\n",
		"a negative length":                          "POST http://plain.example.com/ HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
		"a length with a sign":                       "POST http://plain.example.com/ HTTP/1.1\r\nContent-Length: +5\r\n\r\nhello",
		"a folded header":                            "GET http://plain.example.com/ HTTP/1.1\r\nX: a\r\n b\r\n\r\n",
		"a space before the colon":                   "GET http://plain.example.com/ HTTP/1.1\r\nTransfer-Encoding : chunked\r\n\r\n",
		"a bare newline":                             "GET http://plain.example.com/ HTTP/1.1\r\nX: a\nHost: evil.test\r\n\r\n",
		"a bare return":                              "GET http://plain.example.com/ HTTP/1.1\r\nX: a\rHost: evil.test\r\n\r\n",
		"newlines only":                              "GET http://plain.example.com/ HTTP/1.1\nHost: plain.example.com\n\n",
		"NUL in a header":                            "GET http://plain.example.com/ HTTP/1.1\r\nX: a\x00b\r\n\r\n",
		"HTTP/0.9":                                   "GET http://plain.example.com/\r\n\r\n",
		"HTTP/2 in clear":                            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00",
		"HTTP/2 by upgrade":                          "GET http://plain.example.com/ HTTP/1.1\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n",
		"a web socket":                               "GET http://plain.example.com/ HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
		"three spaces":                               "GET  http://plain.example.com/  HTTP/1.1\r\n\r\n",
		"a tab":                                      "GET\thttp://plain.example.com/\tHTTP/1.1\r\n\r\n",
		"a small method":                             "get http://plain.example.com/ HTTP/1.1\r\n\r\n",
		"SOCKS 5":                                    "\x05\x01\x00",
		"SOCKS 4":                                    "\x04\x01\x01\xbb\x7f\x00\x00\x01\x00",
		"TLS to the proxy":                           string(helloOf(t, "api.example.com")),
		"DNS":                                        "\x00\x1d\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x03api\x07example\x03com\x00\x00\x01\x00\x01",
		"QUIC":                                       "\xc0\x00\x00\x00\x01\x08\x00\x00\x00\x00\x00\x00\x00\x00",
		"a head without an end":                      "GET http://plain.example.com/ HTTP/1.1\r\nX: " + strings.Repeat("a", 70<<10),
	}
}

func TestTricks(t *testing.T) {
	for name, raw := range tricks(t) {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			answer := w.proxy(t, raw)
			inside := strings.HasPrefix(raw, "CONNECT api.example.com:443 HTTP/1.1\r\nHost: api.example.com:443\r\n\r\n")
			if !inside {
				answer = strings.TrimPrefix(answer, establishedReply)
			}
			if refusal := strings.HasPrefix(answer, "HTTP/1.1 403 ") || strings.HasPrefix(answer, "HTTP/1.1 429 "); !inside && !refusal || inside && answer != establishedReply {
				t.Errorf("answered %q", answer)
			}
			if w.refusedNotes() != 1 {
				t.Errorf("%d entries: %v", w.refusedNotes(), w.notes)
			}
			if len(w.seen) > 0 || w.Strangers() != nil || !inside && w.Dialled() != nil {
				t.Errorf("%d requests arrived, dialled %v", len(w.seen), w.Dialled())
			}
		})
	}
}

// TestSecondRequest checks that the proxy decides about each request on a connection separately. After an allowed
// request, it must still refuse a forbidden one.
func TestSecondRequest(t *testing.T) {
	w := newWorld(t, nil)
	answer := w.proxy(t, "GET http://plain.example.com/a HTTP/1.1\r\n\r\nGET http://evil.test/ HTTP/1.1\r\n\r\n")
	if !strings.HasPrefix(answer, "HTTP/1.1 200") || !strings.Contains(answer, "HTTP/1.1 403 ") || len(w.seen) != 1 || w.refusedNotes() != 1 {
		t.Error(answer, w.notes)
	}
	answer = w.proxy(t, "POST http://plain.example.com/a HTTP/1.1\r\nContent-Length: 4\r\n\r\nbodyGET http://evil.test/ HTTP/1.1\r\n\r\n")
	if strings.Count(answer, "HTTP/1.1") != 1 || len(w.seen) != 2 {
		t.Error(answer)
	}
}

// TestRedirectWithBody checks that a redirect to another origin is refused if it would send the request's body there.
func TestRedirectWithBody(t *testing.T) {
	w := newWorld(t, nil)
	body := "client_secret=x"
	_, e := w.FetchURL(context.Background(), Request{Method: "POST", Text: &body, URL: "https://api.example.com/to?code=307&u=" + url.QueryEscape("https://other.example.com/")})
	if !typed(e) || len(w.seen) != 1 {
		t.Error(e, len(w.seen))
	}
}

// TestBadRequests checks that fetch refuses forbidden methods and malformed headers without dialling.
func TestBadRequests(t *testing.T) {
	for _, r := range []Request{
		{Method: "CONNECT"}, {Method: "TRACE"}, {Method: "track"}, {Method: "GET / HTTP/1.1\r\nX:"}, {Method: "G\x00T"},
		{Headers: [][2]string{{"X", "a\r\nY: b"}}}, {Headers: [][2]string{{"X\r\nY", "b"}}}, {Headers: [][2]string{{"", "b"}}}, {Headers: [][2]string{{"X", "\x00"}}},
	} {
		w := newWorld(t, nil)
		r.URL = "https://api.example.com/"
		if _, e := w.FetchURL(context.Background(), r); !typed(e) || w.refusedNotes() != 1 || w.Dialled() != nil {
			t.Errorf("%+v: %v", r, e)
		}
	}
}

// TestGone checks that an allowed request without a response fails with an error that names the cause, such as a
// missing server or a wrong certificate. The error must not be a policy error.
func TestGone(t *testing.T) {
	w := newWorld(t, nil)
	for u, kind := range map[string]core.Kind{"https://nowhere.sub.example.com/": core.KindUpstreamGone, "https://down.example.com:9/": core.KindUpstreamGone} {
		if _, e := w.FetchURL(context.Background(), Request{URL: u}); e == nil || e.Kind != kind {
			t.Error(u, e)
		}
	}
	w.Answer("wrong.sub.example.com", egresstest.Public)
	if _, e := w.FetchURL(context.Background(), Request{URL: "https://wrong.sub.example.com/"}); e == nil || !strings.Contains(e.Message, "certificate") {
		t.Error(e)
	}
	if answer := w.proxy(t, "CONNECT down.example.com:9 HTTP/1.1\r\n\r\n"); !strings.HasPrefix(answer, "HTTP/1.1 502 ") {
		t.Error(answer)
	}
}

// TestMany checks that closing a session ends all of its connections, including those that wait for a free slot.
func TestMany(t *testing.T) {
	w := newWorld(t, nil)
	for range 3 * maxOpenRequests {
		near, far := tcpPair(t)
		go w.ServeConn(context.Background(), far)
		t.Cleanup(func() { _ = near.Close() })
		_, _ = io.WriteString(near, "GET http://plain.example.com/slow HTTP/1.1\r\n\r\n")
	}
	w.Session.Close()
}
