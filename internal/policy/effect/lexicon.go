package effect

import (
	"strings"
	"sync"
)

// wordClass says what a word in a tool's name suggests about the tool's effect.
type wordClass uint8

const (
	unknown    wordClass = iota
	reads                // nothing changes
	mayWrite             // a verb that writes, or a noun: label, record
	writes               // a verb that writes
	mayDestroy           // a verb of something that cannot be undone, or a noun: order, share
	destroys             // a verb of something that cannot be undone: something is lost, sent, paid, published or run
)

// lexicon returns the class of each known word. A word in two lists has the stricter class. The map is built when it
// is first used, because most processes judge no tool.
var lexicon = sync.OnceValue(func() map[string]wordClass { return classesByWord(wordLists) })

var wordLists = map[wordClass]string{
	reads: `list get search find read fetch query lookup describe show view count check compare download export inspect preview validate
		verify summarize summarise analyze analyse calculate compute convert parse resolve scrape crawl extract browse explore retrieve recall
		wait diff snapshot screenshot estimate glob grep whoami echo ping tree info stat return access help load monitor trace profile detect
		explain research ask classify translate transcribe recognize recognise predict forecast simulate visualize visualise aggregate enumerate
		introspect diagnose audit scan probe encode decode tokenize infer locate discover suggest recommend autocomplete geocode measure identify
		determine assess examine interpret correlate enrich peek poll tail whois inference embedding analysis healthcheck overview summary
		statistic lint ocr hash embed think reason ps
		is has can`,
	mayWrite: `put set copy comment label tag patch change log store record build submit star fork merge close open start stop import sync register
		link schedule book pin follow complete archive type press drag resize make move mark toggle handle select connect manage join leave
		draft hover click fill navigate emulate approve enable disable suspend block lock mute hide flag vote rate rank review
		track  place stage queue enqueue push pull switch flip split group nest focus scroll tap swipe play pause skip seek render
		format fix repair optimize index cache mount scale upgrade downgrade bump rotate renew refresh reload restart resume accept reject fire flash sunset requeue
		decline deny delegate transition promote demote claim reserve hold react like favorite favourite bookmark note backup mirror
		acknowledge ack snooze dismiss escalate prepare process apply compress zip encrypt decrypt reorder watch paint draw silence turn cast`,
	writes: `create update add edit insert append upload save modify rename assign unassign reopen subscribe unsubscribe invite upsert attach
		detach reschedule unpin restore configure write generate install duplicate provision replace commit bind unbind associate
		disassociate unarchive unblock unlock unmute unhide unstar unfollow unflag unwatch unset undo disconnect clone replicate populate
		initialize initialise init bootstrap seed compile rebuild reindex ingest annotate highlight remember memorize persist prepend
		increment decrement reassign enroll enrol prioritize prioritise reprioritize rewrite refactor amend adjust alter combine reconcile
		authenticate authorize authorise login logout customize customise compose transform unzip
		grant give permit elevate regenerate recreate rekey reissue impersonate`,
	mayDestroy: `post order share run trigger transfer charge refund purchase reply forward tweet broadcast dispatch rollback deploy exec reset
		clear trash empty sms email call dial trade withdrawal payout payment deletion removal destruction termination revocation erasure
		execution deployment cancellation deactivation donation migration launch release respond message clean cleanup revert swap stake mint
		burn bid bet tip wire checkout fax remittance settlement sign rollout restoration regeneration shell bash
		powershell ssh sudo repl command cmd terminal eject ship alert rent hire invest attack exploit replay
		mail deleter remover eraser destroyer purger wiper killer terminator shredder takedown writeoff layoff giveaway handover
		failover cutover airdrop forfeit surrender sack destruct`,
	destroys: englishFinal + `
		löschen loeschen loschen löscht loescht loscht lösche entfernen entfernt vernichten vernichtet widerrufen widerruft kündigen kündigt
		senden sendet versenden versendet überweisen überweist bezahlen bezahlt zahlen zahlt kaufen kauft verkaufen verkauft
		supprimer supprime effacer efface détruire détruit révoquer révoque envoyer envoie payer paie acheter achète vendre
		eliminar elimina borrar borra destruir destruye revocar revoca enviar envía envia pagar paga comprar compra vender
		excluir exclui apagar apaga eliminare cancellare cancella distruggere inviare invia acquistare
		usunąć usuwa verwijderen verwijdert verzenden
		удалить удаляет удали стереть стирает очистить уничтожить отозвать отправить отправляет оплатить оплачивает купить продать ` +
		ideographic,
}

