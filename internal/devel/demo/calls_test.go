package demo

import (
	"bytes"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// calls lists successful and failing calls of every tool, one per line: server, tool, arguments, and text that the
// result must contain. "! " before the text marks an error. Each call is made on a new server.
const calls = `
drive search_files {} | "nextPageToken"
drive search_files {"query":"TRANSCRIPT","mimeType":"application/vnd.nordlys.document","pageSize":2,"modifiedAfter":"2026-01-01T00:00:00Z"} | meeting transcript
drive search_files {"folderId":"fld-001","pageSize":200} | "folderId":"fld-001"
drive search_files {"query":"no such file at all"} | {"files":[]}
drive search_files {"folderId":"nowhere"} | ! 404 Not found: there is no folder 'nowhere'
drive search_files {"pageSize":5000} | ! invalid arguments for tool search_files: pageSize: maximum: got 5,000, want 200
drive search_files {"modifiedAfter":"yesterday"} | ! modifiedAfter: 'yesterday' is not valid date-time
drive search_files {"pageToken":"rubbish"} | ! page token 'rubbish' is not one that this query returned
drive search_files {"folder":"x"} | ! additional properties 'folder' not allowed
drive list_folder {} | application/vnd.nordlys.folder
drive list_folder {"folderId":"fld-002","orderBy":"size desc","pageSize":3} | "nextPageToken"
drive list_folder {"folderId":"abc123"} | ! there is no folder
drive get_file_metadata {"fileId":"orders-2026"} | "permissions":[]
drive get_file_metadata {"fileId":"fld-001"} | ! 404
drive get_file_metadata {} | ! missing property 'fileId'
drive get_document {"documentId":"abc123"} | Recorded on
drive get_document {"documentId":"doc-100001","format":"markdown"} | "content":"# 
drive get_document {"documentId":"forbidden"} | ! 403 Permission denied
drive get_document {"documentId":"rate-limited"} | ! 429 Too Many Requests
drive get_document {"documentId":"orders-2026"} | ! use export_file
drive get_document {"documentId":7} | ! documentId: got number, want string
drive get_sheet {"sheetId":"orders-2026","range":{"startRow":10000}} | "Order ID":"ORD-20000"
drive get_sheet {"sheetId":"abc123"} | ! not a spreadsheet
drive get_sheet {"sheetId":"orders-2026","range":{"startRow":5,"endRow":4}} | ! the range ends in row 4
drive export_file {"fileId":"orders-2026","format":"csv"} | Order ID,Date,Customer
drive export_file {"fileId":"abc123","format":"pdf"} | JVBERi0xLjQK
drive export_file {"fileId":"doc-100001","format":"txt"} | text/plain
drive export_file {"fileId":"abc123","format":"csv"} | ! cannot be exported as csv
drive export_file {"fileId":"abc123","format":"docx"} | ! value must be one of 'txt', 'csv', 'pdf'
drive get_thumbnail {"fileId":"abc123","size":128} | iVBORw0KGgo
drive get_thumbnail {"fileId":"abc123","size":100} | ! size: value must be one of
drive create_document {"title":"New"} | "id":"doc-900000","version":1
drive create_document {"title":""} | ! title: minLength: got 0, want 1
drive create_document {"title":"x","folderId":"abc123"} | ! there is no folder
drive update_document {"documentId":"abc123","content":"more","mode":"append"} | "id":"abc123"
drive update_document {"documentId":"abc123","content":"x","expectedVersion":999} | ! 409 Conflict
drive update_document {"documentId":"orders-2026","content":"x"} | ! is not a document
drive move_file {"fileId":"abc123","folderId":"root"} | "id":"abc123"
drive move_file {"fileId":"abc123","folderId":"missing"} | ! there is no folder 'missing'
drive share_file {"fileId":"abc123","grant":{"type":"user","email":"a@b.example","role":"reader"}} | "type":"resource_link","uri":"https://drive.nordlys.example/d/abc123"
drive share_file {"fileId":"abc123","grant":{"type":"anyone","role":"writer"}} | ! grant
drive share_file {"fileId":"gone","grant":{"type":"anyone","role":"reader"}} | ! 404
drive trash_file {"fileId":"abc123"} | in the trash
drive trash_file {"fileId":"abc123","permanent":true} | deleted for good
drive trash_file {"fileId":"nope"} | ! 404
drive list_activity {} | {"activities":[]}
drive list_activity {"pageSize":0} | ! minimum: got 0, want 1

crm search_records {"objectType":"Lead","filters":[{"field":"Status","op":"eq","value":"Open"}],"limit":1} | "total":1000,"hasMore":true,"nextOffset":1
crm search_records {"objectType":"Deal","filters":[{"field":"Probability","op":"in","value":[10,25]},{"field":"Amount","op":"gt","value":1000}],"orderBy":{"field":"Amount","direction":"desc"},"fields":["Amount"],"limit":3} | "Amount":
crm search_records {"objectType":"Contact","filters":[{"field":"Email","op":"contains","value":"@"}]} | "total":1600
crm search_records {"objectType":"Lead","filters":[{"field":"Notes","op":"ne","value":null}]} | {"records":[],"total":0,"hasMore":false}
crm search_records {"objectType":"Lead","filters":[{"field":"Score","op":"lte","value":-1}]} | "total":0
crm search_records {"objectType":"Lead","filters":[{"field":"Score","op":"lt","value":0}]} | "total":0
crm search_records {"objectType":"Lead","filters":[{"field":"Score","op":"gte","value":0}]} | "total":2400
crm search_records {"objectType":"Task"} | ! value must be one of 'Account', 'Contact'
crm search_records {"objectType":"Lead","filters":[{"field":"Colour","op":"eq","value":1}]} | ! INVALID_FIELD: Lead has no field 'Colour'
crm search_records {"objectType":"Lead","fields":["Colour"]} | ! INVALID_FIELD
crm search_records {"objectType":"Lead","orderBy":{"field":"Colour"}} | ! INVALID_FIELD
crm search_records {"objectType":"Lead","filters":[{"field":"Score","op":"in","value":1}]} | ! needs a list
crm search_records {"objectType":"Lead","filters":[{"field":"Score","op":"contains","value":1}]} | ! contains needs a text
crm get_record {"objectType":"SalesMeeting","recordId":"00Q5f000001abcXYZ"} | "Notes":null
crm get_record {"objectType":"Lead","recordId":"00Q001000","fields":["Score"]} | {"Id":"00Q001000","Score":
crm get_record {"objectType":"Lead","recordId":"nobody"} | ! there is no Lead 'nobody'
crm get_record {"objectType":"Lead","recordId":"forbidden"} | ! 403
crm describe_object {"objectType":"Lead"} | "values":["Open","Working"
crm describe_object {} | ! missing property 'objectType'
crm list_users {} | "id":"U0100"
crm get_pipeline_summary {"groupBy":"region"} | "key":"EMEA"
crm get_pipeline_summary {"groupBy":"owner","currency":"USD"} | "currency":"USD"
crm get_pipeline_summary {"currency":"DKK"} | ! currency: value must be one of
crm create_record {"objectType":"Lead","data":{"LastName":"Berg","Score":12}} | "version":1,"changed":["LastName","Score"]
crm create_record {"objectType":"Lead","data":{"Id":"x"}} | ! FIELD_NOT_WRITEABLE
crm create_record {"objectType":"Lead","data":{}} | ! minProperties
crm update_record {"objectType":"Lead","recordId":"00Q001000","data":{"score":101,"Notes":"hot"},"ifVersion":1} | "version":2,"changed":["Score","Notes"]
crm update_record {"objectType":"Lead","recordId":"00Q001000","data":{"Score":"high"}} | ! INVALID_VALUE: Lead.Score must be of type integer
crm update_record {"objectType":"Lead","recordId":"00Q001000","data":{"Score":1.5}} | ! must be of type integer, not 1.5
crm update_record {"objectType":"Deal","recordId":"006001000","data":{"Amount":1e300}} | ! must be of type decimal
crm update_record {"objectType":"Lead","recordId":"00Q001000","data":{"Status":"Won"}} | ! must be one of Open, Working
crm update_record {"objectType":"Lead","recordId":"00Q001000","data":{"LastActivity":"soon"}} | ! must be of type date
crm update_record {"objectType":"Lead","recordId":"00Q001000","data":{"Score":1},"ifVersion":7} | ! 409 Conflict: Lead '00Q001000' is at version 1, not 7
crm update_record {"objectType":"Lead","recordId":"rate-limited","data":{"Score":1}} | ! 429
crm bulk_update_records {"objectType":"Lead","updates":[{"recordId":"00Q001000","data":{"Score":-1}},{"recordId":"x","data":{"Score":1}}]} | "updated":1,"failed":1
crm bulk_update_records {"objectType":"Lead","updates":[{"recordId":"00Q001000","data":{"Score":-1}},{"recordId":"x","data":{"Score":1}}],"allOrNone":true} | ! nothing was changed
crm bulk_update_records {"objectType":"Lead","updates":[]} | ! minItems
crm delete_record {"objectType":"Lead","recordId":"00Q001000"} | Deleted Lead 00Q001000
crm delete_record {"objectType":"Lead","recordId":"nobody"} | ! 404
crm convert_lead {"leadId":"00Q001001","deal":{"name":"First order","amount":500}} | "dealId":"006900002"
crm convert_lead {"leadId":"00Q001000"} | ! LEAD_ALREADY_CONVERTED
crm convert_lead {"leadId":"nobody"} | ! 404
crm convert_lead {"leadId":"00Q001000","deal":{"name":"x"}} | ! deal: missing property 'amount'
crm log_activity {"objectType":"Deal","recordId":"006001000","kind":"call","subject":"Hello"} | Logged call 'Hello'
crm log_activity {"objectType":"Deal","recordId":"006001000","kind":"fax","subject":"Hello"} | ! kind: value must be one of
crm log_activity {"objectType":"Deal","recordId":"nope","kind":"call","subject":"Hello"} | ! 404
crm list_audit_events {} | {"events":[],"total":0,"hasMore":false}
crm list_audit_events {"limit":9999} | ! limit: maximum

chat list_channels {} | "name":"deployments"
chat list_channels {"types":["private_channel"],"exclude_archived":true,"limit":1} | "is_private":true
chat list_channels {"cursor":"x"} | ! invalid_cursor: 400 Bad request
chat get_channel_history {"channel":"general","limit":1} | "has_more":true
chat get_channel_history {"channel":"C0DEPLOY"} | 5 of 40 pods ready
chat get_channel_history {"channel":"nope"} | ! channel_not_found
chat get_channel_history {"channel":"rate-limited"} | ! 429
chat get_channel_history {"channel":"general","oldest":"last week"} | ! does not match pattern
chat get_thread_replies {"channel":"deployments","thread_ts":"1793610000.000000"} | started by
chat get_thread_replies {"channel":"deployments","thread_ts":"1"} | ! thread_not_found
chat search_messages {"query":"aurora-ingest"} | "total":1,"page":1,"pages":1
chat search_messages {"query":"the","in":"#general","count":2,"page":2} | "page":2
chat search_messages {"query":""} | ! minLength
chat list_users {} | "next_cursor":"
chat list_users {"limit":0} | ! minimum
chat get_user_profile {"user":"U0100"} | @nordlys.example
chat get_user_profile {"user":"U9"} | ! user_not_found
chat send_message {"channel":"#general","text":"Hei"} | {"ok":true,"channel":"C00100","ts":"
chat send_message {"channel":"book-club","text":"Hei"} | ! is_archived
chat send_message {"channel":"general","text":"Hei","thread_ts":"1.0"} | ! message_not_found
chat update_message {"channel":"deployments","ts":"1793610000.000000","text":"x"} | ! cant_update_message
chat delete_message {"channel":"deployments","ts":"1793610000.000000"} | ! cant_update_message
chat delete_message {"channel":"deployments","ts":"2"} | ! message_not_found
chat add_reaction {"channel":"deployments","ts":"1793610000.000000","name":"tada"} | ok
chat add_reaction {"channel":"deployments","ts":"1793610000.000000","name":":tada:"} | ! does not match pattern
chat add_reaction {"channel":"deployments","ts":"3","name":"tada"} | ! message_not_found
chat get_audit_log {} | {"entries":[]}
chat get_audit_log {"limit":"many"} | ! limit: got string, want integer

calendar list_calendars {} | "accessRole":"reader"
calendar list_events {"calendarId":"sales","timeMin":"2026-11-02T00:00:00Z","timeMax":"2026-11-03T00:00:00Z"} | "calendarId":"sales"
calendar list_events {"calendarId":"holidays"} | "date":"2026-12-25"
calendar list_events {"q":"nothing has this name"} | {"items":[]}
calendar list_events {"calendarId":"nope"} | ! there is no calendar 'nope'
calendar list_events {"timeMin":"2026-11-02"} | ! is not valid date-time
calendar get_event {"eventId":"evt10000"} | "id":"evt10000"
calendar get_event {"eventId":"evt1"} | ! there is no event
calendar find_free_slots {"attendees":["a@b.example"],"timeMin":"2026-11-07T00:00:00Z","timeMax":"2026-11-10T00:00:00Z","limit":1} | {"slots":[{"start":"2026-11-09T08:00:00Z","end":"2026-11-09T08:30:00Z"}]}
calendar find_free_slots {"attendees":["a@b.example"],"timeMin":"2026-11-07T00:00:00Z","timeMax":"2026-11-06T00:00:00Z"} | ! timeMax must be after timeMin
calendar find_free_slots {"attendees":[],"timeMin":"2026-11-07T00:00:00Z","timeMax":"2026-11-06T00:00:00Z"} | ! attendees: minItems
calendar create_event {"summary":"Talk","start":{"dateTime":"2026-11-04T10:00:00+01:00"},"end":{"dateTime":"2026-11-04T11:00:00+01:00"},"attendees":[{"email":"a@b.example"}]} | "responseStatus":"needsAction"
calendar create_event {"summary":"Day off","start":{"date":"2026-11-04"},"end":{"date":"2026-11-05"}} | "date":"2026-11-04"
calendar create_event {"summary":"Talk","start":{"dateTime":"2026-11-04T10:00:00Z"},"end":{"dateTime":"2026-11-04T10:00:00Z"}} | ! must end after it starts
calendar create_event {"calendarId":"holidays","summary":"Talk","start":{"date":"2026-11-04"},"end":{"date":"2026-11-05"}} | ! 403 Permission denied
calendar create_event {"summary":"Talk","start":{},"end":{"date":"2026-11-05"}} | ! start: missing propert
calendar update_event {"eventId":"evt10000","location":"Room 4"} | "location":"Room 4"
calendar update_event {"eventId":"hol2026-12-25","location":"Home"} | ! is read-only
calendar update_event {"eventId":"evt10000","end":{"date":"1999-01-01"}} | ! must end after it starts
calendar respond_to_invite {"eventId":"evt10000","email":"nobody@b.example","response":"accepted"} | ! is not invited
calendar delete_event {"eventId":"evt10000"} | Deleted '
calendar delete_event {"eventId":"forbidden"} | ! 403
calendar list_changes {} | "changes":[]
calendar list_changes {"syncToken":"x"} | ! page token

mail search_messages {"query":"is:unread after:2026-10-25 has:attachment"} | "resultSizeEstimate":
mail search_messages {"labelIds":["INBOX"],"maxResults":1} | "nextPageToken"
mail search_messages {"query":"to:nobody subject:x label:inbox before:2020-01-01 zebra"} | {"messages":[],"resultSizeEstimate":0}
mail search_messages {"query":"colour:red"} | ! the query knows
mail search_messages {"query":"after:monday"} | ! needs a date
mail get_message {"id":"18f000011170"} | "labelIds":["INBOX","UNREAD"
mail get_message {"id":"18f000011170","format":"metadata"} | "snippet"
mail get_message {"id":"18f000011170","format":"raw"} | RnJvbTog
mail get_message {"id":"nope"} | ! there is no message
mail get_thread {"threadId":"t18f000011170"} | Subject: 
mail get_thread {"threadId":"t"} | ! there is no thread
mail get_attachment {"messageId":"18f000011170","attachmentId":"x"} | ! there is no attachment
mail list_labels {} | "id":"UNREAD"
mail send_message {"to":["a@b.example"],"subject":"Hello","body":"World"} | "labelIds":["SENT"]
mail send_message {"to":["a@bounce.example"],"subject":"Hello","body":"World"} | ! 550 Mailbox unavailable
mail send_message {"to":["not an address"],"subject":"","body":""} | ! to.0: 'not an address' does not match pattern
mail create_draft {"to":[],"subject":"Hello","body":"World"} | Created draft r-1
mail create_draft {"to":[],"subject":"Hello","body":"World","threadId":"t"} | ! there is no thread
mail modify_labels {"ids":["18f000011170"],"removeLabelIds":["UNREAD"]} | Changed the labels of 1 messages
mail modify_labels {"ids":["18f000011170"]} | ! missing property 'addLabelIds'
mail modify_labels {"ids":["nope"],"addLabelIds":["X"]} | ! there is no message
mail trash_message {"id":"18f000011170"} | "labelIds":["TRASH"]
mail trash_message {"id":"rate-limited"} | ! 429
mail list_history {} | {"history":[]}
mail list_history {"maxResults":501} | ! maximum

sheets list_spreadsheets {"query":"orders"} | [{"spreadsheetId":"orders-2026","title":"Orders 2025-2026"}]
sheets list_spreadsheets {"pageToken":"x"} | ! page token
sheets get_spreadsheet {"spreadsheetId":"orders-2026"} | "name":"Orders","rowCount":10000
sheets get_spreadsheet {"spreadsheetId":"nope"} | ! there is no spreadsheet
sheets read_range {"spreadsheetId":"orders-2026","range":"Orders!A1:B2"} | "values":[["Order ID","Date"],["ORD-10001","2024-11-12"]]
sheets read_range {"spreadsheetId":"orders-2026","range":"I2","valueRenderOption":"FORMATTED_VALUE"} | "values":[["
sheets read_range {"spreadsheetId":"orders-2026","range":"Targets"} | ["EMEA","2026-Q1",900000]
sheets read_range {"spreadsheetId":"orders-2026","range":"A1:ZZ1"} | ! exceeds the grid
sheets read_range {"spreadsheetId":"orders-2026","range":"what is this"} | ! unable to parse range
sheets read_range {"spreadsheetId":"orders-2026","range":"Nope!A1"} | ! has no sheet 'Nope'
sheets read_rows {"spreadsheetId":"orders-2026","filters":[{"field":"Region","op":"eq","value":"LATAM"}],"orderBy":{"field":"Amount","direction":"desc"},"limit":2} | "has_more":true
sheets read_rows {"spreadsheetId":"orders-2026","limit":10000} | "total":10000,"has_more":false
sheets read_rows {"spreadsheetId":"orders-2026","sheet":"Nope"} | ! has no sheet
sheets read_rows {"spreadsheetId":"orders-2026","filters":[{"field":"Nope","op":"eq","value":1}]} | ! INVALID_FIELD: Orders has no field
sheets append_rows {"spreadsheetId":"orders-2026","sheet":"Targets","rows":[["EMEA","2027-Q1",5]]} | "version":2,"updatedCells":3
sheets append_rows {"spreadsheetId":"orders-2026","sheet":"Targets","rows":[["EMEA","2027-Q1","five"]]} | ! row 1: Target must be of type decimal
sheets append_rows {"spreadsheetId":"orders-2026","sheet":"Targets","rows":[[1,2,3,4]]} | ! row 1 has 4 values for 3 columns
sheets update_range {"spreadsheetId":"orders-2026","range":"Orders!J2","values":[["shipped"]]} | "updatedCells":1
sheets update_range {"spreadsheetId":"orders-2026","range":"Orders!J2","values":[["lost"]]} | ! Status must be one of
sheets update_range {"spreadsheetId":"orders-2026","range":"Orders!A1","values":[["x"]]} | ! the values must lie in the rows 2 to 10001
sheets clear_range {"spreadsheetId":"orders-2026","range":"Targets!A2:B3"} | "updatedCells":4
sheets clear_range {"spreadsheetId":"forbidden","range":"A1"} | ! 403
sheets add_sheet {"spreadsheetId":"orders-2026","name":"Notes","columns":["Who","What"]} | "version":2
sheets add_sheet {"spreadsheetId":"orders-2026","name":"orders","columns":["Who"]} | ! 409 Conflict
sheets list_revisions {"spreadsheetId":"orders-2026"} | {"version":1,"revisions":[]}
sheets list_revisions {"spreadsheetId":"nope"} | ! 404

issues list_repositories {} | "full_name":"nordlys/aurora"
issues list_repositories {"per_page":101} | ! maximum
issues list_issues {"owner":"nordlys","repo":"aurora","state":"all","labels":["bug"],"sort":"comments","direction":"asc","per_page":2} | "number":
issues list_issues {"owner":"nordlys","repo":"aurora","page":9999} | []
issues list_issues {"owner":"nordlys","repo":"nope"} | ! there is no repository 'nordlys/nope'
issues list_issues {"owner":"nordlys","repo":"rate-limited"} | ! 429
issues list_issues {"owner":"nordlys"} | ! missing property 'repo'
issues search_issues {"query":"export is:open is:issue repo:nordlys/aurora label:bug","per_page":1} | "total_count":
issues search_issues {"query":"author:nobody assignee:nobody is:pr state:closed"} | {"total_count":0,"incomplete_results":false,"items":[]}
issues search_issues {"query":"colour:red"} | ! 422 Validation failed
issues get_issue {"owner":"nordlys","repo":"aurora","issue_number":1} | "number":1
issues get_issue {"owner":"nordlys","repo":"aurora","issue_number":99999} | ! there is no issue 'nordlys/aurora#99999'
issues get_issue {"owner":"nordlys","repo":"aurora","issue_number":0} | ! issue_number: minimum
issues list_issue_comments {"owner":"nordlys","repo":"aurora","issue_number":2} | [
issues list_issue_comments {"owner":"nordlys","repo":"forbidden","issue_number":2} | ! 403
issues list_pull_requests {"owner":"nordlys","repo":"aurora","per_page":1} | "pull_request":{"head":"fix-
issues list_pull_requests {"owner":"nordlys","repo":"aurora","state":"merged"} | ! state: value must be one of
issues get_pull_request_diff {"owner":"nordlys","repo":"aurora","pull_number":99999} | ! there is no issue
issues create_issue {"owner":"nordlys","repo":"aurora","title":"Crash","labels":["bug"]} | {"number":1401,"state":"open","html_url":"https://issues.nordlys.example/nordlys/aurora/1401"}
issues create_issue {"owner":"nordlys","repo":"aurora","title":"Crash","assignees":["nobody"]} | ! 'nobody' is not a member
issues update_issue {"owner":"nordlys","repo":"aurora","issue_number":1,"title":"New","labels":[]} | {"number":1,"state":"
issues update_issue {"owner":"nordlys","repo":"aurora","issue_number":1,"state_reason":"duplicate"} | ! 'state' required, if 'state_reason' exists
issues add_issue_comment {"owner":"nordlys","repo":"aurora","issue_number":1,"body":"Me too"} | "body":"Me too"
issues add_issue_comment {"owner":"nordlys","repo":"aurora","issue_number":1,"body":""} | ! minLength
issues merge_pull_request {"owner":"nordlys","repo":"aurora","pull_number":99999} | ! 404
issues list_events {} | {"events":[]}
issues list_events {"issue_number":4} | ! 'owner', 'repo' required

database list_tables {} | {"name":"orders","rows":10000}
database list_tables {"x":1} | ! additional properties 'x' not allowed
database describe_table {"table":"events"} | "id":9007199254740993
database describe_table {"table":"nope"} | ! relation \"nope\" does not exist; there are orders
database query {"sql":"SELECT COUNT(*) AS n FROM orders"} | {"columns":["n"],"rows":[{"n":10000}],"row_count":1,"truncated":false}
database query {"sql":"SELECT id FROM events WHERE id = ?","params":[9007199254740995]} | "rows":[{"id":9007199254740995}]
database query {"sql":"SELECT * FROM orders","max_rows":2} | "row_count":2,"truncated":true
database query {"sql":"SELEC * FROM orders"} | ! near \"SELEC\": syntax error
database query {"sql":"SELECT * FROM salaries"} | ! permission denied for table salaries
database query {"sql":"SELECT * FROM \"rate-limited\""} | ! 429
database query {"sql":"DELETE FROM orders"} | ! read-only transaction
database query {"sql":""} | ! minLength
database explain_query {"sql":"SELECT region FROM orders WHERE amount > 5 GROUP BY region ORDER BY region LIMIT 3"} | USE TEMP B-TREE FOR GROUP BY
database explain_query {"sql":"SELECT"} | ! incomplete input
database execute {"sql":"UPDATE orders SET status = 'shipped' WHERE order_id = ?","params":["ORD-10001"]} | {"rows_affected":1,"statement_id":"evt_000001"}
database execute {"sql":"SELECT * FROM orders"} | ! use query for SELECT
database execute {"sql":"UPDATE orders SET colour = 1"} | ! no such column: colour; describe_table lists
database list_statements {} | []
database list_statements {"limit":0} | ! minimum

files read_file {"path":"README.md","head":1} | # Nordlys file store
files read_file {"path":"/srv/nordlys/README.md","tail":1} | "text":""
files read_file {"path":"README.md","head":1,"tail":1} | ! 'not' failed
files read_file {"path":"../../etc/passwd"} | ! access denied
files read_file {"path":"/etc/passwd"} | ! access denied
files read_file {"path":"nope.txt"} | ! ENOENT
files read_file {"path":"config"} | ! EISDIR
files read_file {"path":"photos/site-1.png"} | ! use read_media_file
files read_file {"path":"forbidden"} | ! 403
files read_multiple_files {"paths":["README.md","nope"]} | Error - ENOENT
files read_multiple_files {"paths":[]} | ! minItems
files read_media_file {"path":"photos/site-1.png"} | iVBORw0KGgo
files read_media_file {"path":"README.md"} | ! not an image
files list_directory {"path":"."} | [DIR] config
files list_directory {"path":"README.md"} | ! ENOTDIR
files directory_tree {"path":"config"} | [{"name":"ingest.yaml","type":"file"}]
files directory_tree {"path":".","depth":1} | {"name":"config","type":"directory","children":[]}
files directory_tree {"path":"."} | summary.md
files directory_tree {"path":"nope"} | ! ENOENT
files search_files {"path":".","pattern":"*.yaml"} | {"paths":["/srv/nordlys/config/ingest.yaml"]}
files search_files {"path":"logs","pattern":"*.log","containing":"ERROR","excludePatterns":["ingest-0*"]} | /srv/nordlys/logs/2026/
files search_files {"path":".","pattern":"["} | ! malformed
files get_file_info {"path":"config/ingest.yaml"} | permissions: 444
files get_file_info {"path":"nope"} | ! ENOENT
files list_allowed_directories {} | /srv/nordlys
files write_file {"path":"reports/new.md","content":"x"} | Successfully wrote
files write_file {"path":"nowhere/new.md","content":"x"} | ! ENOENT
files write_file {"path":"config/ingest.yaml","content":"x"} | ! EACCES
files write_file {"path":"config","content":"x"} | ! EISDIR
files edit_file {"path":"README.md","edits":[{"oldText":"Logs","newText":"Protocols"}]} | +Protocols
files edit_file {"path":"README.md","edits":[{"oldText":"o","newText":"0"}]} | ! must occur exactly once
files create_directory {"path":"a/b/c"} | Successfully created
files create_directory {"path":"README.md/x"} | ! EEXIST
files move_file {"source":"reports","destination":"old-reports"} | Successfully moved
files move_file {"source":"reports","destination":"reports/x"} | ! EINVAL
files move_file {"source":"README.md","destination":"config/ingest.yaml"} | ! EACCES
files move_file {"source":"nope","destination":"x"} | ! ENOENT
files delete_file {"path":"logs","recursive":true} | Successfully deleted
files delete_file {"path":"logs"} | ! ENOTEMPTY
files delete_file {"path":"."} | ! EACCES
files get_change_log {} | []
files get_change_log {"limit":-1} | ! minimum
`

var callLine = regexp.MustCompile(`^(\w+) (\w+) (\{.*\}) \| (! )?(.*)$`)

func TestCalls(t *testing.T) {
	covered := map[string]bool{}
	for line := range strings.Lines(calls) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" {
			continue
		}
		m := callLine.FindStringSubmatch(line)
		if m == nil {
			t.Fatalf("malformed: %s", line)
		}
		covered[m[1]+" "+m[2]+m[4]] = true
		t.Run(m[1]+"/"+m[2], func(t *testing.T) {
			c, s := open(t, m[1])
			o := c.call(m[2], m[3])
			if o.IsError != (m[4] != "") || !strings.Contains(o.raw, m[5]) && !strings.Contains(o.text(), m[5]) {
				t.Errorf("%s: error %v, want %q in\n%.600s", line, o.IsError, m[5], o.raw)
			}
			checkOutput(t, s, m[2], o)
		})
	}
	needState := []string{"chat update_message", "chat delete_message", "calendar respond_to_invite", "mail get_attachment",
		"issues get_pull_request_diff", "issues merge_pull_request"} // see TestStatefulCalls
	for server, tools := range everyTool(t) {
		for _, tool := range tools {
			if !covered[server+" "+tool] && !slices.Contains(needState, server+" "+tool) {
				t.Errorf("%s.%s is not covered", server, tool)
			}
			if takesArguments := !slices.Contains([]string{"list_users", "list_calendars", "list_labels", "list_allowed_directories"}, tool); takesArguments && !covered[server+" "+tool+"! "] {
				t.Errorf("no error of %s.%s is covered", server, tool)
			}
		}
	}
}

