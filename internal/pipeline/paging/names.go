package paging

import (
	"slices"
	"strings"
)

// nameRank lists folded names of parameters or fields with one meaning, the most telling first.
type nameRank []string

func namesOf(text string) nameRank { return strings.Fields(text) }

func (r nameRank) has(folded string) bool { return slices.Contains(r, folded) }

// Names of parameters that select a page.
var (
	cursorParams = namesOf(`cursor pagetoken nextpagetoken nexttoken nextcursor continuationtoken continuetoken continuation
		continue paginationtoken startingtoken starttoken startcursor pagecursor aftercursor cursorid marker nextmarker scrollid
		bookmark skiptoken after`)
	idParams     = namesOf(`startingafter startafter startingafterid afterid lastid sinceid after`)
	pageParams   = namesOf(`page pagenumber pagenum pageno pageindex currentpage`)
	offsetParams = namesOf(`offset skip startat startindex startposition firstresult start from`)
	otherParams  = namesOf(`token batch chunk link url pageurl pagelink`) // for a field such as next_chunk
	sizeParams   = namesOf(`limit perpage pagesize maxresults maxitems first top size count take`)
)

// Names of fields of answers. Those of nextFields hold the value that selects the next page, and those of
// insideNext do if they are members of an object named next.
var (
	nextFields = namesOf(`nextcursor nextpagetoken nexttoken nextpagecursor nextcontinuationtoken nextmarker nextoffset nextpage
		next nextlink nexturl nextpageurl nextpagelink @odata.nextlink endcursor continuationtoken continuetoken continuation
		continue paginationtoken scrollid bookmark marker lastid cursor`)
	insideNext  = namesOf(`after cursor pagetoken token marker offset page href url link`)
	linkFields  = namesOf(`next nextlink nexturl nextpageurl nextpagelink @odata.nextlink href url link`)
	moreFields  = namesOf(`hasmore hasnext hasnextpage hasmorepages hasmoreitems hasmoreresults moreavailable istruncated more`)
	endFields   = namesOf(`islast islastpage lastpage last isend`)
	pagesFields = namesOf(`pages totalpages pagecount totalpagecount numpages numberofpages lastpage`)
	totalFields = namesOf(`total totalcount totalresults totalitems totalrecords totalelements totalhits totalrows totalsize`)
	shownFields = namesOf(`page pagenumber currentpage pagenum pageno pageindex number`)
	idFields    = namesOf(`id uuid`)
	itemsFields = namesOf(`items data results records rows entries values elements nodes edges hits objects list content`)
	containers  = namesOf(`responsemetadata meta metadata pagination paging paginginfo paginationinfo pageinfo page links next
		cursors cursor`)
)

// foldName returns a name in small letters without separators, so that next_cursor and nextCursor are the same.
func foldName(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' {
			return -1
		}
		return r
	}, strings.ToLower(name))
}

// selectsNext reports whether a field with this folded name holds the value that selects the next page. Names such as
// next_run, whose rest is no name of a parameter for paging, are fields of other meaning.
func selectsNext(folded string) bool {
	rest, ok := strings.CutPrefix(folded, "next")
	return nextFields.has(folded) || ok && selectsPage(rest)
}

// selectsPage reports whether a parameter with this folded name may select a page.
func selectsPage(folded string) bool {
	for _, names := range []nameRank{cursorParams, idParams, pageParams, offsetParams, otherParams} {
		if names.has(folded) {
			return true
		}
	}
	return false
}
