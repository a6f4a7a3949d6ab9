package python

import (
	"slices"
	"strings"
)

// packageAdvice lists well-known packages that programs cannot import. Each key is a hint on what to use instead of
// the packages in its value.
var packageAdvice = map[string]string{
	"urllib.request reaches only the domains in the setting network.whitelist, and there is no other network access; look for a tool with search_tools": "requests httpx aiohttp urllib3 websockets websocket " +
		"selenium playwright openai anthropic boto3 botocore github slack_sdk slack googleapiclient google gspread stripe twilio notion_client jira",
	"use csv, collections.Counter, itertools.groupby and statistics over plain lists and dicts": "pandas polars duckdb pyarrow dask tabulate",
	"use math, statistics and plain lists":                                                      "numpy scipy sklearn sympy torch tensorflow",
	"programs cannot draw; return the numbers":                                                  "matplotlib seaborn plotly altair PIL cv2",
	"use html.parser for HTML and xml.etree.ElementTree for XML":                                "bs4 lxml html5lib parsel scrapy markdownify html2text",
	"use json; for simple YAML split lines with str.partition":                                  "yaml ruamel toml",
	"use datetime.fromisoformat, datetime.strptime and timedelta":                               "dateutil arrow pendulum dateparser maya",
	"use zoneinfo.ZoneInfo":                                                                     "pytz tzlocal",
	"use dataclasses, and plain checks with isinstance":                                         "pydantic attr attrs marshmallow jsonschema cerberus",
	"use print, without colours":                                                                "rich tqdm colorama termcolor click loguru",
	"use for with try and except, and time.sleep between attempts":                              "tenacity backoff retry retrying",
	"programs have no environment variables and no secrets: the servers are already logged in":  "dotenv environs decouple",
	"programs reach databases only through tools; find one with search_tools":                   "psycopg psycopg2 pymysql sqlalchemy pymongo redis asyncpg",
	"use json, csv, zipfile and io; a spreadsheet tool returns cells as values":                 "openpyxl xlrd xlsxwriter docx PyPDF2 pypdf pdfplumber fitz",
	"use asyncio, which has gather, TaskGroup and Semaphore":                                    "anyio trio nest_asyncio gevent",
	"use json":           "orjson ujson simplejson",
	"use difflib and re": "fuzzywuzzy rapidfuzz Levenshtein regex nltk spacy",
	"servers are connected already: from servers import <server>": "mcp fastmcp",
}

// suggestInstead returns a hint on what to use instead of a package, or "".
func suggestInstead(head string) string {
	for hint, names := range packageAdvice {
		if slices.Contains(strings.Fields(names), head) {
			return hint
		}
	}
	return ""
}
