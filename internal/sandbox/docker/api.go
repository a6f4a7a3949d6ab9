package docker

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	// newestAPIVersion is the newest version of Docker's Engine API that this package uses.
	newestAPIVersion = "1.51"
	// answerTimeout bounds the duration of requests to which the daemon normally responds immediately.
	answerTimeout = 15 * time.Second
	// maxAnswerBytes bounds the number of bytes that are read from a response.
	maxAnswerBytes = 16 << 20
)

// engineAPI is a client of the Engine API, the HTTP API of the Docker and Podman daemons. If the daemon responded
// with an error status, the methods return an *apiFailure.
type engineAPI struct {
	address daemonAddress
	version string // version of the Engine API in requests, such as "1.41"; empty means the daemon's newest
	client  *http.Client
}

func newAPI(a daemonAddress) *engineAPI {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return a.dialDaemon(ctx) }
	return &engineAPI{
		address: a,
		client:  &http.Client{Transport: &http.Transport{DialContext: dial, MaxIdleConnsPerHost: 8, IdleConnTimeout: time.Minute, Proxy: nil}},
	}
}

// apiFailure represents a response of the daemon with an error status.
type apiFailure struct {
	status  int
	message string
}

func (f *apiFailure) Error() string { return f.message }

// isAnswered reports whether err is a response of the daemon with one of the given statuses.
func isAnswered(err error, status ...int) bool {
	var f *apiFailure
	if !errors.As(err, &f) {
		return false
	}
	for _, s := range status {
		if f.status == s {
			return true
		}
	}
	return false
}

func (a *engineAPI) newRequest(ctx context.Context, method, path string, query url.Values, body io.Reader) (*http.Request, error) {
	u := url.URL{Scheme: "http", Host: "docker", Path: path, RawQuery: query.Encode()}
	if a.version != "" {
		u.Path = "/v" + a.version + path
	}
	return http.NewRequestWithContext(ctx, method, u.String(), body)
}

// openResponse sends a request and returns a successful response. The caller must close its body.
func (a *engineAPI) openResponse(
	ctx context.Context, method, path string, query url.Values, kind string, body io.Reader,
) (*http.Response, error) {
	r, err := a.newRequest(ctx, method, path, query, body)
	if err != nil {
		return nil, err
	}
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	response, err := a.client.Do(r)
	if err != nil {
		return nil, withoutAddress(err)
	}
	if response.StatusCode >= 300 {
		defer response.Body.Close()
		return nil, refusalError(response)
	}
	return response, nil
}

// withoutAddress removes the request's URL from the error message, because the URL does not help users.
func withoutAddress(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

func refusalError(r *http.Response) error {
	data, _ := io.ReadAll(io.LimitReader(r.Body, 64<<10))
	var said struct{ Message, Cause string }
	if json.Unmarshal(data, &said) != nil || said.Message == "" {
		said.Message = strings.TrimSpace(string(data[:min(len(data), 300)]))
	}
	if said.Message == "" {
		said.Message = r.Status
	}
	return &apiFailure{r.StatusCode, strings.ToValidUTF8(said.Message, "�")}
}

// callJSON sends the value in as JSON, unless it is nil, and decodes the response into the variable out.
func (a *engineAPI) callJSON(ctx context.Context, method, path string, query url.Values, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	return a.longCall(ctx, method, path, query, in, out)
}

// longCall works like callJSON, but without the usual timeout: only ctx limits its duration.
func (a *engineAPI) longCall(ctx context.Context, method, path string, query url.Values, in, out any) error {
	var body io.Reader
	kind := ""
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body, kind = bytes.NewReader(data), "application/json"
	}
	response, err := a.openResponse(ctx, method, path, query, kind, body)
	if err != nil {
		return err
	}
	return decodeResponse(response, out)
}

// decodeResponse decodes the response into the variable out, unless out is nil.
func decodeResponse(response *http.Response, out any) error {
	defer response.Body.Close()
	data, err := io.ReadAll(io.LimitReader(response.Body, maxAnswerBytes))
	if err != nil || out == nil {
		return err
	}
	if err := json.Unmarshal(data, out); err != nil {
		return fmt.Errorf("the answer is invalid: %w", err)
	}
	return nil
}

// uploadTar sends a tar archive and reads the stream of messages in the response. It returns an error if one of the
// messages is an error.
func (a *engineAPI) uploadTar(ctx context.Context, method, path string, query url.Values, tar io.Reader) error {
	response, err := a.openResponse(ctx, method, path, query, "application/x-tar", tar)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	lines := json.NewDecoder(io.LimitReader(response.Body, maxAnswerBytes))
	for {
		var said struct{ Error string }
		switch err := lines.Decode(&said); {
		case err == io.EOF:
			return nil
		case err != nil:
			return fmt.Errorf("the answer is invalid: %w", err)
		case said.Error != "":
			return &apiFailure{http.StatusInternalServerError, said.Error}
		}
	}
}

// attachStreams opens the standard streams of a container. Data written to the connection goes to the container's
// input. demuxStreams splits the data read from it.
func (a *engineAPI) attachStreams(ctx context.Context, id string) (net.Conn, *bufio.Reader, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	conn, err := a.address.dialDaemon(ctx)
	if err != nil {
		return nil, nil, err
	}
	in, err := a.hijackConn(ctx, conn, id)
	if err != nil {
		_ = conn.Close()
		return nil, nil, err
	}
	return conn, in, nil
}

func (a *engineAPI) hijackConn(ctx context.Context, conn net.Conn, id string) (*bufio.Reader, error) {
	r, err := a.newRequest(
		ctx, http.MethodPost, "/containers/"+id+"/attach",
		url.Values{"stream": {"1"}, "stdin": {"1"}, "stdout": {"1"}, "stderr": {"1"}}, nil,
	)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Connection", "Upgrade")
	r.Header.Set("Upgrade", "tcp")
	release := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer release()
	if err := r.Write(conn); err != nil {
		return nil, err
	}
	in := bufio.NewReaderSize(conn, 64<<10)
	response, err := http.ReadResponse(in, r)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusSwitchingProtocols && response.StatusCode != http.StatusOK {
		defer response.Body.Close()
		return nil, refusalError(response)
	}
	if !release() {
		return nil, ctx.Err()
	}
	return in, nil
}
