package effect

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"retort/internal/core"
)

func TestNounFirstNames(t *testing.T) {
	for _, name := range strings.Fields(`snapshot-delete load-balancer-delete view_delete list_delete monitor_delete profile_delete user_access_revoke
		search_index_drop export_delete return_refund message_preview_send queries_execute trace_purge stat_reset help_ticket_cancel info_page_publish
		tree_node_remove preview_delete query_execute users_delete issue-remove dbDrop DBDrop HTTPDelete snapshotDelete SNAPSHOT_DELETE snapshot.delete
		snapshot_delete_all snapshot_delete_by_id snapshot_delete_v2 deleteuser userdelete viewdelete get_and_delete fetch_then_purge search_or_send
		get_user_and_post create_refund make_payment create_order submit_transfer list_delete_all load_data_transfer profile_share view_share
		return_order report_delete_job ｄｅｌｅｔｅ_user dеlete_user list_löschen` + " de\u00adlete_user") {
		if j := judgeName(name); j.kind != irreversible {
			t.Errorf("%s is judged %s (%q)", name, j.kind, j.verb)
		}
	}
	for _, name := range strings.Fields(`snapshot_create view-update profile_set monitor_start list_add export_create tree_node_move trace_start
		access_grant_add search_index_create load_balancer_update resolve_incident resolve_review_thread convertIssueToSubtask check_in_guest`) {
		if j := judgeName(name); j.kind < write {
			t.Errorf("%s is judged %s (%q)", name, j.kind, j.verb)
		}
	}
}

// TestVerbsWithObjects checks that the same verb is judged differently with different objects: restore_database is
// irreversible and restore_item is not.
func TestVerbsWithObjects(t *testing.T) {
	for _, name := range strings.Fields(`restore_database restore_snapshot database_restore_backup rotateWebhookSecret rotate_api_key regenerate_token renew_certificate
		modify_order order_modify amend_trade update_payment complete_database_migration apply_migration terraform_apply payments_create orders_place
		create_message new_sms schedule_tweet make_call create_release start_build submit_job restart_pipeline disable_user suspend_accounts merge_contacts
		submit_application cast_vote book_flight reserve_table renew_domain unlock_door format_disk close_position force_push git_push_force bet_get_at_delete order_get_by_delete flight.book secret_rotate account_disable car_rent invest
		promote_to_production void_invoice redeem_points mint_nft bash terminal flushdb sign_document`) {
		if j := judgeName(name); j.kind != irreversible {
			t.Errorf("%s is judged %s (%q)", name, j.kind, j.verb)
		}
	}
	for _, name := range strings.Fields(`restore_item rotate_image modify_issue complete_task apply_label create_build_step start_timer disable_feature merge_branches
		submit_review book_notes open_file unlock_thread format_text close_issue push_files sign_in grant_access mark_as_read mark_read convert_file respond_to_invite
		update_order_status create_transfer_rule`) {
		if j := judgeName(name); j.kind != write {
			t.Errorf("%s is judged %s (%q), want write", name, j.kind, j.verb)
		}
	}
	for _, name := range strings.Fields("track_order book.find crime_record.get_record order_get_status get_messages list_releases message_list queue_list run_get console_messages_read") {
		if j := judgeName(name); j.kind != read {
			t.Errorf("%s is judged %s (%q), want read", name, j.kind, j.verb)
		}
	}
}

func TestReadingNames(t *testing.T) {
	for _, name := range strings.Fields(`list_issues getDocument list_pipeline_triggers list_trigger_types get_order get_order_history search_posts
		list_share_links get_transfer order_get order_list payment_history refund_status comment_list record_search list_deleted_items get_commit
		get_project_update find_duplicate view_log listIDs getHTTPStatus read_text_file tree ping view_post_comments count_orders describe_run
		list_runs check_order_status retrieve_refund get_latest_release get_job_logs list_dropdowns get_payload dropbox_list_files list_senders
		search_removed_items list_publishers get_executor resolve-library-id convert_currency check_status`) {
		if j := judgeName(name); j.kind != read || j.verb == "" {
			t.Errorf("%s is judged %s (%q)", name, j.kind, j.verb)
		}
	}
}

// TestVerbsCountAnywhere checks that every combination of a reading word with an irreversible verb is judged
// irreversible, in the usual spellings of names.
func TestVerbsCountAnywhere(t *testing.T) {
	known := slices.Sorted(maps.Keys(lexicon()))
	for _, reading := range known {
		for _, verb := range known {
			if lexicon()[reading] != reads || withObject(lookupWord(reading), nil, []string{verb}).class != reads || lexicon()[verb] < mayDestroy || lexicon()[verb] == mayDestroy && onlyVerb[reading] {
				continue
			}
			camel := reading + strings.ToUpper(verb[:1]) + verb[1:]
			for _, name := range []string{reading + "_" + verb, camel, reading + "-thing-" + verb, "my." + reading + "." + verb, reading + "_" + verb + "_by_id"} {
				if verb[0] >= 0x80 && name == camel || documents[verb] && !mostlyNoun[reading] {
					continue
				}
				if j := judgeName(name); j.kind != irreversible {
					t.Fatalf("%s is judged %s (%q)", name, j.kind, j.verb)
				}
			}
		}
	}
}

