package effect

import "strings"

// class is what a word says as a part of a tool's name.
type class uint8

const (
	unknown    class = iota
	reads            // nothing changes
	mayWrite         // a verb that writes, or a noun: label, record
	writes           // a verb that writes
	mayDestroy       // a verb of something that cannot be undone, or a noun: order, share
	destroys         // a verb of something that cannot be undone: something is lost, sent, paid, published or run
)

// lexicon has the class of each known word. A word in two lists has the stricter class.
var lexicon = classes(map[class]string{
	reads: `list get search find read fetch query lookup describe show view count check compare download export inspect preview validate
		verify summarize summarise analyze analyse calculate compute convert parse resolve scrape crawl extract browse explore retrieve recall
		wait diff snapshot screenshot estimate glob grep whoami echo ping tree info stat return access help load monitor trace profile detect
		is has can`,
	mayWrite: `put set copy comment label tag patch change log store record build submit star fork merge close open start stop import sync register
		link schedule book pin follow complete archive type press drag resize make move mark toggle handle select connect manage join leave
		draft hover click fill navigate emulate approve enable disable`,
	writes: `create update add edit insert append upload save modify rename assign unassign reopen subscribe unsubscribe invite upsert attach
		detach reschedule unpin restore configure write generate install duplicate provision replace commit push apply`,
	mayDestroy: `post order share run trigger transfer charge refund purchase reply forward tweet broadcast dispatch rollback deploy exec reset
		clear trash empty sms email call dial trade withdrawal payout payment deletion removal destruction termination revocation erasure
		execution deployment cancellation deactivation donation`,
	destroys: `delete remove destroy purge wipe erase truncate revoke terminate uninstall unpublish deactivate overwrite unlink drop kill
		ban forget expire prune migrate withdraw buy sell pay send notify publish execute eval evaluate invoke cancel del rm rmdir nuke discard
		abort shutdown reboot halt shred evict flush liquidate donate
		löschen loeschen entfernen senden supprimer effacer envoyer payer eliminar borrar enviar pagar excluir apagar eliminare cancellare inviare
		удалить отправить 删除 刪除 发送 發送 削除 送信 삭제`,
})

func classes(lists map[class]string) map[string]class {
	m := map[string]class{}
	for _, c := range []class{reads, mayWrite, writes, mayDestroy, destroys} {
		for _, verb := range strings.Fields(lists[c]) {
			m[verb] = c
		}
	}
	return m
}

func set(words string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(words) {
		m[w] = true
	}
	return m
}

var (
	// onlyVerb has the reading verbs that are not nouns: what follows them is what they read.
	onlyVerb = set("get find read fetch lookup describe retrieve show is has can")
	// mostlyNoun has the reading verbs that are nouns in most names: a verb may follow them.
	mostlyNoun = set("snapshot load monitor profile access tree return preview help info stat trace screenshot estimate export echo")
	// documents has verbs that are nouns for things that tools read: view_log, comment_list.
	documents = set("comment label tag log store record build link schedule draft change release email text")
	// goods has verbs that are nouns for what is ordered, paid or sent: create_order, refund_status.
	goods = set("order transfer refund charge purchase payment payout withdrawal donation post tweet broadcast dispatch")
	// listing has words that say at the end of a name that it reads: payment_history.
	listing = set("status history info list details stats logs")
	// making has verbs that make what follows them.
	making = set("create make new issue submit initiate start request process place confirm do add")

	// identifiers is what "resolve" reads; anything else it changes.
	identifiers = set(`id library librarie name url uri link dns host hostname domain path address location ref reference entity entitie user username handle
		symbol import dependency place package version alias redirect variable placeholder ip coordinate timezone date`)
	// records is what "convert" changes.
	records = set("issue lead deal ticket contact task conversation opportunity quote order draft subtask account project")

	connective  = set("and or then plus also n")
	preposition = set("by for from to in via using with of on at into")
	trailing    = set("all batch bulk force async now one many multiple single")

	// gluedVerbs are looked for in words that are not known.
	gluedVerbs = []string{"delete", "remove", "destroy", "purge", "wipe", "erase", "truncate", "revoke", "terminate", "uninstall", "unpublish", "refund", "drop", "execute", "send", "publish"}
	// inflected has what is left of other forms and relatives of these verbs, and of common words that begin with one.
	inflected = set("able box down downs let out off grid er ers ing ion ions ed led ded ped ment ments ably ables ables r rs d s outs")
)
