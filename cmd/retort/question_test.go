package main

import (
	"strings"
	"testing"
)

// TestShortenQuestion checks that a long question is cut and that its text says how much is missing. A short question
// must be shown completely.
func TestShortenQuestion(t *testing.T) {
	short := "call crm.delete_record\n" + strings.Repeat("é", maxQuestionLine)
	if shown, whole := shortenQuestion(short); shown != short || !whole {
		t.Errorf("%q, %v", shown, whole)
	}
	wide := "call crm.delete_record\n" + strings.Repeat("é", maxQuestionLine+7) + "\nend"
	if shown, whole := shortenQuestion(wide); whole || !strings.Contains(shown, "… (7 characters more)\nend") {
		t.Errorf("%q, %v", shown, whole)
	}
	long := strings.Repeat("line\n", maxQuestionLines) + "hidden"
	if shown, whole := shortenQuestion(long); whole || strings.Contains(shown, "hidden") {
		t.Errorf("%q, %v", shown, whole)
	}
}
