package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"retort/internal/agent/model/modeltest"
)

// scriptedModel is a fake model for scripts, started as "model ADDRESS DIR". It answers the n-th request with the text
// in file n of DIR. It answers requests beyond the last file with the last file. A file that contains a single word in
// capitals makes the model behave as a certain kind of broken model. Request n is stored as n.asked.
func scriptedModel() {
	dir := os.Args[2]
	l, err := net.Listen("tcp", os.Args[1])
	if err != nil {
		panic(err)
	}
	_ = modeltest.Serve(l, func(n int, a modeltest.ReceivedRequest) modeltest.ScriptedStep {
		_ = os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.asked", n)), []byte(fmt.Sprintf("%v\n%s\n", a.Header, a.Body)), 0o644)
		text, err := os.ReadFile(filepath.Join(dir, fmt.Sprint(n)))
		for ; err != nil && n > 0; n-- {
			text, err = os.ReadFile(filepath.Join(dir, fmt.Sprint(n)))
		}
		switch strings.TrimSpace(string(text)) {
		case "REDIRECT":
			return modeltest.ScriptedStep{Status: 307, Header: map[string]string{"Location": "http://" + os.Args[1] + "/stolen"}}
		case "HUGE":
			return modeltest.ScriptedStep{Raw: `{"choices":[{"message":{"content":"` + strings.Repeat("x", 20<<20)}
		case "SLOW":
			return modeltest.ScriptedStep{Hang: true}
		case "ENDLESS":
			return modeltest.ScriptedStep{Endless: true}
		case "KEY": // tells what it was given
			return modeltest.ScriptedStep{Status: 400, Text: " " + a.Header.Get("Authorization")}
		}
		return modeltest.ScriptedStep{Text: string(text)}
	})
}
