package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// port sets a variable to a port of this machine that is free: port PORT
func port(ts *testscript.TestScript, _ bool, args []string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	_, number, _ := net.SplitHostPort(l.Addr().String())
	ts.Check(l.Close())
	ts.Setenv(args[0], number)
}

// ask is a program that sends the requests of a file to a listener, and prints the status
// and the body of each answer. Requests are set apart by lines of "###". In one, {session},
// {state} and {question} are what an earlier answer told. DRIP instead of a method sends
// the request drop by drop until the listener ends it.
func ask() {
	address := os.Args[1]
	text, err := os.ReadFile(os.Args[2])
	if err != nil {
		panic(err)
	}
	for range 200 { // until it listens
		if c, err := net.Dial("tcp", address); err == nil {
			_ = c.Close()
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	told := map[string]string{}
	for request := range strings.SplitSeq(string(text), "###\n") {
		for name, value := range told {
			request = strings.ReplaceAll(request, "{"+name+"}", value)
		}
		if rest, ok := strings.CutPrefix(request, "DRIP "); ok {
			drip(address, rest)
			continue
		}
		send(address, request, told)
	}
}

// tells are what is remembered of answers.
var tells = map[string]*regexp.Regexp{
	"state":    regexp.MustCompile(`"requestState":"([^"]+)"`),
	"question": regexp.MustCompile(`"inputRequests":\{"([^"]+)"`),
}

func send(address, request string, told map[string]string) {
	head, body, _ := strings.Cut(strings.TrimSpace(request), "\n\n")
	if body = strings.TrimSpace(body); body != "" {
		head += fmt.Sprintf("\nContent-Length: %d", len(body))
	}
	if !strings.Contains(head, "\nHost: ") {
		head += "\nHost: " + address
	}
	method, rest, _ := strings.Cut(head, "\n")
	raw := method + " HTTP/1.1\r\n" + strings.ReplaceAll(rest, "\n", "\r\n") + "\r\nAccept: application/json, text/event-stream\r\nConnection: close\r\n\r\n" + body
	c, err := net.Dial("tcp", address)
	if err != nil {
		panic(err)
	}
	defer c.Close()
	_, _ = io.WriteString(c, raw)
	response, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		fmt.Println("no answer:", err)
		return
	}
	answer, _ := io.ReadAll(response.Body)
	fmt.Printf("%s\n%s\n", response.Status, answer)
	if id := response.Header.Get("Mcp-Session-Id"); id != "" {
		told["session"] = id
	}
	for name, pattern := range tells {
		if m := pattern.FindSubmatch(answer); m != nil {
			value, _ := json.Marshal(string(m[1]))
			told[name] = strings.Trim(string(value), `"`)
		}
	}
}

func drip(address, request string) {
	c, err := net.Dial("tcp", address)
	if err != nil {
		panic(err)
	}
	defer c.Close()
	ended := make(chan string, 1)
	go func() { text, _ := io.ReadAll(c); ended <- string(text) }()
	for _, b := range []byte(strings.ReplaceAll(request, "\n", "\r\n")) {
		select {
		case text := <-ended:
			status, _, _ := strings.Cut(text, "\r\n")
			fmt.Println("ended:", status)
			return
		case <-time.After(50 * time.Millisecond):
			_, _ = c.Write([]byte{b})
		}
	}
	fmt.Println("took it all")
}

// hold opens connections to a listener and sends nothing: hold ADDRESS N. It prints how many of
// them the listener keeps, and ends them.
func hold() {
	n, err := strconv.Atoi(os.Args[2])
	if err != nil {
		panic(err)
	}
	closed := make(chan struct{}, n)
	for range n {
		c, err := net.Dial("tcp", os.Args[1])
		if err != nil {
			panic(err)
		}
		defer c.Close()
		go func() {
			_, _ = c.Read(make([]byte, 1))
			closed <- struct{}{}
		}()
	}
	time.Sleep(time.Second)
	fmt.Printf("%d stay, %d were closed\n", n-len(closed), len(closed))
}
