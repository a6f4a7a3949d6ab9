package demo

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

const mailCount = 4200

type mail struct {
	*base
	w        *world
	me       string
	messages []*mailMessage // newest first
	byID     map[string]*mailMessage
	drafts   int
}

type mailMessage struct {
	ID         string          `json:"id"`
	ThreadID   string          `json:"threadId"`
	Labels     []string        `json:"labelIds"`
	From       string          `json:"from"` // "Name <address>"
	To         []string        `json:"to"`
	Subject    string          `json:"subject"`
	Date       time.Time       `json:"date"`
	Snippet    string          `json:"snippet"`        // set on the copy that is shown,
	Body       string          `json:"body,omitempty"` // like this
	Attachment *mailAttachment `json:"attachment,omitempty"`

	body func() string // written when first asked for
}

type mailAttachment struct {
	ID       string `json:"attachmentId"`
	Filename string `json:"filename"`
	MimeType string `json:"mimeType"`
}

func buildMail(b *base) map[string]tool {
	m := &mail{base: b, w: newWorld(), byID: map[string]*mailMessage{}}
	m.fill()
	return map[string]tool{
		"search_messages": read(m.search),
		"get_message":     read(m.get),
		"get_thread":      read(m.thread),
		"get_attachment":  read(m.attachment),
		"list_labels":     read(m.labels),
		"list_history":    read(m.history),
		"send_message":    write(m.send),
		"create_draft":    write(m.draft),
		"modify_labels":   write(m.modify),
		"trash_message":   write(m.trash),
	}
}

func (m *mail) fill() {
	m.me = "sales@nordlys.example"
	r := seeded("mail")
	a := newAuthor(m.w, "mail", r)
	subjects := []string{"Offer for ", "Invoice ", "Installation at ", "Question about the ", "Renewal ", "Minutes of our call, "}
	for i := range mailCount {
		p := pick(r, m.w.contacts)
		msg := &mailMessage{ID: fmt.Sprintf("18f%09x", 70_000+i*37), From: p.name() + " <" + p.Email + ">", To: []string{m.me}, Subject: pick(r, subjects) + p.Company,
			Date: now.Add(-time.Duration(i) * 47 * time.Minute), Labels: []string{"INBOX"}}
		msg.ThreadID = "t" + msg.ID
		if prev := i - between(r, 1, 40); r.IntN(4) == 0 && prev >= 0 {
			older := m.messages[prev] // an older message gets the thread of a newer one
			msg.ThreadID, msg.Subject = older.ThreadID, strings.TrimPrefix(older.Subject, "Re: ")
		}
		if i < 60 || r.IntN(10) == 0 {
			msg.Labels = append(msg.Labels, "UNREAD")
		}
		if r.IntN(12) == 0 {
			msg.Labels = append(msg.Labels, "IMPORTANT")
		}
		if r.IntN(6) == 0 {
			msg.Attachment = &mailAttachment{"att" + msg.ID, pick(r, []string{"offer", "invoice", "protocol"}) + fmt.Sprintf("-%d.pdf", 2000+i), pdfMime}
		}
		msg.body = sync.OnceValue(func() string {
			r := seeded(msg.ID)
			return "Dear sales team,\n\n" + a.with(r).paragraph(between(r, 2, 5)) + "\n\nKind regards\n" + p.name() + "\n" + p.Title + ", " + p.Company + "\n" + p.Phone
		})
		m.messages = append(m.messages, msg)
		m.byID[msg.ID] = msg
	}
}

// snippet returns the first hundred characters without line breaks.
func snippet(body string) string {
	r := []rune(strings.Join(strings.Fields(body), " "))
	return string(r[:min(len(r), 100)])
}

func (m *mail) find(id string) (*mailMessage, error) {
	if msg, ok := m.byID[id]; ok {
		return msg, nil
	}
	return nil, m.missing("message", id)
}

