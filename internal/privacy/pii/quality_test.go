package pii

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// structured lists sentences whose personal values have a recognisable form or a context word before them.
var structured = []string{
	"Please write to «email» or call «phone».", "Contact: «email», tel. «phone», card «card».", "His SSN is «ssn» and the account «iban».", "Login from «ip» (device «mac») at ‹iso›.", "Send it to «wallet» today.",
	"PESEL «pesel», urodzona «dob».", "CPF: «cpf»", "BSN «bsn» van de patiënt", "Mi DNI es «dni».", "NINO «nino», born «dob».", "The key is «secret».", "Order ‹id› of ‹day› was paid with «card» for ‹price› EUR.",
	"Bitte überweisen Sie auf «iban»; Rückfragen unter «phone».", "request ‹uuid› from «ip» took ‹float› ms", "Call me at «barephone» please", "<a href=\"mailto:«email»\">mail</a>", "«email»;«phone»;«iban»", "Geboren am «dob», Telefon «phone»",
}

// schemas lists records in the format of the APIs and exports of real services.
var schemas = []string{
	`{"Id":"0035f‹int›","FirstName":"«first»","LastName":"«last»","Email":"«email»","Phone":"«phone»","MobilePhone":"«phone»","Title":"Head of Procurement","AccountId":"0015f‹int›","MailingStreet":"«street»","MailingCity":"Oslo","MailingPostalCode":"«zip»","Birthdate":"«dob»","CreatedDate":"‹iso›","IsDeleted":false,"attributes":{"type":"Contact","url":"/services/data/v59.0/sobjects/Contact/‹int›"}}`,
	`{"id":"‹id›","properties":{"firstname":"«first»","lastname":"«last»","email":"«email»","phone":"«phone»","company":"«company»","hs_object_id":"‹id›","createdate":"‹iso›","lifecyclestage":"lead"},"archived":false}`,
	`{"object":"customer","id":"cus_‹short›","name":"«name»","email":"«email»","phone":"«phone»","created":‹s›,"balance":‹int›,"currency":"usd","address":{"line1":"«street»","city":"Paris","postal_code":"«zip»","country":"FR"},"livemode":false,"invoice_prefix":"‹short›"}`,
	`{"id":‹int›,"key":"PROJ-‹int›","fields":{"summary":"Export stops after ‹int› rows","status":{"name":"In Progress","id":"3"},"project":{"id":"‹int›","key":"PROJ","name":"Data platform"},"issuetype":{"name":"Bug"},"assignee":{"accountId":"‹short›","displayName":"«name»","emailAddress":"«email»","active":true},"reporter":{"accountId":"‹short›","displayName":"«name»"},"created":"‹iso›","priority":{"name":"High"}}}`,
	`{"ok":true,"user":{"id":"U‹int›","team_id":"T‹int›","real_name":"«name»","profile":{"email":"«email»","phone":"«phone»","first_name":"«first»","last_name":"«last»","status_text":"in a meeting"},"tz":"Europe/Oslo","updated":‹s›}}`,
	`{"employee_id":‹int›,"vorname":"«first»","nachname":"«last»","geburtsdatum":"«dob»","telefon":"«phone»","e_mail":"«email»","iban":"«iban»","strasse":"«street»","plz":"«zip»","ort":"Berlin","abteilung":"Einkauf","eintritt":"‹day›","gehalt":‹int›}`,
	`{"identifiant":‹int›,"prénom":"«first»","nom":"«last»","courriel":"«email»","téléphone":"«phone»","date_de_naissance":"«dob»","entreprise":"«company»","montant":‹price›,"statut":"actif"}`,
	`{"nombre_completo":"«name»","correo_electronico":"«email»","telefono":"«phone»","dni":"«dni»","fecha_alta":"‹day›","importe":‹price›,"estado":"pendiente"}`,
	`{"imie":"«first»","nazwisko":"«last»","pesel":"«pesel»","numerTelefonu":"«phone»","kwota":‹price›,"dataUtworzenia":"‹iso›"}`,
	`{"ticket":{"id":‹int›,"subject":"Cannot log in","requester":{"name":"«name»","email":"«email»"},"collaborators":[{"name":"«name»","email":"«email»"}],"organization":{"id":‹int›,"name":"«company»"},"tags":["login","urgent"],"created_at":"‹iso›"}}`,
	`{"names":[{"displayName":"«name»","familyName":"«last»","givenName":"«first»"}],"emailAddresses":[{"value":"«email»","type":"work"}],"phoneNumbers":[{"value":"«phone»","canonicalForm":"«phone»"}],"organizations":[{"name":"«company»","title":"Engineer"}],"resourceName":"people/c‹id›","etag":"‹short›"}`,
	`{"order":{"id":‹id›,"order_number":‹int›,"total_price":"‹price›","customer":{"id":‹id›,"first_name":"«first»","last_name":"«last»","email":"«email»","phone":null},"shipping_address":{"name":"«name»","address1":"«street»","city":"Madrid","zip":"«zip»","phone":"«phone»"},"line_items":[{"id":‹id›,"name":"Green mug","sku":"MUG-‹int›","quantity":2,"price":"‹price›","vendor":null}],"browser_ip":"«ip»","token":null}}`,
	`{"record":{"patientName":"«name»","dateOfBirth":"«dob»","ssn":"«ssn»","nationalInsuranceNumber":"«nino»","phone":"«phone»","emergencyContact":{"name":"«name»","phone":"«phone»"},"visits":‹int›,"lastVisit":"‹day›"}}`,
	`{"sha":"‹sha›","commit":{"author":{"name":"«name»","email":"«email»","date":"‹iso›"},"message":"Fix the export of large accounts","tree":{"sha":"‹sha›"},"comment_count":0},"parents":[{"sha":"‹sha›"}],"repository":{"id":‹int›,"name":"gateway","full_name":"acme/gateway","default_branch":"main"}}`,
	`{"payment":{"cardholderName":"«name»","cardNumber":"«card»","expiry":"12/27","amount":‹price›,"iban":"«iban»","billing":{"phone":"«phone»","email":"«email»"},"reference":"INV-‹int›","merchant_id":‹id›}}`,
	`{"user":{"contactEmail":"«email»","displayName":"«name»","phone":«barephone»,"company":"«company»","lastLoginIp":"«ip»","preferences":{"theme":"dark","language":"en"},"loginCount":‹int›,"lastLoginMs":‹ms›}}`,
	`{"lead":{"full_name":"«name»","company_name":"«company»","work_email":"«email»","mobile":"«phone»","score":‹int›,"source":"Web","campaign":{"name":"Spring launch","id":‹int›},"ownerId":"‹short›"}}`,
	`{"attendees":[{"displayName":"«name»","email":"«email»","responseStatus":"accepted"},{"displayName":"«name»","email":"«email»","responseStatus":"declined"}],"summary":"Quarterly review","start":{"dateTime":"‹iso›"},"end":{"dateTime":"‹iso›"},"location":"Room 4"}`,
	`{"data":{"search":{"edges":[{"node":{"id":"‹short›","name":"«name»","email":"«email»","company":"«company»"},"cursor":"‹short›"}],"pageInfo":{"endCursor":"‹short›","hasNextPage":true}}}}`,
}

