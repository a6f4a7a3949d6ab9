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
	deployPolls     = 8               // reads of the channel until the deployment is done …
	deployPatience  = 2 * time.Second // … or the time since the first of them
	chatChannels    = 24
	messagesPerChan = 160
)

type chat struct {
	*base
	w        *world
	channels []*channel
	polls    int
	watched  time.Time        // when the deployment was first read
	clockNow func() time.Time // real time, for the deployment alone
}

type channel struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Topic    string `json:"topic"`
	Private  bool   `json:"is_private"`
	Archived bool   `json:"is_archived"`
	Members  int    `json:"num_members"`

	messages []*chatMessage // oldest first
}

// chatMessage is a message. Its channel and timestamp, "seconds.micros", identify it.
type chatMessage struct {
	User      string     `json:"user"`
	TS        string     `json:"ts"`
	Thread    string     `json:"thread_ts,omitempty"`
	Text      string     `json:"text"`
	Replies   int        `json:"reply_count,omitempty"`
	Reactions []reaction `json:"reactions,omitempty"`
	Edited    bool       `json:"edited,omitempty"`
}

type reaction struct {
	Name  string   `json:"name"`
	Count int      `json:"count"`
	Users []string `json:"users"`
}

func buildChat(b *base) map[string]tool {
	c := &chat{base: b, w: newWorld(), clockNow: time.Now}
	c.fill()
	return map[string]tool{
		"list_channels":       read(c.listChannels),
		"get_channel_history": write(c.history), // reading moves the deployment on
		"get_thread_replies":  read(c.replies),
		"search_messages":     read(c.search),
		"list_users":          read(c.listUsers),
		"get_user_profile":    read(c.profile),
		"get_audit_log":       read(c.auditLog),
		"send_message":        write(c.send),
		"update_message":      write(c.update),
		"delete_message":      write(c.remove),
		"add_reaction":        write(c.react),
	}
}

func stamp(t time.Time) string { return fmt.Sprintf("%d.%06d", t.Unix(), t.Nanosecond()/1000) }

func (c *chat) fill() {
	r := seeded("chat")
	a := newAuthor(c.w, "chat", r)
	names := strings.Fields("general random sales-emea sales-americas sales-apac support incidents engineering firmware cloud design product " +
		"finance legal people travel wins competitors field-service calibration partners security office-oslo book-club")
	for i := range chatChannels {
		ch := &channel{ID: fmt.Sprintf("C0%04d", 100+i), Name: names[i], Topic: a.sentence(), Private: i%9 == 8,
			Archived: names[i] == "book-club", Members: between(r, 5, staffCount)}
		start := now.AddDate(0, 0, -60)
		for range messagesPerChan {
			start = start.Add(time.Duration(between(r, 60, 60_000)) * time.Second)
			if !start.Before(now) {
				break
			}
			m := &chatMessage{User: pick(r, c.w.staff).ID, TS: stamp(start), Text: a.sentence()}
			if r.IntN(8) == 0 {
				m.Reactions = []reaction{{pick(r, []string{"thumbsup", "eyes", "tada"}), 1, []string{pick(r, c.w.staff).ID}}}
			}
			if last := len(ch.messages) - 1; r.IntN(6) == 0 && last >= 0 && ch.messages[last].Thread == "" {
				m.Thread = ch.messages[last].TS
				ch.messages[last].Replies++
			}
			ch.messages = append(ch.messages, m)
		}
		c.channels = append(c.channels, ch)
	}
	deploy := &channel{ID: deployChannel, Name: "deployments", Topic: "Messages of the deployment bot", Members: 17}
	deploy.messages = []*chatMessage{{User: "B0DEPLOY", TS: stamp(now), Text: "deployment of aurora-ingest 4.2.0 to production started by " + c.w.staff[5].name()}}
	c.channels = append(c.channels, deploy)
}

// refused returns an error in the format of this product's API.
func refused(code, format string, args ...any) error {
	return fmt.Errorf("%s: %s", code, fmt.Sprintf(format, args...))
}

func (c *chat) channel(id string) (*channel, error) {
	i := slices.IndexFunc(c.channels, func(ch *channel) bool { return ch.ID == id || "#"+ch.Name == id || ch.Name == id })
	if i >= 0 {
		return c.channels[i], nil
	}
	if err := c.provoked(id); err != nil {
		return nil, err
	}
	return nil, refused("channel_not_found", "no channel has the id or name '%s'; list_channels lists them", id)
}

func (ch *channel) find(ts string) (int, error) {
	i := slices.IndexFunc(ch.messages, func(m *chatMessage) bool { return m.TS == ts })
	if i < 0 {
		return -1, refused("message_not_found", "#%s has no message with ts '%s'", ch.Name, ts)
	}
	return i, nil
}

type cursorMeta struct {
	Next string `json:"next_cursor"`
}

