package home

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// places calls each method of v that takes no arguments and returns a string. It returns the results by method name.
func places(v any) map[string]string {
	all := map[string]string{}
	for i := range reflect.TypeOf(v).NumMethod() {
		m := reflect.TypeOf(v).Method(i)
		if m.Type.NumIn() == 1 && m.Type.NumOut() == 1 && m.Type.Out(0).Kind() == reflect.String {
			all[m.Name] = reflect.ValueOf(v).Method(i).Call(nil)[0].String()
		}
	}
	return all
}

func TestPlacesAreDistinctAndBelowTheirDirectory(t *testing.T) {
	for _, name := range []string{"HOME", "XDG_CACHE_HOME", "LocalAppData"} {
		t.Setenv(name, "") // with a cache directory, Dir.Machines is there
	}
	root := filepath.Join(t.TempDir(), "x")
	for kind, all := range map[string]map[string]string{"Dir": places(Dir(root)), "User": places(UserDir(root + "/"))} {
		seen := map[string]string{}
		for name, place := range all {
			if !strings.HasPrefix(place, root+string(filepath.Separator)) {
				t.Errorf("%s.%s returns %s, which is not below %s", kind, name, place, root)
			}
			if other, ok := seen[place]; ok {
				t.Errorf("%s.%s and %s.%s return the same path, %s", kind, name, kind, other, place)
			}
			seen[place] = name
		}
		if len(all) < 6 {
			t.Errorf("%s has %d places: the test does not find them", kind, len(all))
		}
	}
}

// TestUnknownUserHasNoPlaces checks that all methods of User return "" if the home directory is unknown. Otherwise a
// key could be written to the working directory.
func TestUnknownUserHasNoPlaces(t *testing.T) {
	t.Setenv("HOME", "")
	t.Setenv("USERPROFILE", "")
	t.Setenv("home", "")
	u := UserDir("")
	all := places(u)
	all["JobMarks"] = u.JobMarks("/data")
	for name, place := range all {
		if place != "" {
			t.Errorf("%s returns %q for a user without a home directory", name, place)
		}
	}
}

func TestJobMarksDifferByDataDirectory(t *testing.T) {
	u := UserDir(t.TempDir())
	if a, b := u.JobMarks("/a"), u.JobMarks("/b"); a == b {
		t.Errorf("two data directories share the marks in %s", a)
	}
}