// search supports from: to: subject: is:unread has:attachment label: after:YYYY-MM-DD before:YYYY-MM-DD and plain
// words. A message must match all of them.
func (m *mail) search(in struct {
	Query      string   `json:"query"`
	Labels     []string `json:"labelIds"`
	MaxResults int      `json:"maxResults"`
	PageToken  string   `json:"pageToken"`
}) (result, error) {
	terms, err := mailTerms(in.Query)
	if err != nil {
		return result{}, err
	}
	type ref struct {
		ID       string `json:"id"`
		ThreadID string `json:"threadId"`
	}
	var found []ref
	for _, msg := range m.messages {
		miss := slices.ContainsFunc(terms, func(t func(*mailMessage) bool) bool { return !t(msg) })
		if !miss && !slices.ContainsFunc(in.Labels, func(l string) bool { return !slices.Contains(msg.Labels, l) }) {
			found = append(found, ref{msg.ID, msg.ThreadID})
		}
	}
	page, next, err := pageByToken(found, "messages:"+in.Query, in.PageToken, or(in.MaxResults, 100))
	if err != nil {
		return result{}, err
	}
	return structured(struct {
		Messages []ref  `json:"messages"`
		Next     string `json:"nextPageToken,omitempty"`
		Estimate int    `json:"resultSizeEstimate"`
	}{page, next, len(found)})
}

func mailTerms(query string) ([]func(*mailMessage) bool, error) {
	var terms []func(*mailMessage) bool
	for word := range strings.FieldsSeq(query) {
		term, err := mailTerm(word)
		if err != nil {
			return nil, err
		}
		terms = append(terms, term)
	}
	return terms, nil
}

func mailTerm(word string) (func(*mailMessage) bool, error) {
	operator, value, found := strings.Cut(word, ":")
	if !found {
		return func(x *mailMessage) bool { return has(x.Subject+"\n"+x.From+"\n"+x.body(), word) }, nil
	}
	switch operator {
	case "from":
		return func(x *mailMessage) bool { return has(x.From, value) }, nil
	case "to":
		return func(x *mailMessage) bool { return has(strings.Join(x.To, " "), value) }, nil
	case "subject":
		return func(x *mailMessage) bool { return has(x.Subject, value) }, nil
	case "is", "label", "in":
		return func(x *mailMessage) bool { return slices.Contains(x.Labels, strings.ToUpper(value)) }, nil
	case "has":
		return func(x *mailMessage) bool { return value == "attachment" && x.Attachment != nil }, nil
	case "after", "before":
		day, err := time.Parse(time.DateOnly, value)
		if err != nil {
			return nil, fmt.Errorf("400 Bad request: %s needs a date as 2026-10-31, not '%s'", operator, value)
		}
		return func(x *mailMessage) bool { return x.Date.Before(day) == (operator == "before") }, nil
	}
	return nil, fmt.Errorf("400 Bad request: the query knows from: to: subject: is: label: has: after: before:, not '%s:'", operator)
}

func (m *mail) get(in struct {
	ID     string `json:"id"`
	Format string `json:"format"`
}) (result, error) {
	msg, err := m.find(in.ID)
	if err != nil {
		return result{}, err
	}
	if in.Format == "raw" {
		eml := fmt.Sprintf("From: %s\r\nTo: %s\r\nSubject: %s\r\nDate: %s\r\n\r\n%s",
			msg.From, strings.Join(msg.To, ", "), msg.Subject, msg.Date.Format(time.RFC1123Z), msg.body())
		return plain("%s", base64.URLEncoding.EncodeToString([]byte(eml)))
	}
	shown := *msg
	shown.Snippet = snippet(msg.body())
	if in.Format != "metadata" {
		shown.Body = msg.body()
	}
	return jsonText(shown)
}

// thread answers with one content part for each message, oldest first.
func (m *mail) thread(in struct {
	ThreadID string `json:"threadId"`
}) (result, error) {
	var content []any
	for _, msg := range slices.Backward(m.messages) {
		if msg.ThreadID == in.ThreadID {
			text := fmt.Sprintf("From: %s\nDate: %s\nSubject: %s\n\n%s", msg.From, msg.Date.Format(time.RFC3339), msg.Subject, msg.body())
			content = append(content, textPart{"text", text})
		}
	}
	if content == nil {
		return result{}, m.missing("thread", in.ThreadID)
	}
	return parts(content...)
}

func (m *mail) attachment(in struct {
	MessageID    string `json:"messageId"`
	AttachmentID string `json:"attachmentId"`
}) (result, error) {
	msg, err := m.find(in.MessageID)
	if err != nil {
		return result{}, err
	}
	if a := msg.Attachment; a != nil && a.ID == in.AttachmentID {
		return parts(resourcePart{"resource", resource{URI: "mail:///" + msg.ID + "/" + a.Filename, MimeType: a.MimeType, Blob: asPDF(a.Filename)}})
	}
	return result{}, m.missing("attachment", in.AttachmentID)
}