func (c *chat) listChannels(in struct {
	Types           []string `json:"types"`
	ExcludeArchived bool     `json:"exclude_archived"`
	Limit           int      `json:"limit"`
	Cursor          string   `json:"cursor"`
}) (result, error) {
	var list []*channel
	for _, ch := range c.channels {
		wanted := len(in.Types) == 0 || slices.Contains(in.Types, map[bool]string{true: "private_channel", false: "public_channel"}[ch.Private])
		if wanted && !(in.ExcludeArchived && ch.Archived) {
			list = append(list, ch)
		}
	}
	page, next, err := pageByToken(list, "channels", in.Cursor, or(in.Limit, 100))
	if err != nil {
		return result{}, refused("invalid_cursor", "%v", err)
	}
	return jsonText(struct {
		OK       bool       `json:"ok"`
		Channels []*channel `json:"channels"`
		Meta     cursorMeta `json:"response_metadata"`
	}{true, page, cursorMeta{next}})
}

type messagePage struct {
	OK       bool           `json:"ok"`
	Messages []*chatMessage `json:"messages"`
	HasMore  bool           `json:"has_more"`
	Meta     cursorMeta     `json:"response_metadata"`
}

func (c *chat) history(in struct {
	Channel string `json:"channel"`
	Oldest  string `json:"oldest"`
	Latest  string `json:"latest"`
	Limit   int    `json:"limit"`
	Cursor  string `json:"cursor"`
}) (result, error) {
	ch, err := c.channel(in.Channel)
	if err != nil {
		return result{}, err
	}
	if ch.ID == deployChannel {
		c.deploy(ch)
	}
	var list []*chatMessage
	for _, m := range slices.Backward(ch.messages) {
		if (m.Thread == "" || m.Thread == m.TS) && after(m.TS, in.Oldest) && (in.Latest == "" || after(in.Latest, m.TS)) {
			list = append(list, m)
		}
	}
	return messagesPage(list, "history:"+ch.ID, in.Cursor, or(in.Limit, 50))
}

// after reports whether ts is later than other. Any time is later than "".
func after(ts, other string) bool {
	x, _ := strconv.ParseFloat(ts, 64)
	y, _ := strconv.ParseFloat(other, 64)
	return x > y
}

func messagesPage(list []*chatMessage, scope, cursor string, limit int) (result, error) {
	page, next, err := pageByToken(list, scope, cursor, limit)
	if err != nil {
		return result{}, refused("invalid_cursor", "%v", err)
	}
	return jsonText(messagePage{true, page, next != "", cursorMeta{next}})
}

// deploy advances the deployment by one step. It is called each time the channel is read.
func (c *chat) deploy(ch *channel) {
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
	ch.messages = append(ch.messages, &chatMessage{User: "B0DEPLOY", TS: stamp(now.Add(time.Duration(c.polls) * 15 * time.Second)), Text: text})
}

func (c *chat) replies(in struct {
	Channel string `json:"channel"`
	Thread  string `json:"thread_ts"`
}) (result, error) {
	ch, err := c.channel(in.Channel)
	if err != nil {
		return result{}, err
	}
	i, err := ch.find(in.Thread)
	if err != nil {
		return result{}, refused("thread_not_found", "#%s has no message with ts '%s'", ch.Name, in.Thread)
	}
	list := []*chatMessage{ch.messages[i]}
	for _, m := range ch.messages {
		if m.Thread == in.Thread && m.TS != in.Thread {
			list = append(list, m)
		}
	}
	return messagesPage(list, "replies", "", len(list))
}

func (c *chat) search(in struct {
	Query string `json:"query"`
	From  string `json:"from"`
	In    string `json:"in"`
	Count int    `json:"count"`
	Page  int    `json:"page"`
}) (result, error) {
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
			if has(m.Text, in.Query) && or(in.From, m.User) == m.User {
				found = append(found, match{ch.Name, m.User, m.TS, m.Text})
			}
		}
	}
	slices.SortStableFunc(found, func(a, b match) int { return strings.Compare(b.TS, a.TS) })
	size, page := or(in.Count, 20), or(in.Page, 1)
	return structured(struct {
		Matches []match `json:"matches"`
		Total   int     `json:"total"`
		Page    int     `json:"page"`
		Pages   int     `json:"pages"`
	}{pageByOffset(found, (page-1)*size, size), len(found), page, (len(found) + size - 1) / size})
}

func (c *chat) listUsers(in struct {
	Limit  int    `json:"limit"`
	Cursor string `json:"cursor"`
}) (result, error) {
	type user struct {
		ID   string `json:"id"`
		Name string `json:"name"`
		Real string `json:"real_name"`
	}
	var list []user
	for _, p := range c.w.staff {
		list = append(list, user{p.ID, p.handle(), p.name()})
	}
	page, next, err := pageByToken(list, "users", in.Cursor, or(in.Limit, 20))
	if err != nil {
		return result{}, refused("invalid_cursor", "%v", err)
	}
	return jsonText(struct {
		OK      bool       `json:"ok"`
		Members []user     `json:"members"`
		Meta    cursorMeta `json:"response_metadata"`
	}{true, page, cursorMeta{next}})
}

