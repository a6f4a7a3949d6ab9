package typescript

import "strings"

// Hints on what to use instead of common packages and modules.
const (
	noNetwork   = "fetch reaches only the domains in the setting network.whitelist, and there is no other network access; look for a tool with search_tools"
	noProcesses = "programs cannot start processes or threads: run calls concurrently with await Promise.all([…])"
	forLists    = "use what is built in: Object.groupBy, map, filter, toSorted, flatMap, new Set, structuredClone"
	forChecks   = "write plain checks with typeof and Array.isArray; TypeScript's own types are checked already"
	forDates    = "use Date, and Intl.DateTimeFormat with a timeZone"
	forMarkup   = "there is no parser for HTML or XML: use regular expressions and String.split, or a tool that returns plain text"
	forTables   = "read with node:fs/promises, and split lines and fields with String.split or a regular expression"
	forConfig   = "there is no YAML parser: use JSON, which tools accept and return"
	forFiles    = "use node:fs/promises: mkdir and rm with {recursive: true}, readdir with {recursive: true}, cp"
	forLimits   = "a program may await Promise.all over hundreds of calls: Retort queues them"
	noSettings  = "programs have no environment variables and no secrets: the servers are already logged in"
	forIDs      = "use crypto.randomUUID(), which needs no import"
	forDecimals = "use BigInt with the smallest unit (cents), or Number and toFixed"
	forPrinting = "use console.log and console.table, without colours"
	forDatabase = "programs reach databases only through tools; find one with search_tools"
	forMCP      = "servers are connected already: import * as name from './servers/name'"
)

// packageAdvice maps hints to the names of well-known packages that programs cannot import. The hint says what to use
// instead.
var packageAdvice = map[string]string{
	noNetwork: "axios node-fetch got ky undici superagent request request-promise cross-fetch isomorphic-fetch whatwg-fetch needle " +
		"http https http2 net tls dns dgram ws socket.io-client puppeteer playwright express nodemailer " +
		"openai @anthropic-ai/sdk @octokit/rest @octokit/core octokit googleapis @slack/web-api @aws-sdk aws-sdk stripe @notionhq/client",
	noProcesses: "child_process worker_threads cluster execa shelljs zx",
	forLists:    "lodash lodash-es underscore ramda immer remeda just-group-by",
	forChecks:   "zod joi yup ajv io-ts superstruct valibot",
	forDates:    "moment moment-timezone dayjs date-fns date-fns-tz luxon @js-joda/core",
	forMarkup:   "cheerio jsdom linkedom node-html-parser htmlparser2 xml2js fast-xml-parser turndown marked markdown-it",
	forTables:   "csv csv-parse csv-parser csv-stringify papaparse fast-csv xlsx exceljs",
	forConfig:   "yaml js-yaml toml ini",
	forFiles:    "fs-extra glob globby fast-glob rimraf mkdirp",
	forLimits:   "p-limit p-map p-queue p-retry async async-retry bottleneck bluebird",
	noSettings:  "dotenv dotenv-safe config keytar",
	forIDs:      "uuid nanoid cuid ulid",
	forDecimals: "decimal.js big.js bignumber.js currency.js",
	forPrinting: "chalk kleur picocolors cli-table3 ora winston pino debug",
	forDatabase: "pg mysql mysql2 sqlite3 better-sqlite3 mongodb mongoose redis ioredis knex typeorm @prisma/client",
	forMCP:      "@modelcontextprotocol/sdk mcp-client",
}

// suggestInstead returns a hint on what to use instead of the package that an import specifier names. It returns ""
// if there is no hint for the package.
func suggestInstead(specifier string) string {
	name := strings.TrimPrefix(strings.TrimPrefix(specifier, "node:"), "npm:")
	parts := strings.SplitN(name, "/", 3)
	candidates := []string{name, parts[0]}
	if len(parts) > 1 {
		candidates = append(candidates, parts[0]+"/"+parts[1])
	}
	for hint, names := range packageAdvice {
		for _, known := range strings.Fields(names) {
			for _, candidate := range candidates {
				if candidate == known {
					return hint
				}
			}
		}
	}
	return ""
}