func everyTool(t *testing.T) map[string][]string {
	all := map[string][]string{}
	for _, name := range ServerNames() {
		s, err := Open(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range s.definitions {
			all[name] = append(all[name], d.name)
		}
	}
	return all
}

// compileSchema compiles a JSON Schema with an independent library that knows the meta-schemas and all formats.
func compileSchema(schema []byte) (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("tool.json", doc); err != nil {
		return nil, err
	}
	return c.Compile("tool.json")
}

// checkOutput checks that structured content is valid against the tool's outputSchema and equals the text content. A
// tool without an outputSchema must have no structured content.
func checkOutput(t *testing.T, s *DemoServer, tool string, o outcome) {
	t.Helper()
	i := slices.IndexFunc(s.definitions, func(d *toolDefinition) bool { return d.name == tool })
	var def struct {
		OutputSchema json.RawMessage `json:"outputSchema"`
	}
	if err := json.Unmarshal(s.definitions[i].raw, &def); err != nil {
		t.Fatal(err)
	}
	if o.IsError {
		return
	}
	if (def.OutputSchema == nil) != (o.Structured == nil) {
		t.Errorf("%s: outputSchema %.40s, structuredContent %.40s", tool, def.OutputSchema, o.Structured)
	}
	if o.Structured == nil {
		return
	}
	if o.text() != string(o.Structured) {
		t.Errorf("%s: text and structured content differ", tool)
	}
	schema, err := compileSchema(def.OutputSchema)
	if err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(o.Structured))
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(value); err != nil {
		t.Errorf("%s: %v", tool, err)
	}
}

