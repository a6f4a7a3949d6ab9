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

type mailServer struct {
	*serverBase
	w        *demoWorld
	me       string
	messages []*mailMessage // newest first
	byID     map[string]*mailMessage
	drafts   int
}

type mailMessage struct {
	ID         string          `json:"id"`
	ThreadID   string          `json:"threadId"`
	Labels     []string        `json:"labelIds"`
	From       string          `json:"from"` // in the form "Name <address>"
	To         []string        `json:"to"`
	Subject    string          `json:"subject"`
	Date       time.Time       `json:"date"`
	Snippet    string          `json:"snippet"`        // set only in the copy that is returned
	Body       string          `json:"body,omitempty"` // set only in the copy that is returned
	Attachment *mailAttachment `json:"attachment,omitempty"`

	body func() string // generates the text on first use
}

type mailAttachment struct {
	ID       string `json:"attachmentId"`
	Filename string `json:"filename"`
	MimeType string `json:"mimeType"`
}

func buildMail(b *serverBase) map[string]toolFunc {
	m := &mailServer{serverBase: b, w: newWorld(), byID: map[string]*mailMessage{}}
	m.fillMessages()
	return map[string]toolFunc{
		"search_messages": readTool(m.searchMessages),
		"get_message":     readTool(m.getMessage),
		"get_thread":      readTool(m.getThread),
		"get_attachment":  readTool(m.getAttachment),
		"list_labels":     readTool(m.listLabels),
		"list_history":    readTool(m.listHistory),
		"send_message":    writeTool(m.sendMessage),
		"create_draft":    writeTool(m.saveDraft),
		"modify_labels":   writeTool(m.modifyLabels),
		"trash_message":   writeTool(m.trashMessage),
	}
}

func (m *mailServer) fillMessages() {
	m.me = "sales@nordlys.example"
	r := newSeededRand("mail")
	a := newAuthor(m.w, "mail", r)
	subjects := []string{"Offer for ", "Invoice ", "Installation at ", "Question about the ", "Renewal ", "Minutes of our call, "}
	for i := range mailCount {
		p := pickOne(r, m.w.contacts)
		msg := &mailMessage{ID: fmt.Sprintf(
			"18f%09x", 70_000+i*37,
		), From: p.fullName() + " <" + p.Email + ">", To: []string{m.me}, Subject: pickOne(r, subjects) + p.Company,
			Date: demoToday.Add(-time.Duration(i) * 47 * time.Minute), Labels: []string{"INBOX"}}
		msg.ThreadID = "t" + msg.ID
		if prev := i - randomBetween(r, 1, 40); r.IntN(4) == 0 && prev >= 0 {
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
			msg.Attachment = &mailAttachment{
				"att" + msg.ID, pickOne(r, []string{"offer", "invoice", "protocol"}) + fmt.Sprintf("-%d.pdf", 2000+i), pdfMime,
			}
		}
		msg.body = sync.OnceValue(func() string {
			r := newSeededRand(msg.ID)
			return "Dear sales team,\n\n" + a.withRandom(r).writeParagraph(randomBetween(r, 2, 5)) + "\n\nKind regards\n" + p.fullName() + "\n" +
				p.Title +
				", " +
				p.Company +
				"\n" +
				p.Phone
		})
		m.messages = append(m.messages, msg)
		m.byID[msg.ID] = msg
	}
}

// bodySnippet returns the first hundred characters without line breaks.
func bodySnippet(body string) string {
	r := []rune(strings.Join(strings.Fields(body), " "))
	return string(r[:min(len(r), 100)])
}

func (m *mailServer) findMessage(id string) (*mailMessage, error) {
	if msg, ok := m.byID[id]; ok {
		return msg, nil
	}
	return nil, m.missingError("message", id)
}

