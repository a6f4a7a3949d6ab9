package demo

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	deployChannel   = "C0DEPLOY"
	deployPolls     = 8               // reads of the channel after which the simulated deployment is done
	deployPatience  = 2 * time.Second // time since the first read after which it is done, too
	chatChannels    = 24
	messagesPerChan = 160
)

type chatServer struct {
	*serverBase
	w        *demoWorld
	channels []*chatChannel
	polls    int
	watched  time.Time        // when the deployment was first read
	clockNow func() time.Time // real time, used only for the deployment
}

type chatChannel struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Topic    string `json:"topic"`
	Private  bool   `json:"is_private"`
	Archived bool   `json:"is_archived"`
	Members  int    `json:"num_members"`

	messages []*chatMessage // oldest first
}

// chatMessage represents a message. No two messages have the same channel and timestamp, which has the form
// "seconds.micros".
type chatMessage struct {
	User      string         `json:"user"`
	TS        string         `json:"ts"`
	Thread    string         `json:"thread_ts,omitempty"`
	Text      string         `json:"text"`
	Replies   int            `json:"reply_count,omitempty"`
	Reactions []chatReaction `json:"reactions,omitempty"`
	Edited    bool           `json:"edited,omitempty"`
}

type chatReaction struct {
	Name  string   `json:"name"`
	Count int      `json:"count"`
	Users []string `json:"users"`
}

func buildChat(b *serverBase) map[string]toolFunc {
	c := &chatServer{serverBase: b, w: newWorld(), clockNow: time.Now}
	c.fillChannels()
	return map[string]toolFunc{
		"list_channels":       readTool(c.listChannels),
		"get_channel_history": writeTool(c.readHistory), // reading moves the deployment on
		"get_thread_replies":  readTool(c.readReplies),
		"search_messages":     readTool(c.searchMessages),
		"list_users":          readTool(c.listUsers),
		"get_user_profile":    readTool(c.userProfile),
		"get_audit_log":       readTool(c.auditLog),
		"send_message":        writeTool(c.sendMessage),
		"update_message":      writeTool(c.updateMessage),
		"delete_message":      writeTool(c.removeMessage),
		"add_reaction":        writeTool(c.addReaction),
	}
}

func formatTimestamp(t time.Time) string {
	return fmt.Sprintf("%d.%06d", t.Unix(), t.Nanosecond()/1000)
}

func (c *chatServer) fillChannels() {
	r := newSeededRand("chat")
	a := newAuthor(c.w, "chat", r)
	names := strings.Fields("general random sales-emea sales-americas sales-apac support incidents engineering firmware cloud design product " +
		"finance legal people travel wins competitors field-service calibration partners security office-oslo book-club")
	for i := range chatChannels {
		ch := &chatChannel{ID: fmt.Sprintf("C0%04d", 100+i), Name: names[i], Topic: a.writeSentence(), Private: i%9 == 8,
			Archived: names[i] == "book-club", Members: randomBetween(r, 5, staffCount)}
		start := demoToday.AddDate(0, 0, -60)
		for range messagesPerChan {
			start = start.Add(time.Duration(randomBetween(r, 60, 60_000)) * time.Second)
			if !start.Before(demoToday) {
				break
			}
			m := &chatMessage{User: pickOne(r, c.w.staff).ID, TS: formatTimestamp(start), Text: a.writeSentence()}
			if r.IntN(8) == 0 {
				m.Reactions = []chatReaction{{pickOne(r, []string{"thumbsup", "eyes", "tada"}), 1, []string{pickOne(r, c.w.staff).ID}}}
			}
			if last := len(ch.messages) - 1; r.IntN(6) == 0 && last >= 0 && ch.messages[last].Thread == "" {
				m.Thread = ch.messages[last].TS
				ch.messages[last].Replies++
			}
			ch.messages = append(ch.messages, m)
		}
		c.channels = append(c.channels, ch)
	}
	deploy := &chatChannel{ID: deployChannel, Name: "deployments", Topic: "Messages of the deployment bot", Members: 17}
	deploy.messages = []*chatMessage{{
		User: "B0DEPLOY", TS: formatTimestamp(demoToday),
		Text: "deployment of aurora-ingest 4.2.0 to production started by " + c.w.staff[5].fullName(),
	}}
	c.channels = append(c.channels, deploy)
}