// englishFinal contains the irreversible English verbs.
const englishFinal = `delete remove destroy purge wipe erase truncate revoke terminate uninstall unpublish deactivate overwrite unlink drop kill
		ban forget expire prune migrate withdraw buy sell pay send notify publish execute eval evaluate invoke cancel del rm rmdir nuke discard
		abort shutdown reboot halt shred evict flush liquidate donate
		obliterate eliminate expunge annihilate decommission deprovision offboard undeploy dissolve invalidate nullify scrub anonymize
		anonymise redact reap zap expel kick demolish eradicate dispose blank poweroff wipeout squash rebase
		redeem unstake lend borrow repay remit disburse reimburse wager gamble finalize finalise settle deliver transmit distribute
		disseminate syndicate announce retweet repost crosspost resend rebroadcast republish nudge remind whisper
		teardown closeout unregister deregister unenroll disenroll delist killall rmrf
		redeploy rerun relaunch spawn inject detonate void retract rescind drain dequeue pop consume shut flushdb flushall dropdb rmtree
		annul clobber dealloc deallocate decimate degauss disband dismantle excise extirpate incinerate jettison mkfs
		dlt rmv rvk unmount umount wipefs pkill userdel groupdel deluser delgroup rmuser rmgroup reformat reimage reflash relinquish repartition
		scuttle undelegate unprovision vaporize vaporise zeroize zeroise zeroout hdel srem zrem lrem lpop rpop spop
		unfriend disinherit disown defund unallocate unenrol`

// ideographic contains irreversible verbs in scripts that put no spaces between words.
const ideographic = `删除 刪除 移除 清空 清除 销毁 銷毀 抹除 注销 註銷 撤销 撤銷 吊销 终止 終止 卸载 卸載 解雇 发送 發送 发布 發布 支付 付款 转账 轉帳 退款 购买 購買 执行 執行
	削除 消去 抹消 破棄 解約 取り消 送信 送金 支払 購入 公開 実行 삭제 제거 파기 폐기 취소 해지 전송 발송 송금 결제 구매 실행`

func classesByWord(lists map[wordClass]string) map[string]wordClass {
	m := map[string]wordClass{}
	for _, c := range []wordClass{reads, mayWrite, writes, mayDestroy, destroys} {
		for _, verb := range strings.Fields(lists[c]) {
			m[verb] = c
		}
	}
	return m
}

func wordSet(words string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(words) {
		m[w] = true
	}
	return m
}