// TestVerbsInOtherGuise checks that verbs are recognised in other languages, inside compound words, and with
// separators between their letters.
func TestVerbsInOtherGuise(t *testing.T) {
	for name, want := range map[string]core.EffectKind{
		"workspace_teardown": irreversible, "account_closeout": irreversible, "session_killall": irreversible, "domain_unregister": irreversible, "rmrf": irreversible,
		"删除记录": irreversible, "用户注销接口": irreversible, "レコード削除": irreversible, "注文を取り消す": irreversible, "사용자삭제": irreversible, "удаляет_запись": irreversible, "kunde_löscht": irreversible, "client_supprime": irreversible,
		"查询记录": read, "レコード検索": read,
		"de-lete-user": irreversible, "get_d_e_l_e_t_e": irreversible, "list.pur.ge": irreversible, "re_move_row": irreversible,
		"get_de_user": read, "list_pub_names": read, "get_re_moved": read,
	} {
		if j := judgeName(name); j.kind != want {
			t.Errorf("%s is judged %s (%q), want %s", name, j.kind, j.verb, want)
		}
	}
}

func TestDescriptionRaises(t *testing.T) {
	for _, c := range []struct {
		name, description string
		want              core.EffectKind
	}{
		{"get_report", "Gets a report.", read},
		{"get_report", "Permanently deletes the report. This cannot be undone.", irreversible},
		{"get_report", "Deletes a report.", irreversible},
		{"get_report", "Use this tool to delete a report", irreversible},
		{"get_report", "Gets a report and deletes it", irreversible},
		{"get_report", "Gets a report. Also removes it from the server.", irreversible},
		{"get_report", "Returns the report. This action is irreversible.", irreversible},
		{"get_report", "Returns the report. It never deletes anything.", read},
		{"get_report", "Returns reports that were permanently deleted.", read},
		{"get_report", "Returns the report. Use delete_report to remove it.", read},
		{"get_report", "Creates a report.", write},
		{"tabs", "List, create, close, or select a browser tab.", write},
		{"records", "List, get, update or delete records", irreversible},
		{"search_items", "Search, filter and sort items, orders and shares.", read},
		{"list_order", "Lists the orders of a customer.", read},
		{"list_order", "", irreversible},
		{"report", "Snapshot deletion service. Deletes snapshots.", irreversible},
		{"report", "Shows a report", read},
		{"update_row", "Changes a row. This cannot be undone.", irreversible},
		{"frobnicate_search_index", "", write},
		{"frobnicate_search_index", "Searches an index.", read},
		{"project_search_all", "Finds projects.", read},
		{"replace_page", "Replaces a page. Omitted fields revert to their defaults.", irreversible},
		{"replace_page", "Replaces a page. Omitted fields stay.", write},
		{"update_event", "Change an event. What is left out stays as it is; attendees replaces the whole list.", write},
		{"update_event", "Change an event. Replaces the whole event.", irreversible},
		{"save_page", "Saves a page. An existing page is overwritten.", irreversible},
		{"create_token", "Makes a token. The server revokes the old token.", irreversible},
		{"create_token", "Makes a token. It never revokes the old token.", write},
		{"booking", "Books a hotel room given the dates.", irreversible},
		{"shop", "Create an order for a customer.", irreversible},
		{"shop", "Create an order template.", write},
		{"todo", "Manages a list, including adding and deleting items.", irreversible},
		{"get_row", "Fetches a row. Side effect: the row is gone afterwards.", irreversible},
		{"get_row", "Looks up a row. It will automatically be deleted.", irreversible},
		{"get_row", "Looks up a row. The file will be unlinked.", irreversible},
		{"get_row", "Looks up a row. The file will not be deleted.", read},
		{"get_row", "Looks up a row that will be read.", read},
		{"get_row", "Löscht den Kunden unwiderruflich.", irreversible},
		{"get_row", "删除指定的记录", irreversible},
		{"get_row", "Supprime le client.", irreversible},
		{"put_file", "Write a new file or completely overwrite an existing file", irreversible},
	} {
		e := OfTool(&core.Tool{Name: c.name, Description: c.description}, false)
		if e.Kind != c.want {
			t.Errorf("%s, %q: judged %s (%s), want %s", c.name, c.description, e.Kind, e.Reason, c.want)
		}
	}
}