// searchMessages searches messages. It supports from:, to:, subject:, is:unread, has:attachment, label:,
// after:YYYY-MM-DD, before:YYYY-MM-DD and plain words. A message must match all of them.
func (m *mailServer) searchMessages(in struct {
	Query      string   `json:"query"`
	Labels     []string `json:"labelIds"`
	MaxResults int      `json:"maxResults"`
	PageToken  string   `json:"pageToken"`
}) (toolResult, error) {
	terms, err := mailTerms(in.Query)
	if err != nil {
		return toolResult{}, err
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
	page, next, err := pageByToken(found, "messages:"+in.Query, in.PageToken, orDefault(in.MaxResults, 100))
	if err != nil {
		return toolResult{}, err
	}
	return structuredResult(struct {
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
		return func(x *mailMessage) bool { return containsFold(x.Subject+"\n"+x.From+"\n"+x.body(), word) }, nil
	}
	switch operator {
	case "from":
		return func(x *mailMessage) bool { return containsFold(x.From, value) }, nil
	case "to":
		return func(x *mailMessage) bool { return containsFold(strings.Join(x.To, " "), value) }, nil
	case "subject":
		return func(x *mailMessage) bool { return containsFold(x.Subject, value) }, nil
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

func (m *mailServer) getMessage(in struct {
	ID     string `json:"id"`
	Format string `json:"format"`
}) (toolResult, error) {
	msg, err := m.findMessage(in.ID)
	if err != nil {
		return toolResult{}, err
	}
	if in.Format == "raw" {
		eml := fmt.Sprintf("From: %s\r\nTo: %s\r\nSubject: %s\r\nDate: %s\r\n\r\n%s",
			msg.From, strings.Join(msg.To, ", "), msg.Subject, msg.Date.Format(time.RFC1123Z), msg.body())
		return textResult("%s", base64.URLEncoding.EncodeToString([]byte(eml)))
	}
	shown := *msg
	shown.Snippet = bodySnippet(msg.body())
	if in.Format != "metadata" {
		shown.Body = msg.body()
	}
	return jsonText(shown)
}

// getThread returns one content part for each message of a thread, oldest first.
func (m *mailServer) getThread(in struct {
	ThreadID string `json:"threadId"`
}) (toolResult, error) {
	var content []any
	for _, msg := range slices.Backward(m.messages) {
		if msg.ThreadID == in.ThreadID {
			text := fmt.Sprintf("From: %s\nDate: %s\nSubject: %s\n\n%s", msg.From, msg.Date.Format(time.RFC3339), msg.Subject, msg.body())
			content = append(content, textPart{"text", text})
		}
	}
	if content == nil {
		return toolResult{}, m.missingError("thread", in.ThreadID)
	}
	return partsResult(content...)
}

func (m *mailServer) getAttachment(in struct {
	MessageID    string `json:"messageId"`
	AttachmentID string `json:"attachmentId"`
}) (toolResult, error) {
	msg, err := m.findMessage(in.MessageID)
	if err != nil {
		return toolResult{}, err
	}
	if a := msg.Attachment; a != nil && a.ID == in.AttachmentID {
		return partsResult(resourcePart{
			"resource",
			resourceContent{URI: "mail:///" + msg.ID + "/" + a.Filename, MimeType: a.MimeType, Blob: asPDF(a.Filename)},
		})
	}
	return toolResult{}, m.missingError("attachment", in.AttachmentID)
}

func (m *mailServer) listLabels(struct{}) (toolResult, error) {
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
	return structuredResult(struct {
		Labels []label `json:"labels"`
	}{list})
}

func (m *mailServer) listHistory(in struct {
	MaxResults int    `json:"maxResults"`
	PageToken  string `json:"pageToken"`
}) (toolResult, error) {
	page, next, err := pageByToken(m.effectsOn(""), "history", in.PageToken, orDefault(in.MaxResults, 100))
	if err != nil {
		return toolResult{}, err
	}
	return jsonText(struct {
		History []RecordedEffect `json:"history"`
		Next    string           `json:"nextPageToken,omitempty"`
	}{page, next})
}

type mailInput struct {
	To       []string `json:"to"`
	Subject  string   `json:"subject"`
	Body     string   `json:"body"`
	ThreadID string   `json:"threadId"`
}

// addMessage adds a message that the account has sent. It becomes the newest message of the mailbox.
func (m *mailServer) addMessage(in mailInput, label string) (*mailMessage, error) {
	if in.ThreadID != "" && !slices.ContainsFunc(m.messages, func(x *mailMessage) bool { return x.ThreadID == in.ThreadID }) {
		return nil, m.missingError("thread", in.ThreadID)
	}
	if slices.ContainsFunc(in.To, func(to string) bool { return strings.HasSuffix(to, "@bounce.example") }) {
		return nil, errors.New("550 Mailbox unavailable: the domain bounce.example accepts no mail")
	}
	id := fmt.Sprintf("19a%09x", len(m.effects))
	msg := &mailMessage{ID: id, ThreadID: orDefault(
		in.ThreadID, "t"+id,
	), Labels: []string{label}, From: "Nordlys Sales <" + m.me + ">", To: in.To, Subject: in.Subject,
		Date: m.nextTime(), body: fixedContent(in.Body)}
	m.messages = append([]*mailMessage{msg}, m.messages...)
	m.byID[id] = msg
	return msg, nil
}

type storedMessage struct {
	ID       string   `json:"id"`
	ThreadID string   `json:"threadId"`
	Labels   []string `json:"labelIds"`
}

func (m *mailServer) sendMessage(in mailInput) (toolResult, error) {
	msg, err := m.addMessage(in, "SENT")
	if err != nil {
		return toolResult{}, err
	}
	m.recordEffect("send_message", msg.ID, "to %s", strings.Join(in.To, ", "))
	return structuredResult(storedMessage{msg.ID, msg.ThreadID, msg.Labels})
}

func (m *mailServer) saveDraft(in mailInput) (toolResult, error) {
	msg, err := m.addMessage(in, "DRAFT")
	if err != nil {
		return toolResult{}, err
	}
	m.drafts++
	m.recordEffect("create_draft", msg.ID, "%s", in.Subject)
	return textResult("Created draft r-%d with message %s.", m.drafts, msg.ID)
}

func (m *mailServer) modifyLabels(in struct {
	IDs    []string `json:"ids"`
	Add    []string `json:"addLabelIds"`
	Remove []string `json:"removeLabelIds"`
}) (toolResult, error) {
	for _, id := range in.IDs {
		if _, err := m.findMessage(id); err != nil {
			return toolResult{}, err
		}
	}
	for _, id := range in.IDs {
		msg := m.byID[id]
		labels := slices.DeleteFunc(
			slices.Clone(msg.Labels),
			func(l string) bool { return slices.Contains(in.Remove, l) || slices.Contains(in.Add, l) },
		)
		msg.Labels = append(labels, in.Add...)
		m.recordEffect("modify_labels", id, "%s", strings.Join(msg.Labels, " "))
	}
	return textResult("Changed the labels of %d messages.", len(in.IDs))
}

func (m *mailServer) trashMessage(in struct {
	ID string `json:"id"`
}) (toolResult, error) {
	msg, err := m.findMessage(in.ID)
	if err != nil {
		return toolResult{}, err
	}
	msg.Labels = []string{"TRASH"}
	m.recordEffect("trash_message", msg.ID, "%s", msg.Subject)
	return structuredResult(storedMessage{msg.ID, msg.ThreadID, msg.Labels})
}
