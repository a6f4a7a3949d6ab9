package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"

	"retort/internal/core"
)

// mcpClient implements a minimal MCP client. It sends one request at a time to a child process over standard input
// and output.
type mcpClient struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
	id  int

	instructions string // from the server's response to initialize
}

func startClient(ctx context.Context, name string, args ...string) (*mcpClient, error) {
	c := &mcpClient{cmd: exec.CommandContext(ctx, name, args...)}
	var err error
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.out = bufio.NewReaderSize(out, 1<<20)
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	result, err := c.sendRequest("initialize", map[string]any{
		"protocolVersion": "2025-11-25", "capabilities": map[string]any{}, "clientInfo": map[string]string{"name": "bench", "version": "1"},
	})
	var server struct {
		Instructions string `json:"instructions"`
	}
	if err == nil {
		err = json.Unmarshal(result, &server)
	}
	c.instructions = server.Instructions
	if err == nil {
		_, err = io.WriteString(c.in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n")
	}
	if err != nil {
		c.closeClient()
		return nil, err
	}
	return c, nil
}

// closeClient closes the input of the process, which ends it.
func (c *mcpClient) closeClient() {
	_ = c.in.Close()
	_ = c.cmd.Wait()
}

func (c *mcpClient) sendRequest(method string, params any) (json.RawMessage, error) {
	c.id++
	message, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": c.id, "method": method, "params": params})
	if err != nil {
		return nil, err
	}
	if _, err := c.in.Write(append(message, '\n')); err != nil {
		return nil, err
	}
	for {
		line, err := c.out.ReadBytes('\n')
		if err != nil {
			return nil, fmt.Errorf("%s: %w", method, err)
		}
		var answer struct {
			ID     *int            `json:"id"`
			Result json.RawMessage `json:"result"`
			Error  json.RawMessage `json:"error"`
		}
		if err := json.Unmarshal(line, &answer); err != nil || answer.ID == nil || *answer.ID != c.id {
			continue // a notification
		}
		if answer.Error != nil {
			return nil, fmt.Errorf("%s: %s", method, answer.Error)
		}
		return answer.Result, nil
	}
}

// executeProgram runs a program through execute_code and returns an error unless it succeeds.
func (c *mcpClient) executeProgram(code string, language core.Language) error {
	result, err := c.sendRequest("tools/call", map[string]any{
		"name": "execute_code", "arguments": map[string]string{"code": code, "language": string(language)},
	})
	if err != nil {
		return err
	}
	var answer struct {
		Outcome struct{ Status string } `json:"structuredContent"`
	}
	if err := json.Unmarshal(result, &answer); err != nil {
		return err
	}
	if answer.Outcome.Status != "ok" {
		return fmt.Errorf("the program did not end well: %s", result)
	}
	return nil
}