// apiError returns an error in the format that the imitated product's API uses.
func apiError(code, format string, args ...any) error {
	return fmt.Errorf("%s: %s", code, fmt.Sprintf(format, args...))
}

func (c *chatServer) findChannel(id string) (*chatChannel, error) {
	i := slices.IndexFunc(c.channels, func(ch *chatChannel) bool { return ch.ID == id || "#"+ch.Name == id || ch.Name == id })
	if i >= 0 {
		return c.channels[i], nil
	}
	if err := c.provokedError(id); err != nil {
		return nil, err
	}
	return nil, apiError("channel_not_found", "no channel has the id or name '%s'; list_channels lists them", id)
}

func (ch *chatChannel) findMessage(ts string) (int, error) {
	i := slices.IndexFunc(ch.messages, func(m *chatMessage) bool { return m.TS == ts })
	if i < 0 {
		return -1, apiError("message_not_found", "#%s has no message with ts '%s'", ch.Name, ts)
	}
	return i, nil
}

type cursorMeta struct {
	Next string `json:"next_cursor"`
}

func (c *chatServer) listChannels(in struct {
	Types           []string `json:"types"`
	ExcludeArchived bool     `json:"exclude_archived"`
	Limit           int      `json:"limit"`
	Cursor          string   `json:"cursor"`
}) (toolResult, error) {
	var list []*chatChannel
	for _, ch := range c.channels {
		wanted := len(in.Types) == 0 || slices.Contains(in.Types, map[bool]string{true: "private_channel", false: "public_channel"}[ch.Private])
		if wanted && !(in.ExcludeArchived && ch.Archived) {
			list = append(list, ch)
		}
	}
	page, next, err := pageByToken(list, "channels", in.Cursor, orDefault(in.Limit, 100))
	if err != nil {
		return toolResult{}, apiError("invalid_cursor", "%v", err)
	}
	return jsonText(struct {
		OK       bool           `json:"ok"`
		Channels []*chatChannel `json:"channels"`
		Meta     cursorMeta     `json:"response_metadata"`
	}{true, page, cursorMeta{next}})
}

type messagePage struct {
	OK       bool           `json:"ok"`
	Messages []*chatMessage `json:"messages"`
	HasMore  bool           `json:"has_more"`
	Meta     cursorMeta     `json:"response_metadata"`
}

func (c *chatServer) readHistory(in struct {
	Channel string `json:"channel"`
	Oldest  string `json:"oldest"`
	Latest  string `json:"latest"`
	Limit   int    `json:"limit"`
	Cursor  string `json:"cursor"`
}) (toolResult, error) {
	ch, err := c.findChannel(in.Channel)
	if err != nil {
		return toolResult{}, err
	}
	if ch.ID == deployChannel {
		c.advanceDeployment(ch)
	}
	var list []*chatMessage
	for _, m := range slices.Backward(ch.messages) {
		if (m.Thread == "" || m.Thread == m.TS) && isAfter(m.TS, in.Oldest) && (in.Latest == "" || isAfter(in.Latest, m.TS)) {
			list = append(list, m)
		}
	}
	return messagesPage(list, "history:"+ch.ID, in.Cursor, orDefault(in.Limit, 50))
}

// isAfter reports whether the timestamp ts is later than other. Every timestamp is later than "".
func isAfter(ts, other string) bool {
	x, _ := strconv.ParseFloat(ts, 64)
	y, _ := strconv.ParseFloat(other, 64)
	return x > y
}

func messagesPage(list []*chatMessage, scope, cursor string, limit int) (toolResult, error) {
	page, next, err := pageByToken(list, scope, cursor, limit)
	if err != nil {
		return toolResult{}, apiError("invalid_cursor", "%v", err)
	}
	return jsonText(messagePage{true, page, next != "", cursorMeta{next}})
}