// letters lists templates of letters and notes that mention people and companies.
var letters = []string{
	"Dear «first»,\n\nthank you for the call on Tuesday. I spoke with «name» about the offer for ‹int› units.\nThe contract with «company» is ready.\n\nBest regards,\n«name»\n",
	"Hi «first», can you look at the gateway? Mr. «last» from «company» says that it stopped on ‹day›.\nCheers\n«first»\n",
	"Sehr geehrte Frau «last»,\n\nanbei das Angebot der «company». Bitte geben Sie es an Herrn «last» weiter.\n\nMit freundlichen Grüßen\n«name»\n",
	"Meeting notes: «name» presented the plan, and Dr. «name» asked about the budget of ‹price› EUR. «company» will answer next week.",
	"From: «name» <«email»>\nSubject: Invoice ‹int›\n\nThe invoice of «company» is attached.\n",
	"The pilot in Berlin went well. «name» confirmed that firmware ‹version› fixes the drift, and «first» will test it in March.",
	"Bonjour «first»,\n\nMonsieur «last» a signé le contrat avec «company».\n\nCordialement,\n«name»\n",
	"Reported by «name»; «company» can reproduce it on their staging system. The export stops after ‹int› rows.",
	"Hola «first», la reunión con «company» es el lunes. La señora «last» envía los documentos.\n\nSaludos,\n«name»",
	"My name is «name» and I work for «company» in Oslo. Please call me at «phone».",
}

