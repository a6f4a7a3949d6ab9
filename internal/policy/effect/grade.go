package effect

import (
	"encoding/json"
	"slices"
	"strings"

	"retort/internal/core"
)

// gradeName returns the grade of an irreversible effect according to the words of a name: of a tool, a mutation, a
// function or an action. The gravest word decides, wherever it is. Only words that say so can make a name mild: a
// name is GradeSendInside only if it has a verb of sending and an object inside a workspace, as in post_message, and
// no word of another grade.
func gradeName(words []string, verb string) core.EffectGrade {
	if paying[verb] {
		return core.GradeMoney
	}
	if verb != "" && !slices.Contains(words, verb) {
		words = append(slices.Clone(words), splitWords(verb)...)
	}
	grade, _ := statedGrade(words)
	sends, post, object := false, false, ""
	for _, text := range words {
		w := lookupInName(text)
		noun := singularOf(text)
		switch {
		case sending[w.verb] && (!sends || !insideNouns[noun]):
			sends, post = true, post || posting[w.verb]
		case closedNouns[noun], insideNouns[noun] && object == "":
			object = noun
		}
	}
	switch {
	case grade != core.GradeNone:
		return grade
	case sends && (closedNouns[object] || post && object != ""):
		return core.GradeSendInside
	case sends:
		return core.GradeSendOutside
	}
	return gradePhrase(verb)
}

// gradePhrase returns the grade of a phrase because of which a name or a description is irreversible.
func gradePhrase(verb string) core.EffectGrade {
	switch {
	case paying[verb]:
		return core.GradeMoney
	case finalWords(verb), verb == "force push", isVerbPhrase(verb) && !moving[verb]:
		return core.GradeDeletion
	}
	return core.GradeOther
}

func isVerbPhrase(verb string) bool {
	return slices.ContainsFunc(verbPhrases, func(p []string) bool { return strings.Join(p, " ") == verb })
}

// gradeWord returns the grade that a word shows by itself. It returns GradeNone for a verb of sending, of which the
// object decides, and for all words that show nothing.
func gradeWord(w knownWord) core.EffectGrade {
	noun := singularOf(w.text)
	switch {
	case moneyWords[w.verb] || moneyWords[w.text] || moneyWords[noun]:
		return core.GradeMoney
	case running[w.verb] || runWords[w.verb]:
		return core.GradeOther
	case outsideWords[w.verb] || outsideWords[w.text] || outsideWords[noun]:
		return core.GradeSendOutside
	case sending[w.verb]:
		return core.GradeNone
	case w.class == destroys, w.class == mayDestroy:
		return core.GradeDeletion
	}
	return core.GradeNone
}

// gradeWithObject returns the grade of a verb that is irreversible only together with the words after it, such as
// book_flight and rotate_key.
func gradeWithObject(w knownWord, rest []string) core.EffectGrade {
	rest = rest[:min(len(rest), maxObject)]
	switch {
	case hasAny(rest, bookings) && (w.verb == "book" || w.verb == "reserve"), w.verb == "renew" && hasAny(rest, renewals):
		return core.GradeMoney
	case renewing[w.verb] && hasAny(rest, credentials), w.verb == "restore" && hasAny(rest, stores), losing[w.verb] && isIrreversible(w.verb, objectOf(rest)):
		return core.GradeDeletion
	}
	return core.GradeNone
}

// gradeText returns the grade of a verb or a phrase because of which an effect counts as irreversible.
func gradeText(verb string) core.EffectGrade {
	grade, sends := statedGrade(splitWords(verb))
	switch {
	case grade != core.GradeNone:
		return grade
	case sends:
		return core.GradeSendOutside
	}
	return gradePhrase(verb)
}

// maxStatementWords bounds how many words of a statement that is not known are looked up.
const maxStatementWords = 2000

// gradeStatement returns the grade of a statement that is not known. It may delete, and it may move money if a word in
// it says so, or if it has too many words to look at.
func gradeStatement(text string) core.EffectGrade {
	words := splitWords(strings.ToLower(text)) // query languages ignore case
	if len(words) > maxStatementWords {
		return core.GradeMoney
	}
	grade, _ := statedGrade(words)
	return max(grade, core.GradeDeletion)
}

// statedGrade returns the grade that any of the words shows by itself, or GradeNone. sends is true if one of them is a
// verb of sending.
func statedGrade(words []string) (grade core.EffectGrade, sends bool) {
	for i, text := range words {
		w := lookupInName(text)
		grade, sends = max(grade, gradeWord(w), gradeWithObject(w, words[i+1:])), sends || sending[w.verb]
	}
	return grade, sends
}

// gradeDescribed returns the grade to which a part of a description raises the grade of its tool. It is GradeNone if
// the part only says that something is sent, or that the effect cannot be undone.
func gradeDescribed(words []string) core.EffectGrade {
	if finalWords(strings.Join(words, " ")) {
		return core.GradeDeletion
	}
	grade, _ := statedGrade(words)
	return grade
}

// gradeTool returns the grade of a tool with an irreversible effect. The judgement of the name is the evidence, if it
// says that the effect is irreversible. Everything else, which a server can word more freely, only raises the grade.
func gradeTool(t *core.Tool, name, about textJudgement) core.EffectGrade {
	grade := max(name.grade, about.grade, gradeServer(t.Server), gradeSchema(t.InputSchema))
	if name.kind == core.EffectIrreversible {
		return grade
	}
	stated, _ := statedGrade(splitWords(t.Name))
	if grade = max(grade, stated); grade > core.GradeSendInside {
		return grade
	}
	return gradeText(about.verb)
}