// advanceDeployment advances the simulated deployment by one step. It is called each time a client reads the channel
// in which the deployment is reported.
func (c *chatServer) advanceDeployment(ch *chatChannel) {
	if c.polls >= deployPolls {
		return
	}
	if c.polls == 0 {
		c.watched = c.clockNow()
	}
	c.polls++
	if c.clockNow().Sub(c.watched) >= deployPatience {
		c.polls = deployPolls
	}
	text := fmt.Sprintf("rollout of aurora-ingest 4.2.0: %d of %d pods ready", c.polls*5, deployPolls*5)
	if c.polls == deployPolls {
		text = "deployment complete: aurora-ingest 4.2.0 is live in production, 40 of 40 pods ready, error rate 0.02 %"
	}
	ch.messages = append(ch.messages, &chatMessage{
		User: "B0DEPLOY", TS: formatTimestamp(demoToday.Add(time.Duration(c.polls) * 15 * time.Second)), Text: text,
	})
}

func (c *chatServer) readReplies(in struct {
	Channel string `json:"channel"`
	Thread  string `json:"thread_ts"`
}) (toolResult, error) {
	ch, err := c.findChannel(in.Channel)
	if err != nil {
		return toolResult{}, err
	}
	i, err := ch.findMessage(in.Thread)
	if err != nil {
		return toolResult{}, apiError("thread_not_found", "#%s has no message with ts '%s'", ch.Name, in.Thread)
	}
	list := []*chatMessage{ch.messages[i]}
	for _, m := range ch.messages {
		if m.Thread == in.Thread && m.TS != in.Thread {
			list = append(list, m)
		}
	}
	return messagesPage(list, "replies", "", len(list))
}

func (c *chatServer) searchMessages(in struct {
	Query string `json:"query"`
	From  string `json:"from"`
	In    string `json:"in"`
	Count int    `json:"count"`
	Page  int    `json:"page"`
}) (toolResult, error) {
	type match struct {
		Channel string `json:"channel"`
		User    string `json:"user"`
		TS      string `json:"ts"`
		Text    string `json:"text"`
	}
	found := []match{}
	for _, ch := range c.channels {
		if in.In != "" && in.In != ch.ID && strings.TrimPrefix(in.In, "#") != ch.Name {
			continue
		}
		for _, m := range ch.messages {
			if containsFold(m.Text, in.Query) && orDefault(in.From, m.User) == m.User {
				found = append(found, match{ch.Name, m.User, m.TS, m.Text})
			}
		}
	}
	slices.SortStableFunc(found, func(a, b match) int { return strings.Compare(b.TS, a.TS) })
	size, page := orDefault(in.Count, 20), orDefault(in.Page, 1)
	return structuredResult(struct {
		Matches []match `json:"matches"`
		Total   int     `json:"total"`
		Page    int     `json:"page"`
		Pages   int     `json:"pages"`
	}{pageByOffset(found, (page-1)*size, size), len(found), page, (len(found) + size - 1) / size})
}

func (c *chatServer) listUsers(in struct {
	Limit  int    `json:"limit"`
	Cursor string `json:"cursor"`
}) (toolResult, error) {
	type user struct {
		ID   string `json:"id"`
		Name string `json:"name"`
		Real string `json:"real_name"`
	}
	var list []user
	for _, p := range c.w.staff {
		list = append(list, user{p.ID, p.mailName(), p.fullName()})
	}
	page, next, err := pageByToken(list, "users", in.Cursor, orDefault(in.Limit, 20))
	if err != nil {
		return toolResult{}, apiError("invalid_cursor", "%v", err)
	}
	return jsonText(struct {
		OK      bool       `json:"ok"`
		Members []user     `json:"members"`
		Meta    cursorMeta `json:"response_metadata"`
	}{true, page, cursorMeta{next}})
}

func (c *chatServer) userProfile(in struct {
	User string `json:"user"`
}) (toolResult, error) {
	i := slices.IndexFunc(c.w.staff, func(p worldPerson) bool { return p.ID == in.User })
	if i < 0 {
		if err := c.provokedError(in.User); err != nil {
			return toolResult{}, err
		}
		return toolResult{}, apiError("user_not_found", "no user has the id '%s'", in.User)
	}
	p := c.w.staff[i]
	return structuredResult(struct {
		ID      string `json:"id"`
		Name    string `json:"real_name"`
		Title   string `json:"title"`
		Email   string `json:"email"`
		Phone   string `json:"phone"`
		City    string `json:"city"`
		Country string `json:"country"`
	}{p.ID, p.fullName(), p.Title, p.Email, p.Phone, p.City, p.Country})
}

