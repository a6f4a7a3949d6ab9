package demo

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	folderMime   = "application/vnd.nordlys.folder"
	documentMime = "application/vnd.nordlys.document"
	sheetMime    = "application/vnd.nordlys.spreadsheet"
	pdfMime      = "application/pdf"
	pngMime      = "image/png"
)

type driveServer struct {
	*serverBase
	w     *demoWorld
	files []*driveFile // files and folders, initially sorted by time of change, newest first
	byID  map[string]*driveFile
}

type driveFile struct {
	ID       string    `json:"id"`
	Name     string    `json:"name"`
	MimeType string    `json:"mimeType"`
	FolderID string    `json:"folderId,omitempty"`
	Owner    string    `json:"owner"`
	Modified time.Time `json:"modifiedTime"`
	Size     int       `json:"size"`
	Version  int       `json:"version"`
	Trashed  bool      `json:"trashed,omitempty"`

	shares []accessGrant
	body   func() string // generates the content on first use
}

func buildDrive(b *serverBase) map[string]toolFunc {
	d := newDrive(b)
	return map[string]toolFunc{
		"search_files":      readTool(d.searchFiles),
		"list_folder":       readTool(d.listFolder),
		"get_file_metadata": readTool(d.fileMetadata),
		"get_document":      readTool(d.getDocument),
		"get_sheet":         readTool(d.getSheet),
		"export_file":       readTool(d.exportFile),
		"get_thumbnail":     readTool(d.makeThumbnail),
		"list_activity":     readTool(d.fileActivity),
		"create_document":   writeTool(d.createDocument),
		"update_document":   writeTool(d.updateDocument),
		"move_file":         writeTool(d.moveFile),
		"share_file":        writeTool(d.shareFile),
		"trash_file":        writeTool(d.trashFile),
	}
}

// findFile finds a file that is not a folder.
func (d *driveServer) findFile(id string) (*driveFile, error) {
	if err := d.provokedError(id); err != nil {
		return nil, err
	}
	f, ok := d.byID[id]
	if !ok || f.MimeType == folderMime {
		return nil, notFound("file", id)
	}
	return f, nil
}

func (d *driveServer) checkFolder(id string) error {
	if f, ok := d.byID[id]; id == "root" || ok && f.MimeType == folderMime {
		return nil
	}
	return d.missingError("folder", id)
}

type fileList struct {
	Files []*driveFile `json:"files"`
	Next  string       `json:"nextPageToken,omitempty"`
}

type searchFiles struct {
	Query         string    `json:"query"`
	MimeType      string    `json:"mimeType"`
	FolderID      string    `json:"folderId"`
	ModifiedAfter time.Time `json:"modifiedAfter"`
	PageSize      int       `json:"pageSize"`
	PageToken     string    `json:"pageToken"`
}

func (d *driveServer) searchFiles(in searchFiles) (toolResult, error) {
	if in.FolderID != "" {
		if err := d.checkFolder(in.FolderID); err != nil {
			return toolResult{}, err
		}
	}
	var found []*driveFile
	for _, f := range d.files {
		if !f.Trashed && f.MimeType != folderMime && containsFold(f.Name, in.Query) && orDefault(in.MimeType, f.MimeType) == f.MimeType &&
			orDefault(in.FolderID, f.FolderID) == f.FolderID && !f.Modified.Before(in.ModifiedAfter) {
			found = append(found, f)
		}
	}
	return listFiles(found, "search:"+in.Query, in.PageToken, orDefault(in.PageSize, 50))
}

func listFiles(found []*driveFile, scope, token string, size int) (toolResult, error) {
	page, next, err := pageByToken(found, scope, token, size)
	if err != nil {
		return toolResult{}, err
	}
	return structuredResult(fileList{page, next})
}

type listFolder struct {
	FolderID  string `json:"folderId"`
	OrderBy   string `json:"orderBy"`
	PageSize  int    `json:"pageSize"`
	PageToken string `json:"pageToken"`
}