func (m *mail) labels(struct{}) (result, error) {
	type label struct {
		ID       string `json:"id"`
		Messages int    `json:"messagesTotal"`
	}
	counts := map[string]int{}
	for _, msg := range m.messages {
		for _, l := range msg.Labels {
			counts[l]++
		}
	}
	var list []label
	for _, id := range sortedKeys(counts) {
		list = append(list, label{id, counts[id]})
	}
	return structured(struct {
		Labels []label `json:"labels"`
	}{list})
}

func (m *mail) history(in struct {
	MaxResults int    `json:"maxResults"`
	PageToken  string `json:"pageToken"`
}) (result, error) {
	page, next, err := pageByToken(m.effectsOn(""), "history", in.PageToken, or(in.MaxResults, 100))
	if err != nil {
		return result{}, err
	}
	return jsonText(struct {
		History []Effect `json:"history"`
		Next    string   `json:"nextPageToken,omitempty"`
	}{page, next})
}

type mailInput struct {
	To       []string `json:"to"`
	Subject  string   `json:"subject"`
	Body     string   `json:"body"`
	ThreadID string   `json:"threadId"`
}

// keep adds a message of our own as the newest of the mailbox.
func (m *mail) keep(in mailInput, label string) (*mailMessage, error) {
	if in.ThreadID != "" && !slices.ContainsFunc(m.messages, func(x *mailMessage) bool { return x.ThreadID == in.ThreadID }) {
		return nil, m.missing("thread", in.ThreadID)
	}
	if slices.ContainsFunc(in.To, func(to string) bool { return strings.HasSuffix(to, "@bounce.example") }) {
		return nil, errors.New("550 Mailbox unavailable: the domain bounce.example accepts no mail")
	}
	id := fmt.Sprintf("19a%09x", len(m.effects))
	msg := &mailMessage{ID: id, ThreadID: or(in.ThreadID, "t"+id), Labels: []string{label}, From: "Nordlys Sales <" + m.me + ">", To: in.To, Subject: in.Subject,
		Date: m.clock(), body: fixed(in.Body)}
	m.messages = append([]*mailMessage{msg}, m.messages...)
	m.byID[id] = msg
	return msg, nil
}

type kept struct {
	ID       string   `json:"id"`
	ThreadID string   `json:"threadId"`
	Labels   []string `json:"labelIds"`
}

func (m *mail) send(in mailInput) (result, error) {
	msg, err := m.keep(in, "SENT")
	if err != nil {
		return result{}, err
	}
	m.did("send_message", msg.ID, "to %s", strings.Join(in.To, ", "))
	return structured(kept{msg.ID, msg.ThreadID, msg.Labels})
}

func (m *mail) draft(in mailInput) (result, error) {
	msg, err := m.keep(in, "DRAFT")
	if err != nil {
		return result{}, err
	}
	m.drafts++
	m.did("create_draft", msg.ID, "%s", in.Subject)
	return plain("Created draft r-%d with message %s.", m.drafts, msg.ID)
}

func (m *mail) modify(in struct {
	IDs    []string `json:"ids"`
	Add    []string `json:"addLabelIds"`
	Remove []string `json:"removeLabelIds"`
}) (result, error) {
	for _, id := range in.IDs {
		if _, err := m.find(id); err != nil {
			return result{}, err
		}
	}
	for _, id := range in.IDs {
		msg := m.byID[id]
		labels := slices.DeleteFunc(slices.Clone(msg.Labels), func(l string) bool { return slices.Contains(in.Remove, l) || slices.Contains(in.Add, l) })
		msg.Labels = append(labels, in.Add...)
		m.did("modify_labels", id, "%s", strings.Join(msg.Labels, " "))
	}
	return plain("Changed the labels of %d messages.", len(in.IDs))
}

func (m *mail) trash(in struct {
	ID string `json:"id"`
}) (result, error) {
	msg, err := m.find(in.ID)
	if err != nil {
		return result{}, err
	}
	msg.Labels = []string{"TRASH"}
	m.did("trash_message", msg.ID, "%s", msg.Subject)
	return structured(kept{msg.ID, msg.ThreadID, msg.Labels})
}