func (c *chatServer) auditLog(in struct {
	Limit int `json:"limit"`
}) (toolResult, error) {
	return jsonText(struct {
		Entries []RecordedEffect `json:"entries"`
	}{pageByOffset(c.effectsOn(""), 0, orDefault(in.Limit, 100))})
}

// findPostable returns a channel if messages can be posted to it.
func (c *chatServer) findPostable(id string) (*chatChannel, error) {
	ch, err := c.findChannel(id)
	if err == nil && ch.Archived {
		return nil, apiError("is_archived", "#%s is archived", ch.Name)
	}
	return ch, err
}

type postedMessage struct {
	OK      bool   `json:"ok"`
	Channel string `json:"channel"`
	TS      string `json:"ts"`
}

func (c *chatServer) sendMessage(in struct {
	Channel string `json:"channel"`
	Text    string `json:"text"`
	Thread  string `json:"thread_ts"`
}) (toolResult, error) {
	ch, err := c.findPostable(in.Channel)
	if err != nil {
		return toolResult{}, err
	}
	if in.Thread != "" {
		parent, err := ch.findMessage(in.Thread)
		if err != nil {
			return toolResult{}, err
		}
		ch.messages[parent].Replies++
	}
	m := &chatMessage{User: c.w.staff[0].ID, TS: formatTimestamp(c.nextTime().Add(time.Hour)), Thread: in.Thread, Text: in.Text}
	ch.messages = append(ch.messages, m)
	c.recordEffect("send_message", ch.ID, "%s: %d characters", m.TS, len([]rune(in.Text)))
	return structuredResult(postedMessage{true, ch.ID, m.TS})
}

// findOwnMessage returns a message that the caller may change.
func (c *chatServer) findOwnMessage(channelID, ts string) (*chatChannel, int, error) {
	ch, err := c.findPostable(channelID)
	if err != nil {
		return nil, 0, err
	}
	i, err := ch.findMessage(ts)
	if err == nil && ch.messages[i].User != c.w.staff[0].ID {
		err = errors.New("cant_update_message: only the author can change or delete a message")
	}
	return ch, i, err
}

func (c *chatServer) updateMessage(in struct {
	Channel string `json:"channel"`
	TS      string `json:"ts"`
	Text    string `json:"text"`
}) (toolResult, error) {
	ch, i, err := c.findOwnMessage(in.Channel, in.TS)
	if err != nil {
		return toolResult{}, err
	}
	ch.messages[i].Text, ch.messages[i].Edited = in.Text, true
	c.recordEffect("update_message", ch.ID, "%s", in.TS)
	return structuredResult(postedMessage{true, ch.ID, in.TS})
}

func (c *chatServer) removeMessage(in struct {
	Channel string `json:"channel"`
	TS      string `json:"ts"`
}) (toolResult, error) {
	ch, i, err := c.findOwnMessage(in.Channel, in.TS)
	if err != nil {
		return toolResult{}, err
	}
	ch.messages = slices.Delete(ch.messages, i, i+1)
	c.recordEffect("delete_message", ch.ID, "%s", in.TS)
	return textResult("ok")
}

func (c *chatServer) addReaction(in struct {
	Channel string `json:"channel"`
	TS      string `json:"ts"`
	Name    string `json:"name"`
}) (toolResult, error) {
	ch, err := c.findPostable(in.Channel)
	if err != nil {
		return toolResult{}, err
	}
	i, err := ch.findMessage(in.TS)
	if err != nil {
		return toolResult{}, err
	}
	m, me := ch.messages[i], c.w.staff[0].ID
	at := slices.IndexFunc(m.Reactions, func(x chatReaction) bool { return x.Name == in.Name })
	if at < 0 {
		at = len(m.Reactions)
		m.Reactions = append(m.Reactions, chatReaction{Name: in.Name})
	}
	x := &m.Reactions[at]
	if slices.Contains(x.Users, me) {
		return toolResult{}, apiError("already_reacted", "you have reacted with :%s: to this message", in.Name)
	}
	x.Users, x.Count = append(x.Users, me), x.Count+1
	c.recordEffect("add_reaction", ch.ID, "%s :%s:", in.TS, in.Name)
	return textResult("ok")
}
