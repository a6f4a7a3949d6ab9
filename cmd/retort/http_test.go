package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"retort/internal/devel/testenv"
)

// firstPort and lastPort bound the ports that scripts listen on. Operating systems choose the ports of outgoing
// connections outside this range. A free port in the range therefore stays free until its script listens on it.
const firstPort, lastPort = 12000, 32000

// ports counts the ports that scripts have received. Each test process starts at a different port.
var ports atomic.Int64

// port implements the script command "port NAME". It stores the number of a free port of this machine in a variable.
func port(ts *testscript.TestScript, _ bool, args []string) {
	for range lastPort - firstPort {
		number := firstPort + (int64(os.Getpid())*97+ports.Add(1))%(lastPort-firstPort)
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", number)); err == nil {
			ts.Check(l.Close())
			ts.Setenv(args[0], strconv.FormatInt(number, 10))
			return
		}
	}
	ts.Fatalf("no port is free")
}

// ask is a program for scripts that sends the HTTP requests in a file to a listener. It prints the status and the body
// of each answer. Lines of "###" separate the requests. It replaces {session}, {state} and {question} in a request by
// values from earlier answers. It sends a request that begins with DRIP byte by byte until the listener closes its
// connection, while it already sends the requests that follow.
func ask() {
	address := os.Args[1]
	text, err := os.ReadFile(os.Args[2])
	if err != nil {
		panic(err)
	}
	testenv.Poll(func() bool { // waits until the server listens
		c, err := net.Dial("tcp", address)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
	told := map[string]string{}
	var drips sync.WaitGroup
	defer drips.Wait()
	for request := range strings.SplitSeq(string(text), "###\n") {
		for name, value := range told {
			request = strings.ReplaceAll(request, "{"+name+"}", value)
		}
		if rest, ok := strings.CutPrefix(request, "DRIP "); ok {
			drips.Go(func() { drip(address, rest) })
			continue
		}
		send(address, request, told)
	}
}

// tells maps the name of a placeholder in a request to a pattern. The pattern finds the placeholder's value in an
// earlier answer. The script program "ask" fills in these placeholders.
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
	if strings.HasPrefix(method, "GET /sse") && response.StatusCode == http.StatusOK {
		fmt.Println(response.Status) // this stream ends with the connection only
		return
	}
	answer, _ := io.ReadAll(response.Body)
	_, _ = io.Copy(io.Discard, c) // once the connection has ended, the listener no longer counts it
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

// pause is the delay before each byte of a request that is sent byte by byte. It is so long that sending a whole
// request takes far longer than the listener's read timeout.
const pause = 50 * time.Millisecond

func drip(address, request string) {
	c, err := net.Dial("tcp", address)
	if err != nil {
		panic(err)
	}
	defer c.Close()
	answer := bufio.NewReader(c)
	for _, b := range []byte(strings.ReplaceAll(request, "\n", "\r\n")) {
		_ = c.SetReadDeadline(time.Now().Add(pause))
		if _, err := answer.Peek(1); !errors.Is(err, os.ErrDeadlineExceeded) {
			status, _ := answer.ReadString('\n')
			fmt.Println("ended:", strings.TrimSpace(status))
			return
		}
		_, _ = c.Write([]byte{b})
	}
	fmt.Println("took it all")
}

// hold is a program for scripts, started as "hold ADDRESS N CLOSED". It opens N connections to a listener and waits
// until the listener has closed CLOSED of them. It then sends a request on every connection and prints how many
// requests were answered.
func hold() {
	n, err := strconv.Atoi(os.Args[2])
	if err != nil {
		panic(err)
	}
	closed, err := strconv.Atoi(os.Args[3])
	if err != nil {
		panic(err)
	}
	var connections []net.Conn
	heard := make(chan bool, n) // one value per connection: whether it was answered
	for range n {
		c, err := net.Dial("tcp", os.Args[1])
		if err != nil {
			panic(err)
		}
		connections = append(connections, c)
		_ = c.SetDeadline(time.Now().Add(testenv.Patience))
		go func() {
			read, _ := c.Read(make([]byte, 1))
			heard <- read > 0
		}()
	}
	stay := 0
	for i := range n {
		if i == closed {
			for _, c := range connections {
				_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
			}
		}
		if <-heard {
			stay++
		}
	}
	for _, c := range connections {
		_ = c.Close()
	}
	if !testenv.Poll(func() bool { return answers(os.Args[1]) }) {
		panic("the server still counts connections that are closed")
	}
	fmt.Printf("%d stay, %d were closed\n", stay, n-stay)
}

// answers reports whether a server answers a request over a new connection.
func answers(address string) bool {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return false
	}
	defer c.Close()
	_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
	answer, err := io.ReadAll(c)
	return err == nil && len(answer) > 0
}