// technical lists templates of machine data, such as logs and metrics, that contain no personal data.
var technical = []string{
	`{"time":‹ms›,"level":"info","service":"‹word›","trace_id":"‹sha›","span":"‹short›","duration_ms":‹float›,"status":200,"path":"/v1/items/‹id›?limit=50","version":"‹version›"}` + "\n",
	"‹iso› INFO [‹word›-‹int›] request ‹uuid› completed in ‹float› ms, ‹int› bytes, code 200\n",
	"‹iso› ERROR ‹word›: connection refused to 127.0.0.1:8080 (attempt ‹int›), retry in ‹int› ms at ‹us›\n",
	`"node_modules/‹word›-‹word›": {"version": "‹version›", "resolved": "https://packages.example/‹word›/-/‹word›-‹version›.tgz", "integrity": "sha512-‹b64›", "engines": {"node": ">=‹int›"}},` + "\n",
	`http_requests_total{service="‹word›",code="200",instance="‹word›:9090"} ‹int› ‹ms›` + "\n",
	`{"metric":"‹word›.latency","points":[[‹ms›,‹float›],[‹ms›,‹float›],[‹ms›,‹float›]],"ids":[‹id›,‹id16›,‹id›],"hash":"‹sha256›","ns":‹ns›}` + "\n",
	"‹short› ‹word›: fix the ‹word› of ‹word› (#‹int›)\n",
	`{"id":‹id›,"uuid":"‹uuid›","sku":"MUG-‹int›","price":‹price›,"weight":‹float›,"updated_at":"‹iso›","etag":"W/\"‹short›\"","checksum":"‹sha256›","file":{"name":"‹word›.go","size":‹int›,"path":"src/‹word›/‹word›.go"},"branch":{"name":"main"}}` + "\n",
	"goroutine ‹int› [running]:\nmain.‹word›(0xc000‹int›, {0x7f‹int›, 0x‹short›})\n\t/src/‹word›/‹word›.go:‹int› +0x‹short›\n",
	`{"lat":‹float›,"lng":-‹float›,"zoom":12,"tile":"‹int›/‹int›/‹int›","seq":‹id16›,"tokens":{"prompt":‹int›,"completion":‹int›},"model":"‹word›-‹version›","next_page_token":"‹b64›"}` + "\n",
	"  - image: registry.example.com/‹word›/‹word›:‹version›@sha256:‹sha256›\n    name: ‹word›\n    resourceVersion: \"‹int›\"\n    uid: ‹uuid›\n",
	"‹day› ‹word› ‹int› ‹float› ‹price› ‹id16›\n", "build ‹int› (‹short›) of ‹day›: ‹int› passed, ‹int› skipped, p50=‹float› p99=‹float›\n",
	"Chrome/120.0.6099.109 Safari/537.36 Mozilla/5.0 (X11; Linux x86_64) build/‹int›.‹int›\n",
}

func corpus(templates []string, seed uint64, n int, wrap func(string) string) (docs []*writer) {
	r := rand.New(rand.NewPCG(seed, 7))
	for i := range n {
		w := &writer{r: r}
		w.newPerson()
		w.write(wrap(templates[i%len(templates)]))
		docs = append(docs, w)
	}
	return docs
}

func same_(s string) string { return s }

// assess runs the scanner over the documents and counts the findings that are correct, missing or wrong. If the
// caller passes types, assess counts only findings of these types.
func assess(t *testing.T, docs []*writer, only ...Type) measure {
	t.Helper()
	s := New(Options{})
	m, limit := measure{}, 25
	for _, w := range docs {
		raw := w.out.Bytes()
		want, got := w.want, spans(s, raw)
		if len(only) > 0 {
			want, got = ofTypes(want, only), ofTypes(got, only)
		}
		m.add(want, got)
		complain(t, raw, want, got, &limit)
	}
	return m
}

func ofTypes(fs []TypedSpan, types []Type) (kept []TypedSpan) {
	for _, f := range fs {
		for _, t := range types {
			if f.Type == t {
				kept = append(kept, f)
			}
		}
	}
	return kept
}

func TestStructuredTypesInText(t *testing.T) {
	m := assess(t, corpus(structured, 1, 6000, same_))
	t.Log(m.table("text"))
	for typ, x := range m {
		least := .99
		if typ == Phone {
			least = .98
		}
		if p, r := ratio(x[0], x[2]), ratio(x[0], x[1]); p < least || r < least {
			t.Errorf("%s: precision %.4f, recall %.4f", typ, p, r)
		}
	}
}

func TestPersonalKeysInJSON(t *testing.T) {
	docs := corpus(schemas, 2, 3000, same_)
	docs = append(docs, corpus(schemas, 3, 300, func(s string) string { return `{"total":3,"items":[` + s + ",\n" + s + `],"next":null}` })...)
	m := assess(t, docs)
	t.Log(m.table("JSON"))
	if p, r := m.total(); p < .99 || r < .995 {
		t.Errorf("precision %.4f, recall %.4f", p, r)
	}
}

func TestNamesInFreeText(t *testing.T) {
	m := assess(t, corpus(letters, 4, 2000, same_), Name, Company)
	t.Log(m.table("letters"))
	for typ, x := range m {
		if p, r := ratio(x[0], x[2]), ratio(x[0], x[1]); p < .85 || r < .6 {
			t.Errorf("%s: precision %.4f, recall %.4f", typ, p, r)
		}
	}
}

