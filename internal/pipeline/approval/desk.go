package approval

import (
	"bufio"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"retort/internal/core"
)

// A desk is a socket below a directory that only its owner can enter. Each
// connection is one question and one answer, a line of JSON each.

type deskRequest struct {
	Decide *deskDecision `json:"decide,omitempty"` // nil lists what waits
}

type deskDecision struct {
	ID     string              `json:"id"`
	Digest string              `json:"digest"`
	Answer core.ApprovalAnswer `json:"answer"`
}

type deskAnswer struct {
	Waiting []core.Approval `json:"waiting,omitempty"`
	Error   *core.Error     `json:"error,omitempty"`
}

// Bounds on a connection to the approval socket: its duration, the bytes of the request and of the answer, and the
// number of connections served at once.
const (
	deskPatience = 10 * time.Second
	maxAsked     = 64 << 10
	maxAnswered  = 256 << 20
	maxVisitors  = 16
)

type approvalSocket struct {
	listener *net.UnixListener
	place    *socketPlace
	table    *ApprovalTable
	seats    chan struct{}
	visitors sync.WaitGroup
}

// OpenDesk opens a socket in dir through which the person at this machine can read and answer the questions of t. It
// refuses processes of other users. It also refuses every process that an engine has started, such as an MCP server.
// An approval is accepted only from a process in the foreground of a terminal.
func OpenDesk(dir string, t *ApprovalTable) (io.Closer, error) {
	if err := canTell(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return nil, err
	}
	RemoveStaleSockets(dir)
	at, err := placeIn(dir, fmt.Sprintf("%d-%s.sock", os.Getpid(), strings.ToLower(rand.Text()[:6])))
	if err != nil {
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: at.socketAddress(), Net: "unix"})
	if err != nil {
		at.close()
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	d := &approvalSocket{listener: l, place: at, table: t, seats: make(chan struct{}, maxVisitors)}
	if err := os.Chmod(at.path, 0o600); err != nil {
		_ = d.Close()
		return nil, err
	}
	d.visitors.Go(d.serveConnections)
	return d, nil
}

// Close stops serving and removes the socket.
func (d *approvalSocket) Close() error {
	err := errors.Join(d.listener.Close(), os.Remove(d.place.path))
	d.visitors.Wait()
	d.place.close()
	return err
}

func (d *approvalSocket) serveConnections() {
	for {
		c, err := d.listener.AcceptUnix()
		if err != nil {
			return
		}
		d.seats <- struct{}{}
		d.visitors.Go(func() {
			defer func() { <-d.seats }()
			defer c.Close()
			d.handleConnection(c)
		})
	}
}

func (d *approvalSocket) handleConnection(c *net.UnixConn) {
	_ = c.SetDeadline(time.Now().Add(deskPatience))
	who, refused := askerAt(c)
	if refused == nil {
		defer who.Close()
	}
	// A peer that is refused reads why only after all that it has written was read.
	line, err := bufio.NewReader(io.LimitReader(c, maxAsked)).ReadBytes('\n')
	var asked deskRequest
	answer := deskAnswer{}
	switch {
	case refused != nil:
		answer.Error = core.Errorf(core.KindPolicy, "approval.desk", "%w", refused)
	case err != nil || json.Unmarshal(line, &asked) != nil:
		answer.Error = core.Errorf(core.KindInvalidArguments, "approval.desk", "the request cannot be read")
	default:
		answer = d.answerRequest(who, asked)
	}
	_ = json.NewEncoder(c).Encode(answer)
}

// answerRequest handles one request: it lists the waiting questions or passes on an answer. It checks that an
// approval comes from a terminal, because programs other than the retort command can connect.
func (d *approvalSocket) answerRequest(who connectedProcess, asked deskRequest) deskAnswer {
	if asked.Decide == nil {
		return deskAnswer{Waiting: core.GroupAlike(d.table.ListWaiting(""))}
	}
	if asked.Decide.Answer.Approve {
		if err := who.CheckTerminal(); err != nil {
			return deskAnswer{Error: core.Errorf(core.KindPolicy, "approval.desk", "%w", err).
				WithHint("run it in a terminal yourself: retort approvals approve %s", asked.Decide.ID)}
		}
	}
	asked.Decide.Answer.By = "command line"
	return deskAnswer{Error: d.table.AnswerApproval(asked.Decide.ID, asked.Decide.Digest, asked.Decide.Answer)}
}

// RemoveStaleSockets removes sockets in dir on which no engine listens any more, and returns how many it removed.
func RemoveStaleSockets(dir string) (removed int) {
	for _, name := range listSockets(dir) {
		if c, err := dialSocket(dir, name); err == nil {
			_ = c.Close()
		} else if isRefused(err) {
			if os.Remove(filepath.Join(dir, name)) == nil {
				removed++
			}
		}
	}
	return removed
}

func listSockets(dir string) []string {
	paths, _ := filepath.Glob(filepath.Join(dir, "*.sock"))
	for i, p := range paths {
		paths[i] = filepath.Base(p)
	}
	return paths
}

func dialSocket(dir, name string) (net.Conn, error) {
	at, err := placeIn(dir, name)
	if err != nil {
		return nil, err
	}
	defer at.close()
	return net.DialTimeout("unix", at.socketAddress(), deskPatience)
}

// FoundApproval holds a waiting question and the socket at which it was found.
type FoundApproval struct {
	core.Approval
	dir, name string
}

// FindWaiting asks the engines whose sockets are in dir, and returns the questions that wait in them.
func FindWaiting(dir string) ([]FoundApproval, error) {
	found := []FoundApproval{}
	var errs []error
	for _, name := range listSockets(dir) {
		answer, err := requestSocket(dir, name, deskRequest{})
		if err != nil {
			if !isRefused(err) {
				errs = append(errs, err)
			}
			continue
		}
		for _, a := range answer.Waiting {
			found = append(found, FoundApproval{a, dir, name})
		}
	}
	return found, errors.Join(errs...)
}

// SendAnswer sends an answer to the socket at which the question was found.
func (f FoundApproval) SendAnswer(a core.ApprovalAnswer) error {
	a.Also = f.Same
	_, err := requestSocket(f.dir, f.name, deskRequest{Decide: &deskDecision{f.ID, f.Digest, a}})
	return err
}

func requestSocket(dir, name string, asked deskRequest) (deskAnswer, error) {
	c, err := dialSocket(dir, name)
	if err != nil {
		return deskAnswer{}, err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(deskPatience))
	var answer deskAnswer
	if err := json.NewEncoder(c).Encode(asked); err != nil {
		return answer, err
	}
	if err := json.NewDecoder(io.LimitReader(c, maxAnswered)).Decode(&answer); err != nil {
		return answer, err
	}
	if answer.Error != nil {
		return answer, answer.Error
	}
	return answer, nil
}