var (
	// onlyVerb contains reading verbs that are never nouns. The words after such a verb name the object that is read.
	onlyVerb = wordSet("get find read fetch lookup describe retrieve show track is has can")
	// asks contains reading verbs such as get. A word in front of such a verb is a noun, as order is in
	// order_get_status.
	asks = wordSet("get find read fetch lookup describe retrieve list search")
	// mostlyNoun contains reading verbs, such as snapshot, that are nouns in most names. Therefore the word after one
	// of them may be a verb, as in snapshot_transfer_disk.
	mostlyNoun = wordSet("snapshot load monitor profile access tree return preview help info stat trace screenshot estimate export echo")
	// alsoNoun contains reading verbs that are nouns about half of the time.
	alsoNoun = wordSet("search query check count diff scan audit research summary analysis")
	// documents contains verbs that are also nouns for things that tools read, as in view_log or comment_list.
	documents = wordSet(`comment label tag log store record build link schedule draft change release email text message alert queue index cache note bookmark
		favorite favourite like backup mirror stage flag group format vote rate rank review track block lock claim reserve hold mount scale migration
		launch bid tip mint stake rollout shell command terminal book booking building ranking press split process connect paint`)
	// goods contains verbs that are also nouns for things that are ordered, paid or sent: create_order,
	// refund_status.
	goods = wordSet(`order transfer refund charge purchase payment payout withdrawal donation post tweet broadcast dispatch trade bid wager transaction
		message email sms notification announcement dm reply checkout migration settlement remittance bet call deployment release deposit`)
	// commitments contains nouns for agreements that are binding as soon as they are changed: modify_order.
	commitments = wordSet("order payment transfer trade withdrawal payout bid bet wager")
	// changing contains verbs that change the object named after them: modify_order.
	changing = wordSet("modify change edit amend update replace adjust alter")
	// works contains nouns for things that are run, as in start_pipeline. What such a run does is defined elsewhere,
	// so it may be irreversible.
	works = wordSet("job build pipeline workflow deployment execution run playbook campaign")
	// starting contains verbs that run the object named after them: start_pipeline.
	starting = wordSet("start submit initiate launch queue enqueue kick process begin resume restart apply")
	// credentials contains nouns for credentials. When a new credential is made, as by rotate_key, the old one
	// becomes invalid.
	credentials = wordSet("secret key token credential password passphrase passcode certificate cert pin")
	// renewing contains verbs that replace a credential and so make its former value invalid: rotate_key.
	renewing = wordSet("rotate regenerate renew reissue roll rekey replace recreate refresh change cycle")
	// stores contains nouns for things whose current data is lost when a backup is restored over them: restore_database.
	stores = wordSet(
		"database db table schema backup snapshot cluster instance volume disk system image checkpoint state version revision server vm site environment",
	)
	// accounts contains nouns for people and their login credentials: disable_user.
	accounts = wordSet("user account member employee person people login identity")
	// submissions contains nouns for documents that cannot be withdrawn after they are submitted: submit_application.
	submissions = wordSet("application claim tax return form offer proposal resume ballot vote transaction filing bid order job declaration")
	// bookings contains nouns for things that cost money when they are booked: reserve_table.
	bookings = wordSet(
		"flight hotel room table ticket seat car ride trip travel tour restaurant appointment cab taxi train house apartment villa property",
	)
	// renewals contains nouns for things that cost money when they are renewed: renew_domain.
	renewals = wordSet("domain license licence subscription membership contract plan lease policy")
	// doors contains nouns for barriers that open for people or goods, as in unlock_door.
	doors = wordSet("door gate garage valve barrier safe")
	// attached contains nouns for things that stop receiving writes when they are detached: volume_detach.
	attached = wordSet("disk drive volume device storage filesystem mount lun ebs pvc")
	// firmware contains nouns for software without which a device does not start: flash_firmware.
	firmware = wordSet("firmware bios rom uefi bootloader eeprom flash device board")
	// histories contains nouns for records that are lost when they are rewritten: history_rewrite.
	histories = wordSet("history commit reflog lineage ledger journal changelog")
	// devices contains nouns for storage that is erased when it is formatted: format_disk.
	devices = wordSet("disk drive partition volume device card storage")
	// shipments contains nouns for deliveries, which the verb "track" merely looks up: track_package.
	shipments = wordSet("order package shipment parcel delivery flight")
	// media contains nouns for files and other media. The verb "convert" makes a new file from them: convert_video.
	media = wordSet("file document video audio image folder media")
	// merged contains nouns for things that cannot be separated again after they are merged: merge_contacts.
	merged = wordSet("contact account customer record company profile user person people duplicate lead deal ticket entity identity")
	// nominal contains further verbs that are nouns when they begin a name and a reading verb follows: run_get.
	nominal = wordSet("run trigger share execution import set batch star fork merge handle pin archive deletion subscription page")
	// listing contains words that show, at the end of a tool's name, that the tool only reads: payment_history.
	listing = wordSet("status history info list details stats logs")
	// making contains verbs that create the object named after them: create_order.
	making = wordSet(
		"create make new issue submit initiate start request process place confirm do add write compose schedule push finish complete apply execute perform",
	)

	// identifiers contains nouns for things that the verb "resolve" only looks up: resolve_library_id. With any other
	// object, as in resolve_incident, the verb changes the object.
	identifiers = wordSet(`id library librarie name url uri link dns host hostname domain path address location ref reference entity entitie user username handle
		symbol import dependency place package version alias redirect variable placeholder ip coordinate timezone date`)
	// records contains nouns for records that the verb "convert" changes: convert_lead.
	records = wordSet("issue lead deal ticket contact task conversation opportunity quote order draft subtask account project")

	// particles contains words that follow the verb "sign" when a person registers, logs in or logs out: sign_in.
	particles = wordSet("in up on off out")
	// invitations contains nouns for requests whose answer can be changed later: respond_to_invite.
	invitations = wordSet("invite invitation event meeting rsvp")
	// plans contains nouns for sets of changes that are defined elsewhere: apply_plan.
	plans       = wordSet("plan terraform migration infrastructure manifest change")
	connective  = wordSet("and or then plus also n")
	preposition = wordSet("by for from to in via using with of on at into as")
	trailing    = wordSet("all batch bulk force async now one many multiple single")

	ideographicVerbs = strings.Fields(ideographic)

	// gluedVerbs contains verbs that are searched for inside unknown words, such as deleteuser.
	gluedVerbs = []string{"delete", "remove", "destroy", "purge", "wipe", "erase", "truncate", "revoke", "terminate", "uninstall", "unpublish", "refund", "drop", "execute", "send", "publish",
		"cancel", "withdraw", "shutdown", "reboot", "overwrite", "obliterate", "annihilate", "decommission",
		"deprovision", "liquidate", "discard"}
	// inflected contains endings that turn a verb of gluedVerbs into another ordinary word, as in sender or dropdown.
	// Such a word is not taken for a compound with the verb, unlike deleteuser.
	inflected = wordSet(
		"able box down downs let out off grid er ers ing ion ions ed led ded ped ment ments ably ables ables r rs d s outs lable led ling al als",
	)
)