// TestStatefulCalls checks the tools that need something that an earlier call has found or created.
func TestStatefulCalls(t *testing.T) {
	c, s := open(t, "chat")
	sent := mustCall[postedMessage](c, "send_message", `{"channel":"general","text":"Hei"}`)
	checkOutput(t, s, "update_message", c.call("update_message", `{"channel":"general","ts":"`+sent.TS+`","text":"Hei, alle"}`))
	if o := c.call("delete_message", `{"channel":"general","ts":"`+sent.TS+`"}`); o.IsError {
		t.Error(o.text())
	}
	reaction := `{"channel":"deployments","ts":"1793610000.000000","name":"tada"}`
	c.call("add_reaction", reaction)
	if o := c.call("add_reaction", reaction); !strings.Contains(o.text(), "already_reacted") {
		t.Error(o.text())
	}
	if got := tools(s); !slices.Equal(got, []string{"send_message", "update_message", "delete_message", "add_reaction"}) {
		t.Errorf("effects: %v", got)
	}

	c, _ = open(t, "calendar")
	e := mustCall[calendarEvent](c, "get_event", `{"eventId":"evt10000"}`)
	if o := c.call("respond_to_invite", `{"eventId":"evt10000","email":"`+e.Attendees[0].Email+`","response":"declined"}`); o.IsError {
		t.Error(o.text())
	}
	if e = mustCall[calendarEvent](c, "get_event", `{"eventId":"evt10000"}`); e.Attendees[0].Response != "declined" {
		t.Error(e.Attendees)
	}

	c, _ = open(t, "mail")
	found := mustCall[struct{ Messages []struct{ ID string } }](c, "search_messages", `{"query":"has:attachment","maxResults":1}`)
	m := mustCall[mailMessage](c, "get_message", `{"id":"`+found.Messages[0].ID+`"}`)
	o := c.call("get_attachment", `{"messageId":"`+m.ID+`","attachmentId":"`+m.Attachment.ID+`"}`)
	if o.IsError || o.Content[0].Resource.MimeType != pdfMime {
		t.Error(o.raw)
	}
}

