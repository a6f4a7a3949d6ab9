package jobs

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"retort/internal/core"
	"retort/internal/devel/testenv"
)

// working runs in the child process that TestKilled kills. Its jobs append their titles to a file. Jobs 3 and 4 then
// wait until they are cancelled.
func working(dir string) {
	o := options(dir)
	o.Slots = 2
	q, err := Open(o)
	if err != nil {
		panic(err)
	}
	for i := range 20 {
		if _, err := q.SubmitJob("", core.Job{Kind: "test", Title: fmt.Sprint(i)}, nil); err != nil {
			panic(err)
		}
	}
	q.WorkOnAll(func(ctx context.Context, t *JobTurn) core.Outcome {
		note(dir, t.Task.Title)
		if t.Task.Title == "3" || t.Task.Title == "4" {
			fmt.Println("runs")
			<-ctx.Done()
		}
		return core.Outcome{Status: core.StatusOK}
	})
	select {}
}

func note(dir, title string) {
	f, err := os.OpenFile(filepath.Join(dir, "ran"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	fmt.Fprintln(f, title)
	_ = f.Close()
}

func TestMain(m *testing.M) {
	if dir := os.Getenv("RETORT_TEST_QUEUE"); dir != "" {
		working(dir)
	}
	os.Exit(testenv.Main(m))
}

// TestKilled kills a process that runs jobs. It checks that the queue then keeps its order, and that jobs which had
// already begun do not run a second time.
func TestKilled(t *testing.T) {
	dir := t.TempDir()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), "RETORT_TEST_QUEUE="+dir)
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Process.Kill() }()
	lines := bufio.NewScanner(out)
	for range 2 {
		if !lines.Scan() {
			t.Fatal(lines.Err())
		}
	}
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait()
	o := options(dir)
	o.Slots = 1
	q := open(t, o)
	q.WorkOnAll(func(_ context.Context, t *JobTurn) core.Outcome {
		note(dir, t.Task.Title)
		return core.Outcome{Status: core.StatusOK}
	})
	all, warnings, err := q.ListJobs("")
	if err != nil || len(warnings) != 0 || len(all) != 20 {
		t.Fatal(len(all), warnings, err)
	}
	unknown := 0
	for _, task := range all {
		switch task = wait(t, q, task.ID); {
		case task.Status == "outcome_unknown":
			unknown++
		case task.Status != "ok":
			t.Errorf("%+v", task)
		}
	}
	ran := strings.Fields(string(mustRead(filepath.Join(dir, "ran"))))
	seen := map[string]bool{}
	for _, title := range ran {
		if seen[title] {
			t.Errorf("%s ran twice", title)
		}
		seen[title] = true
	}
	if unknown < 2 || unknown > 4 || strings.Join(ran[5:], " ") != "5 6 7 8 9 10 11 12 13 14 15 16 17 18 19" {
		t.Errorf("%d unknown, ran: %v", unknown, ran)
	}
}
