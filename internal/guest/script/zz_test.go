package script
import ("testing";"os")
func TestDump(t *testing.T) { b, err := Source(); if err != nil { t.Fatal(err) }; os.WriteFile("/tmp/h/x/main.js", b, 0o644) }
