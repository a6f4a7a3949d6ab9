package pii

import (
	"strings"
	"testing"
)

// TestGluedValues checks which known values are found as a part of a word, for example in "TeamMensah" or "3Mensah".
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
		{one, "x1mensah mensah1x MENSAH2X 7x3mensahs", "mensah|mensah|MENSAH|mensah"},
		{one, "x1anna ANNA2X x1mensa 7x3mensaht", ""},
		{one, "HanneMüller TeamMüllers MensahX", "Müller|Müller|Mensah"},
		{one, `{"mensahTotal":1,"id":"TeamMensah","x":"3Orbit"}`, "mensah|Mensah|Orbit"},
		{one, "OrbitClient newOrbit BoTeam RoseTeam 7Bo Mensahlike", ""},
		{one, `{"id":"x7AnnaQ2dE9rT","blob":"` + strings.Repeat("xQ", 30) + `AnnaZk"}`, ""},
	})
}

// TestJoinedNames checks that many names in one long word are hidden completely. It also checks names with a blank
// between given name and family name, but without a blank between one name and the next.
func TestJoinedNames(t *testing.T) {
	g := &KnownValues{}
	var joined, spaced strings.Builder
	for i, first := range corpusFirst {
		name := first + " " + corpusLast[i%len(corpusLast)]
		g.AddExact(Name, name)
		spaced.WriteString(name)
		joined.WriteString(strings.ReplaceAll(name, " ", ""))
	}
	for _, text := range []string{joined.String(), spaced.String()} {
		found := New(Options{}).FindKnown(nil, g, []byte(text))
		checkCovered(t, text, 0, len(text), found, true)
	}
}

// TestSmallLettersInKeys checks that a name in small letters is found in a key. Names of fields and variables that
// contain other known values must not change.
func TestSmallLettersInKeys(t *testing.T) {
	known := knownValues{Name: {"Mensah", "Zandstra"}, Company: {"Orbit"}, Address: {"Quuxville"}, Secret: {"quuxzork", "quuxzork7"}}
	checkRecall(t, []recallCase{
		{known, `{"mensah-x":1,"x.mensah":2,"mensah_x":3,"x_zandstra":4}`, "mensah|mensah|mensah|zandstra"},
		{known, `{"quuxzork_version":1,"QUUXZORK_VERSION":2,"quuxzorkUrl":3,"x.quuxzork":4,"quuxzork_1":5}`, ""},
		{known, "quuxzork_version, $QUUXZORK_DB, my_quuxzork, QuuxzorkClient", ""},
		{known, `{"quuxzork":1,"a":"x/quuxzork@x, (QUUXZORK)","quuxzork7_x":2}`, "quuxzork|quuxzork|QUUXZORK|quuxzork7"},
		{known, `{"orbit_id":1,"x.orbit":2,"quuxville_total":3}`, ""},
		{known, `{"orbit":1,"ORBIT_x":2,"quuxville":3}`, "orbit|ORBIT|quuxville"},
	})
}

// TestOrdinaryTextStays checks that ordinary sentences and data do not change, although many known values have similar
// words.
func TestOrdinaryTextStays(t *testing.T) {
	g := &KnownValues{}
	for typ, values := range map[Type][]string{
		Name:        {"Rose Will", "Mark May", "Grace Hill", "Anna Marsh", "Bo Ng", "Kwame Mensah", "Summer", "Victor Stone", "Faith Young"},
		Company:     {"Orbit", "Apple", "Open Door", "Slack"},
		Address:     {"Quuxville", "12 Market Street"},
		DateOfBirth: {"2024-05-01", "1960-03-10"},
		Phone:       {"+1 202 555 0143", "5550199"},
	} {
		for _, v := range values {
			g.AddExact(typ, v)
		}
	}
	for _, v := range []string{"2024", "12345", "1234567"} {
		g.AddSealed(Secret, v)
	}
	for _, text := range []string{
		"The rose will bloom in May, and the mark may be on the hill by the stone.",
		"In summer the young victor has faith; grace is hard to find in a marsh.",
		"Please slack off: the door is open, an apple a day keeps the doctor away.",
		"In 2024 we sold 12345 units in March, 10 times as many as on the 10th of January 2024.",
		"They will mark the 1st of May 2025 and march on 5 May 2024 to the market street.",
		"Version 1.5550199 of 0.5550199 and v12.01.60 build a5550199c, see item 12345.67 and ISO-8601.",
		"newMarketStall hillTop OrbitClient slackToken appleId QuuxvilleOffice iOS eBay JavaScript McRib",
		`{"orbit_id":1,"slack_token_id":2,"apple_pay":3,"quuxville_total":4,"mark_id":5,"rose_1":6,"will":7,"x.open_door":8}`,
		`{"id":"12345","ref":"1234567","price":"1234567.00","count":1234567,"year":2024,"n":5550199.5,"amount":12345.00}`,
		"https://x.example/apple/slack?id=1234567890123#open-door, /apple/rose.txt, 1234567.00 EUR, 7.1234567",
		"d41d8cd98f00b204e9800998ecf8427e QmFzZTY0IGlzIG5vdCBhIG5hbWU= 550e8400-e29b-41d4-a716-446655440000",
	} {
		v := newTokens()
		if out := New(Options{}).ReplaceValues([]byte(text), g, v); string(out) != text {
			t.Errorf("%s became %s", text, out)
		}
	}
}
