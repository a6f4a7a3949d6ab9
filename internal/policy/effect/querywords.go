package effect

var (
	// statements maps each word with which a statement can begin to the class of this word.
	statements = classesByWord(map[wordClass]string{
		reads: `select with show explain describe desc values table from pragma summarize use begin start commit rollback end savepoint
			match optional unwind return ask construct prefix base profile declare`,
		writes: `insert create merge alter set copy load import upsert vacuum reindex cluster analyze refresh optimize attach detach
			comment rename lock unlock unload export cache uncache msck listen notify prepare deallocate discard update backup 
			install security reassign`,
		destroys: `delete drop truncate grant revoke call exec execute do kill shutdown flush purge replace reset restore dbcc deny reconfigure bulk clear remove
			foreach move add undrop handler xp_cmdshell`,
	})
	// reserved contains words that change data at any position in a query.
	reserved = classesByWord(map[wordClass]string{
		writes:   "insert update create alter merge into outfile dumpfile",
		destroys: "delete replace overwrite drop truncate grant revoke exec execute shutdown dbcc deny reconfigure detach xp_cmdshell program",
	})
	// opens contains the words after which a new statement can begin.
	opens = wordSet("begin then else do loop explain")
	// objects contains the kinds of objects that statements create, change and drop.
	objects = wordSet(`table database schema index view user role function procedure trigger sequence type column constraint materialized or temp
		temporary unique external extension keyspace measurement collection stream login warehouse tablespace policy server domain if graph all`)
	// readingPragmas contains the SQLite pragmas that change nothing.
	readingPragmas = wordSet(`table_info table_xinfo table_list index_list index_info index_xinfo foreign_key_list database_list collation_list
		compile_options integrity_check quick_check foreign_key_check function_list module_list pragma_list user_version page_count page_size freelist_count
		encoding schema_version application_id`)
	// beforeParen contains words that are not functions although a parenthesis can follow them.
	beforeParen = wordSet(`select in values as over and or not exists any all some from join on using where case when then else with by interval limit
		filter partition array row cast group order having union except intersect distinct returning is like between end set is cross lateral within
		varchar char character nvarchar nchar numeric decimal float double precision real timestamp datetime datetime2 time bit varbinary binary
		unnest table offset fetch top if rollup cube sets materialized recursive explain analyze columns struct map list primary key unique check references
		foreign constraint match return unwind optional call yield qualify window into default begin while elseif`)
	// purePrefixes contains prefixes of the names of functions that only compute a value.
	purePrefixes = []string{
		"json_", "jsonb_", "array_", "regexp_", "string_", "date_", "time_", "timestamp_", "st_", "approx_", "bit_",
		"percentile_", "is_", "safe_", "parse_", "format_",
	}
	// pureFunctions contains functions that only compute a value.
	pureFunctions = wordSet(`count sum avg min max total group_concat string_agg array_agg listagg coalesce nullif ifnull nvl nvl2 isnull iif greatest least
		abs ceil ceiling floor round sign sqrt power pow exp ln log log2 log10 mod div trunc truncate random rand pi degrees radians sin cos tan asin acos atan atan2
		lower upper initcap length len char_length character_length octet_length substr substring left right trim ltrim rtrim btrim lpad rpad replace insert
		translate concat concat_ws position strpos instr locate charindex patindex split_part split reverse repeat replicate space ascii chr char unicode hex unhex
		format quote quote_ident quote_literal md5 sha sha1 sha2 sha256 sha512 crc32 encode decode to_base64 from_base64 soundex levenshtein similarity
		now current_timestamp current_date current_time localtime localtimestamp getdate getutcdate sysdate sysdatetime curdate curtime date time datetime
		year month day hour minute second quarter week weekday dayofweek dayofyear dayofmonth dayname monthname last_day strftime julianday unixepoch datepart
		datediff dateadd datename datetrunc date_trunc date_part extract age to_char to_date to_timestamp to_number to_json to_jsonb to_tsvector to_tsquery
		plainto_tsquery websearch_to_tsquery ts_rank ts_headline from_unixtime unix_timestamp timestampdiff timestampadd make_date make_interval make_timestamp
		generate_series row_number rank dense_rank ntile lag lead first_value last_value nth_value cume_dist percent_rank stddev stddev_pop stddev_samp
		variance var_pop var_samp corr covar_pop covar_samp median mode any_value bool_and bool_or every cardinality unnest flatten
		convert try_cast try_convert typeof pg_typeof version database schema user current_user session_user current_schema current_database
		pg_size_pretty pg_total_relation_size pg_relation_size pg_database_size pg_table_size pg_indexes_size pg_get_viewdef pg_get_indexdef pg_get_constraintdef
		pg_get_functiondef obj_description col_description format_type has_table_privilege object_id object_name db_name host_name isjson json json_value
		json_query openjson countif sumif avgif countdistinct uniq uniqexact quantile argmin argmax tostring toint32 toint64 tofloat64 todate todatetime
		tostartofmonth tostartofday tostartofweek tostartofhour has hasany arrayjoin array_length nodes relationships labels keys properties id elementid
		type size collect distinct tolower toupper tointeger tofloat toboolean head last tail range exists point distance startnode endnode
		row_to_json xmlagg glob likelihood changes last_insert_rowid zeroblob typeof printf char_index nullifzero zeroifnull decode rowcount regexp like
		str lang langmatches datatype bound iri uri bnode strdt strlang sameterm isiri isblank isliteral contains strstarts strends substr strlen lcase ucase
		coalesce if rand abs struuid uuid gen_random_uuid newid uuid_generate_v4 hash farm_fingerprint
		date_format time_format date_add date_sub adddate subdate regexp_replace array_append array_prepend array_remove array_replace array_cat
		jsonb_set jsonb_insert json_set json_insert json_replace json_remove json_patch json_merge_patch json_array_append json_array_insert
		to_hex format_date format_timestamp parse_date parse_timestamp string_to_array array_to_string regexp_matches regexp_split_to_table
		get_json_object time_bucket`)
)