func (c *chat) profile(in struct {
	User string `json:"user"`
}) (result, error) {
	i := slices.IndexFunc(c.w.staff, func(p person) bool { return p.ID == in.User })
	if i < 0 {
		if err := c.provoked(in.User); err != nil {
			return result{}, err
		}
		return result{}, refused("user_not_found", "no user has the id '%s'", in.User)
	}
	p := c.w.staff[i]
	return structured(struct {
		ID      string `json:"id"`
		Name    string `json:"real_name"`
		Title   string `json:"title"`
		Email   string `json:"email"`
		Phone   string `json:"phone"`
		City    string `json:"city"`
		Country string `json:"country"`
	}{p.ID, p.name(), p.Title, p.Email, p.Phone, p.City, p.Country})
}

func (c *chat) auditLog(in struct {
	Limit int `json:"limit"`
}) (result, error) {
	return jsonText(struct {
		Entries []Effect `json:"entries"`
	}{pageByOffset(c.effectsOn(""), 0, or(in.Limit, 100))})
}

// posting returns the channel if messages can be posted to it.
func (c *chat) posting(id string) (*channel, error) {
	ch, err := c.channel(id)
	if err == nil && ch.Archived {
		return nil, refused("is_archived", "#%s is archived", ch.Name)
	}
	return ch, err
}

type posted struct {
	OK      bool   `json:"ok"`
	Channel string `json:"channel"`
	TS      string `json:"ts"`
}

func (c *chat) send(in struct {
	Channel string `json:"channel"`
	Text    string `json:"text"`
	Thread  string `json:"thread_ts"`
}) (result, error) {
	ch, err := c.posting(in.Channel)
	if err != nil {
		return result{}, err
	}
	if in.Thread != "" {
		parent, err := ch.find(in.Thread)
		if err != nil {
			return result{}, err
		}
		ch.messages[parent].Replies++
	}
	m := &chatMessage{User: c.w.staff[0].ID, TS: stamp(c.clock().Add(time.Hour)), Thread: in.Thread, Text: in.Text}
	ch.messages = append(ch.messages, m)
	c.did("send_message", ch.ID, "%s: %d characters", m.TS, len([]rune(in.Text)))
	return structured(posted{true, ch.ID, m.TS})
}

// own finds a message that the caller may change.
func (c *chat) own(channelID, ts string) (*channel, int, error) {
	ch, err := c.posting(channelID)
	if err != nil {
		return nil, 0, err
	}
	i, err := ch.find(ts)
	if err == nil && ch.messages[i].User != c.w.staff[0].ID {
		err = errors.New("cant_update_message: only the author can change or delete a message")
	}
	return ch, i, err
}

func (c *chat) update(in struct {
	Channel string `json:"channel"`
	TS      string `json:"ts"`
	Text    string `json:"text"`
}) (result, error) {
	ch, i, err := c.own(in.Channel, in.TS)
	if err != nil {
		return result{}, err
	}
	ch.messages[i].Text, ch.messages[i].Edited = in.Text, true
	c.did("update_message", ch.ID, "%s", in.TS)
	return structured(posted{true, ch.ID, in.TS})
}

func (c *chat) remove(in struct {
	Channel string `json:"channel"`
	TS      string `json:"ts"`
}) (result, error) {
	ch, i, err := c.own(in.Channel, in.TS)
	if err != nil {
		return result{}, err
	}
	ch.messages = slices.Delete(ch.messages, i, i+1)
	c.did("delete_message", ch.ID, "%s", in.TS)
	return plain("ok")
}

func (c *chat) react(in struct {
	Channel string `json:"channel"`
	TS      string `json:"ts"`
	Name    string `json:"name"`
}) (result, error) {
	ch, err := c.posting(in.Channel)
	if err != nil {
		return result{}, err
	}
	i, err := ch.find(in.TS)
	if err != nil {
		return result{}, err
	}
	m, me := ch.messages[i], c.w.staff[0].ID
	at := slices.IndexFunc(m.Reactions, func(x reaction) bool { return x.Name == in.Name })
	if at < 0 {
		at = len(m.Reactions)
		m.Reactions = append(m.Reactions, reaction{Name: in.Name})
	}
	x := &m.Reactions[at]
	if slices.Contains(x.Users, me) {
		return result{}, refused("already_reacted", "you have reacted with :%s: to this message", in.Name)
	}
	x.Users, x.Count = append(x.Users, me), x.Count+1
	c.did("add_reaction", ch.ID, "%s :%s:", in.TS, in.Name)
	return plain("ok")
}