// gradeUnsaid returns the grade of a tool of which only an annotation says that its effect is irreversible.
func gradeUnsaid(t *core.Tool) core.EffectGrade {
	stated, _ := statedGrade(splitWords(t.Name))
	return max(core.GradeOther, stated, gradeSchema(t.InputSchema))
}

// gradeServer returns GradeSendOutside if the name of a server, which a person chose, is that of a service through
// which people outside are reached.
func gradeServer(server string) core.EffectGrade {
	if slices.ContainsFunc(splitWords(server), func(w string) bool { return outsideWords[w] }) {
		return core.GradeSendOutside
	}
	return core.GradeNone
}

// gradeSchema returns the grade that the names of a tool's arguments show.
func gradeSchema(schema json.RawMessage) (grade core.EffectGrade) {
	var s struct{ Properties map[string]json.RawMessage }
	if json.Unmarshal(schema, &s) != nil {
		return core.GradeNone
	}
	for key := range s.Properties {
		grade = max(grade, gradeKey(splitWords(key)))
	}
	return grade
}

// finalWords reports whether a phrase in a description says that something is lost.
func finalWords(phrase string) bool {
	return containsAny(phrase, []string{"permanent", "overwrit", "lost", "data loss", "gone", "replaces what", "replaces the", "fully replace", "recover", "for good", "$out", "$merge"})
}

// gradeKey returns the grade that the name of an argument shows: an amount of money, or an address outside.
func gradeKey(words []string) core.EffectGrade {
	grade := core.GradeNone
	for _, text := range words {
		switch noun := singularOf(text); {
		case moneyKeys[noun]:
			return core.GradeMoney
		case addressKeys[noun]:
			grade = core.GradeSendOutside
		}
	}
	return grade
}

var (
	// moneyWords contains verbs and nouns of payments, orders and trades.
	moneyWords = wordSet(`pay buy sell order transfer charge refund purchase trade withdraw withdrawal payout payment liquidate donate donation
		redeem stake unstake lend borrow repay remit remittance disburse reimburse wager gamble bid bet settle settlement mint burn swap tip wire
		checkout rent hire invest airdrop writeoff giveaway defund fund money invoice invoices wallet balance salary payroll tax deposit
		loan credit debit subscription billing price trading stock crypto bitcoin paypal stripe iban bank
		überweisen überweist bezahlen bezahlt zahlen zahlt kaufen kauft verkaufen verkauft payer paie acheter achète vendre pagar paga comprar compra
		vender acquistare оплатить оплачивает купить продать 支付 付款 转账 轉帳 退款 购买 購買 送金 支払 購入 송금 결제 구매`)
	// sending contains verbs that send something. Their object shows to whom.
	sending = wordSet(`send post notify message reply respond deliver transmit distribute announce resend remind nudge whisper alert
		senden sendet versenden versendet envoyer envoie enviar envía envia inviare invia verzenden отправить отправляет 发送 發送 送信 전송 발송`)
	// posting contains verbs of sending that mean a message in a workspace if their object is one: post_message.
	// With another verb, as in send_message, the message can go to anybody.
	posting = wordSet("post reply respond")
	// insideNouns contains nouns for what people write to each other in a workspace.
	insideNouns = wordSet("message comment note reply response")
	// closedNouns contains nouns for places inside a workspace. Whatever is sent there stays there.
	closedNouns = wordSet("channel thread chat room ticket issue discussion conversation standup workspace teammate")
	// outsideWords contains verbs and nouns for sending to people outside or to the public.
	outsideWords = wordSet(`publish republish broadcast rebroadcast tweet retweet repost crosspost syndicate disseminate share forward mail email gmail
		outlook imap smtp sms mms call dial fax phone telephone whatsapp telegram signal twitter facebook instagram linkedin reddit youtube tiktok mastodon
		bluesky twilio sendgrid mailchimp mailgun newsletter campaign press public webhook invite invitation customer client external recipient contact
		subscriber audience blog story feed dm 发布 發布 公開`)
	// runWords contains verbs that run something, or whose effect depends on what they start.
	runWords = wordSet(`run trigger deploy redeploy exec rerun relaunch spawn inject detonate launch release rollout shell bash powershell ssh sudo
		repl command cmd terminal eject ship attack exploit replay failover cutover invoke shutdown reboot halt poweroff finalize finalise execution
		deployment migration migrate rebase handover sign dispatch 执行 執行 実行 실행`)
	// paying and moving contain the phrases of verbPhrases that mean a payment, and those that lose nothing.
	paying = map[string]bool{"write off": true, "cash out": true, "pay out": true, "give away": true}
	moving = map[string]bool{
		"go live": true, "fail over": true, "cut over": true, "sign over": true, "hand over": true, "power off": true,
		"power cycle": true,
	}
	// losing contains verbs that lose something together with the objects in finals.
	losing = wordSet("disable suspend merge format initialize initialise init detach disconnect flash rewrite amend alter edit replace fire sunset")
	// moneyKeys contains nouns in names of arguments that show that money moves.
	moneyKeys = wordSet("amount price currency payment iban payout refund charge fee wallet")
	// addressKeys contains nouns in names of arguments that show that something is sent outside.
	addressKeys = wordSet("email mail phone recipient webhook invitee attendee bcc cc")
)