func TestTechnicalTextIsClean(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 7))
	s := New(Options{})
	bytes, wrong, shown := 0, 0, 0
	for bytes < 6<<20 {
		w := &writer{r: r}
		for w.out.Len() < 64<<10 {
			w.write(technical[r.IntN(len(technical))])
		}
		raw := w.out.Bytes()
		bytes += len(raw)
		for _, f := range append(spans(s, raw), s.FindText(nil, raw)...) {
			if wrong++; shown < 20 {
				shown++
				t.Logf("%s %q in %q", f.Type, raw[f.Start:f.End], raw[max(0, f.Start-60):min(len(raw), f.End+20)])
			}
		}
	}
	t.Logf("%d wrong in %.1f MB, looked at as JSON and as text", wrong, float64(bytes)/1e6)
	if wrong > bytes>>20 {
		t.Errorf("%d wrong in %d MB", wrong, bytes>>20)
	}
}

// TestColumns checks that a value which does not look like an e-mail address is found if most other values of its
// column are addresses.
func TestColumns(t *testing.T) {
	var rows []string
	for i := range 10 {
		rows = append(rows, `{"reach":"user`+string(rune('a'+i))+`@example.com","n":1}`)
	}
	rows = append(rows, `{"reach":"admin@intranet","n":2}`)
	raw := []byte(`[` + strings.Join(rows, ",") + `]`)
	if got := spans(New(Options{}), raw); len(got) != 11 || string(raw[got[10].Start:got[10].End]) != "admin@intranet" {
		t.Errorf("found %v", show(string(raw), got))
	}
}

// TestRowsUnderAHeader checks that values are found by the header of their column in an array of rows, as spreadsheet
// tools return it.
func TestRowsUnderAHeader(t *testing.T) {
	raw := []byte(`{"values":[["Name","E-Mail","Mobile","Ref"],["Zoe Quux","z@example.com",2125550123,2125550124],["Al","a@example.com","212 555 0123","x"]],"ranges":[["Name","Size"],["main.go","12"]]}`)
	var got []string
	for _, f := range spans(New(Options{}), raw) {
		got = append(got, string(f.Type)+" "+string(raw[f.Start:f.End]))
	}
	want := "name Zoe Quux|email z@example.com|phone 2125550123|name Al|email a@example.com|phone 212 555 0123"
	if strings.Join(got, "|") != want {
		t.Errorf("found %q", got)
	}
}

// TestLabelledLines checks that values are found by the labels of their lines, such as "Phone:", and that lines of
// configuration are not.
func TestLabelledLines(t *testing.T) {
	raw := []byte("- **Name:** Zoe Quux\n- **Phone:** 2125550123\nCompany: Initech\nStatus: Open Door\nAddress: 12 Long Way, Oslo\nZoe Quux called.")
	var got []string
	for _, f := range spans(New(Options{}), raw) {
		got = append(got, string(f.Type)+" "+string(raw[f.Start:f.End]))
	}
	if want := "name Zoe Quux|phone 2125550123|company Initech|address 12 Long Way, Oslo|name Zoe Quux"; strings.Join(got, "|") != want {
		t.Errorf("found %q", got)
	}
	raw = []byte("kind: Pod\nname: worker\nimage: a/b:1.2.3\nnamespace: Default Space\n")
	if got := spans(New(Options{}), raw); len(got) > 0 {
		t.Errorf("found %v", show(string(raw), got))
	}
}

// TestSessionRemembersNames checks that names and companies found by their keys are found again in later free text.
func TestSessionRemembersNames(t *testing.T) {
	s, g, v := New(Options{}), &KnownValues{}, newTokens()
	s.ReplaceValues([]byte(`{"email":"z@x.com","full_name":"Zygmunt Quuxley","company":"Frobnitz Works"}`), g, v)
	text := "zygmunt quuxley of Frobnitz Works; Quuxley wrote, quuxley did not"
	if out := string(s.ReplaceValues([]byte(text), g, v)); strings.Contains(out, "Frobnitz") || strings.Contains(out, "Quuxley") || strings.Contains(out, "zygmunt") || !strings.HasSuffix(out, "quuxley did not") {
		t.Error(out)
	}
	if out := string(s.ReplaceValues([]byte(text), &KnownValues{}, v)); out != text {
		t.Error(out)
	}
}

func TestOptions(t *testing.T) {
	raw := []byte(`{"crewMember":"xq7","email":"a@b.com","note":"Project Falcon, tel 612345678 and 212-555-0123"}`)
	s := New(Options{Off: []Type{Email}, Regions: []string{"ES"}, Keys: map[string]Type{"crew_member": Secret}, Words: map[Type][]string{Company: {"Project Falcon"}}})
	var got []string
	for _, f := range spans(s, raw) {
		got = append(got, string(f.Type)+" "+string(raw[f.Start:f.End]))
	}
	if want := "secret xq7|company Project Falcon|phone 612345678"; strings.Join(got, "|") != want {
		t.Errorf("found %q", got)
	}
}
