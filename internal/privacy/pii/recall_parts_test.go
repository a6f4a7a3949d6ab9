package pii

import (
	"strings"
	"testing"
)

// TestGluedValues checks which known values are found that stand in a word with others, or beside a digit.
func TestGluedValues(t *testing.T) {
	full := knownValues{Name: {"Kwame Mensah", "Hanne Dubois", "José Müller", "Ronald McDonald", "Élodie Öz"}}
	one := knownValues{Name: {"Mensah", "Müller", "Bo", "Rose", "Anna"}, Company: {"Orbit"}}
	checkRecall(t, []recallCase{
		{full, "KwameMensahHanneDubois", "KwameMensah|HanneDubois"},
		{full, "Kwame MensahHanne DuboisKwame Mensah", "Kwame Mensah|Hanne Dubois|Kwame Mensah"},
		{full, strings.Repeat("KwameMensahHanneDubois", 3), strings.Repeat("KwameMensah|HanneDubois|", 2) + "KwameMensah|HanneDubois"},
		{full, "JoséMüller, ÉlodieÖz2, TeamJoséMüllerHanneDubois", "JoséMüller|ÉlodieÖz|JoséMüller|HanneDubois"},
		{full, "JoséMu\u0308llerKwameMensahs", "JoséMu\u0308ller|KwameMensah"},
		{full, "RonaldMcDonald RonaldMcDonaldHanneDubois", "RonaldMcDonald|RonaldMcDonald|HanneDubois"},
		{full, `{"KwameMensahHanneDubois":1}`, "KwameMensah|HanneDubois"},
		{full, "MensahTeam DuboisTree3 kwamemensah", ""},
		{one, "MensahTeam TeamMensah 3Mensah 2024mensah7 MensahMüllerAnna", "Mensah|Mensah|Mensah|mensah|Mensah|Müller|Anna"},
		{one, "HanneMüller TeamMüllers MensahX", "Müller|Müller|Mensah"},
		{one, `{"mensahTotal":1,"id":"TeamMensah","x":"3Orbit"}`, "mensah|Mensah|Orbit"},
		{one, "OrbitClient newOrbit BoTeam RoseTeam 7Bo Mensahlike", ""},
		{one, `{"id":"x7AnnaQ2dE9rT","blob":"` + strings.Repeat("xQ", 30) + `AnnaZk"}`, ""},
	})
}

// TestSmallLettersInKeys checks that a name in small letters is found in a key, and that names of fields stay.
func TestSmallLettersInKeys(t *testing.T) {
	known := knownValues{Name: {"Mensah", "Zandstra"}, Company: {"Orbit"}, Address: {"Quuxville"}, Secret: {"quuxzork"}}
	checkRecall(t, []recallCase{
		{known, `{"mensah-x":1,"x.mensah":2,"mensah_x":3,"x_zandstra":4,"quuxzork_1":5}`, "mensah|mensah|mensah|zandstra|quuxzork"},
		{known, `{"orbit_id":1,"x.orbit":2,"quuxville_total":3}`, ""},
		{known, `{"orbit":1,"ORBIT_x":2,"quuxville":3}`, "orbit|ORBIT|quuxville"},
	})
}
