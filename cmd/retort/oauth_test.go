package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"retort/internal/devel/testenv"
	"retort/internal/mcp/client/oauth/oauthtest"
)

// oauthServer is an MCP server for scripts that requires a login, started as "oauthserver [FLAG...]". It writes
// .mcp.json, and executes the command in the file "do". The commands "expire" and "end" invalidate tokens, "agree"
// confirms logins with a code, and "stop" ends the server. The file "given" lists all secrets that the server has
// issued.
func oauthServer() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	rules := oauthtest.Rules{Rotates: true}
	for _, flag := range os.Args[1:] {
		if flag == "hostile" {
			rules.Change = func(doc string, m map[string]any) {
				if doc == "resource" {
					m["authorization_servers"] = []string{"https://169.254.169.254/"}
				}
			}
		}
	}
	s, err := oauthtest.Start(rules)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	_ = os.WriteFile(".mcp.json.new", []byte(`{"mcpServers": {"vault": {"url": "`+s.URL+`"}}}`), 0o600)
	_ = os.Rename(".mcp.json.new", ".mcp.json")
	last := ""
	testenv.Poll(func() bool {
		if last == "agree" {
			s.Agree()
		}
		text, _ := os.ReadFile("do")
		if what := strings.TrimSpace(string(text)); what != last {
			last = what
			obey(s, what, stop)
		}
		return ctx.Err() != nil
	})
	s.Close()
}

// obey executes the command in the file "do". It then writes all secrets that the server has issued to the file
// "given". Finally it creates a file whose name is "done-" followed by the command.
func obey(s *oauthtest.Server, what string, stop func()) {
	switch what {
	case "expire":
		s.Expire(false)
	case "end":
		s.Expire(true)
	case "stop":
		stop()
	}
	_ = os.WriteFile("given", []byte(strings.Join(s.Known(), "\n")), 0o600)
	_ = os.WriteFile("done-"+what, []byte(fmt.Sprint(s.Count("token refresh_token"))), 0o600)
}

// browse simulates a browser whose user agrees to everything, started as "browse URL". "browse -n URL" prints the
// address of the redirect instead of following it.
func browse() {
	if len(os.Args) == 3 {
		client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		resp, err := client.Get(os.Args[2])
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(resp.Header.Get("Location"))
		return
	}
	if err := oauthtest.Browse(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
