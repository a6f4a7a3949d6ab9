package effect

import (
	"strings"
	"testing"
)

// TestDisguisedNames checks that names with a disguised verb are judged irreversible. Examples are verbs with digits,
// mistakes, repeated letters, missing vowels or lookalike letters, and phrases that mean an irreversible action.
func TestDisguisedNames(t *testing.T) {
	for class, names := range map[string]string{
		"digits": `d3l3te_user get_d3l3te_user list.r3m0ve list_d3l3t3 de1ete_row dr0p_table purg3_cache 5end_mail list_3xecute p4y_invoice list_delete2 view_send2
			snapshot_2purge getD3leteUser k1ll_process wip3_disk list_d3let_user`,
		"mistakes": `delet_user delte_user deelte_user dlete_user list_delet view_delte remvoe_item remov_item list_remvoe destory_vm list_destory pruge_queue list_puge
			ersae_disk terminte_instance revok_token list_revoek uninstal_app exectue_job list_excute publsh_post list_delets get_delettes cancl_order trucate_table
			overwritte_file notfiy_all list_refnd`,
		"repeated":     `deleeeete_user list_deeeleeete_row list_purrrge remooove_item`,
		"vowels":       `dlt_user list_dlt list_rmv_row list_rvk_token list_trnct_table list_dstry`,
		"letters":      "list_délète list_dèlete_row list_𝐝𝐞𝐥𝐞𝐭𝐞 ⓓⓔⓛⓔⓣⓔ_list get_ᴅᴇʟᴇᴛᴇ_user list_ԁеӏете list_ꓓꓰꓡꓰꓔꓰ",
		"objects":      `volume_detach detach_volume detach_disk disk_detach ebs_volume_detach history_rewrite rewrite_history git_rewrite_commit flash_firmware firmware_flash fire_employee initialize_disk sunset_api`,
		"phrases":      `get_rid_of_user throw_record_away throw_away_rows tear_stack_down tear_down_stack take_down_site list_take_down write_off_debt cash_out_account kick_user_out lock_out_user give_away_item let_employee_go let_go_employee factory_reset lay_off_staff git_filter_branch site_go_live power_off_host`,
		"verbs":        `user_deleter row_remover list_takedown dismantle_cluster list_clobber view_unmount report_deallocate list_userdel get_deluser disband_team annul_contract list_reimage vaporize_bucket list_hdel snapshot_disown`,
		"glued":        `list_cancelorder ordercancel list_nodeshutdown view_nodereboot list_overwritefile list_discardall`,
		"inside names": `getAndDelteUser fetchThenR3move`,
	} {
		for _, name := range strings.Fields(names) {
			if j := judgeName(name); j.kind != irreversible {
				t.Errorf("%s: %s is judged %s (%q)", class, name, j.kind, j.verb)
			}
		}
	}
}

// TestUndisguisedNames checks that names which merely resemble those of TestDisguisedNames are judged as reading or
// writing.
func TestUndisguisedNames(t *testing.T) {
	for _, name := range strings.Fields(`get_remote list_remotes get_shared_files list_trains get_water_level list_reports get_excel_sheet list_uplinks search_s3 get_ec2_instance list_pop3_mailboxes
		get_sha256 get_base64 list_oauth2_clients get_h264_info list_v2 get_annual_report list_skills get_amount list_discord_channels list_judges get_weather_map list_banks
		get_rain list_transits get_expiry list_deliveries get_edict list_consumers get_about list_deleted get_removed_rows list_repos get_pages search_k8s_pods get_log4j_version
		get_cancelled_orders list_canceled list_cancellations get_mp3 list_top10 get_attached_volumes list_detached_disks get_history get_commit_history list_cafés get_años list_gödel get_fire_incidents get_sunset_times`) {
		if j := judgeName(name); j.kind != read || j.verb == "" {
			t.Errorf("%s is judged %s (%q)", name, j.kind, j.verb)
		}
	}
	for _, name := range strings.Fields(`detach_policy create_remote update_water_level rewrite_text edit_message replace_text detach_label update2_row add_skill fire_event`) {
		if j := judgeName(name); j.kind != write {
			t.Errorf("%s is judged %s (%q), want write", name, j.kind, j.verb)
		}
	}
}
