package server

import (
	"strconv"
	"testing"
)

// TestParkedConversationsAreBounded checks that the limit on parked conversations, which wait for their clients, does
// not count conversations whose requests are still running.
func TestParkedConversationsAreBounded(t *testing.T) {
	var all openConversations
	for i := range 4 * maxParked {
		v := &conversation{id: strconv.Itoa(i)}
		all.addConversation(v)
		if i < maxParked-1 {
			v.parkConversation(func() {})
		}
	}
	if all.isFull() {
		t.Error("requests that nobody waits for count")
	}
	all.getConversation(strconv.Itoa(maxParked)).parkConversation(func() {})
	if !all.isFull() {
		t.Errorf("%d of %d wait, and there is room", maxParked, maxParked)
	}
}