func (d *driveServer) listFolder(in listFolder) (toolResult, error) {
	id := orDefault(in.FolderID, "root")
	if err := d.checkFolder(id); err != nil {
		return toolResult{}, err
	}
	var inside []*driveFile
	for _, f := range d.files {
		if f.FolderID == id && !f.Trashed {
			inside = append(inside, f)
		}
	}
	slices.SortStableFunc(inside, func(a, b *driveFile) int {
		switch in.OrderBy {
		case "modifiedTime desc":
			return b.Modified.Compare(a.Modified)
		case "size desc":
			return b.Size - a.Size
		}
		return cmp.Compare(a.Name, b.Name)
	})
	return listFiles(inside, "folder:"+id, in.PageToken, orDefault(in.PageSize, 50))
}

func (d *driveServer) fileMetadata(in struct {
	FileID string `json:"fileId"`
}) (toolResult, error) {
	f, err := d.findFile(in.FileID)
	if err != nil {
		return toolResult{}, err
	}
	return jsonText(struct {
		*driveFile
		WebViewLink string        `json:"webViewLink"`
		Permissions []accessGrant `json:"permissions"`
	}{f, f.webLink(), append([]accessGrant{}, f.shares...)})
}

func (f *driveFile) webLink() string { return "https://drive.nordlys.example/d/" + f.ID }

type textDocument struct {
	DocumentID string    `json:"documentId"`
	Title      string    `json:"title"`
	Content    string    `json:"content"`
	Owner      string    `json:"owner"`
	Modified   time.Time `json:"modifiedTime"`
	Version    int       `json:"version"`
}

func (d *driveServer) getDocument(in struct {
	DocumentID string `json:"documentId"`
	Format     string `json:"format"`
}) (toolResult, error) {
	f, err := d.findFile(in.DocumentID)
	if err != nil {
		return toolResult{}, err
	}
	if f.MimeType != documentMime {
		return toolResult{}, fmt.Errorf("400 Bad request: '%s' is of type %s; use export_file", f.ID, f.MimeType)
	}
	content := f.body()
	if in.Format == "markdown" {
		content = "# " + f.Name + "\n\n" + content
	}
	return structuredResult(textDocument{f.ID, f.Name, content, f.Owner, f.Modified, f.Version})
}

// getSheet returns all rows of a range as an array of objects, without pages. So the answer can be large: the table
// of orders has 10,000 rows.
func (d *driveServer) getSheet(in struct {
	SheetID string `json:"sheetId"`
	Range   struct {
		Start int `json:"startRow"`
		End   int `json:"endRow"`
	} `json:"range"`
}) (toolResult, error) {
	f, err := d.findFile(in.SheetID)
	if err != nil {
		return toolResult{}, err
	}
	if f.MimeType != sheetMime {
		return toolResult{}, fmt.Errorf("400 Bad request: '%s' is of type %s, not a spreadsheet", f.ID, f.MimeType)
	}
	t := d.sheetOf(f)
	start := orDefault(in.Range.Start, 1)
	end := orDefault(in.Range.End, len(t.rows))
	if end < start {
		return toolResult{}, fmt.Errorf("400 Bad request: the range ends in row %d, before it starts in row %d", end, start)
	}
	return jsonText(t.encodeRows(pageByOffset(t.rows, start-1, end-start+1)))
}

func (d *driveServer) sheetOf(f *driveFile) *dataTable {
	t := makeOrders(d.w)
	if f.ID != ordersSheet {
		r := newSeededRand(f.ID)
		t.rows = pageByOffset(t.rows, r.IntN(orderCount-200), randomBetween(r, 20, 200))
	}
	return t
}

func (d *driveServer) fileActivity(in struct {
	FileID    string `json:"fileId"`
	PageSize  int    `json:"pageSize"`
	PageToken string `json:"pageToken"`
}) (toolResult, error) {
	page, next, err := pageByToken(d.effectsOn(in.FileID), "activity:"+in.FileID, in.PageToken, orDefault(in.PageSize, 50))
	if err != nil {
		return toolResult{}, err
	}
	return structuredResult(struct {
		Activities []RecordedEffect `json:"activities"`
		Next       string           `json:"nextPageToken,omitempty"`
	}{page, next})
}