func tools(s *DemoServer) []string {
	var list []string
	for _, e := range s.RecordedEffects() {
		list = append(list, e.Tool)
	}
	return list
}

func TestPullRequests(t *testing.T) {
	c, s := open(t, "issues")
	pulls := mustCall[[]repoIssue](c, "list_pull_requests", `{"owner":"nordlys","repo":"aurora","per_page":100}`)
	kinds := map[bool]repoIssue{}
	for _, p := range pulls {
		kinds[p.Pull.Draft || p.Pull.Conflict] = p
	}
	if len(kinds) != 2 {
		t.Fatal("the data has no pull request that can be merged and one that cannot")
	}
	args := func(p repoIssue) string {
		return string(encodeJSON(map[string]any{"owner": "nordlys", "repo": "aurora", "pull_number": p.Number}))
	}
	if o := c.call("get_pull_request_diff", args(kinds[false])); !strings.HasPrefix(o.text(), "diff --git") {
		t.Error(o.text())
	}
	if o := c.call("merge_pull_request", args(kinds[true])); !o.IsError || !strings.Contains(o.text(), "409 Conflict") {
		t.Error(o.text())
	}
	if o := c.call("merge_pull_request", args(kinds[false])); o.IsError {
		t.Error(o.text())
	}
	if o := c.call("merge_pull_request", args(kinds[false])); !strings.Contains(o.text(), "405") {
		t.Error(o.text())
	}
	if n := len(s.RecordedEffects()); n != 1 {
		t.Errorf("%d effects", n)
	}
}

func TestEveryServerHasItsTools(t *testing.T) {
	total := 0
	for server, names := range everyTool(t) {
		s, _ := Open(server)
		if have := slices.Sorted(maps.Keys(s.tools())); !slices.Equal(have, slices.Sorted(slices.Values(names))) {
			t.Errorf("%s: handlers %v, definitions %v", server, have, names)
		}
		if len(names) < 6 || len(names) > 15 {
			t.Errorf("%s has %d tools", server, len(names))
		}
		total += len(names)
	}
	if total < 80 {
		t.Errorf("%d tools in all", total)
	}
}
