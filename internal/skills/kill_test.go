package skills

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"retort/internal/core"
	"retort/internal/devel/testenv"
)

const savingDir = "RETORT_TEST_SAVE"

func TestMain(m *testing.M) {
	if dir := os.Getenv(savingDir); dir != "" {
		saveForever(dir)
		return
	}
	os.Exit(m.Run())
}

// numbered returns a draft whose description and code both contain the number n, so that a mixture of two versions is
// noticed.
func numbered(n int) SkillDraft {
	d := draft("x", fmt.Sprintf("// %d\n%s", n, strings.Repeat("// more\n", n%500)))
	d.Description = strconv.Itoa(n)
	if n%3 == 0 {
		d.Language = core.Python
	}
	return d
}

func saveForever(dir string) {
	s := New(builtin(), SkillPlace{Project, dir})
	start := 0
	if found, err := s.Get("x", ""); err == nil {
		start, _ = strconv.Atoi(found.Description)
	}
	for n := start + 1; ; n++ {
		if _, err := s.SaveSkill(numbered(n)); err != nil {
			fmt.Println("error", err, err.Err)
			return
		}
		fmt.Println(n)
	}
}

// TestKilledWhileSaving checks that a skill is complete after a process was killed while it saved the skill. The skill
// must not be older than the last save that returned before the kill.
func TestKilledWhileSaving(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "skills")
	s := New(builtin(), SkillPlace{Project, dir})
	acknowledged, times := testenv.KilledAt(t, savingDir, dir, 3, 0), 25 // a kill during the first saves
	if testenv.Full() {
		times = 100
	}
	folders := []string{dir, filepath.Join(dir, "x"), filepath.Join(dir, "x", ".history")}
	for i := range times {
		acknowledged = testenv.KilledAtChange(t, savingDir, dir, folders, 1+i, acknowledged)
		found, refused := s.Get("x", "")
		if refused != nil {
			t.Fatal(refused)
		}
		n, err := strconv.Atoi(found.Description)
		if err != nil || n < acknowledged || n > acknowledged+1 {
			t.Fatalf("%d was acknowledged, %q is there", acknowledged, found.Description)
		}
		if want := numbered(n); found.Code != want.Code || found.Language != want.Language || found.Edited {
			t.Fatalf("version %d is torn: %s %v", n, found.Language, found.Edited)
		}
		if n > 1 && len(found.Versions) < 2 {
			t.Fatalf("the versions before %d are lost", n)
		}
		acknowledged = n // it was saved, and the process did not come to say so
	}
	t.Logf("%d saves", acknowledged)
	mustSave(t, s, numbered(acknowledged+7))
	for _, pattern := range []string{".new-*", ".gone-*", "x/.new-*", "x/.saving", "x/.history/.new-*"} {
		if left, _ := filepath.Glob(filepath.Join(dir, pattern)); len(left) > 0 {
			t.Errorf("%v is left", left)
		}
	}
}

// TestReadWhileSaving checks that a reader always gets a complete version, even while another process saves the skill.
func TestReadWhileSaving(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "skills")
	s := New(builtin(), SkillPlace{Project, dir})
	mustSave(t, s, numbered(1))
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := 2; n < 60; n++ {
			if _, err := s.SaveSkill(numbered(n)); err != nil {
				t.Error(err)
			}
		}
	}()
	defer func() { <-done }()
	reads := 0
	for going := true; going; reads++ {
		select {
		case <-done:
			going = false
		default:
		}
		found, err := s.Get("x", "")
		if err != nil {
			t.Fatal(err)
		}
		n, _ := strconv.Atoi(found.Description)
		if want := numbered(n); found.Code != want.Code || found.Language != want.Language {
			t.Fatalf("read %d is torn", n)
		}
	}
	t.Logf("%d reads", reads)
}