func (d *driveServer) createDocument(in struct {
	Title    string `json:"title"`
	Content  string `json:"content"`
	FolderID string `json:"folderId"`
}) (toolResult, error) {
	folder := orDefault(in.FolderID, "root")
	if err := d.checkFolder(folder); err != nil {
		return toolResult{}, err
	}
	f := &driveFile{ID: fmt.Sprintf("doc-%06d", 900_000+len(d.effects)), Name: in.Title, MimeType: documentMime, FolderID: folder,
		Owner: d.w.staff[0].Email, Modified: d.nextTime(), Size: len(in.Content), Version: 1, body: fixedContent(in.Content)}
	d.files = append([]*driveFile{f}, d.files...)
	d.byID[f.ID] = f
	d.recordEffect("create_document", f.ID, "created '%s'", f.Name)
	return structuredResult(changedFile{f.ID, f.Version, f.webLink()})
}

type changedFile struct {
	ID      string `json:"id"`
	Version int    `json:"version"`
	Link    string `json:"webViewLink"`
}

// recordChange increases the version of a file and records the change.
func (d *driveServer) recordChange(f *driveFile, tool, format string, args ...any) (toolResult, error) {
	f.Version++
	f.Modified = d.nextTime()
	d.recordEffect(tool, f.ID, format, args...)
	return structuredResult(changedFile{f.ID, f.Version, f.webLink()})
}

func (d *driveServer) updateDocument(in struct {
	DocumentID      string `json:"documentId"`
	Content         string `json:"content"`
	Mode            string `json:"mode"`
	ExpectedVersion int    `json:"expectedVersion"`
}) (toolResult, error) {
	f, err := d.findFile(in.DocumentID)
	if err != nil {
		return toolResult{}, err
	}
	if f.MimeType != documentMime {
		return toolResult{}, fmt.Errorf("400 Bad request: '%s' is not a document", f.ID)
	}
	if v := in.ExpectedVersion; v != 0 && v != f.Version {
		return toolResult{}, fmt.Errorf("409 Conflict: '%s' is at version %d, not %d; read it again", f.ID, f.Version, v)
	}
	content := in.Content
	if in.Mode == "append" {
		content = f.body() + content
	}
	f.body, f.Size = fixedContent(content), len(content)
	return d.recordChange(f, "update_document", "%s %d bytes", orDefault(in.Mode, "replace"), len(in.Content))
}

func (d *driveServer) moveFile(in struct {
	FileID   string `json:"fileId"`
	FolderID string `json:"folderId"`
}) (toolResult, error) {
	f, err := d.findFile(in.FileID)
	if err == nil {
		err = d.checkFolder(in.FolderID)
	}
	if err != nil {
		return toolResult{}, err
	}
	if f.FolderID == in.FolderID {
		return structuredResult(changedFile{f.ID, f.Version, f.webLink()})
	}
	f.FolderID = in.FolderID
	return d.recordChange(f, "move_file", "moved to %s", in.FolderID)
}

type accessGrant struct {
	Type   string `json:"type"`
	Role   string `json:"role"`
	Email  string `json:"email,omitempty"`
	Domain string `json:"domain,omitempty"`
}

func (d *driveServer) shareFile(in struct {
	FileID string      `json:"fileId"`
	Grant  accessGrant `json:"grant"`
}) (toolResult, error) {
	f, err := d.findFile(in.FileID)
	if err != nil {
		return toolResult{}, err
	}
	f.shares = append(f.shares, in.Grant)
	who := strings.TrimSpace(in.Grant.Type + " " + in.Grant.Email + in.Grant.Domain)
	f.Version++
	d.recordEffect("share_file", f.ID, "%s as %s", who, in.Grant.Role)
	return partsResult(textPart{"text", fmt.Sprintf("Shared '%s' with %s as %s.", f.Name, who, in.Grant.Role)},
		linkPart{"resource_link", f.webLink(), f.Name, f.MimeType})
}

func (d *driveServer) trashFile(in struct {
	FileID    string `json:"fileId"`
	Permanent bool   `json:"permanent"`
}) (toolResult, error) {
	f, err := d.findFile(in.FileID)
	if err != nil {
		return toolResult{}, err
	}
	if !in.Permanent {
		f.Trashed = true
		d.recordEffect("trash_file", f.ID, "to the trash")
		return textResult("'%s' is in the trash and can be restored for 30 days.", f.Name)
	}
	delete(d.byID, f.ID)
	d.files = slices.DeleteFunc(d.files, func(x *driveFile) bool { return x == f })
	d.recordEffect("trash_file", f.ID, "deleted for good")
	return textResult("'%s' was deleted for good.", f.Name)
}
